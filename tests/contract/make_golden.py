"""Write the golden files of the contract: `python tests/contract/make_golden.py [NAME...]`.

They were made once, with revision a813f91. Make a file again only to record a decision:

    python tests/contract/make_golden.py commands

Without a name, all files are made.
"""

import json
import lzma
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from contract import observed
from contract.observed import GOLDEN, Case
from contract.selection import read, select


def _write(name: str, content: Any) -> None:
    """A JSON file with a line per entry of its first two levels."""
    lines = []
    for key, value in content.items():
        whole = json.dumps(value, sort_keys=True)
        if isinstance(value, dict) and len(whole) > 100:
            inner = ",\n".join(
                f"  {json.dumps(at)}: {json.dumps(each, sort_keys=True)}"
                for at, each in sorted(value.items())
            )
            whole = f"{{\n{inner}}}"
        lines.append(f"{json.dumps(key)}: {whole}")
    (GOLDEN / name).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8", newline="\n")


def graphs() -> None:
    """Forty graphs with words as labels, attributes, kinds and lengths of edges, and a split."""
    rng = np.random.default_rng(20)
    lines = []
    for number in range(40):
        nodes = 1 if number == 7 else int(rng.integers(3, 12))
        pairs = [(a, b) for a in range(nodes) for b in range(a + 1, nodes)]
        some = rng.random(len(pairs)) < 0.35
        edges = (
            []
            if number == 11
            else [list(p) for p, is_edge in zip(pairs, some, strict=True) if is_edge]
        )
        shift = 0.4 * (number % 2)
        lines.append(
            {
                "id": f"g{number}",
                "node_labels": [str(each) for each in rng.choice(["C", "N", "O"], nodes)],
                "node_attributes": (rng.normal(shift, 1, (nodes, 3)).round(3)).tolist(),
                "edges": edges,
                "edge_labels": [
                    str(each) for each in rng.choice(["one", "two", "none"], len(edges))
                ],
                "edge_attributes": rng.uniform(1, 3, len(edges)).round(2).tolist(),
                "class": ["even", "odd"][number % 2],
            }
        )
    text = "".join(json.dumps(each) + "\n" for each in lines)
    observed.GRAPHS.write_text(text, encoding="utf-8", newline="\n")
    order = [int(each) for each in rng.permutation(40)]
    folds = []
    for number in range(3):
        test = order[number::3]
        rest = [each for each in order if each not in test]
        inner = [(rest[8:], rest[:8]), (rest[:-8], rest[-8:])]
        selection = [{"train": sorted(a), "validation": sorted(b)} for a, b in inner]
        folds.append({"test": sorted(test), "model_selection": selection})
    observed.GRAPHS_FOLDS.write_text(json.dumps(folds) + "\n", encoding="utf-8", newline="\n")
    split = {"train": sorted(order[12:]), "validation": sorted(order[6:12])}
    fold = {"test": sorted(order[:6]), "model_selection": [split]}
    observed.GRAPHS_SPLIT.write_text(json.dumps([fold]) + "\n", encoding="utf-8", newline="\n")


def _batch(rng: np.random.Generator, columns: int, edge_labels: int) -> dict[str, np.ndarray]:
    """Twenty graphs; one has a single node, one no edges, one more than 12 nodes."""
    x, edge_index, batch, labels, start = [], [], [], [], 0
    for number in range(20):
        nodes = {0: 1, 1: 5, 2: 15}.get(number, int(rng.integers(3, 13)))
        pairs = np.argwhere(np.triu(rng.random((nodes, nodes)) < 0.4, 1))
        if number == 1:
            pairs = pairs[:0]
        kinds = rng.integers(0, max(1, edge_labels), len(pairs))
        edge_index.append(np.concatenate([pairs, pairs[:, ::-1]]).T + start)
        labels.append(np.concatenate([kinds, kinds]))
        batch.append(np.full(nodes, number))
        x.append(rng.normal(size=(nodes, columns)))
        start += nodes
    found = {
        "x": np.concatenate(x).astype(np.float32),
        "edge_index": np.concatenate(edge_index, axis=1),
        "batch": np.concatenate(batch),
    }
    return found | ({"edge_label": np.concatenate(labels)} if edge_labels else {})


def _one_hot(values: np.ndarray, columns: int) -> np.ndarray:
    """Rows of an identity matrix; values beyond it are unknown and have a row of zeros."""
    rows = np.concatenate([np.eye(columns), np.zeros((1, columns))])
    return rows[np.minimum(values, columns)].astype(np.float32)


