// Reads and checks graphs in the form of JSON lines, with the rules and messages of ihgnn's own
// reader (docs/data.md). No dependencies; works in Node and in browsers.

import { GraphError, parseJson, Real, shown, toJson } from './json.mjs';

const KEYS = [
  'node_labels',
  'edges',
  'class',
  'node_attributes',
  'edge_labels',
  'edge_attributes',
  'num_nodes',
  'id',
];
// What other formats call these keys; used in suggestions only.
const ELSEWHERE = {
  node_labels: ['labels', 'nodes', 'atoms', 'node_types'],
  edges: ['edge_index', 'edge_list', 'bonds', 'links'],
};
const MISSPELT = 0.88; // similarity above which a key counts as misspelt
const LONGEST_KEY = 40;
const MAX_BARE_NODES = 10_000_000;
const LARGEST_FLOAT32 = 3.4028234663852886e38;

/** Parse and check one line. Throws a GraphError that says what is wrong and what to do. */
export function parseGraph(line) {
  let entry;
  try {
    entry = parseJson(line);
  } catch (error) {
    if (error instanceof GraphError) throw error;
    throw new GraphError(`not JSON (${error.message}).`, 'Write one JSON object per line.');
  }
  if (
    entry === null ||
    typeof entry !== 'object' ||
    Array.isArray(entry) ||
    entry instanceof Real
  ) {
    throw new GraphError('not a JSON object.', 'Write {...} with node_labels and edges.');
  }
  if (!isFinite_(entry.id)) {
    throw new GraphError('id holds a number that is not finite.', 'Use finite numbers.');
  }
  return checkGraph(entry);
}

/** Check a graph that is a JavaScript object already; typed arrays are accepted as lists. */
export function checkGraph(entry) {
  const ignored = Object.keys(entry)
    .filter((key) => !KEYS.includes(key))
    .map(shown)
    .sort();
  refuseMisspelt(entry, ignored);
  const nodeLabels = values(entry, 'node_labels');
  const nodeAttributes = numbers(entry, 'node_attributes');
  const numNodes = countNodes(entry, nodeLabels, nodeAttributes);
  const edges = listedEdges(entry, numNodes);
  const given = own(entry, 'class');
  if (given !== null) checkValue('class', given);
  const graph = {
    numNodes,
    edges,
    nodeLabels,
    nodeAttributes,
    class: given,
    edgeLabels: values(entry, 'edge_labels'),
    edgeAttributes: numbers(entry, 'edge_attributes'),
    id: own(entry, 'id'),
    ignored,
  };
  for (const [key, found, expected] of [
    ['node_labels', nodeLabels, numNodes],
    ['node_attributes', nodeAttributes, numNodes],
    ['edge_labels', graph.edgeLabels, edges.length],
    ['edge_attributes', graph.edgeAttributes, edges.length],
  ]) {
    if (found !== null && found.length !== expected) {
      const things = key.startsWith('node') ? 'nodes' : 'edges';
      throw new GraphError(
        `${found.length} ${key} for ${expected} ${things}.`,
        'Give one for each, in order.',
      );
    }
  }
  return graph;
}

/** The lines of a text that hold a graph: { number, line, text }; blank lines are left out. */
export function* linesOf(text) {
  let number = 0;
  for (const [place, content] of text
    .replace(/^\ufeff/, '')
    .split('\n')
    .entries()) {
    if (/[^ \t\r\v\f]/.test(content)) yield { number: number++, line: place + 1, text: content };
  }
}

function own(entry, key) {
  return Object.hasOwn(entry, key) ? (entry[key] ?? null) : null;
}

function short(value) {
  return toJson(value).slice(0, 40);
}

function isInteger(value) {
  return typeof value === 'bigint' || Number.isInteger(value);
}

function isFinite_(value) {
  if (value instanceof Real) return Number.isFinite(value.value);
  if (value === null || typeof value !== 'object') return true;
  return Object.values(value).every(isFinite_);
}

function list(entry, key) {
  const value = entry[key];
  if (ArrayBuffer.isView(value)) return Array.from(value);
  if (!Array.isArray(value))
    throw new GraphError(`${key} is not a list.`, `Write "${key}": [...].`);
  return value;
}

function checkValue(key, value) {
  if (typeof value === 'string') {
    if (shown(value) === value) return;
    throw new GraphError(`${key} ${short(value)} holds an unpaired surrogate.`, 'Fix it.');
  }
  if (!isInteger(value))
    throw new GraphError(`${key} ${short(value)}.`, 'Use an integer or a string.');
}

function values(entry, key) {
  if (own(entry, key) === null) return null;
  const found = list(entry, key);
  for (const value of found) checkValue(key, value);
  const strings = found.filter((value) => typeof value === 'string').length;
  if (strings && strings < found.length) {
    throw new GraphError(`${key} mixes integers and strings.`, 'Use one kind throughout the file.');
  }
  return found;
}

