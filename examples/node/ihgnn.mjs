// Runs models that `ihgnn export` wrote: turns graphs into the inputs of either layout, and outputs
// into classes. Takes the metadata of MODEL.json (docs/export.md) and any of onnxruntime-node and
// onnxruntime-web. No dependencies.

import { checkGraph, linesOf, parseGraph } from './graphs.mjs';
import { GraphError, toJson } from './json.mjs';

export { checkGraph, GraphError, linesOf, parseGraph, toJson };

const FORMAT = 5; // newest metadata this file reads
const UNKNOWN = -1;
const MANY_UNKNOWN = 0.1; // above this share of unknown nodes, answers come with a warning
const NEARLY_ALL_UNKNOWN = 0.9; // above this share, there are no answers unless the caller insists
const MOST_BYTES = 2 ** 31;
const BATCH_CELLS = 2 ** 22; // pairs of nodes (padded), or nodes and edges (sparse)

/** The metadata does not describe a model, or nearly all labels are unknown to it. */
export class InputError extends Error {
  name = 'InputError';
}

export class Model {
  /** @param metadata the content of MODEL.json, as text or parsed */
  constructor(metadata) {
    const plain = typeof metadata === 'string' ? parsed(metadata) : metadata;
    const { card, format, layout } = plain ?? {};
    if (!card?.class_values || !card.label_values || !['padded', 'sparse'].includes(layout)) {
      throw new InputError(
        "This is not metadata of 'ihgnn export'. Give the MODEL.json beside the model.",
      );
    }
    if (format !== FORMAT) {
      throw new InputError(
        `The model has format ${format}, and this ihgnn.mjs reads format ${FORMAT}. Take the ` +
          'ihgnn.mjs of the ihgnn that exported it.',
      );
    }
    if (card.columns?.length) {
      throw new InputError(
        'The model reads inputs that are computed from the graph (--inputs), and this ihgnn.mjs does ' +
          'not compute them. Train without --inputs, or predict in Python.',
      );
    }
    this.metadata = plain;
    this.layout = layout;
    this.classes = card.class_values;
    this.labels = card.label_values;
    this.attributes = card.attributes;
    this.edgeLabels = card.edge_label_values ?? [];
    /** Edges with this label are left out; empty: none. */
    this.background = card.background_edge_label ?? '';
    /** How edge labels are computed from the edge attribute, { boundaries, labels }; null if they are not. */
    this.edgeBins = card.edge_bins ?? null;
    this.readsLabels = card.features !== 'attributes';
    this.countsDegrees = this.readsLabels && card.label_source === 'degree';
    this.paddedTo = plain.padded_to ?? null;
    this.maxNodes = card.max_nodes;
    /** Nodes used per graph, the first in sorted order; null if the model uses all. */
    this.nodeLimit = plain.node_limit;
    // A label is found by its text: 1 and "1" mean the same in files without types.
    this.positions = positionsIn(this.labels);
    this.edgePositions = positionsIn(this.edgeLabels);
  }

  /** Check that a graph has what the model reads, and fits. Throws a GraphError. */
  checkFits(graph) {
    if (this.readsLabels && !this.countsDegrees && graph.nodeLabels === null) {
      throw new GraphError(
        'no node_labels, and the model was trained with labels.',
        'Give each node its label.',
      );
    }
    const columns = graph.nodeAttributes?.[0].length ?? 0;
    if (this.attributes && columns !== this.attributes) {
      throw new GraphError(
        `the model reads ${counted(this.attributes, 'node attribute')}, ` +
          `and there are ${columns || 'none'}.`,
        `Give each node a list of ${counted(this.attributes, 'number')}.`,
      );
    }
    this.#checkEdgeLabels(graph);
    if (this.layout === 'sparse') return;
    if (this.paddedTo !== null && graph.numNodes > this.paddedTo) {
      throw new GraphError(
        `A graph has ${counted(graph.numNodes, 'node')}, and the model was exported for up to ` +
          `${number(this.paddedTo)} (--max-nodes).`,
        'Export it with a larger --max-nodes, without one, or with --layout sparse.',
      );
    }
    const padded = this.paddedTo ?? graph.numNodes;
    const needed = padded ** 2 * (1 + 4 * Math.max(1, this.edgeLabels.length));
    if (needed > MOST_BYTES) {
      throw new GraphError(
        `A graph padded to ${number(padded)} nodes takes ${(needed / 2 ** 30).toFixed(1)} GiB.`,
        'Export the model with --layout sparse.',
      );
    }
  }

