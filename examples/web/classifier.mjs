// What the page asks about a graph, whoever runs the model: wasm.mjs or service.mjs.

import { InputError } from '../node/ihgnn.mjs';

/** Graphs with more nodes get no effects: each node takes a run of the model. */
export const MOST_EFFECTS = 200;

/** The model, unless it reads what cannot be drawn. */
export function drawable(model) {
  if (!model.edgeLabels.length) return model;
  throw new InputError(
    'The model reads edge labels (--edge-labels) or edge attributes (--edge-bins), and the edges of ' +
      'this page have none. Use ' +
      'examples/node or Python.',
  );
}

/** A subclass has `model`, `answer(graph)` and `probabilities(graphs)`, one list per graph. */
export class Classifier {
  /**
   * How much each node supports a class: the probability of the class minus its probability after
   * the node and its edges are removed. Null for a single node, and for large graphs.
   */
  async effects(graph, answer) {
    if (graph.numNodes < 2 || graph.numNodes > MOST_EFFECTS) return null;
    const others = Array.from({ length: graph.numNodes }, (_, node) => without(graph, node));
    const found = await this.probabilities(others);
    return found.map((each) => answer.probabilities[answer.best] - each[answer.best]);
  }
}

/** The share of each node's neighbours that have its label; 0 without neighbours. */
export function homophilyOf(labels, neighbors) {
  return neighbors.map((others, node) => {
    const same = others.filter((other) => String(labels[other]) === String(labels[node])).length;
    return same / Math.max(1, others.length);
  });
}

/** The text of a file of the server. */
export async function fetched(path) {
  const found = await fetch(path);
  if (!found.ok) throw new Error(`Cannot load ${path}: ${found.status} ${found.statusText}.`);
  return found;
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