def _cases() -> dict[str, Case]:
    from ihgnn_cli import IHGNN

    rng = np.random.default_rng(7)
    small = {"num_classes": 2, "max_nodes": 12, "layers": 2, "width": 4, "hidden": 6}
    cases: dict[str, Case] = {}

    def add(name: str, graphs: dict[str, np.ndarray], **arguments: Any) -> None:
        given = {"in_channels": graphs["x"].shape[1], **small, **arguments}
        weights = {}
        for key, tensor in IHGNN(**given).state_dict().items():
            value = rng.normal(0, 0.5, tuple(tensor.shape))
            if key.endswith("running_var"):
                value = 0.5 + value**2
            weights[key] = value.astype(np.float32)
            if key.endswith("num_batches_tracked"):
                weights[key] = np.array(3)
        case = Case(given, graphs, weights)
        cases[name] = Case(given, graphs, weights, observed.logits(case))

    labelled = _batch(rng, 3, 0)
    labelled["x"] = _one_hot(rng.integers(0, 4, len(labelled["x"])), 3)
    for variant in observed.VARIANTS:
        add(f"{variant}, paper", labelled, variant=variant)
        add(f"{variant}, authors", labelled, variant=variant, **observed.AUTHORS)
    for key, value in observed.AUTHORS.items():
        add(f"only {key}", labelled, **{key: value})
    with_kinds = _batch(rng, 3, 3)
    with_kinds["x"] = _one_hot(rng.integers(0, 3, len(with_kinds["x"])), 3)
    add("edge labels", with_kinds, edge_labels=3)
    add("edge labels, no-integration", with_kinds, edge_labels=3, variant="no-integration")
    with_bins = _batch(rng, 3, 5)
    add("edge bins, attributes", with_bins, edge_labels=5)
    plain = _batch(rng, 4, 0)
    add("attributes", plain)
    add("three classes, no layers", plain, num_classes=3, layers=0)
    degrees = np.bincount(plain["edge_index"][0], minlength=len(plain["x"]))
    add("degrees", {**plain, "x": _one_hot(degrees, 6)}, layers=3)
    return cases


def ihgnn() -> None:
    """Weights under their readable names, graphs and logits."""
    arrays = {}
    for name, case in _cases().items():
        arrays[f"{name}/arguments"] = np.array(json.dumps(case.arguments, sort_keys=True))
        arrays[f"{name}/logits"] = case.logits
        for part, values in (("graphs", case.graphs), ("weights", case.weights)):
            arrays |= {f"{name}/{part}/{key}": value for key, value in values.items()}
    np.savez_compressed(GOLDEN / "ihgnn.npz", **arrays)


def data() -> None:
    """Sizes and fingerprints."""
    names = {**observed.DATA, **{name: name for name in observed.PUBLISHED}}
    _write("data.json", {key: observed.data(name) for key, name in names.items()})


def homophily() -> None:
    """Tables of homophily."""
    found = {key: observed.homophily(name) for key, name in observed.DATA.items()}
    background = ("--background-edge-label", "none")
    found["graphs.jsonl, background"] = observed.homophily(observed.GRAPHS, *background)
    _write("homophily.json", found)


def training() -> None:
    """The first two epochs of each training."""
    _write("training.json", {name: observed.epochs(name) for name in observed.TRAININGS})


def models() -> None:
    """The catalogue."""
    _write("models.json", observed.models())


def signal() -> None:
    """References, ceiling and twins."""
    _write("signal.json", observed.signal_table())


def crossval() -> None:
    """A small cross-validation, with other rules of selection."""
    _write("crossval.json", observed.crossval(observed.GRAPHS, "--rules"))


def trainings() -> None:
    """MUTAG's 300 finished trainings, from `results/MUTAG/units.jsonl` of revision a813f91."""
    folder = Path(__file__).parents[2] / "results" / "MUTAG"
    lines = []
    with (folder / "units.jsonl").open(encoding="utf-8") as stream:
        for each in map(json.loads, stream):
            unit, test = each["unit"], each["test"]
            best = ("epoch", "train_loss", "train_accuracy", "validation_loss")
            lines.append(
                {
                    "final": unit["stage"] == "final",
                    "fold": unit["fold"],
                    "run": unit["run"],
                    "configuration": [unit["configuration"][key] for key in _GRID],
                    "best": [each["best"][key] for key in (*best, "validation_accuracy")],
                    "validation_graphs": each["validation_graphs"],
                    "hits": each["hits"],
                    "losses": each["losses"],
                    "test_graphs": test["graphs"],
                    "test_hits": test["hits"],
                    "accuracy": test["accuracy"],
                }
            )
    text = "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in lines)
    observed.TRAININGS_OF_MUTAG.write_bytes(lzma.compress(text.encode()))


_GRID = ("lr", "batch_size", "layers")


def selection() -> None:
    """What the rules of selection make of them."""
    found = read(observed.TRAININGS_OF_MUTAG)
    _write("selection.json", select([each for each in found if not each.final], 10))


def exports() -> None:
    """Tensors of exported models."""
    found = {}
    for name, layouts in observed.EXPORTS.items():
        with observed.trained(name) as run:
            for each in layouts:
                path = Path(f"{each}.onnx")
                found[f"{name}, {each}"] = observed.tensors(run, each, path)
    for tensors in found.values():
        tensors["outputs"].pop("order_margin", None)  # goes away on purpose
    _write("exports.json", found)


def commands() -> None:
    """Commands and options."""
    _write("commands.json", observed.commands())


FILES: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        *(graphs, ihgnn, data, homophily, training, models, signal, crossval, trainings, selection),
        *(exports, commands),
    )
}

if __name__ == "__main__":
    for wanted in sys.argv[1:] or FILES:
        FILES[wanted]()
        print(f"wrote {wanted}")  # noqa: T201
