"""Logging the epochs of a run for TensorBoard."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ihgnn_cli.errors import InputError
from ihgnn_cli.training.epoch import Epoch
from ihgnn_cli.training.run import Watch

FOLDER = "tensorboard"


def tensorboard_logger() -> Callable[[Path], Watch]:
    """A function that takes a run's folder and returns a callback that logs each epoch.

    Raises:
        InputError: the package is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise InputError(
            "TensorBoard is not installed. Use: pip install 'ihgnn-cli[tensorboard]'"
        ) from error

    def log(run: Path) -> Watch:
        writer: SummaryWriter | None = None

        def watch(epoch: Epoch, best: Epoch | None) -> None:
            nonlocal writer
            if writer is None:
                # Replaces epochs that an interrupted process logged and that are run again.
                writer = SummaryWriter(str(run / FOLDER), purge_step=epoch.epoch)
            values = asdict(epoch)
            number = values.pop("epoch")
            for name, value in values.items():
                part, kind = name.split("_")
                writer.add_scalar(f"{kind}/{part}", value, number)
            if best is not None:
                writer.add_scalar("best_epoch", best.epoch, number)
            writer.flush()

        return watch

    return log
