/** A node label, edge label or class. Integers beyond 2^53 are read as bigint. */
export type Value = number | bigint | string;

/** A checked graph. */
export interface Graph {
  readonly numNodes: number;
  /** As they were listed; directions, duplicates and self-loops make no difference. */
  readonly edges: ReadonlyArray<readonly [number, number]>;
  readonly nodeLabels: ReadonlyArray<Value> | null;
  readonly nodeAttributes: ReadonlyArray<ReadonlyArray<number>> | null;
  readonly class: Value | null;
  readonly edgeLabels: ReadonlyArray<Value> | null;
  readonly edgeAttributes: ReadonlyArray<ReadonlyArray<number>> | null;
  readonly id: unknown;
  /** Keys that are not part of the format. */
  readonly ignored: ReadonlyArray<string>;
}

/** A graph as it is written in JSON lines. */
export interface GraphEntry {
  node_labels?: ArrayLike<Value> | null;
  edges: ArrayLike<ArrayLike<number>>;
  node_attributes?: ArrayLike<ArrayLike<number>> | null;
  edge_labels?: ArrayLike<Value> | null;
  edge_attributes?: ArrayLike<ArrayLike<number>> | null;
  /** For a graph without node labels and attributes. */
  num_nodes?: number | null;
  class?: Value | null;
  id?: unknown;
}

/** A graph is not in this format, or the model cannot read it. */
export class GraphError extends Error {
  readonly problem: string;
  readonly remedy: string;
}

/** The metadata does not describe a model, or nearly all labels are unknown to it. */
export class InputError extends Error {}

/** Parse and check one line of JSON; throws a GraphError. */
export function parseGraph(line: string): Graph;

/** Check a graph that is an object already; throws a GraphError. */
export function checkGraph(entry: GraphEntry): Graph;

/** The lines of a text that hold a graph; blank lines are left out. */
export function linesOf(text: string): Generator<{ number: number; line: number; text: string }>;

/** A parsed value, such as an id, as JSON. */
export function toJson(value: unknown): string;

/** The neighbours of each node, in order: without self-loops, duplicates and directions. */
export function neighborsOf(graph: Graph): number[][];

export type Layout = 'padded' | 'sparse';

export type Input =
  | { type: 'int64'; data: BigInt64Array; dims: number[] }
  | { type: 'uint8'; data: Uint8Array; dims: number[] }
  | { type: 'float32'; data: Float32Array; dims: number[] };

export interface Encoded {
  /** `node_labels` and, by layout, `adjacency` or `edge_index` and `ptr`; perhaps `attributes`. */
  inputs: Record<string, Input>;
  /** For each graph, the number of nodes whose label the model does not know. */
  unknown: number[];
  /** The different labels that it does not know. */
  unknownLabels: Value[];
}

export interface Answer {
  class: Value;
  /** Position of the class in `Model.classes`. */
  best: number;
  /** In the order of `Model.classes`. */
  probabilities: number[];
}

export interface Prediction extends Answer {
  id: unknown;
  unknownNodes: number;
  /** Whether the graph has more nodes than the model uses. */
  largerThanM: boolean;
}

export interface PredictOptions {
  /** Predict even if more than 9 in 10 nodes have an unknown label. */
  allowUnknown?: boolean;
  /** Graphs per batch, at most; 32 unless given. */
  batchSize?: number;
  /** Called if more than 1 in 10 nodes have an unknown label; console.warn unless given. */
  warn?: (message: string) => void;
}

/** What is used of onnxruntime-node or onnxruntime-web. */
export interface Runtime<Tensor> {
  Tensor: new (type: any, data: any, dims: number[]) => Tensor;
}
export interface Session<Tensor> {
  run(feeds: Record<string, Tensor>, fetches: string[]): Promise<Record<string, { data: unknown }>>;
}

export class Model {
  /** Takes the content of MODEL.json, as text or parsed; throws an InputError. */
  constructor(metadata: string | object);
  readonly metadata: any;
  readonly layout: Layout;
  readonly classes: ReadonlyArray<Value>;
  readonly labels: ReadonlyArray<Value>;
  /** Node attributes that the model reads. */
  readonly attributes: number;
  readonly readsLabels: boolean;
  readonly countsDegrees: boolean;
  /** The fixed size of a model exported with --max-nodes. */
  readonly paddedTo: number | null;
  /** The fixed number of graphs of a model exported with --batch. */
  readonly batch: number | null;
  /** m, the size of the largest graph in the model's data. */
  readonly maxNodes: number;
  readonly nodeLimit: number | null;
  /** Check that a graph has what the model reads, and fits; throws a GraphError. */
  checkFits(graph: Graph): void;
  /** The inputs of one batch. */
  encode(graphs: ReadonlyArray<Graph>): Encoded;
  /** One answer per graph, from the output `probabilities`; empty places of a fixed batch too. */
  answers(probabilities: Float32Array): Answer[];
  /** Predict graphs, in order and in batches; throws an InputError or a GraphError. */
  predict<Tensor>(
    ort: Runtime<Tensor>,
    session: Session<Tensor>,
    graphs: ReadonlyArray<Graph>,
    options?: PredictOptions,
  ): Promise<Prediction[]>;
}

/** The inputs as tensors of onnxruntime. */
export function feeds<Tensor>(
  ort: Runtime<Tensor>,
  inputs: Record<string, Input>,
): Record<string, Tensor>;
