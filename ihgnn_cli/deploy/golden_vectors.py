"""Makes the golden vectors of an exported model: edge cases with the checkpoint's own answers.

The file stays below about 1 MB: where graphs are too large for that, smaller ones are chosen. The
graphs are ones whose answers do not depend on rounding, because other runtimes round differently.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, Value
from ihgnn_cli.data.edge_labels import without_edge_bins
from ihgnn_cli.data.jsonl import entries
from ihgnn_cli.deploy.cases import Case, edge_cases
from ihgnn_cli.deploy.comparison import MAY_BE_OPEN, TOLERANCE
from ihgnn_cli.deploy.form import Form, Layout
from ihgnn_cli.deploy.golden import Golden, GoldenCase, Plain, short
from ihgnn_cli.deploy.inputs import inputs_for
from ihgnn_cli.deploy.onnx_model import output_type
from ihgnn_cli.deploy.reference import Reference
from ihgnn_cli.inference.metrics import mean_probabilities
from ihgnn_cli.inference.vocabulary import encode_dataset
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.training.checkpoint import Checkpoint

# Estimated bytes: of one graph of the data, of a case of several, of any case, and of the file.
_PER_GRAPH = 60_000
_SEVERAL = 120_000
_PER_CASE = 600_000
_PER_FILE = 1_000_000
# One case of a large fixed size may take this much, so that there is one.
_MOST = 10_000_000
_GRAPHS = 4
# Graphs of each kind that are looked at: the smallest, the largest, and some of all sizes.
_TRIED = 64
# Sort keys of two nodes, and the probabilities of two classes, should be this far apart.
_KEYS_APART = 1e-4
_CLASSES_APART = 1e-2
TOO_LARGE = "its arrays would make this file too large"
NEAR_TIES = "the order of nodes depends on rounding in all graphs that were tried"


def candidates(checkpoint: Checkpoint, dataset: GraphDataset, form: Form) -> list[Case]:
    """The cases to choose golden vectors from.

    They are made of graphs that are not too large and whose node order does not depend on rounding.

    Raises:
        InputError: the model cannot read the data set, or no graph is small enough for the form.
    """
    card = checkpoint.card
    sizes, edges = np.diff(dataset.node_ptr), np.diff(dataset.edge_ptr)
    cost = _bytes(form, card, largest=sizes, nodes=sizes, edges=edges)
    # With a fixed size, all graphs take the same space.
    fits = sizes <= form.nodes if form.nodes else cost <= _PER_GRAPH
    fitting = np.flatnonzero(fits)[np.argsort(sizes[fits], kind="stable")]
    if len(fitting) > 3 * _TRIED:  # the smallest, the largest, and some of all sizes
        spread = np.linspace(0, len(fitting) - 1, _TRIED).astype(np.int64)
        ends = np.arange(-_TRIED, _TRIED)
        fitting = fitting[np.unique(np.concatenate([ends, spread]) % len(fitting))]
    encoded = encode_dataset(card, dataset).dataset
    chance = Reference(checkpoint).order_is_chance(encoded, fitting)
    usable = np.sort(fitting[~np.array(chance, dtype=bool)])
    remark = ""
    if len(usable) and len(usable) < len(dataset):
        dataset = dataset.select(usable)
        limits = ["that are small enough for this file"] * (not fits.all())
        limits += ["whose node order does not depend on rounding"] * any(chance)
        remark = f" (of those graphs {' and '.join(limits)})" if limits else ""
    cases = edge_cases(card, dataset, form.nodes)
    return [replace(each, description=each.description + remark) for each in cases]


def golden_vectors(
    checkpoint: Checkpoint,
    cases: Sequence[Case],
    form: Form,
    outputs: Collection[str],
    *,
    model: str,
    sha256: str,
) -> Golden:
    """The golden vectors of an exported file.

    Args:
        checkpoint: the reference.
        cases: the cases to choose from.
        form: how the file was exported.
        outputs: names of the file's outputs.
        model: the file's name.
        sha256: the file's SHA-256.
    """
    choice = _Choice(Reference(checkpoint), checkpoint.card, form, outputs)
    left_out: dict[str, str] = {}
    chosen: dict[str, GraphDataset] = {}
    for case in cases:
        found = choice.of_case(case)
        if isinstance(found, str):
            left_out[case.name] = found
        else:
            chosen[case.name] = found
    spent = 0
    # Large graphs reveal the most, so they come first.
    for size, name in sorted(((choice.bytes_of(each), name) for name, each in chosen.items()))[
        ::-1
    ]:
        if spent and spent + size > _PER_FILE:
            left_out[name] = TOO_LARGE
        else:
            spent += size
    kept = [case for case in cases if case.name not in left_out]
    return Golden(
        model=model,
        model_sha256=sha256,
        layout=form.layout.value,
        tolerance=TOLERANCE,
        cases=tuple(choice.vectors(case, chosen[case.name]) for case in kept),
        left_out=tuple({"name": name, "reason": why} for name, why in left_out.items()),
    )


@dataclass(frozen=True, eq=False)
class _Choice:
    """Chooses the graphs of each case."""

    reference: Reference
    card: ModelCard
    form: Form
    outputs: Collection[str]

    def of_case(self, case: Case) -> GraphDataset | str:
        """The graphs to use, or why there are none."""
        if len(case.graphs) > 1 and not case.others:
            return self._some_of(case.graphs)
        fixed = self.form.nodes or 1
        least = _bytes(self.form, self.card, largest=fixed, nodes=fixed, edges=20 * fixed)
        limit = min(_MOST, max(_PER_CASE, least))
        fitting = [each for each in (case.graphs, *case.others) if self.bytes_of(each) <= limit]
        best, most = None, 0.0
        for graphs in fitting:
            certainty = float(self._certainty(graphs).min())
            if certainty > most:
                best, most = graphs, certainty
            if most >= 1:
                break
        return (NEAR_TIES if fitting else TOO_LARGE) if best is None else best

    def _some_of(self, graphs: GraphDataset) -> GraphDataset | str:
        certainty = self._certainty(graphs)
        certain = np.flatnonzero(certainty >= 1)
        best = np.argsort(-certainty, kind="stable")[:_GRAPHS]
        usable = certain if len(certain) >= _GRAPHS else np.sort(best[certainty[best] > 0])
        if not len(usable):
            return NEAR_TIES
        spread = np.linspace(0, len(usable) - 1, min(len(usable), _GRAPHS)).astype(np.int64)
        for count in range(len(spread), 0, -1):
            found = graphs.select(usable[spread[:count]])
            if self.bytes_of(found) <= _SEVERAL:
                return found
        return TOO_LARGE

    def _certainty(self, graphs: GraphDataset) -> NDArray[np.float64]:
        """[G] at least 1 if rounding cannot change the answer; 0 if it decides the node order."""
        every = np.arange(len(graphs))
        gap = self.reference.key_gaps(graphs, every) / _KEYS_APART
        gap[self.reference.order_is_chance(graphs, every)] = 0
        ranked = np.sort(mean_probabilities(self.reference.logits(graphs)[None]), axis=1)
        lead = (ranked[:, -1] - ranked[:, -2:-1].sum(axis=1)) / _CLASSES_APART
        if self.card.conformal is not None:
            apart = self.card.conformal.distances(ranked).min(axis=1)
            lead = np.minimum(lead, apart / _CLASSES_APART)
        found: NDArray[np.float64] = np.minimum(gap, lead)
        return found

    def bytes_of(self, graphs: GraphDataset) -> int:
        """Estimated bytes of the graphs in the file."""
        sizes = {"largest": graphs.max_nodes, "nodes": graphs.num_nodes}
        edges = len(graphs.neighbors)
        return int(_bytes(self.form, self.card, graphs=len(graphs), edges=edges, **sizes))

    def vectors(self, case: Case, graphs: GraphDataset) -> GoldenCase:
        """The case with its answers."""
        outputs = self.reference.outputs(graphs)
        best = outputs["probabilities"].argmax(axis=1)
        form, every = self.form, np.arange(len(graphs))
        return GoldenCase(
            name=case.name,
            description=case.description,
            graphs=tuple(_raw(self.card, graphs)),
            inputs=inputs_for(form.layout, self.card, graphs, every, size=form.nodes),
            outputs={
                name: each.astype(output_type(name))
                for name, each in outputs.items()
                if name in self.outputs and not (name in MAY_BE_OPEN and np.isnan(each).any())
            },
            classes=tuple(self.card.class_values[each] for each in best),
        )


def _bytes(
    form: Form, card: ModelCard, *, graphs: int = 1, largest: Any, nodes: Any, edges: Any
) -> Any:
    """Estimated bytes of a batch as JSON, from its sizes; `edges` count in both directions."""
    side = form.nodes or largest
    arrays = 12 * edges if form.layout == Layout.SPARSE else 2 * graphs * side * side
    return arrays + 7 * nodes + 6 * edges + 24 * card.attributes * nodes


def _given(card: ModelCard, graphs: GraphDataset) -> NDArray[np.float32] | None:
    """The attributes that a caller gives; the others are computed from the graph."""
    if graphs.node_attributes is None or not card.given_attributes:
        return None
    return graphs.node_attributes[:, : card.given_attributes]


def _raw(card: ModelCard, graphs: GraphDataset) -> list[Plain]:
    """Encoded graphs as JSON lines; nodes without a known label get one that the model lacks."""
    values = graphs.label_values
    unknown = np.where(graphs.node_label < 0, len(values), graphs.node_label)
    plain = replace(
        graphs,
        node_label=unknown.astype(np.int32),
        label_values=(*values, _other_than(values)),
        class_values=(),
        node_attributes=_given(card, graphs),
        edge_label=graphs.edge_type,
        edge_attributes=None,
        ids=(),
    )
    plain = without_edge_bins(plain)
    found = []
    for entry in entries(plain):
        if card.given_attributes:
            rows = entry["node_attributes"]
            entry["node_attributes"] = [[short(each) for each in row] for row in rows]  # type: ignore[attr-defined]
        found.append(entry)
    return found


def _other_than(values: tuple[Value, ...]) -> Value:
    """A label of the same kind that is not in the vocabulary."""
    numbers = [each for each in values if isinstance(each, int)]
    if numbers and len(numbers) == len(values):
        return max(numbers) + 1
    return max((str(each) for each in values), key=len, default="") + "?"
