// Asks the service that shows this page to run its model (`ihgnn serve`).

import { linesOf, Model, parseGraph, toJson } from '../node/ihgnn.mjs';
import { Classifier, drawable, fetched } from './classifier.mjs';

const JSON_TYPE = { 'Content-Type': 'application/json' };

/** The model of the service, graphs to try, and the first one if there are none. */
export async function start() {
  const [metadata, openapi] = await Promise.all(
    ['model.json', 'openapi.json'].map(async (path) => (await fetched(path)).json()),
  );
  const lines = linesOf(await (await fetched('examples.jsonl')).text());
  const examples = [...lines].map(({ text }) => parseGraph(text));
  const [first] = openapi.components.schemas.Graph.examples;
  introduce(openapi);
  return { classifier: new Served(metadata), examples, first: parseGraph(JSON.stringify(first)) };
}

class Served extends Classifier {
  constructor(metadata) {
    super();
    // The service computes these columns; callers give the others.
    const { columns = [], ...card } = metadata.card;
    card.attributes -= columns.length;
    this.model = drawable(new Model({ ...metadata, card }));
  }

  /** Class and probabilities of one graph, and its unknown nodes. */
  async answer(graph) {
    const body = toJson(entryOf(graph));
    const found = await asked('predict?allow_unknown=true', body);
    const probabilities = this.#rowOf(found);
    const best = probabilities.indexOf(Math.max(...probabilities));
    return {
      class: this.model.classes[best],
      best,
      probabilities,
      unknownNodes: found.unknown_nodes ?? 0,
      order: null,
    };
  }

  /** Null also if the service does not take so many graphs at a time. */
  async effects(graph, answer) {
    return super.effects(graph, answer).catch(() => null);
  }

  async probabilities(graphs) {
    const found = await asked('predict?allow_unknown=true', toJson(graphs.map(entryOf)));
    return found.map((each) => this.#rowOf(each));
  }

  #rowOf({ error, probabilities }) {
    if (error) throw new Error(error);
    return this.model.classes.map((each) => probabilities[each]);
  }
}

/** The service's answer to a request; throws its reason if it refuses. */
async function asked(path, body) {
  const found = await fetch(path, { method: 'POST', headers: JSON_TYPE, body });
  const answer = await found.json();
  if (!found.ok) throw new Error(answer.error ?? answer[0].error);
  return answer;
}

/** A checked graph in the form of JSON lines. */
function entryOf({ numNodes, nodeLabels, nodeAttributes, edges }) {
  return {
    ...(nodeLabels ? { node_labels: nodeLabels } : { num_nodes: numNodes }),
    ...(nodeAttributes ? { node_attributes: nodeAttributes } : {}),
    edges,
  };
}

/** Say what runs the model, and how programs can call it. */
function introduce(openapi) {
  const find = (id) => document.getElementById(id);
  document.title = openapi.info.title;
  document.querySelector('h1').textContent = openapi.info.title;
  find('about').textContent = 'Draw a graph, and the model of this service classifies it.';
  find('open').textContent = 'Open a graph …';
  find('model-file').accept = '.json,.jsonl';
  for (const [path, calls] of Object.entries(openapi.paths)) {
    const [method] = ['get', 'post'].filter((each) => each in calls);
    if (path.includes('{version}')) continue;
    const name = calls.parameters?.[0].schema.enum[0];
    const row = find('endpoints').insertRow();
    const code = document.createElement('code');
    code.textContent = `${method.toUpperCase()} ${path.replace('{name}', name)}`;
    row.insertCell().append(code);
    row.insertCell().textContent = calls[method].summary;
  }
  find('service').hidden = false;
}