  #checkEdgeLabels(graph) {
    if (!graph.edges.length || (!this.edgeLabels.length && !this.background)) return;
    const columns = graph.edgeAttributes?.[0].length ?? 0;
    if (this.edgeBins !== null && columns !== 1) {
      throw new GraphError(
        `the model reads one edge attribute, and there ${columns ? `are ${columns}` : 'is none'}.`,
        'Give each edge one number.',
      );
    }
    const needed = this.edgeLabels.length && (this.edgeBins?.labels ?? true);
    if (needed && graph.edgeLabels === null) {
      throw new GraphError(
        'no edge_labels, and the model was trained with them.',
        'Give each edge its label.',
      );
    }
    const compared = [];
    if (needed || this.background) compared.push('labels');
    if (this.edgeBins) compared.push('attributes');
    const found = new Map();
    for (const [e, [one, other]] of graph.edges.entries()) {
      const label = this.#edgeLabelOf(graph, e);
      const attribute = this.edgeBins ? Math.fround(graph.edgeAttributes[e][0]) : '';
      const own = String(graph.edgeLabels?.[e] ?? '');
      const known = this.edgePositions.has(label) || (this.background && own === this.background);
      if (this.edgeLabels.length && !known) {
        this.#refuseEdge(own, label, attribute);
      }
      const key = pairOf(one, other);
      const read = `${compared.includes('labels') ? own : ''} ${attribute}`;
      if ((found.get(key) ?? read) !== read) {
        throw new GraphError(
          `the edge between ${one} and ${other} has two ${compared.join(' or ')}.`,
          'List each edge once.',
        );
      }
      found.set(key, read);
    }
  }

  /** Throws a GraphError for an edge whose label, or its pair with a bin, is unknown. */
  #refuseEdge(own, label, attribute) {
    const withoutBin = (each) => String(each).replace(/,[^,]*$/, '');
    const known = this.edgeBins ? [...new Set(this.edgeLabels.map(withoutBin))] : this.edgeLabels;
    if (known.map(String).includes(own)) {
      const shown = Number(attribute.toPrecision(7));
      const bin = label.split(',').at(-1);
      throw new GraphError(
        `edge label ${own} with the attribute ${shown} (bin ${bin}) does not occur in the training data.`,
        'Train on data in which it does, or with fewer --edge-bins.',
      );
    }
    throw new GraphError(`the model does not know the edge label ${own}.`, `It knows ${some(known)}.`);
  }

  /** The label of an edge as in card.edge_label_values, computed from its attribute if there are bins. */
  #edgeLabelOf(graph, e) {
    const own = String(graph.edgeLabels?.[e] ?? '');
    if (this.edgeBins === null) return own;
    const attribute = Math.fround(graph.edgeAttributes[e][0]);
    const bin = this.edgeBins.boundaries.filter((each) => each < attribute).length;
    return this.edgeBins.labels ? `${own},${bin}` : String(bin);
  }

  /** The graph without the edges that the model leaves out. */
  #kept(graph) {
    if (!this.background || graph.edgeLabels === null) return graph;
    const kept = graph.edgeLabels.map((label) => String(label) !== this.background);
    return {
      ...graph,
      edges: graph.edges.filter((_, e) => kept[e]),
      edgeLabels: graph.edgeLabels.filter((_, e) => kept[e]),
      edgeAttributes: graph.edgeAttributes?.filter((_, e) => kept[e]),
    };
  }

  /** A function that gives the position of the label of the edge between two nodes. */
  #edgeLabelsOf(graph) {
    const found = new Map(
      graph.edges.map(([one, other], e) => [
        pairOf(one, other),
        this.edgePositions.get(this.#edgeLabelOf(graph, e)),
      ]),
    );
    return (one, other) => found.get(pairOf(one, other));
  }

  /**
   * The inputs of one batch, by name: { type, data, dims }. `unknown` has the number of nodes of
   * each graph whose label the model does not know. Graphs come from parseGraph or checkGraph.
   */
  encode(graphs) {
    if (this.batch !== null && graphs.length > this.batch) {
      throw new InputError(`The model was exported for ${this.batch} graphs at a time (--batch).`);
    }
    for (const graph of graphs) this.checkFits(graph);
    graphs = graphs.map((graph) => this.#kept(graph));
    const edgeLabels = this.edgeLabels.length
      ? graphs.map((graph) => this.#edgeLabelsOf(graph))
      : null;
    const neighbors = graphs.map(neighborsOf);
    const labels = graphs.map((graph, g) => this.#positionsOf(graph, neighbors[g]));
    const inputs =
      this.layout === 'sparse'
        ? sparse(graphs, labels, neighbors, edgeLabels)
        : this.#padded(graphs, labels, neighbors, edgeLabels);
    if (this.attributes) inputs.attributes = this.#attributesOf(graphs, inputs.node_labels.dims);
    if (!this.readsLabels) return { inputs, unknown: graphs.map(() => 0), unknownLabels: [] };
    const unknown = labels.map((each) => each.filter((position) => position === UNKNOWN).length);
    return { inputs, unknown, unknownLabels: this.#unknownLabels(graphs, neighbors) };
  }

  /** One answer per graph, from the output `probabilities` of a batch; empty places have one too. */
  answers(probabilities) {
    const found = [];
    for (let start = 0; start < probabilities.length; start += this.classes.length) {
      const row = Array.from(probabilities.slice(start, start + this.classes.length));
      const total = row.reduce((sum, each) => sum + each, 0);
      const best = row.indexOf(Math.max(...row));
      found.push({
        class: this.classes[best],
        best,
        probabilities: row.map((each) => each / total),
      });
    }
    return found;
  }

  /**
   * Predict graphs, in order and in batches.
   * @param ort the module onnxruntime-node or onnxruntime-web
   * @param session an ort.InferenceSession of MODEL.onnx
   * @param graphs from parseGraph or checkGraph
   */
  async predict(
    ort,
    session,
    graphs,
    { allowUnknown = false, batchSize = 32, warn = console.warn } = {},
  ) {
    const batches = [...this.#batches(graphs, this.batch ?? batchSize)].map((batch) => ({
      batch,
      ...this.encode(batch),
    }));
    this.#refuseUnknown(graphs, batches, allowUnknown, warn);
    const found = [];
    for (const { batch, inputs, unknown } of batches) {
      const { probabilities } = await session.run(feeds(ort, inputs), ['probabilities']);
      const answers = this.answers(probabilities.data).slice(0, batch.length);
      for (const [g, answer] of answers.entries()) {
        const larger = this.nodeLimit !== null && batch[g].numNodes > this.nodeLimit;
        found.push({ ...answer, id: batch[g].id, unknownNodes: unknown[g], largerThanM: larger });
      }
    }
    return found;
  }

  /** Positions in the vocabulary, or UNKNOWN. */
  #positionsOf(graph, neighbors) {
    if (!this.readsLabels) return new Array(graph.numNodes).fill(UNKNOWN);
    const given = this.#labelsOf(graph, neighbors);
    return given.map((label) => this.positions.get(String(label)) ?? UNKNOWN);
  }

  /** The labels of a graph, or its degrees for a model that counts them. */
  #labelsOf(graph, neighbors) {
    return this.countsDegrees ? neighbors.map((each) => each.length) : graph.nodeLabels;
  }

  /** The different labels that are not in the vocabulary. */
  #unknownLabels(graphs, neighbors) {
    const given = new Set(graphs.flatMap((graph, g) => this.#labelsOf(graph, neighbors[g])));
    return [...given].filter((label) => !this.positions.has(String(label)));
  }

  #padded(graphs, labels, neighbors, edgeLabels) {
    const size = this.paddedTo ?? largest(graphs);
    const count = this.batch ?? graphs.length; // places without a graph have padding only
    const node_labels = new BigInt64Array(count * size).fill(BigInt(this.metadata.padding_label));
    const adjacency = new Uint8Array(count * size * size);
    for (let g = 0; g < graphs.length; g++) {
      for (let node = 0; node < labels[g].length; node++) {
        node_labels[g * size + node] = asInput(labels[g][node]);
        for (const other of neighbors[g][node]) {
          const label = edgeLabels === null ? 0 : edgeLabels[g](node, other);
          adjacency[(g * size + node) * size + other] = 1 + label;
        }
      }
    }
    return {
      node_labels: { type: 'int64', data: node_labels, dims: [count, size] },
      adjacency: { type: 'uint8', data: adjacency, dims: [count, size, size] },
    };
  }

  /** One row per label; the padded layout has rows of zeros after each graph. */
  #attributesOf(graphs, dims) {
    const data = new Float32Array(dims.reduce((product, each) => product * each) * this.attributes);
    let start = 0;
    for (const graph of graphs) {
      data.set(graph.nodeAttributes.flat(), start * this.attributes);
      start += dims[1] ?? graph.numNodes;
    }
    return { type: 'float32', data, dims: [...dims, this.attributes] };
  }

  *#batches(graphs, batchSize) {
    let batch = [];
    for (const graph of graphs) {
      const next = [...batch, graph];
      const cells =
        this.layout === 'padded'
          ? next.length * (this.paddedTo ?? largest(next)) ** 2
          : next.reduce((sum, each) => sum + each.numNodes + each.edges.length, 0);
      if (batch.length && (batch.length === batchSize || cells > BATCH_CELLS)) {
        yield batch;
        batch = [graph];
      } else batch = next;
    }
    if (batch.length) yield batch;
  }

  #refuseUnknown(graphs, batches, allowed, warn) {
    const unknown = batches.flatMap((each) => each.unknown);
    const nodes = graphs.reduce((sum, each) => sum + each.numNodes, 0);
    const total = unknown.reduce((sum, each) => sum + each, 0);
    if (total <= MANY_UNKNOWN * nodes) return;
    const values = [...new Set(batches.flatMap((each) => each.unknownLabels))];
    const words = this.countsDegrees ? 'degrees' : 'labels';
    const sentence =
      `The ${words} of ${number(total)} of ${counted(nodes, 'node')} in ` +
      `${counted(unknown.filter(Boolean).length, 'graph')} are unknown to the model (${some(values)}) and ` +
      `encoded as the zero vector. It knows ${some(this.labels)}.`;
    if (total > NEARLY_ALL_UNKNOWN * nodes && !allowed) {
      const arePositions = values.every(
        (each) => Number.isInteger(each) && each >= 0 && each < this.labels.length,
      );
      throw new InputError(
        `${sentence}\n${arePositions ? "Labels are values, not positions in the model's vocabulary. " : ''}` +
          "Give graphs with labels of the model's data, or insist with allowUnknown.",
      );
    }
    warn(sentence);
  }
}

