"""Metadata of an exported file, stored in it and in a .json file beside it; needs no torch.

`docs/export.md` describes it for callers in any language, `model.schema.json` its form.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ihgnn_cli import __version__
from ihgnn_cli.data.dataset import LabelSource
from ihgnn_cli.deploy.form import IR_VERSION, OPSET, Form, Layout
from ihgnn_cli.deploy.inputs import PADDING, UNKNOWN_LABEL
from ihgnn_cli.models.card import ModelCard, card_from_plain
from ihgnn_cli.models.registry import IHGNN
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.versions import package_versions

KEY = "ihgnn"
"""Key of the ONNX metadata entry that holds all of it as JSON."""
FORMAT = 4
"""Format 1 had only the padded layout, and models of degrees took degree positions as labels.
Format 3 is that of models that read edge labels or leave out edges with a label, and format 4 that
of models that compute edge labels from an edge attribute."""
CLOSE = 5e-6
"""Below this gap between two sort keys, rounding decides their order. Relative to the largest
number in H, rounding moved a key by up to 2.2e-6 on COLLAB, and by less than 6e-7 on four other
data sets. Two keys can move in opposite directions."""
LARGEST = float(np.finfo(np.float32).max)
"""The order margin of a graph in which no order can matter. Not infinity, which JSON lacks."""

_EDGE_LABEL = "position of the edge's label in card.edge_label_values (from 0)"
_BIN = "the number of card.edge_bins.boundaries below the edge's attribute (as a 32-bit float)"

# Most of the metadata: they grow with the data set.
_FOR_EVALUATION = ("split", "seen")

Plain = dict[str, Any]


@dataclass(frozen=True)
class Limits:
    """What a model says about its own size."""

    node_limit: int | None
    """How many nodes of a graph the readout uses, the first in sorted order; `None` for all."""
    numbers: tuple[float, float, float]
    """Numbers that the padded layout holds at a time: per node, per pair and per triple of
    nodes."""
    embedding: int | None
    """Width of `graph_embedding`; `None` if the model has none."""
    order_margin: bool = False
    """Whether there is an output `order_margin`."""
    layouts: tuple[str, ...] = tuple(Layout)
    """The layouts in which the model can be exported."""


@dataclass(frozen=True, eq=False)
class Described:
    """What is needed to use a file."""

    card: ModelCard
    model_name: str
    """The model's name in the registry, whose package need not be installed."""
    layout: Layout
    nodes: int | None
    """The fixed size that graphs are padded to, if any."""
    members: int
    limits: Limits


def metadata(card: ModelCard, settings: Plain, members: int, form: Form, limits: Limits) -> Plain:
    """The metadata as JSON values; `settings` are the model's."""
    packages = package_versions()
    made_with = {name: packages[name] for name in ("torch", "onnx", "onnxscript")}
    return {
        "format": FORMAT if card.edge_bins else 3 if card.reads_edge_labels else 2,
        "layout": form.layout.value,
        "inputs": inputs_of(card, form.layout, form.nodes),
        "outputs": _outputs(card, limits, members),
        "padding_label": PADDING if form.layout == Layout.PADDED else None,
        "unknown_label": UNKNOWN_LABEL,
        "padded_to": form.nodes,
        "opset": OPSET,
        "ir_version": IR_VERSION,
        "members": members,
        "model": settings,
        "limits": asdict(limits),
        "card": _portable(card).as_plain(),
        "versions": {"ihgnn": __version__, **made_with},
    }


def for_callers(plain: Plain, left_out: Sequence[str] = _FOR_EVALUATION) -> Plain:
    """The metadata for the .json file: without `split` and `seen`, which only `evaluate` reads."""
    card = {name: each for name, each in plain["card"].items() if name not in left_out}
    return {**plain, "card": card}


def described(plain: Mapping[str, Any]) -> Described:
    """Read metadata of a known format.

    Raises:
        KeyError, TypeError, ValueError, AttributeError, IndexError, InputError: it is damaged.
    """
    nodes = plain["padded_to"]
    card = card_from_plain(plain["card"])
    return Described(
        card=card,
        model_name=str(plain["model"].get("name", IHGNN)),
        layout=Layout(plain["layout"]),
        nodes=None if nodes is None else int(nodes),
        members=int(plain.get("members", 1)),
        limits=_limits(plain, card),
    )


def _limits(plain: Mapping[str, Any], card: ModelCard) -> Limits:
    if "limits" in plain:
        own = plain["limits"]
        limit, embedding = own["node_limit"], own["embedding"]
        node, pair, triple = (float(each) for each in own["numbers"])
        return Limits(
            node_limit=None if limit is None else int(limit),
            numbers=(node, pair, triple),
            embedding=None if embedding is None else int(embedding),
            order_margin=bool(own.get("order_margin", False)),
            layouts=tuple(Layout(each) for each in own["layouts"]),
        )
    # Earlier files have an IHGNN.
    model = plain["model"]
    return Limits(
        node_limit=Variant(model["variant"]).node_limit(card.max_nodes),
        numbers=(int(model["width"]) * (int(model["layers"]) + 1), 1, 0),
        embedding=int(model["hidden"]),
    )


