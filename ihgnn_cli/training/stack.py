"""The training loop: a stack of models that take each step together.

Each member of a stack has its own seed, learning rate and graphs. Its initial weights, the order of
its graphs and its dropout are bit for bit the same as if it were trained alone; only rounding
depends on the other members. For the first ten to some tens of epochs the curves agree up to
rounding. Then training amplifies the rounding, and they diverge like two seeds. A single training
is a stack of one.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.adam import adam

from ihgnn_cli.data.batching import Batch, GraphStore, Positions
from ihgnn_cli.data.dataset import offsets
from ihgnn_cli.models.factory import StackedModel
from ihgnn_cli.training.kinds import ClassWeights
from ihgnn_cli.training.loss import CrossEntropy, balanced
from ihgnn_cli.training.seeds import generator

BETAS = (0.9, 0.999)
EPS = 1e-8
"""Both values are those of torch.optim.Adam."""
# Rows and adjacent pairs evaluated at once.
_EVALUATION_COST = 500_000


@dataclass(frozen=True, eq=False)
class Member:
    """What distinguishes a model in a stack; it sees only these graphs."""

    seed: int
    lr: float
    train: Positions
    validation: Positions
    dropout: float | None = None
    """Overrides the dropout of the stack."""


@dataclass(frozen=True)
class Epoch:
    """Metrics of a model after an epoch."""

    epoch: int
    """Counted from 1."""
    train_loss: float
    """Mean training loss over the epoch's batches, with dropout."""
    train_accuracy: float
    """Accuracy over the epoch's batches, with dropout."""
    validation_loss: float
    """Plain cross-entropy, whatever the training loss is."""
    validation_accuracy: float

    def better_than(self, other: "Epoch | None") -> bool:
        """Higher validation accuracy, or equal accuracy and a lower loss; false for a tie."""
        if other is None:
            return True
        mine = (self.validation_accuracy, -self.validation_loss)
        return mine > (other.validation_accuracy, -other.validation_loss)