/** The inputs as tensors of onnxruntime. */
export function feeds(ort, inputs) {
  return Object.fromEntries(
    Object.entries(inputs).map(([name, { type, data, dims }]) => [
      name,
      new ort.Tensor(type, data, dims),
    ]),
  );
}

/** The neighbours of each node, in order: without self-loops, duplicates and directions. */
export function neighborsOf(graph) {
  const found = Array.from({ length: graph.numNodes }, () => new Set());
  for (const [one, other] of graph.edges) {
    if (one === other) continue;
    found[one].add(other);
    found[other].add(one);
  }
  return found.map((each) => [...each].sort((a, b) => a - b));
}

function sparse(graphs, labels, neighbors, edgeLabels) {
  const ptr = [0];
  const [sources, targets, kinds] = [[], [], []];
  for (let g = 0; g < graphs.length; g++) {
    const start = ptr[g];
    for (const [node, others] of neighbors[g].entries()) {
      for (const other of others) {
        sources.push(start + node);
        targets.push(start + other);
        if (edgeLabels !== null) kinds.push(edgeLabels[g](node, other));
      }
    }
    ptr.push(start + graphs[g].numNodes);
  }
  const edges = BigInt64Array.from(sources.concat(targets), BigInt);
  const inputs = {
    node_labels: {
      type: 'int64',
      data: BigInt64Array.from(labels.flat(), asInput),
      dims: [ptr.at(-1)],
    },
    edge_index: { type: 'int64', data: edges, dims: [2, sources.length] },
    ptr: { type: 'int64', data: BigInt64Array.from(ptr, BigInt), dims: [ptr.length] },
  };
  if (edgeLabels !== null) {
    const data = BigInt64Array.from(kinds, BigInt);
    inputs.edge_labels = { type: 'int64', data, dims: [kinds.length] };
  }
  return inputs;
}

/** The place of each value in a list, by its text. */
function positionsIn(values) {
  return new Map(values.map((value, position) => [String(value), position]));
}

/** The same text for both directions of an edge. */
function pairOf(one, other) {
  return one < other ? `${one} ${other}` : `${other} ${one}`;
}

/** A position as input; an unknown label is -2, because -1 is padding. */
function asInput(position) {
  return position === UNKNOWN ? -2n : BigInt(position);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InputError(`MODEL.json is not JSON (${error.message}). Export the model again.`);
  }
}

function largest(graphs) {
  return graphs.reduce((most, each) => Math.max(most, each.numNodes), 1);
}

function some(values) {
  const more = values.length - 5;
  return values.slice(0, 5).join(', ') + (more > 0 ? ` and ${counted(more, 'other')}` : '');
}

function number(value) {
  return value.toLocaleString('en-US');
}

function counted(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? '' : 's'}`;
}
