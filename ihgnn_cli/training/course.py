"""One model's training history, its best epoch and early stopping."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from torch import Tensor

from ihgnn_cli.training.epoch import Epoch


class Course:
    """The history of one member of a stack; its best epoch depends on validation alone.

    Args:
        validated: whether there are validation graphs; without any, the last epoch is kept.
    """

    def __init__(self, *, validated: bool = True) -> None:
        self._validated = validated
        self.history: list[Epoch] = []
        self.best: Epoch | None = None
        self.best_weights: dict[str, Tensor] = {}
        """Each with a member axis of one; empty if they are not kept."""
        self.diverged: Epoch | None = None
        """The epoch whose loss is not finite; it is the last one and is not counted."""

    def add(self, epoch: Epoch) -> bool:
        """Record an epoch; returns whether it is the best so far."""
        losses = [epoch.train_loss, *([epoch.validation_loss] if self._validated else [])]
        if not all(map(math.isfinite, losses)):
            self.diverged = epoch
            return False
        self.history.append(epoch)
        if self._validated and not epoch.better_than(self.best):
            return False
        self.best = epoch
        return True

    def done(self, epochs: int, patience: int) -> bool:
        """Whether training has ended: all epochs are done, or `patience` (unless 0) ran out."""
        run = len(self.history)
        if run >= epochs or self.diverged is not None:
            return True
        return bool(patience) and run - (self.best.epoch if self.best else 0) >= patience

    def as_plain(self) -> dict[str, Any]:
        """The course as tensors and plain values."""
        return {
            "history": [asdict(each) for each in self.history],
            "best": None if self.best is None else self.best.epoch,
            "best_weights": self.best_weights,
            "diverged": None if self.diverged is None else asdict(self.diverged),
        }

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Resume from the output of `as_plain`.

        Raises:
            KeyError, TypeError, IndexError: the values are not valid.
        """
        history: Sequence[Mapping[str, Any]] = plain["history"]
        self.history = [Epoch(**each) for each in history]
        self.best = None if plain["best"] is None else self.history[plain["best"] - 1]
        self.best_weights = dict(plain["best_weights"])
        self.diverged = None if plain["diverged"] is None else Epoch(**plain["diverged"])
