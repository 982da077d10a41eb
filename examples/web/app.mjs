// The page: connects the drawing, the JSON text and the model with each other.

import { linesOf, parseGraph, toJson } from '../node/ihgnn.mjs';
import { appearance, showAnswer, showLegend } from './answer.mjs';
import { homophilyOf } from './classifier.mjs';
import { Drawing } from './drawing.mjs';
import { classMeaning, isMutag, labelName } from './names.mjs';
import { Sketch } from './sketch.mjs';

const FIRST_EXAMPLE = 0; // of the test graphs
const PALETTE = 12; // up to this many labels are buttons, more are a list

const find = (id) => document.getElementById(id);
const sketch = new Sketch();
const page = {
  engine: null, // wasm.mjs, or service.mjs where `ihgnn serve` shows this page
  classifier: null,
  answer: null,
  label: null,
  view: 'homophily',
  run: 0,
  examples: [],
};

const drawing = new Drawing(find('drawing'), sketch, {
  newNode: () => ({ label: page.label, attributes: zeros() }),
  appearance: (node) => appearance(page, sketch, node),
  relabel: (node, position) => {
    const label = position === null ? page.label : page.classifier?.model.labels[position];
    if (label !== undefined && label !== null) sketch.relabel(node, label);
  },
  changed: () => changed(),
  say: (sentence) => (find('said').textContent = sentence),
  light,
});

/** Show the graph as it is now, and ask the model. */
function changed({ writeJson = true } = {}) {
  page.answer = null;
  if (writeJson) {
    find('json').value = sketch.nodes.length ? toJson(sketch.entry()) : '';
    find('json-problem').textContent = '';
  }
  find('empty').hidden = sketch.nodes.length > 0;
  drawing.render();
  ask();
}

/** Ask the model about the graph; an answer that comes too late is ignored. */
async function ask() {
  const run = ++page.run;
  const { classifier } = page;
  if (!classifier) return;
  document.body.dataset.state = 'busy';
  try {
    if (sketch.nodes.length) {
      const graph = parseGraph(toJson(sketch.entry()));
      const answer = await classifier.answer(graph);
      const effects = await classifier.effects(graph, answer);
      if (run !== page.run) return;
      const neighbors = sketch.neighbors();
      const labels = classifier.model.countsDegrees
        ? neighbors.map((each) => each.length)
        : graph.nodeLabels;
      const homophily = labels && homophilyOf(labels, neighbors);
      page.answer = { ...answer, effects, neighbors, homophily, labels };
    }
    problem(null);
  } catch (error) {
    if (run !== page.run) return;
    problem(error);
  }
  drawing.render();
  showAnswer(page, sketch, light);
  showLegend(page);
  document.body.dataset.state = 'ready';
}

/** Highlight a node wherever it is shown. */
function light(node) {
  drawing.highlight(node);
  for (const each of document.querySelectorAll('#order [data-node], #nodes [data-node]')) {
    each.classList.toggle('lit', Number(each.dataset.node) === node);
  }
}

function useModel(classifier) {
  page.classifier = classifier;
  const { model } = classifier;
  const { card, members } = model.metadata;
  const one = members === 1 ? 'one model' : `${members} models`;
  find('model-name').textContent = `${card.dataset_name}: ${one}, ${model.layout} layout`;
  find('protocol').textContent = protocolOf(card);
  showPalette(model);
  showExamples(model);
}

function protocolOf(card) {
  const parts = ['train', 'validation', 'test'].map(
    (part) => `${graphsOf(card, part).length} ${part}`,
  );
  const largest = `Its largest graph has ${card.max_nodes} nodes.`;
  if (!card.snapshot)
    return `The model was trained on ${card.dataset_name} (${parts.join(', ')} graphs). ${largest}`;
  const { epoch, chosen, snapshots, split } = card.snapshot;
  const saved = snapshots
    ? `is the mean of ${snapshots} snapshots up to epoch ${epoch}, none chosen`
    : `saved after epoch ${epoch}, ${chosen ? 'chosen on the validation graphs' : 'the last one'}`;
  return (
    `The model was trained on ${card.dataset_name} (split ${split}: ${parts.join(', ')} graphs) and ` +
    `${saved}. ${largest}`
  );
}

/** The positions of the graphs in a part of the split. */
function graphsOf(card, part) {
  return part === 'test' ? card.split.test : card.split.model_selection[0][part];
}

function zeros() {
  const count = page.classifier?.model.attributes ?? 0;
  return count ? new Array(count).fill(0) : null;
}

