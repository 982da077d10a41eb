// A loaded model: its answer for a graph, the order of the readout, and the effect of each node.

import { feeds, InputError, Model } from '../node/ihgnn.mjs';
import { metadataOf, sortKeysOf, withOutput } from './onnx_file.mjs';

/** Graphs with more nodes get no effects: each node takes a run of the model. */
export const MOST_EFFECTS = 200;

export class Classifier {
  /**
   * Load an exported model.
   * @param ort the module onnxruntime-web
   * @param bytes the .onnx file
   */
  static async load(ort, bytes) {
    const metadata = metadataOf(bytes);
    if (metadata === null) {
      throw new InputError(
        "This is an ONNX file, but ihgnn did not write it. Give one of 'ihgnn export'.",
      );
    }
    const model = new Model(metadata);
    const key = model.nodeLimit === null ? null : sortKeysOf(bytes);
    const session = await ort.InferenceSession.create(
      key === null ? bytes : withOutput(bytes, key),
    );
    return new Classifier(ort, session, model, key);
  }

  constructor(ort, session, model, key) {
    Object.assign(this, { ort, session, model, key });
  }

  /** Class and probabilities of one graph, its unknown nodes, and the nodes in sorted order. */
  async answer(graph) {
    const { inputs, unknown } = this.model.encode([graph]);
    const wanted = this.key === null ? ['probabilities'] : ['probabilities', this.key];
    const found = await this.session.run(feeds(this.ort, inputs), wanted);
    const [answer] = this.model.answers(found.probabilities.data);
    const keys =
      this.key === null ? null : Array.from(found[this.key].data.slice(0, graph.numNodes));
    return { ...answer, unknownNodes: unknown[0], order: keys && ascending(keys) };
  }

  /**
   * How much each node supports a class: the probability of the class minus its probability after
   * the node and its edges are removed. Null for a single node, and for large graphs.
   */
  async effects(graph, answer) {
    if (graph.numNodes < 2 || graph.numNodes > MOST_EFFECTS) return null;
    const others = Array.from({ length: graph.numNodes }, (_, node) => without(graph, node));
    const options = { allowUnknown: true, warn: () => {} };
    const found = await this.model.predict(this.ort, this.session, others, options);
    const before = answer.probabilities[answer.best];
    return found.map(({ probabilities }) => before - probabilities[answer.best]);
  }
}

/** The share of each node's neighbours that have its label; 0 without neighbours. */
export function homophilyOf(labels, neighbors) {
  return neighbors.map((others, node) => {
    const same = others.filter((other) => String(labels[other]) === String(labels[node])).length;
    return same / Math.max(1, others.length);
  });
}

/** Positions in ascending order of the keys; equal keys keep their order. */
function ascending(keys) {
  return keys.map((_, position) => position).sort((a, b) => keys[a] - keys[b] || a - b);
}

/** The graph without one node and its edges. */
function without(graph, node) {
  const left = (list) => list && list.filter((_, place) => place !== node);
  const moved = (end) => (end > node ? end - 1 : end);
  return {
    ...graph,
    numNodes: graph.numNodes - 1,
    nodeLabels: left(graph.nodeLabels),
    nodeAttributes: left(graph.nodeAttributes),
    edges: graph.edges.filter((edge) => !edge.includes(node)).map((edge) => edge.map(moved)),
  };
}