function numbers(entry, key) {
  if (own(entry, key) === null) return null;
  // A single attribute may be written as a number.
  const rows = list(entry, key).map((row) => (Number.isNaN(numberOf(row)) ? row : [row]));
  return rows.map((row) => {
    const given = ArrayBuffer.isView(row) ? Array.from(row) : row;
    const found = Array.isArray(given) ? given.map(asNumber) : [];
    if (!found.length || found.length !== rows[0].length || found.includes(null)) {
      const large = Array.isArray(given) && given.some(isLarge);
      throw new GraphError(
        `${key} ${short(row)}.`,
        large
          ? 'Use numbers up to 3.4e38, the largest 32-bit float.'
          : 'Use equally long lists of finite numbers.',
      );
    }
    return found;
  });
}

/** A number that is finite as a 32-bit float, or null. */
function asNumber(value) {
  const number = numberOf(value);
  return Number.isNaN(number) || isLarge(value) ? null : number;
}

function isLarge(value) {
  return Math.abs(numberOf(value)) > LARGEST_FLOAT32;
}

/** A number as JavaScript has it; NaN for any other value. */
function numberOf(value) {
  if (value instanceof Real) return value.value;
  return typeof value === 'bigint' || typeof value === 'number' ? Number(value) : NaN;
}

function countNodes(entry, labels, attributes) {
  const given = own(entry, 'num_nodes');
  if (given !== null && !isInteger(given)) {
    throw new GraphError('num_nodes is not an integer.', 'Count the nodes.');
  }
  const count = labels?.length ?? attributes?.length ?? given;
  if (count === null) {
    const remedy = 'Add them, or num_nodes for a graph without labels.';
    throw new GraphError('no node_labels.', meantBy('node_labels', entry) || remedy);
  }
  if (labels === null && attributes === null && count > MAX_BARE_NODES) {
    const most = MAX_BARE_NODES.toLocaleString('en-US');
    throw new GraphError(`num_nodes is ${count}.`, `At most ${most} are accepted.`);
  }
  // eslint-disable-next-line eqeqeq -- one of them may be a BigInt
  if (given !== null && given != count) {
    throw new GraphError(`num_nodes is ${given} for ${count} nodes.`, 'Make them agree.');
  }
  if (count < 1) throw new GraphError('a graph without nodes.', 'Remove the line.');
  return Number(count);
}

function listedEdges(entry, numNodes) {
  if (!Object.hasOwn(entry, 'edges')) {
    const remedy = 'Add "edges": [[0, 1], ...], or [] for a graph without.';
    throw new GraphError('no edges.', meantBy('edges', entry) || remedy);
  }
  return list(entry, 'edges').map((given) => {
    const edge = ArrayBuffer.isView(given) ? Array.from(given) : given;
    if (!Array.isArray(edge) || edge.length !== 2 || !edge.every(isInteger)) {
      throw new GraphError(`edge ${short(edge)}.`, 'Write two node numbers, [0, 1].');
    }
    if (!edge.every((end) => end >= 0 && end < numNodes)) {
      throw new GraphError(
        `edge ${short(edge)} in a graph of ${numNodes} nodes.`,
        `Nodes are counted from 0 to ${numNodes - 1}.`,
      );
    }
    return edge.map(Number);
  });
}

/** A sentence that names the key that was probably meant, or nothing. */
function meantBy(key, entry) {
  const names = [key, ...ELSEWHERE[key]];
  const found = Object.keys(entry).find((other) => names.includes(other.toLowerCase()));
  return found === undefined ? '' : `Rename '${found}' to ${key}.`;
}

/** Refuse a key that would be ignored although it is probably one of the format's. */
function refuseMisspelt(entry, ignored) {
  const missing = KEYS.filter((key) => !Object.hasOwn(entry, key)).sort();
  for (const other of ignored) {
    const word = other.slice(0, LONGEST_KEY).toLowerCase();
    let [best, meant] = [MISSPELT, null];
    for (const key of missing) {
      const similarity = (2 * matching(key, word)) / (key.length + word.length);
      if (similarity >= best) [best, meant] = [similarity, key];
    }
    if (meant !== null) throw new GraphError(`unknown key '${other}'.`, `Did you mean ${meant}?`);
  }
}

/** Characters in the longest common block, and in those to its left and right (as difflib). */
function matching(one, other) {
  let [length, start, place] = [0, 0, 0];
  for (let i = 0; i < one.length; i++) {
    for (let j = 0; j < other.length; j++) {
      let k = 0;
      while (i + k < one.length && one[i + k] === other[j + k]) k++;
      if (k > length) [length, start, place] = [k, i, j];
    }
  }
  if (!length) return 0;
  return (
    length +
    matching(one.slice(0, start), other.slice(0, place)) +
    matching(one.slice(start + length), other.slice(place + length))
  );
}
