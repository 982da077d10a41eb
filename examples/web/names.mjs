// What the numbers in MUTAG mean (ihgnn_cli/data/bundled/MUTAG/README.md).

const MUTAG = {
  labels: { 0: 'C', 1: 'N', 2: 'O', 3: 'F', 4: 'I', 5: 'Cl', 6: 'Br' },
  classes: { '-1': 'not mutagenic', 1: 'mutagenic' },
};

/** The name of a label, which is the label itself for other data. */
export function labelName(model, label) {
  return (isMutag(model) && MUTAG.labels[label]) || String(label);
}

/** What a class means, or nothing. */
export function classMeaning(model, value) {
  return (isMutag(model) && MUTAG.classes[value]) || '';
}

export function isMutag(model) {
  return model.metadata.card.dataset_name === 'MUTAG';
}
