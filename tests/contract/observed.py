"""What the installed package answers, seen from outside.

`make_golden.py` stores these answers, and the tests of this folder compare them with those stored.
Only the names of `ihgnn_cli.__init__` and the `ihgnn` command are used, with one exception,
`selection.py`.
"""

import contextlib
import csv
import io
import json
import logging
import math
import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from typer.main import get_command

GOLDEN = Path(__file__).parent / "golden"
GRAPHS = GOLDEN / "graphs.jsonl"
"""Forty small graphs with every kind of label and attribute."""
GRAPHS_SPLIT = GOLDEN / "graphs-split.json"
GRAPHS_FOLDS = GOLDEN / "graphs-folds.json"
"""Three folds with two inner splits each."""
MUTAG_SPLITS = GOLDEN / "mutag-splits.json"
"""Ten folds of MUTAG."""
TRAININGS_OF_MUTAG = GOLDEN / "mutag-trainings.jsonl.xz"

VARIANTS = ("full", "no-integration", "no-separation", "no-adaptive", "no-concat")
AUTHORS = {"sort_key": "last-layer", "sort_order": "descending", "readout_relu": True}
BASELINES = (
    *("acm", "dcgnn", "dgcnn", "diffpool", "gin", "gnnml", "gprgnn", "graphormer", "h2gcn"),
    *("kgnn", "pcnet", "pgcn", "ppgn", "tokengt"),
)
MODELS = ("ihgnn", *BASELINES)


@dataclass(frozen=True)
class Answer:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The document on standard output."""
        assert self.code == 0, self.err
        return json.loads(self.out)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """An empty working directory."""
    before = Path.cwd()
    folder = Path(tempfile.mkdtemp(prefix="ihgnn-contract-"))
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)
        shutil.rmtree(folder)


@contextlib.contextmanager
def _process_state_kept() -> Iterator[None]:
    """Signal handlers, warnings and log handlers are as before when the block ends."""
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [getattr(signal, name) for name in names]
    handlers = [signal.getsignal(number) for number in numbers]
    with (
        mock.patch.object(logging.getLogger("ihgnn_cli"), "handlers", []),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            for number, handler in zip(numbers, handlers, strict=True):
                signal.signal(number, handler)


def ihgnn(*args: object) -> Answer:
    """Run the installed command in this process."""
    (entry,) = entry_points(group="console_scripts", name="ihgnn")
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    argv = ["ihgnn", *map(str, args)]
    code: object = 0
    streams = {"argv": argv, "stdout": out, "stderr": err, "stdin": io.StringIO()}
    with _process_state_kept(), mock.patch.multiple(sys, **streams):
        try:
            entry.load()()
        except SystemExit as ended:
            code = ended.code
    shown = []
    for stream in (out, err):
        stream.flush()
        shown.append(stream.buffer.getvalue().decode())
    return Answer(code if isinstance(code, int) else 0, *shown)


# Data


DATA = {
    "MUTAG": "MUTAG",
    "graphs.jsonl": GRAPHS,
    "synthetic": "synthetic:homophily=0.3,graphs=60",
    "synthetic-range": "synthetic:homophily=0.2..0.8,graphs=40,classes=3,labels=5,seed=3",
    "synthetic-noise": "synthetic:homophily=0.9,graphs=40,labels=2,noise=0.2,nodes=30",
}
PUBLISHED = (*("KKI", "BZR_MD", "DHFR_MD", "IMDB-BINARY", "IMDB-MULTI", "PROTEINS", "DD"),)
"""Data sets that are read only where `IHGNN_DATA` holds them."""
_COLUMNS = ("graphs", "nodes", "edges", "node_labels", "label_source", "classes", "fingerprint")


def data(name: str | Path) -> dict[str, Any]:
    """Sizes and the fingerprint of a data set."""
    found = ihgnn("datasets", "check", name, "--json").json
    return {key: found[key] for key in _COLUMNS}


def homophily(name: str | Path, *options: str) -> dict[str, Any]:
    """The tables of homophily, and each graph's value."""
    measures = [part for each in ("node", "edge", "adjusted") for part in ("-m", each)]
    with scratch():
        found = ihgnn("homophily", name, *measures, *options, "--csv", "rows.csv", "--json").json
        with Path("rows.csv").open(encoding="utf-8", newline="") as stream:
            rows = list(csv.reader(stream))
    table = found["datasets"][0]
    summary = {
        key: table[key]
        for key in ("graphs", "mean_nodes", "mean_edges", "classes", "class_values", "measures")
        if key in table
    }
    return {"summary": summary, "columns": rows[0], "rows": [_numbers(row) for row in rows[1:]]}


