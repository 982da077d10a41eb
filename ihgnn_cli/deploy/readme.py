"""The model card of an exported file, as Markdown with the front matter of Hugging Face.

Every number comes from the model or from the result of its own run; what is not known is left out.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ihgnn_cli.data.kinds import ALL
from ihgnn_cli.data.recode import some_values
from ihgnn_cli.deploy.metadata import KEY
from ihgnn_cli.deploy.onnx_model import OnnxClassifier
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.card import ModelCard, Snapshot
from ihgnn_cli.training.folder import finished
from ihgnn_cli.words import counted

Plain = Mapping[str, Any]


def result_of(checkpoint: Path, card: ModelCard) -> Plain | None:
    """The result of the run that a checkpoint belongs to, if it is about this very model."""
    try:
        result = finished(checkpoint.parent)
    except InputError:
        return None
    if result is None or card.snapshot is None:
        return None
    same_data = result.get("provenance", {}).get("data_sha256") == card.fingerprint
    return result if same_data and result.get("best_epoch") == card.snapshot.epoch else None


def model_readme(name: str, classifier: OnnxClassifier, result: Plain | None) -> str:
    """The card of a model.

    Args:
        name: of the exported file, without .onnx.
        classifier: the exported file, loaded.
        result: what `result_of` gives.
    """
    card = classifier.card
    about = json.loads(classifier.session.get_modelmeta().custom_metadata_map[KEY])
    if about["members"] != _trained(card):
        result = None  # it is about all members
    test = None if result is None else result.get("test")
    parts = [
        _front_matter(name, card, test),
        f"# {name}",
        f"A graph classifier trained on {card.dataset_name} with ihgnn "
        f"{about['versions']['ihgnn']}, exported to ONNX ({about['layout']} layout, opset "
        f"{about['opset']}).",
        "## Data\n\n" + _table(_data(card)),
        "## Training and protocol\n\n" + _table(_protocol(card, about, result)),
        "## Accuracy\n\n" + _accuracy(result, card.snapshot, about["members"]),
        "## Intended use\n\n"
        f"Classifies graphs of the same kind as {card.dataset_name}: the same meaning of node "
        "labels and attributes, similar sizes, and the classes above. It has not been tested on "
        "other data.",
        "## Limits\n\n" + _limits(classifier),
        "## How to call it\n\n" + _calls(name, about["inputs"], about["outputs"]),
    ]
    return "\n\n".join(parts) + "\n"


def _front_matter(name: str, card: ModelCard, test: Plain | None) -> str:
    """YAML; JSON strings are YAML."""
    lines = [
        "library_name: ihgnn",
        "pipeline_tag: graph-ml",
        "tags: [graph-classification, graph-neural-network, onnx]",
        f"datasets: [{json.dumps(card.dataset_name)}]",
    ]
    if test is not None:
        data = json.dumps(card.dataset_name)
        lines += [
            "metrics: [accuracy]",
            "model-index:",
            f"- name: {json.dumps(name)}",
            "  results:",
            "  - task: {type: graph-classification}",
            f"    dataset: {{name: {data}, type: {data}, split: test}}",
            f"    metrics: [{{type: accuracy, value: {test['accuracy']:.4f}}}]",
        ]
    return "\n".join(["---", *lines, "---"])


def _trained(card: ModelCard) -> int:
    """The number of members of the trained model, of which an export may have fewer."""
    return 1 if card.snapshot is None else card.snapshot.members


def _data(card: ModelCard) -> Iterable[tuple[str, str]]:
    yield "Data set", card.dataset_name
    yield "SHA-256 of its content", f"`{card.fingerprint}`"
    yield "Classes", some_values(card.class_values)
    if card.inputs.labels:
        yield f"Node {card.label_words} that the model knows", some_values(card.label_values)
    if card.given_attributes:
        yield "Node attributes", str(card.given_attributes)
    if card.columns:
        yield "Inputs computed from the graph", str(len(card.columns))
    yield "Largest graph (m)", counted(card.max_nodes, "node")


def _protocol(card: ModelCard, about: Plain, result: Plain | None) -> Iterable[tuple[str, str]]:
    split = card.split
    sizes = {"train": split.train, "validation": split.validation, "test": split.test}
    model = about["model"]
    yield "Model", ", ".join(f"{key} {value}" for key, value in model.items())
    members, trained = about["members"], _trained(card)
    yield "Members", str(members) if members == trained else f"{members} of {trained}"
    yield "Graphs", ", ".join(f"{len(graphs)} {part}" for part, graphs in sizes.items())
    if card.snapshot is not None:
        yield "Saved", card.snapshot.described(members)
    if result is not None and card.snapshot is not None and card.snapshot.chosen:
        yield "Epoch chosen by", str(result["chosen_by"])


def _accuracy(result: Plain | None, snapshot: Snapshot | None, members: int) -> str:
    if snapshot is not None and members < snapshot.members:
        return (
            f"Not known: the run tested all {snapshot.members} members together, and this file has "
            f"{members}. `ihgnn evaluate` measures it."
        )
    if result is None:
        return "Not known: the export had no result of the run. `ihgnn evaluate` measures it."
    if result.get("split") == ALL:
        return (
            "Not measured: the model was trained on all graphs. Cross-validation of the same "
            "settings (`ihgnn crossval`) estimates it."
        )
    test, validation = result["test"], result["validation"]
    chosen = "; the epoch was chosen on these graphs" if snapshot and snapshot.chosen else ""
    rows = [
        (
            f"Test accuracy ({counted(test['graphs'], 'graph')})",
            f"{_percent(test['accuracy'])}, 95 % interval {_percent(test['accuracy_low'])} to "
            f"{_percent(test['accuracy_high'])}",
        ),
        ("Majority class on the same graphs", _percent(test["majority_share"])),
        ("Balanced accuracy", _percent(test["balanced_accuracy"])),
        ("Expected calibration error", f"{test['calibration_error']:.3f}"),
        (
            f"Validation accuracy ({counted(validation['graphs'], 'graph')})",
            f"{_percent(validation['accuracy'])}{chosen}",
        ),
    ]
    return (
        _table(rows) + "\n\nOne split and the seeds above. The interval covers the choice of test "
        "graphs, not of splits or seeds."
    )


def _limits(classifier: OnnxClassifier) -> str:
    card = classifier.card
    found = []
    if card.inputs.labels:
        found.append(
            f"{card.label_words.capitalize()} that the training data does not have are encoded as "
            "zero vectors. If most nodes are unknown, the answer means nothing."
        )
    most, used = classifier.described.nodes, classifier.node_limit
    if most is not None:
        found.append(f"Graphs can have up to {most:,} nodes; inputs have this fixed size.")
    if used is not None and (most is None or most > used):
        found.append(
            f"Of a graph with more than {used:,} nodes, only the first {used:,} in sorted order "
            "are used."
        )
    labels, bins = "edge labels and edge attributes are not used", card.edge_bins
    if bins is not None:
        read = "their labels and " if bins.labels else ""
        labels = f"the model reads {read}their attribute, in {bins.count} bins (`card.edge_bins`)"
    elif card.edge_label_values:
        known = some_values(card.edge_label_values)
        labels = f"their labels are {known}; edge attributes are not used"
    found.append(f"Edges are undirected; {labels}.")
    if card.background_edge_label:
        found.append(f"Edges with the label {card.background_edge_label} are left out.")
    found.append("Probabilities are not calibrated after training.")
    if card.conformal is not None:
        found.append(
            f"`prediction_set` was calibrated on {counted(card.conformal.graphs, 'graph')} for a "
            f"coverage of {_percent(1 - card.conformal.alpha)}. This holds for graphs of the same "
            "distribution, on average, and is not certain if these graphs also chose the "
            "epoch or the settings."
        )
    return "\n".join(f"- {each}" for each in found)


def _calls(name: str, inputs: Plain, outputs: Iterable[str]) -> str:
    rows = [
        (
            f"`{key}`",
            f"{each['type']} [{', '.join(map(str, each['shape']))}]: {each['meaning']}",
        )
        for key, each in inputs.items()
    ]
    return (
        "```sh\n"
        f"ihgnn predict {name}.onnx graphs.jsonl   # in a shell\n"
        f"ihgnn serve {name}.onnx                  # over HTTP\n"
        "```\n\n"
        "```python\n"
        "from ihgnn_cli.deploy import load\n\n"
        f'load("{name}.onnx").predict(graphs)\n'
        "```\n\n"
        "In any onnxruntime, the inputs are\n\n" + _table(rows) + "\n\nand the outputs "
        f"{', '.join(f'`{each}`' for each in outputs)}. `{name}.json` has the vocabulary and the "
        "classes in order."
    )


def _table(rows: Iterable[tuple[str, str]]) -> str:
    escaped = ((head, text.replace("|", "\\|").replace("\n", " ")) for head, text in rows)
    return "\n".join(["| | |", "|---|---|", *(f"| {head} | {text} |" for head, text in escaped)])


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
