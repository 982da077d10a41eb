// Runs the model in the browser, with onnxruntime-web.

import { feeds, InputError, linesOf, Model, parseGraph } from '../node/ihgnn.mjs';
import { Classifier, drawable, fetched } from './classifier.mjs';
import { metadataOf, sortKeysOf, withOutput } from './onnx_file.mjs';
import * as ort from './ort/ort.wasm.min.mjs';

const MODEL = 'model/mutag.onnx';
const EXAMPLES = 'model/mutag.jsonl';

ort.env.wasm.numThreads = 1; // more need headers that few servers send
ort.env.wasm.wasmPaths = new URL('ort/', import.meta.url).href;

/** The bundled model, and graphs to try. */
export async function start() {
  const lines = linesOf(await (await fetched(EXAMPLES)).text());
  const examples = [...lines].map(({ text }) => parseGraph(text));
  const bytes = new Uint8Array(await (await fetched(MODEL)).arrayBuffer());
  return { classifier: await load(bytes), examples };
}

/** The model in the bytes of a .onnx file. */
export async function load(bytes) {
  const metadata = metadataOf(bytes);
  if (metadata === null) {
    throw new InputError(
      "This is an ONNX file, but ihgnn did not write it. Give one of 'ihgnn export'.",
    );
  }
  const model = drawable(new Model(metadata));
  const key = model.nodeLimit === null ? null : sortKeysOf(bytes);
  const session = await ort.InferenceSession.create(key === null ? bytes : withOutput(bytes, key));
  return new WasmClassifier(session, model, key);
}

class WasmClassifier extends Classifier {
  constructor(session, model, key) {
    super();
    Object.assign(this, { session, model, key });
  }

  /** Class and probabilities of one graph, its unknown nodes, and the nodes in sorted order. */
  async answer(graph) {
    const { inputs, unknown } = this.model.encode([graph]);
    const wanted = this.key === null ? ['probabilities'] : ['probabilities', this.key];
    const found = await this.session.run(feeds(ort, inputs), wanted);
    const [answer] = this.model.answers(found.probabilities.data);
    const keys =
      this.key === null ? null : Array.from(found[this.key].data.slice(0, graph.numNodes));
    return { ...answer, unknownNodes: unknown[0], order: keys && ascending(keys) };
  }

  async probabilities(graphs) {
    const options = { allowUnknown: true, warn: () => {} };
    const found = await this.model.predict(ort, this.session, graphs, options);
    return found.map(({ probabilities }) => probabilities);
  }
}

/** Positions in ascending order of the keys; equal keys keep their order. */
function ascending(keys) {
  return keys.map((_, position) => position).sort((a, b) => keys[a] - keys[b] || a - b);
}
