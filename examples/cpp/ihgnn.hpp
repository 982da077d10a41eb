// Turns graphs into the inputs of an exported model, in either layout (docs/export.md). Depends on
// no runtime: the arrays fit OpenVINO, onnxruntime and others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "json.hpp"

namespace ihgnn {

struct Graph {
    std::size_t nodes{};
    std::vector<std::string> labels;  // as text; empty for models of degrees or attributes
    std::vector<std::pair<std::int64_t, std::int64_t>> edges;  // each once, in any direction
    std::vector<std::vector<float>> attributes;  // one list per node, if the model reads them
};

struct Array {
    std::vector<std::size_t> shape;
    std::variant<std::vector<std::int64_t>, std::vector<std::uint8_t>, std::vector<float>> data;
};

inline bool operator==(const Array& one, const Array& other) {
    return one.shape == other.shape && one.data == other.data;
}

using Inputs = std::map<std::string, Array>;

class Model {
public:
    // Takes the content of MODEL.json.
    explicit Model(const Json& metadata) {
        const Json& card = metadata.at("card");
        sparse_ = metadata.at("layout").text() == "sparse";
        reads_labels_ = card.at("features").text() != "attributes";
        counts_degrees_ = reads_labels_ && card.at("label_source").text() == "degree";
        attributes_ = static_cast<std::size_t>(card.at("attributes").integer());
        if (card.has("columns") && !card.at("columns").list().empty())
            throw std::invalid_argument("the model reads inputs that are computed from the graph "
                                        "(--inputs), which this encoder does not compute");
        if (card.has("edge_label_values") || card.has("background_edge_label"))
            throw std::invalid_argument("the model reads edge labels (--edge-labels, --edge-bins or "
                                        "--background-edge-label), which this encoder does not read");
        unknown_ = metadata.at("unknown_label").integer();
        if (!sparse_) padding_ = metadata.at("padding_label").integer();
        if (const Json& fixed = metadata.at("padded_to"); !fixed.is_null())
            padded_to_ = static_cast<std::size_t>(fixed.integer());
        if (metadata.has("batch") && !metadata.at("batch").is_null())
            batch_ = static_cast<std::size_t>(metadata.at("batch").integer());
        for (const Json& each : card.at("label_values").list())
            positions_.emplace(each.text(), positions_.size());
        for (const Json& each : card.at("class_values").list()) classes.push_back(each.text());
    }

    std::vector<std::string> classes;  // in the column order of the outputs

    // The inputs of one batch. Throws std::invalid_argument if the model cannot read a graph.
    Inputs encode(const std::vector<Graph>& graphs) const {
        if (batch_ && graphs.size() > batch_)
            throw std::invalid_argument("the model was exported for " + std::to_string(batch_) +
                                        " graphs at a time");
        for (const Graph& graph : graphs) check(graph);
        return sparse_ ? encode_sparse(graphs) : encode_padded(graphs);
    }

private:
    using Neighbors = std::vector<std::set<std::size_t>>;

    // Without directions, duplicates and self-loops, in order.
    static Neighbors neighbors(const Graph& graph) {
        Neighbors found(graph.nodes);
        for (const auto& [one, other] : graph.edges) {
            if (one == other) continue;
            found[static_cast<std::size_t>(one)].insert(static_cast<std::size_t>(other));
            found[static_cast<std::size_t>(other)].insert(static_cast<std::size_t>(one));
        }
        return found;
    }

