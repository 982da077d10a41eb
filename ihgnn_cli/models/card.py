"""Metadata of a trained model: its inputs, its classes and the data it was trained on.

A checkpoint and an exported file carry the same card, so both are used the same way.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, Value, graph_digests
from ihgnn_cli.data.edge_bins import EdgeBins, bins_from_plain
from ihgnn_cli.data.features import Features, resolved_features
from ihgnn_cli.data.splits import Split
from ihgnn_cli.models.conformal import Conformal, conformal_from_plain
from ihgnn_cli.models.node_inputs import (
    InputColumn,
    column_from_plain,
    column_names,
    fit_columns,
    model_features,
)
from ihgnn_cli.models.settings import Inputs


@dataclass(frozen=True)
class Snapshot:
    """The run and epoch a model was saved from."""

    epoch: int
    chosen: bool
    """Whether the epoch was chosen on validation; otherwise it is the last one."""
    seeds: tuple[int, ...]
    """One per trained model."""
    split: str
    """The split as it was requested."""
    snapshots: int = 0
    """Number of epochs of each trained model that are members, up to `epoch`; 0: one epoch."""

    @property
    def members(self) -> int:
        """Number of members of the trained model, of which an exported file may have fewer."""
        return len(self.seeds) * max(1, self.snapshots)

    def described(self, members: int) -> str:
        """In words, for a model that has this number of the members."""
        part = "" if members == self.members else f"{members} of {self.members} members; "
        chosen = "chosen on validation" if self.chosen else "the last one"
        epoch = f"epoch {self.epoch}, {chosen}"
        if self.snapshots == 1:
            epoch = f"epoch {self.epoch}, the last one"
        elif self.snapshots:
            mean = "" if part else "mean of "
            epoch = f"{mean}{self.snapshots} snapshots up to epoch {self.epoch}, none chosen"
        runs = "one run, seed" if len(self.seeds) == 1 else f"{len(self.seeds)} runs, seeds"
        seeds = ", ".join(map(str, self.seeds))
        return f"{part}{epoch}; split {self.split}; {runs} {seeds}"

    def __str__(self) -> str:
        return self.described(self.members)


@dataclass(frozen=True, eq=False)
class ModelCard:
    """Metadata in plain values; `as_plain` defines how they are stored."""

    dataset: str
    """Name or path of the data set; a file for other machines leaves a path out."""
    dataset_name: str
    fingerprint: str
    """Fingerprint of the data set's content."""
    features: Features
    """What the network reads; computed inputs are attributes."""
    label_values: tuple[Value, ...]
    label_source: LabelSource
    class_values: tuple[Value, ...]
    attributes: int
    """Number of node attribute columns that the network reads, including computed ones."""
    max_nodes: int
    """m, the size of the largest graph."""
    split: Split
    seen: frozenset[str]
    """Digests of the graphs that were used to train or to choose the epoch."""
    snapshot: Snapshot | None = None
    """`None` before the first epoch."""
    columns: tuple[InputColumn, ...] = ()
    """Inputs that are computed from the graph, the last of the attributes."""
    edge_label_values: tuple[Value, ...] = ()
    """The edge labels that the network tells apart; empty if it reads none."""
    background_edge_label: str = ""
    """Edges with this label are left out; empty: none."""
    edge_bins: EdgeBins | None = None
    """How edge labels are computed from the edge attribute, if they are."""
    conformal: Conformal | None = None
    """Thresholds of prediction sets, if they were calibrated."""

    @property
    def given_attributes(self) -> int:
        """Number of node attribute columns that the caller gives."""
        return self.attributes - len(self.columns)

    @property
    def given_features(self) -> Features:
        """What the caller gives."""
        if self.features == Features.BOTH and not self.given_attributes:
            return Features.LABELS
        return self.features

    @property
    def reads_edge_labels(self) -> bool:
        """Whether edge labels matter: the network reads them, or some edges are left out."""
        return bool(self.edge_label_values or self.background_edge_label)

    @property
    def needs_edge_labels(self) -> bool:
        """Whether callers have to give edge labels; the background may be missing."""
        return bool(self.edge_label_values) and (self.edge_bins is None or self.edge_bins.labels)

    @property
    def label_words(self) -> str:
        """The word for labels: "degrees" if degrees stand in for missing labels."""
        return "degrees" if self.label_source == LabelSource.DEGREE else "labels"

    @property
    def inputs(self) -> Inputs:
        """The sizes that determine the model's parameters."""
        labels = 0 if self.features == Features.ATTRIBUTES else len(self.label_values)
        sizes = len(self.class_values), self.max_nodes, len(self.edge_label_values)
        return Inputs(labels, self.attributes, *sizes)

    def as_plain(self) -> dict[str, Any]:
        """The card as plain values, for JSON and torch.save.

        Computed inputs, edge labels, their background and bins, and thresholds are left out if
        there are none.
        """
        optional = {
            "columns": [asdict(each) for each in self.columns],
            "edge_label_values": list(self.edge_label_values),
            "background_edge_label": self.background_edge_label,
            "edge_bins": None if self.edge_bins is None else self.edge_bins.as_plain(),
            "conformal": None if self.conformal is None else self.conformal.as_plain(),
        }
        return {
            "dataset": self.dataset,
            "dataset_name": self.dataset_name,
            "fingerprint": self.fingerprint,
            "features": self.features.value,
            "label_values": list(self.label_values),
            "label_source": self.label_source.value,
            "class_values": list(self.class_values),
            "attributes": self.attributes,
            "max_nodes": self.max_nodes,
            "split": self.split.as_fold(),
            "seen": sorted(self.seen),
            "snapshot": None if self.snapshot is None else _plain(self.snapshot),
            **{key: value for key, value in optional.items() if value},
        }


