"""Epoch loop for a stack; each model stops independently."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ihgnn_cli.data.batching.batches import GraphStore, Positions
from ihgnn_cli.inference.metrics import mean_probabilities
from ihgnn_cli.models.settings import Inputs
from ihgnn_cli.training.checkpoint import build
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.course import Course
from ihgnn_cli.training.stack import Member, Stack, predict_each


def new_cohort(
    config: RunConfig,
    inputs: Inputs,
    store: GraphStore,
    members: Sequence[Member],
    *,
    keep_weights: bool = True,
    places_seed: int = 0,
) -> "Cohort":
    """Untrained members of one configuration; each has its own seed and learning rate.

    `places_seed` is that of the job, as in `Stack`.
    """
    model = build(config, inputs, [member.seed for member in members])
    stack = Stack(
        model.to(store.device),
        store,
        members,
        batch_size=config.training.batch_size,
        dropout=config.model.dropout,
        weight_decay=config.training.weight_decay,
        label_smoothing=config.training.label_smoothing,
        class_weights=config.training.class_weights,
        equal_batches=config.training.equal_batches,
        places_seed=places_seed,
    )
    epochs, patience = config.training.epochs, config.training.patience
    return Cohort(stack, epochs=epochs, patience=patience, keep_weights=keep_weights)


class Cohort:
    """A stack and the courses of its members; finished members leave the stack.

    Members without validation graphs keep their last epoch, with BatchNorm statistics recomputed
    over their training graphs.

    Args:
        stack: an untrained stack.
        epochs: the maximum number of epochs.
        patience: a member stops after this many epochs without improvement; 0: never.
        keep_weights: whether courses keep the weights of their best epochs.
    """

    def __init__(
        self, stack: Stack, *, epochs: int, patience: int, keep_weights: bool = True
    ) -> None:
        self.stack = stack
        self.courses = tuple(Course(validated=len(each.validation) > 0) for each in stack.members)
        """One course per member, in the original order."""
        self.present: tuple[int, ...] = tuple(range(len(stack.members)))
        """The members still in training: the index in `courses` for each stack position."""
        self._validated = any(len(each.validation) > 0 for each in stack.members)
        self._epochs = epochs
        self._patience = patience
        self._keep_weights = keep_weights

    def advance(self) -> None:
        """Remove finished members, then train the others for one epoch."""
        self.dismiss()
        epochs = self.stack.train_epoch()
        if self._keep_weights and not self._validated and self.stack.epoch >= self._epochs:
            self.stack.refresh_statistics()
        for position, epoch in enumerate(epochs):
            course = self.courses[self.present[position]]
            if course.add(epoch) and self._keep_weights:
                weights = self.stack.model.state_dict()
                part = slice(position, position + 1)
                course.best_weights = {name: each[part].clone() for name, each in weights.items()}

    def done(self, member: int) -> bool:
        """Whether this member has finished."""
        return self.courses[member].done(self._epochs, self._patience)

    @property
    def finished(self) -> bool:
        """Whether all members have finished."""
        return all(map(self.done, self.present))

    def dismiss(self) -> None:
        """Remove finished members from the stack, unless all have finished."""
        left = [at for at, member in enumerate(self.present) if not self.done(member)]
        if left and len(left) < len(self.present):
            self.stack.keep(left)
            self.present = tuple(self.present[at] for at in left)

    def add_snapshot(
        self, sums: list[Tensor], store: GraphStore, graphs: Sequence[Positions]
    ) -> None:
        """Add each present member's probabilities of its graphs at this epoch to its sum.

        Args:
            sums: by member, changed in place.
            store: the graphs.
            graphs: which of them, by member.
        """
        self.stack.refresh_statistics()
        present = [graphs[member] for member in self.present]
        for member, logits in zip(
            self.present, predict_each(self.stack.model, store, present), strict=True
        ):
            sums[member] = sums[member] + torch.from_numpy(mean_probabilities(logits[None]))

    def state(self) -> dict[str, Any]:
        """Everything the next epoch depends on, as plain values and tensors."""
        return {
            "present": list(self.present),
            "courses": [course.as_plain() for course in self.courses],
            "stack": self.stack.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from a `state`, in a new cohort of the same members.

        Raises:
            KeyError, TypeError, ValueError, IndexError, RuntimeError: the state is not valid.
        """
        for course, plain in zip(self.courses, state["courses"], strict=True):
            course.restore(plain)
        self.present = tuple(state["present"])
        if len(self.present) < len(self.courses):
            self.stack.keep(self.present)
        self.stack.restore(state["stack"])