class Stack:
    """Models and their optimizer in training.

    Args:
        model: takes a batch for all members and, in training, the hidden units that dropout keeps.
        store: the graphs of all members.
        members: in the order of the model's leading axis.
        batch_size: graphs per step and member.
        dropout: dropout rate of members without their own.
        weight_decay: Adam's weight decay.
        label_smoothing: label smoothing of the training loss.
        class_weights: class weights of the training loss, from each member's training graphs.
    """

    def __init__(
        self,
        model: StackedModel,
        store: GraphStore,
        members: Sequence[Member],
        *,
        batch_size: int,
        dropout: float,
        weight_decay: float = 0.0,
        label_smoothing: float = 0.0,
        class_weights: ClassWeights = ClassWeights.NONE,
    ) -> None:
        self.model = model
        self.store = store
        self.members = tuple(members)
        self.batch_size = batch_size
        self.epoch = 0
        self._dropout = dropout
        self._weight_decay = weight_decay
        self._loss = CrossEntropy(label_smoothing)
        if class_weights == ClassWeights.BALANCED:
            graphs = [member.train for member in members]
            weights = torch.from_numpy(balanced(store.graph_class, graphs, store.classes))
            self._loss = CrossEntropy(label_smoothing, weights.to(store.device))
        self._optimizer = self._new_optimizer()
        self._evaluated: dict[str, list[Batch]] = {}

    def train_epoch(self) -> list[Epoch]:
        """One pass over each member's training graphs and one over its validation graphs.

        If no member has validation graphs, validation loss and accuracy are NaN.
        """
        self.epoch += 1
        trained, right = self._train()
        validation = [member.validation for member in self.members]
        losses = accuracies = np.full(len(validation), math.nan)
        if any(map(len, validation)):
            losses, accuracies = self.evaluate("validation", validation)
        return [
            Epoch(self.epoch, *(float(value) for value in values))
            for values in zip(trained, right, losses, accuracies, strict=True)
        ]

    @torch.no_grad()
    def evaluate(
        self, name: str, graphs: Sequence[Positions]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """[S] mean loss and accuracy of each member on its graphs, with the current weights.

        The batches are cached by name, so the same name must mean the same graphs.
        """
        self.model.eval()
        if name not in self._evaluated:
            self._evaluated[name] = list(evaluation_batches(self.store, graphs))
        tally = _Tally(CrossEntropy())  # whatever the training loss is
        for batch in self._evaluated[name]:
            tally.add(batch, self.model(batch))
        return tally.means()

    def keep(self, positions: Sequence[int]) -> None:
        """Keep only these members; apart from rounding, their training does not change."""
        state = self._optimizer.state()
        index = torch.tensor(positions, device=self.store.device)
        for module in self.model.modules():
            for parameter in module.parameters(recurse=False):
                parameter.data, parameter.grad = parameter.data[index], None
            for name, buffer in module.named_buffers(recurse=False):
                setattr(module, name, buffer[index])
        self.members = tuple(self.members[each] for each in positions)
        self._loss = self._loss.keep(index)
        self._evaluated.clear()
        self._optimizer = self._new_optimizer()
        self._optimizer.restore(
            {
                "first": state["first"][index],
                "second": state["second"][index],
                "steps": [state["steps"][each] for each in positions],
            }
        )

    def state(self) -> dict[str, object]:
        """Everything the next epoch depends on, as plain values and tensors."""
        return {
            "epoch": self.epoch,
            "model": self.model.state_dict(),
            "optimizer": self._optimizer.state(),
        }

    def restore(self, state: dict[str, object]) -> None:
        """Resume from a `state`."""
        self.epoch = state["epoch"]  # type: ignore[assignment]
        self.model.load_state_dict(state["model"])  # type: ignore[arg-type]
        self._optimizer.restore(state["optimizer"])  # type: ignore[arg-type]

    def _new_optimizer(self) -> "_StackedAdam":
        return _StackedAdam(self.model, self.members, self._steps, self._weight_decay)

    def _steps(self, member: Member) -> int:
        return math.ceil(len(member.train) / self.batch_size)

    def _train(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """[S] mean loss and accuracy over the batches of the epoch."""
        self.model.train()
        orders, dropout = zip(*(self._draw(member) for member in self.members), strict=True)
        factors = torch.cat(dropout).to(self.store.device)
        first = offsets(np.array([len(order) for order in orders]))[:-1, None]
        parts = [
            slice(step * self.batch_size, (step + 1) * self.batch_size)
            for step in range(max(map(self._steps, self.members)))
        ]
        batches = self.store.batches([order[part] for order in orders] for part in parts)
        tally = _Tally(self._loss)
        for step, (part, batch) in enumerate(zip(parts, batches, strict=True)):
            drawn = np.where(batch.origin < 0, 0, first + part.start + batch.origin)
            rows = torch.from_numpy(drawn.ravel()).to(self.store.device)
            factor = factors.index_select(0, rows).view(*drawn.shape, -1)
            seeds = [self._seed(member, step) for member in self.members]
            gradient = self._loss.gradient(batch)
            tally.add(batch, self.model.train_step(batch, factor, seeds, gradient))
            self._optimizer.step(step)
        return tally.means()

    def _draw(self, member: Member) -> tuple[Positions, Tensor]:
        """The order of a member's graphs in this epoch, and the dropout factors of their units.

        Factors [len(train), hidden] are 0 for a dropped unit, else 1 / (1 - dropout).
        """
        drawn = generator(member.seed, "epoch", self.epoch)
        dropout = self._dropout if member.dropout is None else member.dropout
        order = torch.randperm(len(member.train), generator=drawn).numpy()
        units = self.model.dropped_units
        kept = torch.rand(len(member.train), units, generator=drawn) >= dropout
        return member.train[order], kept / (1 - dropout)

    def _seed(self, member: Member, step: int) -> int:
        """Seed for a model's own random draws; 0 if all draws are made here."""
        if self.model.dropped_units:
            return 0
        return generator(member.seed, f"step {step} of epoch", self.epoch).initial_seed()


class _Tally:
    """Losses and hits of an epoch's batches, reduced once at the end."""

    def __init__(self, loss: CrossEntropy) -> None:
        self._loss = loss
        self._batches: list[tuple[Tensor, Tensor, Tensor]] = []

    def add(self, batch: Batch, logits: Tensor) -> None:
        """Add a batch with logits [S, B, classes]."""
        self._batches.append((logits, batch.truth, batch.graph_weight))

    def means(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """[S] loss and accuracy of each member over its graphs."""
        logits, truth, weight = (
            torch.cat(column, dim=1) for column in zip(*self._batches, strict=True)
        )
        loss = self._loss.losses(logits, truth)
        right = (logits.argmax(-1) == truth).to(loss.dtype)
        sums = (torch.stack([loss, right, torch.ones_like(loss)]) * weight).sum(-1)
        # In double precision, so that an accuracy is the float nearest to the fraction.
        losses, hits, graphs = sums.cpu().numpy().astype(np.float64)
        of_class = self._loss.weights(truth)
        if of_class is None:
            return losses / graphs, hits / graphs
        return losses / (of_class * weight).sum(-1).cpu().numpy(), hits / graphs


class _StackedAdam:
    """Fused Adam with a learning rate and a number of steps for each member.

    Parameters and gradients become views of one tensor [S, *] each, because launching an operation
    is costly. One call updates the rows of neighbouring members that have the same learning rate
    and number of steps.
    """

    def __init__(
        self,
        model: StackedModel,
        members: Sequence[Member],
        steps: Callable[[Member], int],
        weight_decay: float,
    ) -> None:
        self._weight_decay = weight_decay
        values, gradients = _flattened(list(model.parameters()))
        self._first = torch.zeros_like(values)
        self._second = torch.zeros_like(values)
        self._runs: list[_Run] = []
        start = 0
        for (lr, count), run in groupby(members, lambda each: (each.lr, steps(each))):
            part = slice(start, start + len(list(run)))
            start = part.stop
            self._runs.append(
                _Run(
                    part,
                    lr,
                    count,
                    values[part],
                    gradients[part],
                    self._first[part],
                    self._second[part],
                    torch.zeros((), device=values.device),
                )
            )

    @torch.no_grad()
    def step(self, number: int) -> None:
        """Update the members that have a batch in this step of the epoch (counted from 0)."""
        for run in self._runs:
            if number >= run.steps:
                continue
            adam(
                params=[run.values],
                grads=[run.gradients],
                exp_avgs=[run.first],
                exp_avg_sqs=[run.second],
                max_exp_avg_sqs=[],
                state_steps=[run.done],
                fused=True,
                amsgrad=False,
                beta1=BETAS[0],
                beta2=BETAS[1],
                lr=run.lr,
                weight_decay=self._weight_decay,
                eps=EPS,
                maximize=False,
            )

    def state(self) -> dict[str, Any]:
        """Moments [S, *] and steps [S], as plain tensors and numbers."""
        steps = [int(run.done) for run in self._runs for _ in range(len(run.values))]
        return {"first": self._first, "second": self._second, "steps": steps}

    def restore(self, state: dict[str, Any]) -> None:
        self._first.copy_(state["first"])
        self._second.copy_(state["second"])
        for run in self._runs:
            run.done.fill_(state["steps"][run.part.start])


@dataclass(frozen=True, eq=False)
class _Run:
    """Neighbouring members that Adam updates together."""

    part: slice
    lr: float
    steps: int
    """Per epoch."""
    values: Tensor
    gradients: Tensor
    first: Tensor
    second: Tensor
    """The members' rows of each tensor, as views."""
    done: Tensor
    """Steps so far, in the form that torch's Adam takes."""


def _flattened(parameters: Sequence[nn.Parameter]) -> tuple[Tensor, Tensor]:
    """Make parameters and gradients views of one tensor [S, *] each; returns the two tensors."""
    members = parameters[0].shape[0]
    # Each starts at a multiple of 64 bytes, for vector instructions.
    sizes = np.array([math.ceil(each[0].numel() / 16) * 16 for each in parameters])
    ptr = offsets(sizes)
    values = parameters[0].new_zeros(members, int(ptr[-1]))
    gradients = torch.zeros_like(values)
    for parameter, begin in zip(parameters, ptr.tolist(), strict=False):
        part = slice(begin, begin + parameter[0].numel())
        value = values[:, part].view(parameter.shape)
        value.copy_(parameter.data)
        parameter.data = value
        parameter.grad = gradients[:, part].view(parameter.shape)
    return values, gradients


def evaluation_batches(store: GraphStore, graphs: Sequence[Positions]) -> Iterator[Batch]:
    """Batches of bounded cost that cover each member's graphs once."""
    cost = max(int(store.cost(each).sum()) for each in graphs)
    parts = max(1, math.ceil(cost * len(graphs) / _EVALUATION_COST))
    parts = min(parts, max(1, *(len(each) for each in graphs)))
    pieces = [np.array_split(each, parts) for each in graphs]
    return store.batches(list(step) for step in zip(*pieces, strict=True))


@torch.no_grad()
def predict(model: StackedModel, store: GraphStore, graphs: Positions) -> NDArray[np.float32]:
    """[S, G, classes] logits of every member for the graphs at these positions."""
    model.eval()
    members = next(model.parameters()).shape[0]
    found: list[NDArray[np.float32]] = []
    for batch in evaluation_batches(store, [graphs] * members):
        logits = model(batch).cpu().numpy()
        ordered = np.empty_like(logits)
        np.put_along_axis(ordered, batch.origin[..., None], logits, axis=1)
        found.append(ordered)
    return np.concatenate(found, axis=1)
