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

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ihgnn_cli.data.batching.batches import Batch, GraphStore, Positions
from ihgnn_cli.data.dataset import offsets
from ihgnn_cli.models.factory import StackedModel
from ihgnn_cli.training.epoch import Epoch
from ihgnn_cli.training.kinds import ClassWeights
from ihgnn_cli.training.loss import CrossEntropy, balanced
from ihgnn_cli.training.optimizer import StackedAdam
from ihgnn_cli.training.seeds import generator

# Rows and adjacent pairs evaluated at once.
_EVALUATION_COST = 500_000
# Standard deviation of the rows in a batch, relative to the mean, from which on the batches that
# train together are aligned by size.
_ALIGN_FROM = 0.1


@dataclass(frozen=True, eq=False)
class Member:
    """What distinguishes a model in a stack; it sees only these graphs."""

    seed: int
    lr: float
    train: Positions
    validation: Positions
    dropout: float | None = None
    """Overrides the dropout of the stack."""


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
        equal_batches: whether the batches of an epoch differ by at most one graph; otherwise the
            last one has what is left.
        places_seed: seed of the order of places in batches that are aligned by size. It is the same
            for all stacks of a job, so that a member trains as it would alone.
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
        equal_batches: bool = False,
        places_seed: int = 0,
    ) -> None:
        self.model = model
        self.store = store
        self.members = tuple(members)
        self.batch_size = batch_size
        self.epoch = 0
        self._equal_batches = equal_batches
        self._places_seed = places_seed
        self._dropout = dropout
        self._weight_decay = weight_decay
        self._loss = CrossEntropy(label_smoothing)
        if class_weights == ClassWeights.BALANCED:
            graphs = [member.train for member in members]
            weights = torch.from_numpy(balanced(store.graph_class, graphs, store.classes))
            self._loss = CrossEntropy(label_smoothing, weights.to(store.device))
        rows = store.row_count(np.arange(len(store.graph_class)))
        self._aligned = rows.std() > _ALIGN_FROM * math.sqrt(batch_size) * rows.mean()
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

    def refresh_statistics(self) -> None:
        """Recompute the BatchNorm statistics on each member's training graphs.

        The running statistics follow the last batches only, and some epochs end with statistics
        that fit few graphs (docs/training.md).
        """
        orders = [self._draw(member)[0] for member in self.members]  # shuffled
        batches = self.store.batches(_parts(orders, *self._bounds(orders)))
        self.model.recompute_statistics(batches)

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

    def _new_optimizer(self) -> StackedAdam:
        return StackedAdam(
            list(self.model.parameters()),
            [member.lr for member in self.members],
            weight_decay=self._weight_decay,
            ranked=self.model.ranked,
        )

    def _steps(self, member: Member) -> int:
        return math.ceil(len(member.train) / self.batch_size)

    def _train(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """[S] mean loss and accuracy over the batches of the epoch."""
        self.model.train()
        orders, drawn = zip(*(self._draw(member) for member in self.members), strict=True)
        factors = self._dropout_factors(drawn)
        first = offsets(np.array([len(order) for order in orders]))[:-1]
        starts, ends = self._bounds(orders)
        batches = self.store.batches(_parts(orders, starts, ends))
        tally = _Tally(self._loss)
        for step, (at, batch) in enumerate(zip(starts, batches, strict=True)):
            rows = np.where(batch.origin < 0, 0, (first + at)[:, None] + batch.origin)
            own = torch.from_numpy(rows.ravel()).to(self.store.device)
            factor = factors.index_select(0, own).view(*rows.shape, -1)
            seeds = [self._seed(member, step) for member in self.members]
            self._optimizer.before(batch.reach)
            tally.add(batch, self.model.train_step(batch, factor, seeds, self._loss))
            self._optimizer.step()
        self._optimizer.end_epoch()
        return tally.means()

    def _bounds(self, orders: Sequence[Positions]) -> tuple[Positions, Positions]:
        """[T, S] where the batch of each step begins in each member's order, and where it ends.

        If sizes vary much, batches that train together have the same place in the order of sizes,
        so that padding is small. Each member's batches are still in random order, because the
        order of places is random.
        """
        steps = np.array([self._steps(member) for member in self.members])
        graphs = np.array([len(order) for order in orders])
        number = np.minimum(np.arange(steps.max() + 1)[:, None], steps)
        cuts: Positions = np.minimum(number * self.batch_size, graphs)
        if self._equal_batches:
            cuts = number * graphs // np.maximum(steps, 1)
        starts, ends = cuts[:-1].copy(), cuts[1:].copy()
        for member, (order, count) in enumerate(zip(orders, steps.tolist(), strict=True)):
            if self._aligned and count:
                rows = np.add.reduceat(self.store.row_count(order), starts[:count, member])
                by_size = np.argsort(-rows, kind="stable")
                drawn = generator(
                    self._places_seed, f"places of {count} batches in epoch", self.epoch
                )
                places = torch.randperm(count, generator=drawn).numpy()
                for each in (starts, ends):
                    each[places, member] = each[by_size, member]
        return starts, ends

    def _draw(self, member: Member) -> tuple[Positions, Tensor]:
        """The order of a member's graphs in this epoch, and a number per graph and hidden unit.

        The numbers [len(train), hidden] are uniform between 0 and 1; dropout depends on them.
        """
        drawn = generator(member.seed, "epoch", self.epoch)
        order = torch.randperm(len(member.train), generator=drawn).numpy()
        units = self.model.dropped_units
        return member.train[order], torch.rand(len(member.train), units, generator=drawn)

    def _dropout_factors(self, drawn: Sequence[Tensor]) -> Tensor:
        """[graphs of all members, hidden] 0 for a dropped unit, else 1 / (1 - dropout)."""
        rates = [self._dropout if each.dropout is None else each.dropout for each in self.members]
        rows = np.repeat(rates, [len(each) for each in drawn])[:, None]
        both = torch.from_numpy(np.stack([rows, 1 - rows]).astype(np.float32))
        rate, kept = both.to(self.store.device).unbind()
        return (torch.cat(list(drawn)).to(self.store.device) >= rate) / kept

    def _seed(self, member: Member, step: int) -> int:
        """Seed for a model's own random draws; 0 if all draws are made here."""
        if self.model.dropped_units:
            return 0
        return generator(member.seed, f"step {step} of epoch", self.epoch).initial_seed()


def _parts(
    orders: Sequence[Positions], starts: Positions, ends: Positions
) -> Iterator[list[Positions]]:
    """The graphs of each member in each step."""
    for step in zip(starts.tolist(), ends.tolist(), strict=True):
        yield [order[a:b] for order, a, b in zip(orders, *step, strict=True)]


class _Tally:
    """Losses and hits of an epoch's batches, reduced once at the end."""

    def __init__(self, loss: CrossEntropy) -> None:
        self._loss = loss
        self._batches: list[tuple[Tensor, Tensor, Tensor]] = []

    def add(self, batch: Batch, logits: Tensor) -> None:
        """Add a batch with logits [S, B, classes]."""
        self._batches.append((logits, batch.truth, batch.graph_share))

    def means(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """[S] loss and accuracy of each member over its graphs."""
        logits, truth, share = (
            torch.cat(column, dim=1) for column in zip(*self._batches, strict=True)
        )
        weight = (share > 0).to(logits.dtype)  # 0 for padding
        loss = self._loss.losses(logits, truth)
        right = (logits.argmax(-1) == truth).to(loss.dtype)
        sums = (torch.stack([loss, right, torch.ones_like(loss)]) * weight).sum(-1)
        # In double precision, so that an accuracy is the float nearest to the fraction.
        losses, hits, graphs = sums.cpu().numpy().astype(np.float64)
        of_class = self._loss.weights(truth)
        if of_class is None:
            return losses / graphs, hits / graphs
        return losses / (of_class * weight).sum(-1).cpu().numpy(), hits / graphs


def evaluation_batches(store: GraphStore, graphs: Sequence[Positions]) -> Iterator[Batch]:
    """Batches of bounded cost that cover each member's graphs once."""
    cost = max(int(store.cost(each).sum()) for each in graphs)
    parts = max(1, math.ceil(cost * len(graphs) / _EVALUATION_COST))
    parts = min(parts, max(1, *(len(each) for each in graphs)))
    pieces = [np.array_split(each, parts) for each in graphs]
    return store.batches(list(step) for step in zip(*pieces, strict=True))


def predict(
    model: StackedModel,
    store: GraphStore,
    graphs: Positions,
    output: Callable[[Batch], Tensor] | None = None,
) -> NDArray[np.float32]:
    """[S, G, classes] logits of every member for the graphs at these positions.

    `output` computes another output of the model from a batch instead.
    """
    members = next(model.parameters()).shape[0]
    return np.stack(predict_each(model, store, [graphs] * members, output))


@torch.no_grad()
def predict_each(
    model: StackedModel,
    store: GraphStore,
    graphs: Sequence[Positions],
    output: Callable[[Batch], Tensor] | None = None,
) -> list[NDArray[np.float32]]:
    """For every member, the logits [G, classes] of its own graphs, or another output."""
    model.eval()
    found: list[list[NDArray[np.float32]]] = [[] for _ in graphs]
    for batch in evaluation_batches(store, graphs):
        values = (output or model)(batch).cpu().numpy()
        for own, of_member, origin in zip(found, values, batch.origin, strict=True):
            real = origin >= 0  # the others are padding
            ordered = np.empty_like(of_member[real])
            ordered[origin[real]] = of_member[real]
            own.append(ordered)
    return [np.concatenate(own) for own in found]
