// Tells what examples/node makes of lines of JSON: the inputs of a model, or what is wrong.

import { readFileSync } from 'node:fs';

const [folder] = process.argv.slice(2);
const { GraphError, Model, parseGraph } = await import(`${folder}/ihgnn.mjs`);

const jobs = JSON.parse(readFileSync(0, 'utf8'));
console.log(JSON.stringify(jobs.map(({ metadata, lines }) => encoded(metadata, lines))));

function encoded(metadata, lines) {
  try {
    const graphs = lines.map((line) => parseGraph(line));
    if (!metadata)
      return { graphs: graphs.map(({ numNodes, ignored }) => ({ numNodes, ignored })) };
    const { inputs, unknown } = new Model(metadata).encode(graphs);
    const plain = Object.entries(inputs).map(([name, { type, data, dims }]) => [
      name,
      { type, shape: dims, data: Array.from(data, Number) },
    ]);
    return { inputs: Object.fromEntries(plain), unknown };
  } catch (error) {
    if (!(error instanceof GraphError)) throw error;
    return { problem: error.problem, remedy: error.remedy };
  }
}
