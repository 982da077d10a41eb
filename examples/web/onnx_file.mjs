// Reads what the page needs from the bytes of an exported file: its metadata, and the sort keys that
// the readout uses. onnxruntime-web gives neither.

const METADATA_KEY = 'ihgnn';
// Fields of ONNX's protocol buffers.
const MODEL = { graph: 7, metadata: 14 };
const GRAPH = { node: 1, output: 12 };
const NODE = { input: 1, operator: 4 };
const ENTRY = { key: 1, value: 2 };
const VALUE = { name: 1 };

/** The metadata that `ihgnn export` stored in the file, as JSON; null if it did not write it. */
export function metadataOf(bytes) {
  for (const { field, content } of fields(bytes)) {
    if (field !== MODEL.metadata) continue;
    const parts = [...fields(content)];
    const part = (wanted) => text(parts.find((each) => each.field === wanted)?.content);
    if (part(ENTRY.key) === METADATA_KEY) return part(ENTRY.value);
  }
  return null;
}

/**
 * The name of the tensor that the readout of the first member sorts by, in ascending order: the
 * input of the first TopK after the sum of the layers. Null if there is none.
 */
export function sortKeysOf(bytes) {
  let summed = false;
  for (const { field, content } of fields(bytes)) {
    if (field !== MODEL.graph) continue;
    for (const node of fields(content)) {
      if (node.field !== GRAPH.node) continue;
      const parts = [...fields(node.content)];
      const inputs = parts
        .filter((each) => each.field === NODE.input)
        .map((each) => text(each.content));
      summed ||= inputs.some((name) => name.endsWith('.nodes.total.weight'));
      const operator = text(parts.find((each) => each.field === NODE.operator)?.content);
      if (summed && operator === 'TopK') return inputs[0];
    }
  }
  return null;
}

/**
 * The same model with one more output. A message that appears twice in a protocol buffer is merged,
 * so a graph that has nothing but the output is appended.
 */
export function withOutput(bytes, name) {
  const value = message(VALUE.name, new TextEncoder().encode(name));
  const added = message(MODEL.graph, message(GRAPH.output, value));
  const found = new Uint8Array(bytes.length + added.length);
  found.set(bytes);
  found.set(added, bytes.length);
  return found;
}

/** The fields of a message that have a length; others are skipped. */
function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let [value, factor, byte] = [0, 1, 0];
    do {
      byte = bytes[at++];
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte & 128);
    return value;
  };
  while (at < bytes.length) {
    const tag = varint();
    const [field, kind] = [Math.floor(tag / 8), tag % 8];
    if (kind === 0) varint();
    else if (kind === 1) at += 8;
    else if (kind === 5) at += 4;
    else if (kind === 2) {
      const length = varint();
      yield { field, content: bytes.subarray(at, at + length) };
      at += length;
    } else throw new Error('This is not an ONNX file, or it is damaged.');
  }
}

function message(field, content) {
  const head = [field * 8 + 2];
  let length = content.length;
  for (; length > 127; length >>>= 7) head.push((length & 127) | 128);
  return new Uint8Array([...head, length, ...content]);
}

function text(bytes) {
  return bytes === undefined ? '' : new TextDecoder().decode(bytes);
}