    void check(const Graph& graph) const {
        const auto nodes = static_cast<std::int64_t>(graph.nodes);
        if (graph.nodes == 0) throw std::invalid_argument("a graph without nodes");
        if (reads_labels_ && !counts_degrees_ && graph.labels.size() != graph.nodes)
            throw std::invalid_argument("the model reads labels: give one for each node");
        if (attributes_ && graph.attributes.size() != graph.nodes)
            throw std::invalid_argument("the model reads attributes: give a list for each node");
        for (const auto& row : graph.attributes)
            if (attributes_ && row.size() != attributes_)
                throw std::invalid_argument("the model reads " + std::to_string(attributes_) +
                                            " attributes per node");
        for (const auto& [one, other] : graph.edges)
            if (one < 0 || other < 0 || one >= nodes || other >= nodes)
                throw std::invalid_argument(
                    "an edge leaves the graph: nodes are counted from 0 to " +
                    std::to_string(nodes - 1));
        if (padded_to_ && graph.nodes > padded_to_)
            throw std::invalid_argument("the model was exported for up to " +
                                        std::to_string(padded_to_) + " nodes");
    }

    std::int64_t position(const Graph& graph, const Neighbors& others, std::size_t node) const {
        if (!reads_labels_) return unknown_;
        const auto found = positions_.find(counts_degrees_ ? std::to_string(others[node].size())
                                                           : graph.labels[node]);
        return found == positions_.end() ? unknown_ : static_cast<std::int64_t>(found->second);
    }

    Inputs encode_sparse(const std::vector<Graph>& graphs) const {
        std::vector<std::int64_t> labels, sources, targets, ptr{0};
        std::vector<float> attributes;
        for (const Graph& graph : graphs) {
            const Neighbors others = neighbors(graph);
            const std::int64_t start = ptr.back();
            for (std::size_t node = 0; node < graph.nodes; ++node) {
                labels.push_back(position(graph, others, node));
                for (const std::size_t other : others[node]) {
                    sources.push_back(start + static_cast<std::int64_t>(node));
                    targets.push_back(start + static_cast<std::int64_t>(other));
                }
                if (attributes_)
                    attributes.insert(attributes.end(), graph.attributes[node].begin(),
                                      graph.attributes[node].end());
            }
            ptr.push_back(start + static_cast<std::int64_t>(graph.nodes));
        }
        const std::size_t nodes = labels.size(), edges = sources.size(), ends = ptr.size();
        sources.insert(sources.end(), targets.begin(), targets.end());
        Inputs found{{"node_labels", {{nodes}, std::move(labels)}},
                     {"edge_index", {{2, edges}, std::move(sources)}},
                     {"ptr", {{ends}, std::move(ptr)}}};
        if (attributes_) found["attributes"] = {{nodes, attributes_}, std::move(attributes)};
        return found;
    }

    Inputs encode_padded(const std::vector<Graph>& graphs) const {
        // With a fixed batch, places without a graph have padding only.
        const std::size_t count = batch_ ? batch_ : graphs.size();
        std::size_t size = padded_to_ ? padded_to_ : 1;
        for (const Graph& graph : graphs) size = std::max(size, graph.nodes);
        std::vector<std::int64_t> labels(count * size, padding_);
        std::vector<std::uint8_t> adjacency(count * size * size);
        std::vector<float> attributes(count * size * attributes_);
        for (std::size_t g = 0; g < graphs.size(); ++g) {
            const Neighbors others = neighbors(graphs[g]);
            for (std::size_t node = 0; node < graphs[g].nodes; ++node) {
                const std::size_t row = g * size + node;
                labels[row] = position(graphs[g], others, node);
                for (const std::size_t other : others[node]) adjacency[row * size + other] = 1;
                for (std::size_t column = 0; column < attributes_; ++column)
                    attributes[row * attributes_ + column] = graphs[g].attributes[node][column];
            }
        }
        Inputs found{{"node_labels", {{count, size}, std::move(labels)}},
                     {"adjacency", {{count, size, size}, std::move(adjacency)}}};
        if (attributes_)
            found["attributes"] = {{count, size, attributes_}, std::move(attributes)};
        return found;
    }

    bool sparse_{}, reads_labels_{}, counts_degrees_{};
    std::size_t attributes_{}, padded_to_{}, batch_{};
    std::int64_t unknown_{}, padding_{};
    std::map<std::string, std::size_t> positions_;
};

}  // namespace ihgnn
