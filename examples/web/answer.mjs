// Shows the model's answer: class, probabilities, order of the nodes, and each node's effect.

import { MOST_EFFECTS } from './classifier.mjs';
import { classMeaning, labelName } from './names.mjs';

const HUES = [210, 30, 0, 140, 280, 90, 330, 60, 180, 250, 15, 300];
const NOTES = {
  homophily: 'The share of a node’s neighbours that have its label.',
  effect:
    'How much a node supports the class: its probability, minus the one without the node and its edges.',
  label: 'One colour per label.',
};

const find = (id) => document.getElementById(id);

/** How the drawing shows a node. */
export function appearance(page, sketch, node) {
  const { answer, classifier } = page;
  const label = labelOf(page, sketch, node);
  const unknown = label !== null && classifier && !classifier.model.positions.has(String(label));
  const place = answer?.order ? answer.order.indexOf(node) + 1 : null;
  const text =
    label === null ? '' : classifier ? labelName(classifier.model, label) : String(label);
  const facts = [`Node ${node}`, text && `label ${text}${unknown ? ', unknown to the model' : ''}`];
  if (answer) {
    facts.push(`degree ${answer.neighbors[node].length}`);
    if (answer.homophily) facts.push(`homophily ${answer.homophily[node].toFixed(2)}`);
    if (place !== null) facts.push(`place ${place} in the readout`);
    if (answer.effects) facts.push(`effect ${signed(answer.effects[node])}`);
  }
  return {
    text,
    fill: fillOf(page, sketch, node),
    place,
    unknown,
    description: facts.filter(Boolean).join(', '),
  };
}

export function showAnswer(page, sketch, light) {
  const { answer, classifier } = page;
  const shown = answer !== null;
  find('class').textContent = shown ? '' : sketch.nodes.length ? 'No answer' : 'Draw a graph';
  find('verdict').textContent = '';
  for (const id of ['probabilities', 'notes', 'facts', 'order']) find(id).replaceChildren();
  const body = find('nodes').tBodies[0];
  body.replaceChildren();
  find('order-note').textContent = '';
  find('effect-note').textContent = '';
  if (!shown) return;
  const { model } = classifier;
  const meaning = classMeaning(model, answer.class);
  find('class').append(`Class ${answer.class} `, make('small', meaning && `(${meaning})`));
  const likely = `${(100 * answer.probabilities[answer.best]).toFixed(1)} %`;
  find('verdict').textContent = `Class ${answer.class}${meaning && `, ${meaning}`}: ${likely}`;
  for (const [c, value] of model.classes.entries()) {
    find('probabilities').append(
      bar(`${value}`, classMeaning(model, value), answer.probabilities[c], c === answer.best),
    );
  }
  find('notes').append(...notesOf(model, sketch, answer).map((note) => make('li', note)));
  const facts = [
    ['Nodes', sketch.nodes.length],
    ['Edges', sketch.edges.length],
  ];
  if (answer.homophily) facts.push(['Homophily β', mean(answer.homophily).toFixed(2)]);
  for (const [name, value] of facts) {
    const pair = document.createElement('div');
    pair.append(make('dt', name), make('dd', value));
    find('facts').append(pair);
  }
  showOrder(page, sketch, light);
  find('effect-note').textContent =
    answer.effects === null
      ? `Effects are computed for 2 to ${MOST_EFFECTS} nodes, or as many as the service accepts.`
      : `Effect: the probability of class ${answer.class}, minus the one without the node and its edges.`;
  const rank = answer.effects ?? sketch.nodes.map(() => 0);
  const rows = [...sketch.nodes.keys()].sort(
    (a, b) => Math.abs(rank[b]) - Math.abs(rank[a]) || a - b,
  );
  body.append(...rows.map((node) => row(page, sketch, node, light)));
}

export function showLegend(page) {
  find('view-note').textContent = NOTES[page.view];
  const ramp = make('span', '');
  ramp.className = `ramp ${page.view}`;
  const words = { homophily: ['0', '1'], effect: ['opposes', 'supports'], label: [] }[page.view];
  find('legend').replaceChildren(...(words.length ? [words[0], ramp, words[1]] : []));
}

