"""One model's course through the epochs: its best, and when it is enough."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from torch import Tensor

from ihgnn_cli.training.stack import Epoch


class Course:
    """What became of one member of a stack, epoch by epoch; chooses on validation alone."""

    def __init__(self) -> None:
        self.history: list[Epoch] = []
        self.best: Epoch | None = None
        self.best_weights: dict[str, Tensor] = {}
        """Each with a member axis of one; empty where nobody keeps them."""
        self.diverged: Epoch | None = None
        """The epoch whose loss is not a finite number: it does not count, and is the last."""
        self.withdrawn = False
        """Whether somebody has lost interest: it is not trained any more."""

    def add(self, epoch: Epoch) -> bool:
        """Take note of an epoch, and tell whether it is the best so far."""
        if not (math.isfinite(epoch.train_loss) and math.isfinite(epoch.validation_loss)):
            self.diverged = epoch
            return False
        self.history.append(epoch)
        if not epoch.better_than(self.best):
            return False
        self.best = epoch
        return True

    def done(self, epochs: int, patience: int) -> bool:
        """Whether it is over: all epochs were run, or `patience` (unless 0) since the best one."""
        run = len(self.history)
        if run >= epochs or self.diverged is not None or self.withdrawn:
            return True
        return bool(patience) and run - (self.best.epoch if self.best else 0) >= patience

    def as_plain(self) -> dict[str, Any]:
        """The course as tensors and plain values."""
        return {
            "history": [asdict(each) for each in self.history],
            "best": None if self.best is None else self.best.epoch,
            "best_weights": self.best_weights,
            "diverged": None if self.diverged is None else asdict(self.diverged),
            "withdrawn": self.withdrawn,
        }

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Go on from `as_plain`.

        Raises:
            KeyError, TypeError, IndexError: it is none.
        """
        history: Sequence[Mapping[str, Any]] = plain["history"]
        self.history = [Epoch(**each) for each in history]
        self.best = None if plain["best"] is None else self.history[plain["best"] - 1]
        self.best_weights = dict(plain["best_weights"])
        self.diverged = None if plain["diverged"] is None else Epoch(**plain["diverged"])
        self.withdrawn = bool(plain.get("withdrawn", False))  # older files do not say
