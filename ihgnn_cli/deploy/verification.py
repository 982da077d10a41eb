"""The proof that an exported file says what its checkpoint says."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from ihgnn_cli.data.batches import GraphStore
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.deploy.cases import Case
from ihgnn_cli.deploy.inputs import sparse_inputs
from ihgnn_cli.deploy.onnx_model import Answers
from ihgnn_cli.deploy.sparse import SparseIHGNN
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.training.checkpoint import Checkpoint
from ihgnn_cli.training.metrics import mean_probabilities
from ihgnn_cli.training.stack import predict
from ihgnn_cli.words import counted

TOLERANCE = 1e-4
"""Of the largest logit (at least 1): how far logits and probabilities may be apart."""
SMALL_TOLERANCE = 5e-4
"""The same where the classifier's first matrix is stored in half precision."""

# Of the largest number in H. Rounding moved a sort key by up to 2.2e-6 of it on COLLAB, by less
# than 6e-7 on four other data sets; and there are two keys, each moved either way.
_CLOSE = 5e-6


class Answering(Protocol):
    """What is compared with a checkpoint."""

    def answers(self, dataset: GraphDataset, graphs: NDArray[np.int64]) -> Answers:
        """For graphs of a data set in the card's words."""


@dataclass(frozen=True)
class Difference:
    """How far an exported file is from its checkpoint on the graphs of a case."""

    case: str
    graphs: int
    logits: float
    """The largest difference, as are `probabilities`, leaving out the swapped."""
    probabilities: float
    swapped: int
    """Graphs with nodes so close in the sort key that their order is chance, and another one here
    than there; a checkpoint does the same when a graph's nodes are given in another order."""
    swapped_changed: int
    """Of those, how many change class."""


@dataclass(frozen=True)
class Parity:
    """How far an exported file is from its checkpoint."""

    cases: tuple[Difference, ...]
    scale: float
    """The largest logit."""
    tolerance: float
    """Of the largest logit (at least 1)."""

    @property
    def swapped(self) -> int:
        """Graphs whose order is chance, in all cases."""
        return sum(each.swapped for each in self.cases)

    @property
    def swapped_changed(self) -> int:
        """Of those, how many change class."""
        return sum(each.swapped_changed for each in self.cases)


def compare(
    checkpoint: Checkpoint, exported: Answering, cases: Sequence[Case], *, small: bool = False
) -> Parity:
    """Compare an exported file with its checkpoint, on the CPU.

    Args:
        checkpoint: what is right.
        exported: what has to say the same.
        cases: the graphs.
        small: the file is one of half precision.

    Raises:
        IhgnnError: they are too far apart, or a class changes.
    """
    expected = [_reference(checkpoint, case.graphs) for case in cases]
    scale = max(float(np.abs(each).max()) for each in expected)
    tolerance = SMALL_TOLERANCE if small else TOLERANCE
    unit = max(1.0, scale)
    found = [
        _differences(checkpoint, exported, case, logits, (TOLERANCE * unit, tolerance * unit))
        for case, logits in zip(cases, expected, strict=True)
    ]
    wrong = [each for each in found if each.wrong.any()]
    if wrong:
        worst = max(wrong, key=lambda each: float(each.logits[each.wrong].max()))
        raise IhgnnError(
            "The exported model does not answer as the checkpoint does: "
            f"{counted(sum(int(each.wrong.sum()) for each in wrong), 'graph')} of "
            f"{sum(len(each.wrong) for each in found):,} differ ("
            f"{', '.join(each.case for each in wrong)}), by up to "
            f"{worst.logits[worst.wrong].max():.2g} in logits up to {scale:.3g}. No file was "
            "written. "
            + ("Export without --small." if small else "Please report this with the checkpoint.")
        )
    if all(each.swapped.all() for each in found):
        raise IhgnnError(
            "Nothing can be said of the exported model: in all graphs that it was tried on, nodes "
            "tie in the sort key. Use other graphs (--dataset), or --no-verify."
        )
    return Parity(tuple(each.summary() for each in found), scale, tolerance)


