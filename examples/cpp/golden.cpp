// golden MODEL.golden.json
// Checks that this machine's OpenVINO gives the answers that `ihgnn export` stored beside the
// model, and that ihgnn.hpp encodes their graphs as Python does.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <openvino/openvino.hpp>

#include "ihgnn.hpp"

namespace {

Json read(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw std::runtime_error("cannot read " + path.string());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    return JsonReader(text).document();
}

ihgnn::Graph graph_of(const Json& line) {
    ihgnn::Graph graph;
    if (line.has("node_labels"))
        for (const Json& each : line.at("node_labels").list()) graph.labels.push_back(each.text());
    if (line.has("node_attributes"))
        for (const Json& each : line.at("node_attributes").list())
            graph.attributes.push_back(each.numbers<float>());
    for (const Json& each : line.at("edges").list())
        graph.edges.emplace_back(each.list().at(0).integer(), each.list().at(1).integer());
    graph.nodes = line.has("num_nodes") ? static_cast<std::size_t>(line.at("num_nodes").integer())
                                        : std::max(graph.labels.size(), graph.attributes.size());
    return graph;
}

ihgnn::Array array_of(const Json& plain) {
    ihgnn::Array array{plain.at("shape").numbers<std::size_t>(), {}};
    const std::string type = plain.at("type").text();
    if (type == "int64")
        array.data = plain.at("data").numbers<std::int64_t>();
    else if (type == "uint8")
        array.data = plain.at("data").numbers<std::uint8_t>();
    else
        array.data = plain.at("data").numbers<float>();
    return array;
}

// A view of the array, which has to outlive it.
ov::Tensor tensor_of(ihgnn::Array& array) {
    return std::visit(
        [&](auto& data) {
            using Number = typename std::decay_t<decltype(data)>::value_type;
            return ov::Tensor(ov::element::from<Number>(), ov::Shape(array.shape), data.data());
        },
        array.data);
}

// The largest difference, relative to the largest value of a graph (at least 1); NaN counts as one.
double difference(const ihgnn::Array& expected, const ov::Tensor& found) {
    if (const auto* set = std::get_if<std::vector<std::uint8_t>>(&expected.data))
        return found.get_size() == set->size() &&
                       std::equal(set->begin(), set->end(), found.data<std::uint8_t>())
                   ? 0
                   : INFINITY;
    const auto& data = std::get<std::vector<float>>(expected.data);
    if (found.get_size() != data.size()) return INFINITY;
    const float* values = found.data<float>();
    const std::size_t columns = expected.shape.size() > 1 ? expected.shape[1] : 1;
    double largest = 0;
    for (std::size_t row = 0; row < data.size(); row += columns) {
        double scale = 1;
        for (std::size_t i = row; i < row + columns; ++i)
            scale = std::max<double>(scale, std::abs(data[i]));
        for (std::size_t i = row; i < row + columns; ++i) {
            const double gap = std::abs(static_cast<double>(data[i]) - values[i]) / scale;
            largest = std::isnan(gap) ? INFINITY : std::max(largest, gap);
        }
    }
    return largest;
}

bool check(const std::filesystem::path& path) {
    const Json golden = read(path);
    if (golden.at("format").integer() != 1)
        throw std::runtime_error("this program reads golden vectors of format 1");
    std::filesystem::path file = path.parent_path() / golden.at("model").text();
    ov::Core core;
    // Half precision would change the order of the nodes.
    ov::CompiledModel network =
        core.compile_model(file.string(), "CPU", ov::hint::inference_precision(ov::element::f32));
    const ihgnn::Model model(read(file.replace_extension(".json")));
    bool all_same = true;
    for (const Json& each : golden.at("cases").list()) {
        std::vector<ihgnn::Graph> graphs;
        for (const Json& line : each.at("graphs").list()) graphs.push_back(graph_of(line));
        ihgnn::Inputs inputs = model.encode(graphs);
        std::string different;
        for (const auto& [name, plain] : each.at("inputs").object())
            if (!(inputs.at(name) == array_of(plain))) different += " " + name;
        ov::InferRequest request = network.create_infer_request();
        for (auto& [name, array] : inputs) request.set_tensor(name, tensor_of(array));
        request.infer();
        double largest = 0;
        for (const auto& [name, plain] : each.at("outputs").object()) {
            if (name == "class") continue;  // follows from the probabilities
            const double gap = difference(array_of(plain), request.get_tensor(name));
            largest = std::max(largest, gap);
            if (gap > golden.at("tolerance").number()) different += " " + name;
        }
        std::cout << each.at("name").text() << ": "
                  << (different.empty() ? "same" : "DIFFERENT:" + different)
                  << " (largest difference " << largest << ")\n";
        all_same = all_same && different.empty();
    }
    return all_same;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::cerr << "Usage: golden MODEL.golden.json\n";
        return 2;
    }
    try {
        return check(arguments[1]) ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        return 2;
    }
}
