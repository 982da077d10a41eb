"""A run's curves for TensorBoard."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ihgnn_cli.errors import InputError
from ihgnn_cli.training.run import Watch
from ihgnn_cli.training.stack import Epoch

FOLDER = "tensorboard"


def tensorboard_logger() -> Callable[[Path], Watch]:
    """What makes, for a run's folder, a watcher that writes each epoch to `FOLDER/tensorboard`.

    Raises:
        InputError: the package is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise InputError("TensorBoard is not installed. Use: pip install tensorboard") from error

    def log(run: Path) -> Watch:
        writer: SummaryWriter | None = None

        def watch(epoch: Epoch, best: Epoch) -> None:
            nonlocal writer
            if writer is None:
                # Epochs that a killed sitting had logged, and that are run again, are replaced.
                writer = SummaryWriter(str(run / FOLDER), purge_step=epoch.epoch)
            values = asdict(epoch)
            number = values.pop("epoch")
            for name, value in values.items():
                part, kind = name.split("_")
                writer.add_scalar(f"{kind}/{part}", value, number)
            writer.add_scalar("best_epoch", best.epoch, number)
            writer.flush()

        return watch

    return log