def inputs_of(card: ModelCard, layout: Layout, nodes: int | None = None) -> dict[str, Plain]:
    """Type, shape and meaning of each input by name."""
    labelled = bool(card.edge_label_values)
    if layout == Layout.SPARSE:
        rows: list[str | int] = ["nodes"]
        inputs = {
            "node_labels": _value("int64", rows, _labels(card, "")),
            "edge_index": _value(
                "int64",
                [2, "edges"],
                "source and target of each edge, in each direction; nodes are numbered across "
                "the batch",
            ),
            "ptr": _value(
                "int64",
                ["batch_plus_1"],
                "graph g has the nodes ptr[g] to ptr[g + 1] - 1",
            ),
        }
    else:
        rows = ["batch", nodes or "nodes"]
        padding = f"; {PADDING} where there is no node"
        kind = f"1 + {_edge_labels(card)}" if labelled else "1"
        inputs = {
            "node_labels": _value("int64", rows, _labels(card, padding)),
            "adjacency": _value(
                "uint8",
                [*rows, rows[1]],
                f"{kind} if two nodes are adjacent, else 0",
            ),
        }
    if card.attributes:
        shape = [*rows, card.attributes]
        inputs["attributes"] = _value("float32", shape, _attributes(card))
    if labelled and layout == Layout.SPARSE:
        inputs["edge_labels"] = _value("int64", ["edges"], _edge_labels(card))
    return inputs


def _edge_labels(card: ModelCard) -> str:
    if card.edge_bins is None:
        return _EDGE_LABEL
    of_label = "LABEL,BIN with BIN = " if card.edge_bins.labels else ""
    return f"{_EDGE_LABEL}, which is {of_label}{_BIN}"


def _attributes(card: ModelCard) -> str:
    given = "the node's attributes, as in the data"
    if not card.columns:
        return given
    names = ", ".join(each.name for each in card.columns)
    computed = (
        f"{names}, computed from the graph and standardised with card.columns: (x - shift) / scale "
        "(see docs/training.md)"
    )
    return f"{given}, then {computed}" if card.given_attributes else computed


def _labels(card: ModelCard, padding: str) -> str:
    if card.inputs.labels and card.label_source == LabelSource.LABELS:
        meaning = (
            "position of the node's label in card.label_values, from 0; "
            f"{UNKNOWN_LABEL} for a label that is not in it{padding}"
        )
    else:
        read = "computes degrees itself" if card.inputs.labels else "reads no labels"
        meaning = f"0 for each node, because the model {read}{padding}"
    return meaning


def _outputs(card: ModelCard, limits: Limits, members: int) -> dict[str, Plain]:
    graphs, classes = "batch", len(card.class_values)
    outputs = {
        "logits": _value("float32", [graphs, classes], "class scores before the softmax"),
        "probabilities": _value(
            "float32", [graphs, classes], "one per class, in the order of card.class_values"
        ),
    }
    if limits.embedding is not None:
        outputs["graph_embedding"] = _value(
            "float32",
            [graphs, limits.embedding],
            "the hidden layer of the classifier, or whatever else its last linear map reads",
        )
    if limits.order_margin:
        outputs["order_margin"] = _value(
            "float32",
            [graphs],
            "smallest relative gap between the sort keys of two different nodes of the graph; "
            f"below {CLOSE:g}, rounding decides their order",
        )
    if members > 1:
        meaning = "standard deviation, over the members, of the predicted class's probability"
        outputs["uncertainty"] = _value("float32", [graphs], meaning)
    if card.conformal is not None:
        meaning = (
            "1 for the classes in the conformal prediction set: those whose probability is at "
            "least card.conformal.threshold, and the most probable one"
        )
        outputs["prediction_set"] = _value("uint8", [graphs, classes], meaning)
    return outputs


def _value(kind: str, shape: list[str | int], meaning: str) -> Plain:
    return {"type": kind, "shape": shape, "meaning": meaning}


def _portable(card: ModelCard) -> ModelCard:
    """The card without paths, which mean nothing on other machines."""
    dataset = card.dataset if _last_part(card.dataset) == card.dataset else ""
    snapshot = card.snapshot
    if snapshot is not None:  # a split can be a file, whose name is kept
        snapshot = replace(snapshot, split=_last_part(snapshot.split))
    return replace(card, dataset=dataset, snapshot=snapshot)


def _last_part(path: str) -> str:
    """The last part of a path of any system."""
    return path.replace("\\", "/").rpartition("/")[2]
