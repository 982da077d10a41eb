// The graph that is being drawn: nodes with a label and a place, edges, and a way back.

import { layout } from './layout.mjs';

const MOST_STEPS = 100;

export class Sketch {
  nodes = []; // { label, attributes, x, y }, x and y from 0 to 1
  edges = []; // [one, other], one < other
  #before = [];

  /** Replace everything by a checked graph. */
  take(graph) {
    this.remember();
    this.nodes = Array.from({ length: graph.numNodes }, (_, node) => ({
      label: graph.nodeLabels?.[node] ?? null,
      attributes: graph.nodeAttributes?.[node] ?? null,
    }));
    this.edges = [];
    for (const [one, other] of graph.edges) this.#connect(one, other);
    this.arrange();
  }

  /** What parseGraph reads; bigints are written by the caller. */
  entry() {
    const [first] = this.nodes;
    return {
      ...(first?.label === null
        ? { num_nodes: this.nodes.length }
        : { node_labels: this.nodes.map(({ label }) => label) }),
      ...(first?.attributes
        ? { node_attributes: this.nodes.map(({ attributes }) => attributes) }
        : {}),
      edges: this.edges,
    };
  }

  neighbors() {
    const found = this.nodes.map(() => []);
    for (const [one, other] of this.edges) {
      found[one].push(other);
      found[other].push(one);
    }
    return found;
  }

  /** Add a node, connected to another one unless that is null. */
  add(node, from) {
    this.remember();
    const added = this.nodes.push({ ...node }) - 1;
    if (from !== null) this.#connect(from, added);
    return added;
  }

  relabel(node, label) {
    if (this.nodes[node].label === label) return;
    this.remember();
    this.nodes[node].label = label;
  }

  /** Connect two nodes, or remove the edge between them. */
  toggle(one, other) {
    if (one === other) return;
    this.remember();
    const found = this.#find(one, other);
    if (found < 0) this.#connect(one, other);
    else this.edges.splice(found, 1);
  }

  disconnect(one, other) {
    const found = this.#find(one, other);
    if (found < 0) return;
    this.remember();
    this.edges.splice(found, 1);
  }

  remove(node) {
    this.remember();
    this.nodes.splice(node, 1);
    const moved = (end) => (end > node ? end - 1 : end);
    this.edges = this.edges.filter((edge) => !edge.includes(node)).map((edge) => edge.map(moved));
  }

  clear() {
    this.remember();
    this.nodes = [];
    this.edges = [];
  }

  /** Place all nodes again. */
  arrange() {
    for (const [node, [x, y]] of layout(this.neighbors()).entries())
      Object.assign(this.nodes[node], { x, y });
  }

  /** Keep this state for undo. */
  remember() {
    this.#before.push([
      this.nodes.map((each) => ({ ...each })),
      this.edges.map((each) => [...each]),
    ]);
    if (this.#before.length > MOST_STEPS) this.#before.shift();
  }

  undo() {
    if (!this.#before.length) return false;
    [this.nodes, this.edges] = this.#before.pop();
    return true;
  }

  #find(one, other) {
    return this.edges.findIndex((edge) => edge.includes(one) && edge.includes(other));
  }

  #connect(one, other) {
    if (one !== other && this.#find(one, other) < 0)
      this.edges.push([Math.min(one, other), Math.max(one, other)]);
  }
}