def _numbers(cells: Sequence[str]) -> list[float | str | None]:
    """The cells of a table, numbers to twelve digits."""
    found: list[float | str | None] = []
    for cell in cells:
        try:
            value = float(cell)
        except ValueError:
            found.append(cell)
        else:
            found.append(float(f"{value:.12g}") if math.isfinite(value) else None)
    return found


# Training


_UNLABELLED = "unlabelled.jsonl"
"""The structure of `GRAPHS` alone."""


@dataclass(frozen=True)
class Training:
    """A training of two epochs with seed 0 and a split from a file."""

    settings: Mapping[str, Any]
    data: str | Path = "MUTAG"
    train: float = 1e-4
    """Relative tolerance of the columns of the training part."""
    validation: float = 1e-4


def _trainings() -> dict[str, Training]:
    found = {f"ihgnn-{name}": Training({"variant": name}) for name in VARIANTS}
    found["ihgnn-authors"] = Training({"recipe": "authors"})
    found |= {name: Training({"model": name}) for name in BASELINES}
    found["gnnml"] = Training({"model": "gnnml", "lr": 0.001})
    # A bias before BatchNorm has rounding for a gradient, which Adam makes steps of. They reach
    # the validation part through the running means.
    for name in ("gin", "pgcn"):
        found[name] = Training({"model": name, "lr": 0.0001}, validation=0.01)
    # Which of several equally good eigenvectors TokenGT takes is the solver's choice.
    found["tokengt"] = Training({"model": "tokengt"}, train=0.05, validation=0.05)
    read = {
        "labels": {"features": "labels"},
        "attributes": {"features": "attributes"},
        "labels-and-attributes": {"features": "both"},
        "edge-labels": {"features": "labels", "edge_labels": True},
        "edge-bins": {"features": "labels", "edge_bins": 4},
        "edge-labels-and-bins": {"features": "labels", "edge_labels": True, "edge_bins": 3},
        "background": {"features": "labels", "background_edge_label": "none"},
        "degree-input": {"features": "labels", "inputs": "degree"},
    }
    found |= {f"reads-{key}": Training(value, GRAPHS) for key, value in read.items()}
    found["reads-degrees"] = Training({}, _UNLABELLED)
    loss = {
        "weight-decay": {"weight_decay": 0.01},
        "label-smoothing": {"label_smoothing": 0.2},
        "class-weights": {"class_weights": "balanced"},
        "equal-batches": {"equal_batches": True, "batch_size": 50},
        "ensemble": {"ensemble": 2, "dropout": 0.2},
    }
    return found | {key: Training(value) for key, value in loss.items()}


TRAININGS = _trainings()


