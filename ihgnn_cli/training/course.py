"""One model's course through the epochs: its best, and when it is enough."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from torch import Tensor

from ihgnn_cli.training.stack import Epoch


class Course:
    """What became of one member of a stack, epoch by epoch; chooses on validation alone.

    Args:
        member: its position in the stack.
    """

    def __init__(self, member: int = 0) -> None:
        self.member = member
        self.history: list[Epoch] = []
        self.best: Epoch | None = None
        self.best_weights: dict[str, Tensor] = {}

    def add(self, epoch: Epoch, weights: Mapping[str, Tensor]) -> None:
        """Take note of an epoch, and of the member's part of the stack's weights if it is best."""
        self.history.append(epoch)
        if epoch.better_than(self.best):
            self.best = epoch
            part = slice(self.member, self.member + 1)
            self.best_weights = {name: value[part].clone() for name, value in weights.items()}

    def done(self, epochs: int, patience: int) -> bool:
        """Whether all epochs were run, or `patience` (unless 0) since the best one."""
        run = len(self.history)
        if run >= epochs:
            return True
        return bool(patience) and run - (self.best.epoch if self.best else 0) >= patience

    def as_plain(self) -> dict[str, Any]:
        """The course as tensors and plain values."""
        return {
            "history": [asdict(each) for each in self.history],
            "best": None if self.best is None else self.best.epoch,
            "best_weights": self.best_weights,
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
