// node golden.mjs MODEL.golden.json
// Checks that this machine's onnxruntime gives the answers that `ihgnn export` wrote beside the
// model, and that ihgnn.mjs encodes their graphs as Python does.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import * as ort from 'onnxruntime-node';

import { checkGraph, feeds, Model } from './ihgnn.mjs';

const ARRAYS = { int64: BigInt64Array, uint8: Uint8Array, float32: Float32Array };

const [path] = process.argv.slice(2);
if (!path) {
  console.error('Usage: node golden.mjs MODEL.golden.json');
  process.exit(2);
}
try {
  process.exitCode = (await check(path)) ? 0 : 1;
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
}

/** Whether all cases give the same. */
async function check(path) {
  let allSame = true;
  const golden = JSON.parse(readFileSync(path, 'utf8'));
  if (golden.format !== 1) {
    throw new Error(`${path} has format ${golden.format}, and this script reads format 1.`);
  }
  const file = join(dirname(path), golden.model);
  const bytes = readFileSync(file);
  if (createHash('sha256').update(bytes).digest('hex') !== golden.model_sha256) {
    throw new Error(`${path} belongs to another ${golden.model}. Export the model again.`);
  }
  const model = new Model(readFileSync(file.replace(/\.onnx$/, '.json'), 'utf8'));
  const session = await ort.InferenceSession.create(bytes);

  for (const { name, graphs, inputs, outputs } of golden.cases) {
    const expected = mapped(inputs, ({ type, shape, data }) => ({
      type,
      dims: shape,
      data: ARRAYS[type].from(data, type === 'int64' ? BigInt : Number),
    }));
    const encoded = model.encode(graphs.map(checkGraph)).inputs;
    const different = Object.keys(expected).filter((each) => !same(encoded[each], expected[each]));
    const { class: classes, ...arrays } = outputs;
    const found = await session.run(feeds(ort, expected), Object.keys(arrays));
    let largest = 0;
    for (const [output, { shape, data }] of Object.entries(arrays)) {
      const difference = relativeDifference(data, found[output].data, shape[1] ?? 1);
      largest = Math.max(largest, difference);
      // Not `>`: NaN is a difference too.
      if (!(difference <= golden.tolerance)) different.push(output);
    }
    const answers = model.answers(found.probabilities.data).map((each) => each.class);
    if (answers.join() !== classes.values.join()) different.push('class');
    const verdict = different.length ? `DIFFERENT: ${different.join(', ')}` : 'same';
    console.log(`${name}: ${verdict} (largest difference ${largest.toExponential(1)})`);
    allSame &&= !different.length;
  }
  return allSame;
}

function mapped(values, change) {
  return Object.fromEntries(Object.entries(values).map(([name, each]) => [name, change(each)]));
}

/** The largest difference, relative to the largest value of a graph (at least 1). */
function relativeDifference(expected, found, columns) {
  let largest = 0;
  for (let start = 0; start < expected.length; start += columns) {
    const row = expected.slice(start, start + columns);
    const scale = Math.max(1, ...row.map(Math.abs));
    const differences = row.map((each, i) => Math.abs(each - found[start + i]) / scale);
    largest = Math.max(largest, ...differences);
  }
  return largest;
}

function same(one, other) {
  return (
    one !== undefined &&
    one.dims.join() === other.dims.join() &&
    one.data.every((each, i) => each === other.data[i])
  );
}