@dataclass(frozen=True, eq=False)
class _Differences:
    """Graph by graph."""

    case: str
    logits: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    changed: NDArray[np.bool_]
    """Whether the class is another one."""
    wrong: NDArray[np.bool_]
    swapped: NDArray[np.bool_]

    def summary(self) -> Difference:
        certain = ~self.swapped
        return Difference(
            case=self.case,
            graphs=len(certain),
            logits=float(self.logits[certain].max(initial=0)),
            probabilities=float(self.probabilities[certain].max(initial=0)),
            swapped=int(self.swapped.sum()),
            swapped_changed=int((self.swapped & self.changed).sum()),
        )


def _differences(
    checkpoint: Checkpoint,
    exported: Answering,
    case: Case,
    expected: NDArray[np.float64],
    limits: tuple[float, float],
) -> _Differences:
    """Of a case; beyond the first limit the order of nodes may be why, beyond the second it has to.

    Half precision moves no node, so that what it is allowed does not hide that others moved.
    """
    answers = exported.answers(case.asked, np.arange(len(case.asked)))
    p, expected_p = answers.probabilities, mean_probabilities(expected[None])
    apart, apart_p = np.abs(answers.logits - expected).max(1), np.abs(p - expected_p).max(1)
    # Where two classes are as good as equal, either may come out first.
    answered = np.take_along_axis(expected_p, p.argmax(1)[:, None], axis=1)[:, 0]
    suspicious, allowed = limits
    changed = ~(answered >= expected_p.max(1) - allowed)
    largest = np.maximum(apart, apart_p)
    swapped = ~(largest <= suspicious) | changed  # NaN is suspicious, too
    wrong = ~(largest <= allowed) | changed
    swapped[swapped] = _order_is_chance(checkpoint, case.graphs, np.flatnonzero(swapped))
    return _Differences(case.name, apart, apart_p, changed, wrong & ~swapped, swapped)


def _reference(checkpoint: Checkpoint, graphs: GraphDataset) -> NDArray[np.float64]:
    """[G, C] what the checkpoint's own model says; of several members, the log of the mean."""
    card, device = checkpoint.card, torch.device("cpu")
    layers = checkpoint.config.model.layers
    store = GraphStore(graphs, card.features, card.max_nodes, layers, device)
    positions = np.arange(len(graphs))
    logits = predict(checkpoint.model(device), store, positions).astype(np.float64)
    if len(logits) == 1:
        single: NDArray[np.float64] = logits[0]
        return single
    log_p = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    mean: NDArray[np.float64] = np.logaddexp.reduce(log_p, axis=0) - np.log(len(logits))
    return mean


@torch.no_grad()
def _order_is_chance(
    checkpoint: Checkpoint, dataset: GraphDataset, graphs: NDArray[np.int64]
) -> list[bool]:
    """For each graph whether rounding decides on the order of its nodes.

    It does where nodes that differ follow each other so closely in the sort key that single
    precision cannot tell which one is first.
    """
    if checkpoint.config.model.variant is Variant.NO_CONCAT or not len(graphs):
        return [False] * len(graphs)
    model = SparseIHGNN(checkpoint)
    found = []
    for graph in graphs:
        inputs = sparse_inputs(checkpoint.card, dataset, np.array([graph]))
        del inputs["ptr"]
        given = {name: torch.from_numpy(value) for name, value in inputs.items()}
        found.append(any(_close(h, key) for h, key in model.embedded(**given)))
    return found


def _close(h: torch.Tensor, key: torch.Tensor) -> bool:
    ascending, order = key.sort()
    scale = h.abs().max()
    close = ascending.diff() < _CLOSE * scale
    differ = h[order].diff(dim=0).abs().amax(1) > _CLOSE * scale
    return bool((close & differ).any())
