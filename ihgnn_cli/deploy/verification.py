"""Compares the outputs of an exported file with those of its checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.deploy.cases import Case
from ihgnn_cli.deploy.comparison import TOLERANCE, Comparison, compared
from ihgnn_cli.deploy.onnx_model import PREDICTION_SET, Answers
from ihgnn_cli.deploy.reference import Reference
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.training.checkpoint import Checkpoint
from ihgnn_cli.words import counted

MOST_SWAPPED = 0.5
"""Largest share of graphs whose node order is decided by rounding; beyond it a comparison proves
nothing. In untrained models without separation it was 31 of 100 graphs of PROTEINS and 32 of 110 of
DD when sorting by the last layer, and 0 and 8 of 105 when sorting by the aggregate."""


class Answering(Protocol):
    """A model to compare with a checkpoint."""

    def answers(self, dataset: GraphDataset, graphs: NDArray[np.int64]) -> Answers:
        """Outputs for graphs of an encoded data set."""


@dataclass(frozen=True)
class Difference:
    """The difference between an exported file and its checkpoint on one case."""

    case: str
    graphs: int
    logits: float
    """Largest difference, without the swapped graphs; `probabilities` likewise."""
    probabilities: float
    swapped: int
    """Graphs whose node order is decided by rounding and differs between the two. A checkpoint
    differs from itself in the same way when a graph's nodes are given in another order."""
    swapped_changed: int
    """How many of the swapped graphs change class."""


@dataclass(frozen=True)
class Parity:
    """The difference between an exported file and its checkpoint."""

    cases: tuple[Difference, ...]
    scale: float
    """The largest logit."""
    tolerance: float
    """Allowed difference, as in `TOLERANCE`."""

    @property
    def swapped(self) -> int:
        """Swapped graphs of all cases."""
        return sum(each.swapped for each in self.cases)

    @property
    def swapped_changed(self) -> int:
        """How many of the swapped graphs change class."""
        return sum(each.swapped_changed for each in self.cases)


def compare(checkpoint: Checkpoint, exported: Answering, cases: Sequence[Case]) -> Parity:
    """Compare an exported file with its checkpoint, on the CPU.

    Args:
        checkpoint: the reference.
        exported: the exported model.
        cases: the graphs.

    Raises:
        IhgnnError: outputs differ too much, or a class changes, or rounding decides the node order
            of too many graphs.
    """
    tolerance = TOLERANCE
    reference = Reference(checkpoint)
    found = [_of_case(reference, exported, case, tolerance) for case in cases]
    scale = max(each.scale for each in found)
    wrong = [each for each in found if each.wrong.any()]
    if wrong:
        worst, output = max(
            ((each, name) for each in wrong for name in each.found.relative),
            key=lambda pair: float(pair[0].found.relative[pair[1]][pair[0].wrong].max()),
        )
        apart = float(worst.found.absolute[output][worst.wrong].max())
        raise IhgnnError(
            "The exported model differs from the checkpoint: "
            f"{counted(sum(int(each.wrong.sum()) for each in wrong), 'graph')} of "
            f"{sum(len(each.wrong) for each in found):,} ("
            f"{', '.join(each.case for each in wrong)}), by up to {apart:.2g} in {output} (logits "
            f"up to {scale:.3g}). No file was written. "
            "Please report this with the checkpoint."
        )
    _refuse_chance(cases, found)
    return Parity(tuple(each.summary() for each in found), scale, tolerance)


@dataclass(frozen=True, eq=False)
class _Differences:
    """Differences per graph."""

    case: str
    scale: float
    """The largest logit."""
    found: Comparison
    wrong: NDArray[np.bool_]
    swapped: NDArray[np.bool_]

    def beside(self, other: "_Differences") -> "_Differences":
        """These graphs together with others of the same case."""
        return _Differences(
            self.case,
            max(self.scale, other.scale),
            self.found.beside(other.found),
            np.concatenate([self.wrong, other.wrong]),
            np.concatenate([self.swapped, other.swapped]),
        )

    def summary(self) -> Difference:
        certain = ~self.swapped
        largest = {
            name: float(each[certain].max(initial=0)) for name, each in self.found.absolute.items()
        }
        return Difference(
            case=self.case,
            graphs=len(certain),
            logits=largest["logits"],
            probabilities=largest["probabilities"],
            swapped=int(self.swapped.sum()),
            swapped_changed=int((self.swapped & self.found.changed).sum()),
        )


def _of_case(
    reference: Reference, exported: Answering, case: Case, tolerance: float
) -> _Differences:
    """Compare a case, and its alternatives as long as all graphs are swapped."""
    found = _differences(reference, exported, case, tolerance)
    for graphs in case.others:
        if not found.swapped.all():
            break
        other = _differences(reference, exported, Case(case.name, graphs), tolerance)
        found = found.beside(other)
    return found


def _differences(
    reference: Reference, exported: Answering, case: Case, allowed: float
) -> _Differences:
    """Compare the graphs of a case.

    A difference beyond `TOLERANCE` may come from the node order. Half precision of the readout does
    not change that order, so its larger tolerance (`allowed`) does not apply to this check.
    """
    expected = reference.outputs(case.graphs)
    given = vars(exported.answers(case.exported_input, np.arange(len(case.exported_input))))
    expected = {name: each for name, each in expected.items() if given[name] is not None}
    conformal = reference.card.conformal
    if conformal is not None and PREDICTION_SET in expected:
        # Rounding decides whether a class at the threshold is listed.
        near = conformal.distances(expected["probabilities"]) <= allowed
        expected[PREDICTION_SET] = np.where(near, given[PREDICTION_SET], expected[PREDICTION_SET])
    found = compared(expected, given, allowed)
    swapped, wrong = found.beyond(TOLERANCE), found.beyond(allowed)
    swapped[swapped] = reference.order_is_chance(case.graphs, np.flatnonzero(swapped))
    scale = float(np.abs(expected["logits"]).max())
    return _Differences(case.name, scale, found, wrong & ~swapped, swapped)


def _refuse_chance(cases: Sequence[Case], found: Sequence[_Differences]) -> None:
    """Refuse a comparison in which too many graphs are swapped, since these prove nothing."""
    counting = [pair for pair in zip(cases, found, strict=True) if not pair[0].hardest]
    swapped = sum(int(each.swapped.sum()) for _, each in counting)
    graphs = sum(len(each.swapped) for _, each in counting)
    wholly = [each.case for case, each in counting if len(case.graphs) > 1 and each.swapped.all()]
    if wholly or swapped > MOST_SWAPPED * graphs:
        of_case = f" (all of '{wholly[0]}')" if wholly else ""
        raise IhgnnError(
            f"The exported model cannot be verified: in {swapped:,} of {graphs:,} graphs"
            f"{of_case}, nodes tie in the sort key and are ordered differently than in the "
            "checkpoint. No file was written. Use other graphs (--dataset), or --no-verify."
        )
