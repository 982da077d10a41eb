"""Metadata of an exported file, in the file and in a .json file beside it; needs no torch.

`docs/export.md` describes it for callers in any language. Names, types and sizes of the inputs and
outputs are those of the ONNX graph, which is where this package reads them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ihgnn_cli import __version__
from ihgnn_cli.data.dataset import LabelSource
from ihgnn_cli.deploy.inputs import PADDING, UNKNOWN_LABEL
from ihgnn_cli.models.card import ModelCard, card_from_plain
from ihgnn_cli.models.spec import Layout
from ihgnn_cli.versions import package_versions

KEY = "ihgnn"
"""Key of the ONNX metadata entry that holds all of it as JSON."""
FORMAT = 5

# Most of the metadata: they grow with the data set.
_FOR_EVALUATION = ("split", "seen")
_FORMULAS = {
    "log_degree": "ln(1 + d) of a node with d neighbours",
    "degree": "d of a node with d neighbours",
}

Plain = dict[str, Any]
Tensors = Mapping[str, tuple[str, Sequence[int | str]]]
"""Type and shape of inputs or outputs by name; a dynamic size has a name."""


@dataclass(frozen=True, eq=False)
class Metadata:
    """What a file says about itself besides its graph."""

    card: ModelCard
    layout: Layout
    members: int
    model: Plain
    """The model's `name` and settings. Its package need not be installed."""
    node_limit: int | None
    """How many nodes of a graph the readout uses, the first in sorted order; `None` for all."""

    @property
    def width(self) -> int:
        """Numbers of a layer's output for each node."""
        return int(self.model["width"]) * self.members

    @property
    def numbers_per_node(self) -> int:
        """Roughly how many numbers the model holds at a time for each node."""
        return self.width * (int(self.model["layers"]) + 1)

    def as_plain(self, inputs: Tensors, outputs: Tensors) -> Plain:
        """JSON values, with a description of the inputs and outputs."""
        packages = package_versions()
        fixed = inputs["node_labels"][1][-1]
        made_with = {name: packages[name] for name in ("torch", "onnx", "onnxscript")}
        return {
            "format": FORMAT,
            "layout": self.layout.value,
            "inputs": _described(inputs, _meanings(self.card, self.layout)),
            "outputs": _described(outputs, _OUTPUTS),
            "padding_label": PADDING if self.layout == Layout.PADDED else None,
            "unknown_label": UNKNOWN_LABEL,
            "padded_to": fixed if isinstance(fixed, int) else None,
            "members": self.members,
            "model": self.model,
            "node_limit": self.node_limit,
            "card": _portable(self.card).as_plain(),
            "computed": {
                each.name: {
                    "formula": _FORMULAS.get(each.name, "see docs/training.md"),
                    "shift": each.shift,
                    "scale": each.scale,
                }
                for each in self.card.columns
            },
            "versions": {"ihgnn": __version__, **made_with},
        }


def metadata_from_plain(plain: Mapping[str, Any]) -> Metadata:
    """The metadata from JSON values.

    Raises:
        Exception: of any kind, if they are damaged.
    """
    limit, model = plain["node_limit"], dict(plain["model"])
    found = Metadata(
        card=card_from_plain(plain["card"]),
        layout=Layout(plain["layout"]),
        members=int(plain["members"]),
        model={**model, "name": str(model["name"])},
        node_limit=None if limit is None else int(limit),
    )
    if not 0 < found.numbers_per_node < 1 << 31:
        raise ValueError("the size of the model is impossible")
    return found


def for_callers(plain: Plain, left_out: Sequence[str] = _FOR_EVALUATION) -> Plain:
    """The metadata for the .json file: without `split` and `seen`, which only `evaluate` reads."""
    card = {name: each for name, each in plain["card"].items() if name not in left_out}
    return {**plain, "card": card}


def _described(tensors: Tensors, meanings: Mapping[str, str]) -> Plain:
    return {
        name: {"type": kind, "shape": list(shape), "meaning": meanings[name]}
        for name, (kind, shape) in tensors.items()
    }


_OUTPUTS = {
    "logits": "class scores before the softmax",
    "probabilities": "one per class, in the order of card.class_values",
    "graph_embedding": "the hidden layer of the classifier",
    "uncertainty": "standard deviation, over the members, of the predicted class's probability",
    "prediction_set": "1 for the classes in the conformal prediction set: those whose probability "
    "is at least card.conformal.threshold, and the most probable one",
}


def _meanings(card: ModelCard, layout: Layout) -> dict[str, str]:
    """What the inputs mean."""
    padded = layout == Layout.PADDED
    labels = "0 for each node, because the model "
    labels += "computes degrees itself" if card.inputs.labels else "reads no labels"
    if card.inputs.labels and card.label_source == LabelSource.LABELS:
        labels = (
            "position of the node's label in card.label_values, from 0; "
            f"{UNKNOWN_LABEL} for a label that is not in it"
        )
    edge_label = "position of the edge's label in card.edge_label_values (from 0)"
    if card.edge_bins is not None:
        of_label = "LABEL,BIN with BIN = " if card.edge_bins.labels else ""
        edge_label += (
            f", which is {of_label}the number of card.edge_bins.boundaries below the edge's "
            "attribute (as a 32-bit float)"
        )
    attributes = ["the node's attributes, as in the data"] * (card.given_attributes > 0)
    if card.columns:
        names = ", ".join(each.name for each in card.columns)
        attributes.append(f"{names}: (x - shift) / scale of each formula in 'computed'")
    kind = f"1 + {edge_label}" if card.edge_label_values else "1"
    return {
        "node_labels": f"{labels}; {PADDING} where there is no node" if padded else labels,
        "adjacency": f"{kind} if two nodes are adjacent, else 0",
        "edge_index": "source and target of each edge, in each direction; nodes are numbered "
        "across the batch",
        "ptr": "graph g has the nodes ptr[g] to ptr[g + 1] - 1",
        "attributes": ", then ".join(attributes),
        "edge_labels": edge_label,
    }


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
