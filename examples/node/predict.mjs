// node predict.mjs MODEL.onnx GRAPHS.jsonl
// Prints what `ihgnn predict MODEL.onnx GRAPHS.jsonl --json` prints; `-` reads standard input.

import { readFileSync } from 'node:fs';

import * as ort from 'onnxruntime-node';

import { GraphError, linesOf, Model, parseGraph, toJson } from './ihgnn.mjs';

const [modelPath, graphsPath] = process.argv.slice(2);
if (!graphsPath) {
  console.error('Usage: node predict.mjs MODEL.onnx GRAPHS.jsonl');
  process.exit(2);
}

try {
  const model = new Model(readFileSync(modelPath.replace(/\.onnx$/, '.json'), 'utf8'));
  const session = await ort.InferenceSession.create(modelPath);
  const text = readFileSync(graphsPath === '-' ? 0 : graphsPath, 'utf8');
  const [graphs, numbers] = [[], []];
  for (const { number, line, text: content } of linesOf(text)) {
    try {
      const graph = parseGraph(content);
      model.checkFits(graph);
      graphs.push(graph);
      numbers.push(number);
    } catch (error) {
      if (!(error instanceof GraphError)) throw error;
      console.error(`${graphsPath}, line ${line}: ${error.message}`);
      process.exitCode = 1;
    }
  }
  for (const [place, found] of (await model.predict(ort, session, graphs)).entries()) {
    console.log(asLine(model, numbers[place], found));
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
}

function asLine(model, number, found) {
  const digits = (each) => Number(each.toPrecision(7)); // of a 32-bit float
  // Written by hand: an object would list the class 1 before the class -1.
  const probabilities = model.classes.map(
    (value, c) => `${toJson(String(value))}: ${digits(found.probabilities[c])}`,
  );
  const parts = [
    `"graph": ${number}`,
    `"class": ${toJson(String(found.class))}`,
    `"probabilities": {${probabilities.join(', ')}}`,
  ];
  if (found.id !== null) parts.push(`"id": ${toJson(found.id)}`);
  if (found.unknownNodes) parts.push(`"unknown_nodes": ${found.unknownNodes}`);
  if (found.largerThanM) parts.push('"larger_than_m": true');
  return `{${parts.join(', ')}}`;
}