function notesOf(model, sketch, answer) {
  const notes = [];
  const count = sketch.nodes.length;
  if (answer.unknownNodes) {
    const words = model.countsDegrees ? 'degrees' : 'labels';
    notes.push(
      `The model does not know the ${words} of ${answer.unknownNodes} of ${count} nodes.` +
        (answer.unknownNodes > 0.9 * count ? ' The answer means nothing.' : ''),
    );
  }
  if (model.nodeLimit !== null && count > model.nodeLimit) {
    notes.push(
      `The graph has more than ${model.nodeLimit} nodes; the model uses the first ${model.nodeLimit} in sorted order.`,
    );
  }
  if (model.attributes)
    notes.push('New nodes have zeros as attributes. Change them in the JSON text.');
  return notes;
}

function showOrder(page, sketch, light) {
  const { answer, classifier } = page;
  const limit = classifier.model.nodeLimit;
  find('order-note').textContent =
    answer.order === null
      ? 'There is no order to show for this model.'
      : 'The model sorts the nodes and reads them one after the other; the drawing has the same numbers.';
  for (const [place, node] of (answer.order ?? []).entries()) {
    const item = make('li', appearance(page, sketch, node).text || '•');
    item.append(make('small', place + 1));
    item.title = `Node ${node}`;
    item.classList.toggle('left-out', place >= limit);
    paint(item, fillOf(page, sketch, node));
    follow(item, node, light);
    find('order').append(item);
  }
}

function row(page, sketch, node, light) {
  const { answer } = page;
  const made = document.createElement('tr');
  const label = document.createElement('td');
  const swatch = make('span', '');
  swatch.className = 'swatch';
  paint(swatch, fillOf(page, sketch, node));
  label.append(swatch, appearance(page, sketch, node).text);
  made.append(
    make('td', node),
    label,
    make('td', answer.effects ? signed(answer.effects[node]) : '–'),
    make('td', answer.homophily ? answer.homophily[node].toFixed(2) : '–'),
    make('td', answer.order ? answer.order.indexOf(node) + 1 : '–'),
    make('td', answer.neighbors[node].length),
  );
  if (answer.effects) made.dataset.effect = answer.effects[node];
  follow(made, node, light);
  return made;
}

function follow(element, node, light) {
  element.dataset.node = node;
  element.addEventListener('pointerenter', () => light(node));
  element.addEventListener('pointerleave', () => light(null));
}

function bar(value, meaning, probability, best) {
  const item = document.createElement('li');
  item.className = best ? 'best' : '';
  item.dataset.class = value;
  item.dataset.probability = probability;
  const track = make('span', '');
  track.className = 'bar';
  const filled = document.createElement('i');
  filled.style.width = `${100 * probability}%`;
  track.append(filled);
  item.append(
    make('span', `Class ${value}${meaning && `, ${meaning}`}`),
    make('span', `${(100 * probability).toFixed(1)} %`),
    track,
  );
  return item;
}

function fillOf(page, sketch, node) {
  const { answer, classifier, view } = page;
  if (view === 'label') {
    const position = classifier?.model.positions.get(String(labelOf(page, sketch, node)));
    return position === undefined ? null : `hsl(${HUES[position % HUES.length]} 65% 78%)`;
  }
  if (view === 'homophily') {
    return answer?.homophily
      ? between('--low', '--middle', '--high', 2 * answer.homophily[node] - 1)
      : null;
  }
  if (!answer?.effects) return null;
  const most = Math.max(0.01, ...answer.effects.map(Math.abs));
  return between('--against', '--neutral', '--for', answer.effects[node] / most);
}

/** The label of a node, which is its degree for models of degrees. */
function labelOf({ answer }, sketch, node) {
  return sketch.nodes[node].label ?? answer?.labels?.[node] ?? null;
}

/** A colour from -1 over 0 to 1. */
function between(least, middle, most, value) {
  const share = (100 * Math.min(1, Math.abs(value))).toFixed(1);
  return `color-mix(in oklab, var(${value < 0 ? least : most}) ${share}%, var(${middle}))`;
}

function paint(element, colour) {
  if (colour) element.style.background = colour;
}

function signed(value) {
  const text = Math.abs(value).toFixed(3);
  return `${Number(text) === 0 ? '' : value < 0 ? '−' : '+'}${text}`;
}

function mean(values) {
  return values.reduce((sum, each) => sum + each, 0) / values.length;
}

function make(name, text) {
  return Object.assign(document.createElement(name), { textContent: text });
}