def inputs_of(dataset: GraphDataset, features: Features, computed: str = "") -> Inputs:
    """The sizes that determine the parameters of a model for this data.

    `computed` lists the inputs that are computed from the graph.
    """
    features = resolved_features(dataset, features)
    labels = 0 if features == Features.ATTRIBUTES else len(dataset.label_values)
    attributes = _attributes(dataset, features)
    attributes += len(column_names(computed, dataset.label_source, features))
    edge_labels = len(dataset.edge_label_values) if dataset.uses_edge_labels else 0
    sizes = len(dataset.class_values), dataset.max_nodes, edge_labels
    return Inputs(labels, attributes, *sizes)


def _attributes(dataset: GraphDataset, features: Features) -> int:
    """Number of node attribute columns of the data that the model reads."""
    if features == Features.LABELS or dataset.node_attributes is None:
        return 0
    return int(dataset.node_attributes.shape[1])


def describe(
    given: str, dataset: GraphDataset, features: Features, split: Split, computed: str = ""
) -> ModelCard:
    """The card of a model that will be trained on this data.

    `computed` lists the inputs that are computed from the graph.
    """
    features = resolved_features(dataset, features)
    attributes = _attributes(dataset, features)
    columns = fit_columns(dataset, computed, features)
    used = np.concatenate([split.train, split.validation])
    return ModelCard(
        dataset=given,
        dataset_name=dataset.name,
        fingerprint=dataset.fingerprint,
        features=model_features(features, columns),
        label_values=dataset.label_values,
        label_source=dataset.label_source,
        class_values=dataset.class_values,
        attributes=attributes + len(columns),
        max_nodes=dataset.max_nodes,
        split=split,
        seen=frozenset(graph_digests(dataset, used, attributes=attributes > 0)),
        columns=columns,
        edge_label_values=dataset.edge_label_values if dataset.uses_edge_labels else (),
        background_edge_label=dataset.background_edge_label,
        edge_bins=dataset.edge_bins,
    )


def card_from_plain(plain: Mapping[str, Any]) -> ModelCard:
    """The card from its plain values.

    Raises:
        KeyError, TypeError, ValueError, InputError: the values do not form a card.
    """
    fold = plain["split"]
    inner = fold["model_selection"][0]
    card = ModelCard(
        dataset=_typed(plain["dataset"], str),
        dataset_name=_typed(plain["dataset_name"], str),
        fingerprint=_typed(plain["fingerprint"], str),
        features=Features(plain["features"]),
        label_values=_values(plain["label_values"]),
        label_source=LabelSource(plain["label_source"]),
        class_values=_values(plain["class_values"]),
        attributes=_typed(plain["attributes"], int),
        max_nodes=_typed(plain["max_nodes"], int),
        split=Split(inner["train"], inner["validation"], fold["test"], may_be_empty=True),
        seen=frozenset(_typed(each, str) for each in plain["seen"]),
        snapshot=None if plain["snapshot"] is None else _snapshot(plain["snapshot"]),
        columns=tuple(map(column_from_plain, plain.get("columns", ()))),  # missing if none
        edge_label_values=_values(plain.get("edge_label_values", ())),
        background_edge_label=_typed(plain.get("background_edge_label", ""), str),
        edge_bins=bins_from_plain(plain["edge_bins"]) if "edge_bins" in plain else None,
        conformal=conformal_from_plain(plain["conformal"]) if "conformal" in plain else None,
    )
    if card.given_attributes < 0:
        raise ValueError("there are more computed inputs than attributes")
    if card.max_nodes < 1 or (card.attributes > 0) is (card.features == Features.LABELS):
        raise ValueError("m or the number of attributes is impossible")
    return card


def _plain(snapshot: Snapshot) -> dict[str, Any]:
    return {**asdict(snapshot), "seeds": list(snapshot.seeds)}


def _snapshot(plain: Mapping[str, Any]) -> Snapshot:
    return Snapshot(
        epoch=_typed(plain["epoch"], int),
        chosen=_typed(plain["chosen"], bool),
        seeds=tuple(_typed(each, int) for each in plain["seeds"]),
        split=_typed(plain["split"], str),
        snapshots=_typed(plain.get("snapshots", 0), int),  # missing in older files
    )


def _values(values: Any) -> tuple[Value, ...]:
    if not all(isinstance(each, int | str) for each in values):
        raise TypeError("a label or class must be an integer or a string")
    return tuple(values)


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind or (isinstance(value, int) and value < 0):
        raise TypeError(f"{value!r} is not a valid {kind.__name__}")
    return value