def _read(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings without a hidden width for the models that do not read it."""
    without = settings.get("model") in ("gin", "pgcn", "ppgn")
    return {name: value for name, value in settings.items() if not (without and name == "hidden")}


def epochs(name: str) -> list[dict[str, float]]:
    """The first two epochs of a training in `TRAININGS`, as `metrics.jsonl` has them."""
    from ihgnn_cli import train

    case = TRAININGS[name]
    split = MUTAG_SPLITS if case.data == "MUTAG" else GRAPHS_SPLIT
    small = {"width": 8, "hidden": 16, "lr": 0.01, "epochs": 2, "seed": 0, "device": "cpu"}
    with scratch() as folder:
        lines = [json.loads(line) for line in GRAPHS.read_text(encoding="utf-8").splitlines()]
        bare = [
            {"num_nodes": len(each["node_labels"]), "edges": each["edges"], "class": each["class"]}
            for each in lines
        ]
        text = "".join(json.dumps(each) + "\n" for each in bare)
        (folder / _UNLABELLED).write_text(text, encoding="utf-8")
        train(
            case.data,
            out=folder / "run",
            split=f"{split}:0",
            progress=False,
            **_read({**small, **case.settings}),
        )
        lines = (folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    parts = ("train", "validation")
    columns = [f"{part}_{of}" for part in parts for of in ("loss", "accuracy")]
    return [{key: json.loads(line)[key] for key in columns} for line in lines]


# Models

_GONE = {"gnnml": {"kind", "learn_supports"}}
"""Settings that are going away on purpose."""


def models() -> dict[str, Any]:
    """Title, settings with defaults and grid of each model."""
    found = {each["name"]: each for each in ihgnn("models", "--json").json["models"]}
    return {name: _described(found[name]) for name in MODELS}


def _described(model: Mapping[str, Any]) -> dict[str, Any]:
    gone = _GONE.get(model["name"], set())
    kept = {key: value for key, value in model["settings"].items() if key not in gone}
    grid = {key: value for key, value in model["grid"].items() if key not in gone}
    return {"title": model["title"], "settings": kept, "grid": grid}


@dataclass(frozen=True)
class Case:
    """A model of `IHGNN` with weights, a batch of graphs, and its logits."""

    arguments: Mapping[str, Any]
    graphs: Mapping[str, np.ndarray]
    weights: Mapping[str, np.ndarray]
    logits: np.ndarray | None = None


def logits(case: Case) -> np.ndarray:
    """What `IHGNN` with these weights answers, in evaluation mode."""
    import torch

    from ihgnn_cli import IHGNN

    model = IHGNN(**case.arguments).eval()
    model.load_state_dict({name: torch.tensor(value) for name, value in case.weights.items()})
    with torch.no_grad():
        answer: np.ndarray = model(
            **{name: torch.from_numpy(value) for name, value in case.graphs.items()}
        ).numpy()
    return answer


def differences(found: Any, stored: Any, rel: float, where: str = "") -> list[str]:
    """Where an answer differs from the stored one. Keys that are not stored may be there."""
    if isinstance(stored, dict) and isinstance(found, dict):
        missing = [f"{where}.{key} is missing" for key in stored.keys() - found.keys()]
        pairs = [(f"{where}.{key}", key) for key in stored.keys() & found.keys()]
        return missing + [
            each
            for path, key in sorted(pairs)
            for each in differences(found[key], stored[key], rel, path)
        ]
    if isinstance(stored, list) and isinstance(found, list) and len(stored) == len(found):
        pairs = enumerate(zip(found, stored, strict=True))
        return [each for at, (a, b) in pairs for each in differences(a, b, rel, f"{where}[{at}]")]
    numbers = [type(each) in (int, float) for each in (found, stored)]
    if all(numbers):
        same = math.isclose(found, stored, rel_tol=rel, abs_tol=1e-9)
    else:
        same = type(found) is type(stored) and found == stored
    return [] if same else [f"{where}: {found!r} instead of {stored!r}"]


def stored(name: str) -> Any:
    """A golden file in JSON."""
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))


# Studies


def signal_table() -> dict[str, Any]:
    """References, ceiling, twins and the permutation test of MUTAG on folds from a file."""
    split = ("--split-file", MUTAG_SPLITS, "--permutations", 40)
    found = ihgnn("signal", "MUTAG", *split, "--json", "--quiet").json
    references = [
        {"key": each["key"], **{key: each["scores"][key] for key in _SCORES}}
        for each in found["references"]
    ]
    rounds = {"rounds": found["ceiling"]["rounds"]}
    kept = ("graphs", "folds", "majority_share", "best", "twins")
    test = found["permutation_test"]["accuracy"]
    return {
        **{key: found[key] for key in kept},
        "references": references,
        "ceiling": rounds,
        "test": {"value": test["value"], "p": test["p"]},
    }


_SCORES = ("accuracy", "accuracy_std", "balanced_accuracy", "roc_auc")
GRID = (
    *("--lr", "0.01,0.001", "-b", "16", "-k", "1,2", "--set", "width=4", "--set", "hidden=8"),
    *("--features", "attributes", "--epochs", "6", "--runs", "2", "--seed", "0"),
    *("--device", "cpu", "--workers", "1"),
)
"""Four configurations, two inner splits, three folds with two final runs: 30 trainings."""


def crossval(data: str | Path = GRAPHS, *options: object) -> dict[str, Any]:
    """A small cross-validation of `GRAPHS`, on folds from a file."""
    split = ("--split-file", GRAPHS_FOLDS, *GRID)
    with scratch():
        found = ihgnn("crossval", data, *split, *options, "--json", "--quiet", "--out", "job").json
    folds = [{key: each[key] for key in _FOLD} for each in found["folds"]]
    for of_fold, each in zip(folds, found["folds"], strict=True):
        of_fold["runs"] = [{key: run[key] for key in _RUN} for run in each["runs"]]
    best = {key: found["best"][key] for key in ("configuration", "folds")}
    rules = [{key: each[key] for key in _RULE} for each in found.get("rules") or []]
    kept = {key: found[key] for key in _CROSSVAL}
    return {**kept, "best": best, "rules": rules, "folds": folds}


_CROSSVAL = ("test_mean", "test_std", "test_error", "balanced_accuracy", "roc_auc")
_RULE = ("key", "honest", "mean", "std", "configuration", "epoch")
_FOLD = (
    *("fold", "configuration", "validation_accuracy", "validation_loss", "test_graphs"),
    "test_mean",
)
_RUN = ("run", "epoch", "validation_accuracy", "test_accuracy")


# Exported models


EXPORTS = {"ihgnn": ("padded", "sparse"), "gin": ("padded", "sparse"), "ensemble": ("sparse",)}
"""Models and the layouts they are exported in."""
_EXPORTED = {
    "ihgnn": {"features": "both", "edge_labels": True},
    "gin": {"features": "labels", "model": "gin"},
    "ensemble": {"features": "labels", "ensemble": 2},
}


def tensors(run: Any, layout: str, path: Path) -> dict[str, dict[str, list[Any]]]:
    """Names, types and shapes of the inputs and outputs of the model that is exported to `path`.

    A size that varies is `None`.
    """
    import onnxruntime

    run.export(path, layout=layout)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    kinds = (("inputs", session.get_inputs()), ("outputs", session.get_outputs()))
    return {
        kind: {each.name: [each.type, [_fixed(size) for size in each.shape]] for each in found}
        for kind, found in kinds
    }


def raw(path: Path, graphs: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """[B, classes] probabilities of the exported `ihgnn`, from onnxruntime alone.

    What the layouts allow is used: in the padded one an edge has one direction, nodes are joined
    with themselves, and padding holds anything; in the sparse one nodes are joined with themselves.
    """
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    padded = any(each.name == "adjacency" for each in session.get_inputs())
    found = _padded(graphs) if padded else _sparse(graphs)
    answer: np.ndarray = session.run(["probabilities"], found)[0]
    return answer


_LABELS, _EDGE_LABELS = ("C", "N", "O"), ("none", "one", "two")


def _padded(graphs: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    count, size = len(graphs), 2 + max(len(each["node_labels"]) for each in graphs)
    labels = np.full((count, size), -1)
    attributes = np.full((count, size, 3), np.nan, dtype=np.float32)
    adjacency = np.zeros((count, size, size), dtype=np.uint8)
    for at, graph in enumerate(graphs):
        nodes = len(graph["node_labels"])
        labels[at, :nodes] = [_LABELS.index(each) for each in graph["node_labels"]]
        attributes[at, :nodes] = graph["node_attributes"]
        adjacency[at, nodes:] = adjacency[at, :, nodes:] = 1
        adjacency[at, range(nodes), range(nodes)] = 2
        for (a, b), label in zip(graph["edges"], graph["edge_labels"], strict=True):
            adjacency[at, a, b] = 1 + _EDGE_LABELS.index(label)
    return {"node_labels": labels, "adjacency": adjacency, "attributes": attributes}


def _sparse(graphs: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    ptr = np.cumsum([0, *(len(each["node_labels"]) for each in graphs)])
    edges = [
        (a + start, b + start, _EDGE_LABELS.index(label))
        for start, graph in zip(ptr, graphs, strict=False)
        for (a, b), label in zip(graph["edges"], graph["edge_labels"], strict=True)
    ]
    edges += [(b, a, label) for a, b, label in edges] + [(0, 0, 1), (3, 3, 0)]
    *ends, labels = np.array(edges).T
    return {
        "node_labels": np.array([_LABELS.index(v) for g in graphs for v in g["node_labels"]]),
        "attributes": np.array([v for g in graphs for v in g["node_attributes"]], dtype=np.float32),
        "edge_index": np.stack(ends),
        "edge_labels": labels,
        "ptr": ptr,
    }


def _fixed(size: object) -> object:
    return size if type(size) is int else None


@contextlib.contextmanager
def trained(name: str) -> Iterator[Any]:
    """The run of a model in `EXPORTS`."""
    from ihgnn_cli import train

    small = {"layers": 2, "width": 4, "hidden": 8, "epochs": 3, "seed": 0, "device": "cpu"}
    split = {"split": f"{GRAPHS_SPLIT}:0", "progress": False}
    with scratch() as folder:
        yield train(GRAPHS, out=folder / "run", **split, **_read({**small, **_EXPORTED[name]}))


# Commands and options


def commands() -> dict[str, Any]:
    """Every command with its arguments and options."""
    (entry,) = entry_points(group="console_scripts", name="ihgnn")
    app = import_module(f"{entry.module}.app").app
    return {" ".join(path): _parameters(each) for path, each in _leaves(get_command(app), ())}


def _leaves(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    inner = getattr(command, "commands", {})
    if path and (not inner or command.invoke_without_command):
        yield path, command
    for name in inner:
        yield from _leaves(inner[name], (*path, name))


def _parameters(command: Any) -> dict[str, str]:
    """The spellings of each option, what it takes, and the default that its help shows."""
    found = {}
    for each in command.params:
        if each.param_type_name == "argument":
            found[each.metavar or each.name] = "required" if each.required else "optional"
            continue
        spelled = [*each.opts, *each.secondary_opts]
        shown = each.show_default if isinstance(each.show_default, str) else each.default
        takes = "flag" if each.is_flag else "values" if each.multiple else "value"
        default = "" if shown in (None, False) else f", default {shown}"
        found[max(spelled, key=len)] = f"{' '.join(spelled)}: {takes}{default}"
    return found
