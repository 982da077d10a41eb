"""Metadata of an exported file, stored in it and in a .json file beside it; needs no torch.

`docs/export.md` describes it for callers in any language.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ihgnn_cli import __version__
from ihgnn_cli.data.dataset import LabelSource
from ihgnn_cli.deploy.form import Form, Layout
from ihgnn_cli.deploy.inputs import PADDING, UNKNOWN_LABEL
from ihgnn_cli.models.card import ModelCard, card_from_plain
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.versions import package_versions

KEY = "ihgnn"
"""Key of the ONNX metadata entry that holds all of it as JSON."""
FORMAT = 2
"""Format 1 had only the padded layout, and models of degrees took degree positions as labels."""

Plain = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Described:
    """What is needed to use a file."""

    card: ModelCard
    variant: Variant
    layout: Layout
    nodes: int | None
    """The fixed size that graphs are padded to, if any."""
    columns: int
    """Width of all layers of a node together."""


def metadata(card: ModelCard, settings: Plain, members: int, form: Form) -> Plain:
    """The metadata as JSON values; `settings` are the model's."""
    packages = package_versions()
    made_with = {name: packages[name] for name in ("torch", "onnx", "onnxscript")}
    return {
        "format": FORMAT,
        "layout": form.layout.value,
        "inputs": inputs_of(card, form.layout, form.nodes),
        "outputs": _outputs(card, settings["hidden"]),
        "padding_label": PADDING if form.layout == Layout.PADDED else None,
        "unknown_label": UNKNOWN_LABEL,
        "padded_to": form.nodes,
        "opset": form.opset,
        "ir_version": form.ir_version,
        "small": form.small,
        "members": members,
        "model": settings,
        "card": _portable(card).as_plain(),
        "versions": {"ihgnn": __version__, **made_with},
    }


def described(plain: Mapping[str, Any]) -> Described:
    """Read metadata of a known format.

    Raises:
        KeyError, TypeError, ValueError, AttributeError, IndexError, InputError: it is damaged.
    """
    model, nodes = plain["model"], plain.get("padded_to")
    return Described(
        card=card_from_plain(plain["card"]),
        variant=Variant(model["variant"]),
        layout=Layout(plain["layout"]),
        nodes=None if nodes is None else int(nodes),
        columns=int(model["width"]) * (int(model["layers"]) + 1),
    )


def inputs_of(card: ModelCard, layout: Layout, nodes: int | None = None) -> dict[str, Plain]:
    """Type, shape and meaning of each input by name."""
    if layout == Layout.SPARSE:
        rows: list[str | int] = ["nodes"]
        inputs = {
            "node_labels": _value("int64", rows, _labels(card, "")),
            "edge_index": _value(
                "int64",
                [2, "edges"],
                "source and target of each edge, once in each direction, without self-loops; "
                "nodes are numbered across the batch",
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
        inputs = {
            "node_labels": _value("int64", rows, _labels(card, padding)),
            "adjacency": _value(
                "uint8",
                [*rows, rows[1]],
                "1 if two nodes are adjacent, else 0; symmetric, without self-loops",
            ),
        }
    if card.attributes:
        shape = [*rows, card.attributes]
        inputs["attributes"] = _value("float32", shape, "the node's attributes, as in the data")
    return inputs


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


def _outputs(card: ModelCard, hidden: int) -> dict[str, Plain]:
    classes = len(card.class_values)
    return {
        "logits": _value("float32", ["batch", classes], "class scores before the softmax"),
        "probabilities": _value(
            "float32", ["batch", classes], "one per class, in the order of card.class_values"
        ),
        "graph_embedding": _value(
            "float32", ["batch", hidden], "the hidden layer of the classifier"
        ),
    }


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