function showPalette(model) {
  const given = model.readsLabels && !model.countsDegrees;
  const labels = given ? model.labels : [];
  [page.label = null] = labels;
  const few = labels.length <= PALETTE;
  const legend = find('labels').querySelector('legend');
  const choices = labels.map((label, position) => {
    const option = document.createElement(few ? 'label' : 'option');
    if (!few)
      return Object.assign(option, { value: position, textContent: labelName(model, label) });
    const input = Object.assign(document.createElement('input'), {
      type: 'radio',
      name: 'label',
      value: position,
    });
    input.checked = position === 0;
    const name = Object.assign(document.createElement('span'), {
      textContent: labelName(model, label),
    });
    option.append(input, name);
    return option;
  });
  if (!few) {
    const select = document.createElement('select');
    select.setAttribute('aria-label', 'Label of new nodes');
    select.append(...choices);
    choices.splice(0, choices.length, select);
  }
  find('labels').replaceChildren(legend, ...choices);
}

function showExamples(model) {
  find('example-field').hidden = !isMutag(model) || !page.examples.length;
  if (find('example-field').hidden) return;
  const groups = ['test', 'validation', 'train'].map((part) => {
    const group = document.createElement('optgroup');
    group.label = {
      test: 'Test graphs',
      validation: 'Validation graphs',
      train: 'Training graphs',
    }[part];
    for (const number of graphsOf(model.metadata.card, part)) {
      const graph = page.examples[number];
      const meaning = classMeaning(model, graph.class);
      group.append(new Option(`${number}: ${graph.numNodes} atoms, ${meaning}`, number));
    }
    return group;
  });
  find('example').replaceChildren(new Option('choose …', ''), ...groups);
}

function showExample(number) {
  sketch.take(page.examples[number]);
  changed();
}

/** Open a model (where the page runs it itself), or the first graph of a file. */
async function open(files) {
  document.body.dataset.state = 'busy';
  try {
    const model = [...files].find((file) => file.name.endsWith('.onnx'));
    const graphs = [...files].find((file) => /\.jsonl?$/.test(file.name));
    if (model && page.engine.load)
      useModel(await page.engine.load(new Uint8Array(await model.arrayBuffer())));
    else if (graphs) sketch.take(parseGraph(linesOf(await graphs.text()).next().value?.text ?? ''));
    else
      throw new Error(
        page.engine.load
          ? 'Give a MODEL.onnx of ihgnn export, or graphs as JSON lines.'
          : 'Give graphs as JSON lines. This page uses the model of the service.',
      );
    changed();
  } catch (error) {
    problem(error);
  }
}

function problem(error) {
  find('problem').hidden = error === null;
  find('problem').textContent = error === null ? '' : error.message;
  if (error !== null) document.body.dataset.state = 'ready';
}

function listen() {
  find('tool').addEventListener('change', (event) => {
    drawing.tool = event.target.value;
    drawing.render();
  });
  find('labels').addEventListener('change', (event) => {
    page.label = page.classifier.model.labels[event.target.value];
  });
  find('view').addEventListener('change', (event) => {
    page.view = event.target.value;
    drawing.render();
    showAnswer(page, sketch, light);
    showLegend(page);
  });
  find('undo').addEventListener('click', () => sketch.undo() && changed());
  find('clear').addEventListener('click', () => {
    sketch.clear();
    changed();
  });
  find('arrange').addEventListener('click', () => {
    sketch.remember();
    sketch.arrange();
    drawing.render();
  });
  find('example').addEventListener(
    'change',
    (event) => event.target.value !== '' && showExample(event.target.value),
  );
  find('model-file').addEventListener('change', (event) => open(event.target.files));
  find('json').addEventListener('input', (event) => {
    try {
      sketch.take(parseGraph(event.target.value));
      find('json-problem').textContent = '';
      changed({ writeJson: false });
    } catch (error) {
      find('json-problem').textContent = error.message;
    }
  });
  document.addEventListener('keydown', (event) => {
    const inText = event.target.matches('textarea');
    if ((event.ctrlKey || event.metaKey) && event.key === 'z' && !inText && sketch.undo()) {
      event.preventDefault();
      changed();
    }
  });
  document.addEventListener('dragover', (event) => event.preventDefault());
  document.addEventListener('drop', (event) => {
    event.preventDefault();
    open(event.dataTransfer.files);
  });
}

async function start() {
  listen();
  try {
    page.engine = await import(`./${document.body.dataset.engine}.mjs`);
    const { classifier, examples, first } = await page.engine.start();
    page.examples = examples;
    useModel(classifier);
    if (find('example-field').hidden) {
      if (first) sketch.take(first);
      changed();
      return;
    }
    const number = graphsOf(classifier.model.metadata.card, 'test')[FIRST_EXAMPLE];
    find('example').value = number;
    showExample(number);
  } catch (error) {
    problem(error);
  }
}

start();
