"""What is known of a model after an epoch; imports without torch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median_low


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


def mean_epoch(epochs: Sequence[Epoch]) -> Epoch:
    """One epoch for several models: the median of the epochs and the means of the metrics."""
    if len(epochs) == 1:
        return epochs[0]
    rows = [asdict(each) for each in epochs]
    means = {name: fmean(row[name] for row in rows) for name in rows[0] if name != "epoch"}
    return Epoch(median_low(each.epoch for each in epochs), **means)
