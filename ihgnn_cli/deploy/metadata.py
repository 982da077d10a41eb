"""What an exported file tells of itself, inside and in a .json beside it; needs no torch.

`docs/export.md` lists it for callers in any language.
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
"""Of the file's metadata, where all of it stands as JSON."""
FORMAT = 2
"""1 knew the padded layout only, and models of degrees took the position of a degree as label."""

Plain = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Described:
    """What has to be known of a file to use it."""

    card: ModelCard
    variant: Variant
    layout: Layout
    nodes: int | None
    """The size that graphs are padded to, if it is fixed."""
    columns: int
    """Numbers that the model keeps of a node."""


def metadata(card: ModelCard, settings: Plain, members: int, form: Form) -> Plain:
    """Everything, as JSON knows it; `settings` are those of the model."""
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
    """What metadata of a format that is known says.

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
    """By name the type, the shape and the meaning of each input."""
    if layout == Layout.SPARSE:
        rows: list[str | int] = ["nodes"]
        inputs = {
            "node_labels": _value("int64", rows, _labels(card, "")),
            "edge_index": _value(
                "int64",
                [2, "edges"],
                "source and target of each edge, which is listed in both directions, never twice, "
                "never from a node to itself; nodes are numbered through the batch",
            ),
            "ptr": _value(
                "int64",
                ["batch_plus_1"],
                "graph g has the nodes from ptr[g] up to, but not including, ptr[g + 1]",
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
                "1 where two nodes are adjacent, in both directions, else 0; no node is adjacent "
                "to itself",
            ),
        }
    if card.attributes:
        shape = [*rows, card.attributes]
        inputs["attributes"] = _value("float32", shape, "the node's numbers, as in the data")
    return inputs


def _labels(card: ModelCard, padding: str) -> str:
    if card.inputs.labels and card.label_source == LabelSource.LABELS:
        meaning = (
            "position of the node's label in card.label_values, counted from 0; "
            f"{UNKNOWN_LABEL} for a label that is not among them{padding}"
        )
    else:
        read = "counts the neighbours itself" if card.inputs.labels else "reads no labels"
        meaning = f"0 for each node, as the model {read}{padding}"
    return meaning


def _outputs(card: ModelCard, hidden: int) -> dict[str, Plain]:
    classes = len(card.class_values)
    return {
        "logits": _value("float32", ["batch", classes], "before the softmax"),
        "probabilities": _value(
            "float32", ["batch", classes], "of the classes, in the order of card.class_values"
        ),
        "graph_embedding": _value(
            "float32", ["batch", hidden], "the hidden layer of the classifier"
        ),
    }


def _value(kind: str, shape: list[str | int], meaning: str) -> Plain:
    return {"type": kind, "shape": shape, "meaning": meaning}


def _portable(card: ModelCard) -> ModelCard:
    """The card for a file that travels: a path on this machine says nothing elsewhere."""
    dataset = card.dataset if _last_part(card.dataset) == card.dataset else ""
    snapshot = card.snapshot
    if snapshot is not None:  # a split can be a file, and the name of that tells something
        snapshot = replace(snapshot, split=_last_part(snapshot.split))
    return replace(card, dataset=dataset, snapshot=snapshot)


def _last_part(path: str) -> str:
    """Of a path of any system."""
    return path.replace("\\", "/").rpartition("/")[2]
