/** The JSON files that `ihgnn export` writes beside MODEL.onnx (docs/export.md). */

/** A node label or a class. */
export type Value = number | string;
export type Layout = "padded" | "sparse";
export type ElementType = "int64" | "uint8" | "float32";

/** An input or output of the ONNX file. */
export interface TensorDescription {
  type: ElementType;
  /** A name stands for a size that callers choose. */
  shape: (number | string)[];
  meaning: string;
}

/** MODEL.json */
export interface Model {
  /** Version of this format: 2, 3 if the model reads edge labels or leaves out edges with a label, or 4 if it
   * makes edge labels of an edge attribute. */
  format: number;
  layout: Layout;
  inputs: Record<string, TensorDescription>;
  outputs: Record<string, TensorDescription>;
  /** Marks padding in node_labels; null in the sparse layout. */
  padding_label: number | null;
  /** Stands for a label that is not in card.label_values. */
  unknown_label: number;
  /** The fixed padded size, or null. */
  padded_to: number | null;
  /** The fixed number of graphs in a batch, or null. */
  batch: number | null;
  /** What the model says about its own size; for this package. */
  limits: Record<string, unknown>;
  opset: number;
  ir_version: number;
  /** Whether the first matrix of the classifier has half precision. */
  small: boolean;
  /** Number of models that are averaged. */
  members: number;
  /** The model's settings. */
  model: Record<string, unknown>;
  card: Card;
  /** By package. */
  versions: Record<string, string | null>;
}

export interface Card {
  /** The name under which the data can be loaded; empty for a path. */
  dataset: string;
  dataset_name: string;
  /** SHA-256 of the training data's content. */
  fingerprint: string;
  /** What the model reads from a node. */
  features: "labels" | "attributes" | "both";
  /** The vocabulary: a label's position is its number in node_labels. */
  label_values: Value[];
  /** degree: the model computes labels from the edges. */
  label_source: "labels" | "degree";
  /** The classes, in the column order of logits and probabilities. */
  class_values: Value[];
  /** Number of attributes per node; 0 if the model reads none. */
  attributes: number;
  /** Inputs that are computed from the graph: the last columns of attributes. */
  columns?: Record<string, unknown>[];
  /** The edge labels that the model tells apart: a label's position is its number in the inputs. */
  edge_label_values?: Value[];
  /** Edges with this label are left out. */
  background_edge_label?: string;
  /** How edge labels are computed from the edge attribute: see docs/export.md. */
  edge_bins?: { boundaries: number[]; labels: boolean };
  /** m, the size of the largest graph in the model's data. */
  max_nodes: number;
  /** Thresholds of the prediction sets, if there is an output prediction_set. */
  conformal?: {
    /** Share of graphs whose true class may be missing from the set. */
    alpha: number;
    /** Number of calibration graphs. */
    graphs: number;
    /** The least probability of a listed class, in the file itself. */
    threshold: number;
    /** By graph homophily, for callers that know it; own is false where it is the overall threshold. */
    bins: { low: number; high: number; graphs: number; threshold: number; own: boolean }[];
  };
  /** The run and epoch that the model was saved from. */
  snapshot: { epoch: number; chosen: boolean; seeds: number[]; split: string; snapshots: number } | null;
}

/** MODEL.golden.json */
export interface Golden {
  /** Version of this format: 1. */
  format: number;
  /** Name of the exported file. */
  model: string;
  model_sha256: string;
  layout: Layout;
  /** Allowed difference of an output, times the graph's largest expected value or 1. */
  tolerance: number;
  /** Cases that are not in the file. */
  left_out: { name: string; reason: string }[];
  cases: GoldenCase[];
}

export interface GoldenCase {
  name: string;
  description: string;
  /** As in JSON lines: labels are values. */
  graphs: Graph[];
  /** The same graphs as inputs of the file, by name. */
  inputs: Record<string, TensorData>;
  /** By name, with one row per graph. */
  outputs: {
    logits: TensorData;
    probabilities: TensorData;
    graph_embedding?: TensorData;
    /** Ensembles only; missing where rounding can change it. */
    uncertainty?: TensorData;
    prediction_set?: TensorData;
    /** The most probable class of each graph. */
    class: { values: Value[] };
  };
}

/** One line of JSON lines (docs/data.md). */
export interface Graph {
  node_labels?: Value[];
  /** In place of node_labels for models of degrees. */
  num_nodes?: number;
  /** Undirected, each once. */
  edges: number[][];
  /** One per edge, for models that read edge labels. */
  edge_labels?: Value[];
  /** A list of one number per edge, for models with card.edge_bins. */
  edge_attributes?: number[][];
  node_attributes?: number[][];
}

export interface TensorData {
  type: ElementType;
  shape: number[];
  /** All values, row by row. */
  data: number[];
}
