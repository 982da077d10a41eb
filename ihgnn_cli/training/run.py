"""Prepare, start, resume and finish a training in a run folder.

Randomness is a function of seed and epoch (`training.seeds`), and `last.pt` holds everything else
that an epoch depends on. A run that was killed and resumed ends with the same weights.
"""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ihgnn_cli.data.access import DEFAULT, Access
from ihgnn_cli.data.batching.batches import Positions
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.kinds import is_drawn
from ihgnn_cli.data.splits import Split, load_split
from ihgnn_cli.errors import IhgnnError, InputError, SettingError
from ihgnn_cli.files import locked, remove_parts
from ihgnn_cli.inference.metrics import Metrics, mean_probabilities, measure
from ihgnn_cli.models.card import ModelCard, Snapshot, describe
from ihgnn_cli.training import folder as folders
from ihgnn_cli.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from ihgnn_cli.training.cohort import new_cohort
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.devices import computing, is_full_memory, resolve_device
from ihgnn_cli.training.epoch import Epoch, mean_epoch
from ihgnn_cli.training.loading import load_data, store_for
from ihgnn_cli.training.needs import require_room, step_elements
from ihgnn_cli.training.provenance import provenance
from ihgnn_cli.training.snapshots import (
    FOLDER,
    Weights,
    joined,
    missing_snapshot,
    read_snapshot,
    snapshot_epochs,
    write_snapshot,
)
from ihgnn_cli.training.stack import Member, predict

# On small data an epoch takes milliseconds, and saving takes as long as the epoch. So finished
# epochs are saved within this many seconds.
_SAVE_SECONDS = 1.0

CHOSEN_BY = "validation accuracy, then validation loss, then the earlier epoch"
Watch = Callable[[Epoch, Epoch | None], None]
"""Called with each epoch and the best epoch so far; `None` if no epoch is chosen."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A training that is ready to start: the data is loaded, and all settings are resolved."""

    config: RunConfig
    """With the resolved device."""
    dataset: GraphDataset
    card: ModelCard
    device: torch.device

    @property
    def split(self) -> Split:
        """Which graphs train, validate and test."""
        return self.card.split


@dataclass(frozen=True)
class Outcome:
    """The outcome of a finished training."""

    best: Epoch
    """Chosen on validation, or the last epoch if all graphs train or snapshots are averaged. Of an
    ensemble, the means over its models, and the validation of their mean prediction."""
    epochs: int
    """Number of epochs that were run."""
    stopped: str
    """`epochs` (all were run) or `patience`."""
    test: Metrics | None
    """Metrics of the best epoch's model on the test graphs; `None` if all graphs train."""
    seconds: float
    """Time for training and evaluation, summed over all parts of an interrupted run."""
    history: tuple[Epoch, ...]
    """Of an ensemble, the means over its models."""
    members_test: tuple[float, ...]
    """Test accuracy of each member of an ensemble; empty if there is one model."""
    result: dict[str, Any]
    """All of this with its provenance, as stored in `result.json`."""


def prepare(
    config: RunConfig,
    *,
    folder: Path | None = None,
    dataset: GraphDataset | None = None,
    split: Split | None = None,
    where: Access = DEFAULT,
) -> Prepared:
    """Load the data and resolve the settings that depend on the machine.

    An existing run uses the split in its folder, unless all graphs train. A data set passed as an
    argument replaces the one that the configuration names, and so does a split.

    Raises:
        InputError: data, split, features or device are not available, or patience is given and
            all graphs train.
        NoRoomError: the model does not fit in memory.
    """
    if config.data.final and config.training.patience:
        raise SettingError(
            "patience", "must be 0 if all graphs train: none are left for validation."
        )
    device = resolve_device(config.training.device)
    config, dataset = load_data(config, where, dataset=dataset)
    text = config.data.split
    if folder is not None and not config.data.final:
        text = str(folder / folders.SPLITS)
    require_room(config, dataset, device, ensemble=config.training.ensemble)
    if split is None:
        split = load_split(text, dataset, config.training.seed)
    elif not config.data.final:  # as if it came from the file that the run's folder will have
        origin = config.data.split_from or config.data.split
        config = replace(config, data=replace(config.data, split=folders.SPLITS, split_from=origin))
    config = config.with_epochs(len(split.train))
    config = replace(config, training=replace(config.training, device=str(device)))
    data = config.data
    card = describe(data.dataset, dataset, data.features, split, data.inputs)
    return Prepared(config, dataset, card, device)


def start(prepared: Prepared, folder: Path) -> Prepared:
    """Create the run's folder; returns the training as the folder describes it.

    Raises:
        InputError: the folder is in use.
        IhgnnError: the folder cannot be created.
    """
    config = prepared.config
    in_folder = config.data.split == folders.SPLITS and config.data.split_from
    if not is_drawn(config.data.split) and not in_folder:
        data = replace(config.data, split=folders.SPLITS, split_from=config.data.split)
        config = replace(config, data=data)
    folders.make(config, prepared.split, folder)
    return replace(prepared, config=config)


def start_numbered(prepared: Prepared, parent: Path, name: str) -> tuple[Prepared, Path]:
    """Like `start`, in `parent/name-1` or the first free number."""
    while True:
        folder = folders.free_folder(parent, name)
        try:
            return start(prepared, folder), folder
        except InputError:
            if not folder.exists():
                raise  # the cause is not another process that took the name


def fit(
    prepared: Prepared,
    folder: Path,
    watch: Watch = lambda _epoch, _best: None,
    *,
    command: str = "",
) -> Outcome:
    """Train in a run's folder from its current state to the end, then evaluate on test once.

    If all graphs train, the last epoch is kept and nothing is evaluated.

    Raises:
        IhgnnError: the training diverged, memory or disk are full, or the folder belongs to other
            data.
    """
    try:
        with locked(folder):
            remove_parts(folder)  # left by a process that was killed while writing
            session = _Session(prepared, folder)
            with computing(step_elements(prepared.config, session.store, prepared.split.train)):
                return session.run(watch, command)
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not is_full_memory(error):
            raise
        raise _out_of_memory(prepared) from error


class _Session:
    """One process's part of a run: from the current state to the end, or until it is killed."""

    def __init__(self, prepared: Prepared, folder: Path) -> None:
        self.prepared = prepared
        self.folder = folder
        self.started = time.monotonic()
        config, split = prepared.config, prepared.split
        self.store = store_for(config, prepared.dataset, prepared.card.max_nodes, prepared.device)
        training = config.training
        members = [
            Member(seed, training.lr, split.train, split.validation) for seed in training.seeds
        ]
        self.snapshots = snapshot_epochs(training.epochs, training.snapshots)
        self.cohort = new_cohort(
            config,
            prepared.card.inputs,
            self.store,
            members,
            keep_weights=not self.snapshots,
            places_seed=training.seed,
        )
        self.stack = self.cohort.stack
        self.courses = self.cohort.courses
        self.saved_best: list[Epoch | None] = []
        self.seconds_before = 0.0
        if (folder / folders.LAST).is_file():
            self._go_on(_last_of(folder))

    def run(self, watch: Watch, command: str) -> Outcome:
        training = self.prepared.config.training
        folders.settle(self.prepared.config, self.folder)
        history = self._history()
        folders.write_metrics(history, self.folder)
        self._save()
        saved = time.monotonic()
        while not self.cohort.finished:
            self.cohort.advance()
            self._refuse_divergence()
            if self.stack.epoch in self.snapshots:
                self.stack.refresh_statistics()
                write_snapshot(self.stack.model.state_dict(), self.folder, self.stack.epoch)
            epoch = mean_epoch([course.history[-1] for course in self.courses])
            history.append(epoch)
            folders.append_metrics(epoch, self.folder)
            if time.monotonic() - saved >= _SAVE_SECONDS:
                self._save()
                saved = time.monotonic()
            watch(epoch, self._best())
        self._save()
        parts = self._kept()
        if self.snapshots:
            members = self._checkpoint(joined(parts), history[-1], {})
            save_checkpoint(members, self.folder / folders.BEST)
        test, members_test = self._measured(parts, self.prepared.split.test)
        best = self._best() or history[-1]
        if training.members > 1:
            found, _ = self._measured(parts, self.prepared.split.validation)
            if found is not None:
                best = replace(
                    best, validation_accuracy=found.accuracy, validation_loss=found.log_loss
                )
        outcome = Outcome(
            best=best,
            epochs=len(history),
            stopped="epochs" if len(history) >= training.epochs else "patience",
            test=test,
            seconds=self._seconds(),
            history=tuple(history),
            members_test=members_test,
            result={},
        )
        result = folders.write_result(_result(self.prepared, outcome, command), self.folder)
        shutil.rmtree(self.folder / FOLDER, ignore_errors=True)
        return replace(outcome, result=result)

    def _history(self) -> list[Epoch]:
        epochs = zip(*(course.history for course in self.courses), strict=True)
        return [mean_epoch(each) for each in epochs]

    def _best(self) -> Epoch | None:
        """The best epochs of all models as one; `None` before any, or if snapshots are averaged."""
        if self.snapshots:
            return None
        found = [course.best for course in self.courses if course.best is not None]
        return mean_epoch(found) if len(found) == len(self.courses) else None

    def _kept(self) -> list[Weights]:
        """The weights of the finished models, as stacks of one size."""
        if self.snapshots:
            return [read_snapshot(self.folder, epoch) for epoch in self.snapshots]
        return [joined([course.best_weights for course in self.courses])]

    def _measured(
        self, parts: Sequence[Weights], graphs: Positions
    ) -> tuple[Metrics | None, tuple[float, ...]]:
        """Metrics of the finished models' mean prediction, and the accuracy of each model."""
        if not len(graphs):
            return None, ()
        logits = []
        for weights in parts:
            self.stack.model.load_state_dict(weights)
            logits.append(predict(self.stack.model, self.store, graphs))
        found, truth = np.concatenate(logits), self.prepared.dataset.graph_class[graphs]
        alone = (found.argmax(-1) == truth).mean(-1).tolist()
        metrics = measure(mean_probabilities(found), truth)
        return metrics, tuple(alone) if len(alone) > 1 else ()

    def _refuse_divergence(self) -> None:
        epoch = next((each.diverged for each in self.courses if each.diverged is not None), None)
        if epoch is None:
            return
        kept, best = "", self._best()
        if best is not None:
            self._save_best()
            kept = f" The best model so far (epoch {best.epoch}) is {self.folder / folders.BEST}."
        raise IhgnnError(
            f"The loss of epoch {epoch.epoch} is not a finite number: training has diverged at lr "
            f"{self.prepared.config.training.lr:g}. Use a smaller --lr or fewer --layers, or check "
            f"the node attributes for huge values.{kept}"
        )

    def _save(self) -> None:
        self._save_best()
        state = self.cohort.state()
        weights = state["stack"].pop("model")
        progress = {**state, "seconds": self._seconds()}
        history = self.courses[0].history
        last = self._checkpoint(weights, history[-1] if history else None, progress)
        save_checkpoint(last, self.folder / folders.LAST)

    def _save_best(self) -> None:
        best, each = self._best(), [course.best for course in self.courses]
        if best is not None and each != self.saved_best:
            checkpoint = self._checkpoint(self._kept()[0], best, {})
            save_checkpoint(checkpoint, self.folder / folders.BEST)
            self.saved_best = each

    def _checkpoint(
        self, weights: dict[str, torch.Tensor], epoch: Epoch | None, progress: dict[str, Any]
    ) -> Checkpoint:
        config, card = self.prepared.config, self.prepared.card
        if epoch is not None:
            training, data = config.training, config.data
            split = data.split_from or data.split
            chosen = not progress and not data.final and not self.snapshots
            count = 0 if progress else len(self.snapshots)
            snapshot = Snapshot(epoch.epoch, chosen, training.seeds, split, count)
            card = replace(card, snapshot=snapshot)
        members = len(next(iter(weights.values())))
        return Checkpoint(config, card, weights, members, epoch, progress)

    def _go_on(self, last: Checkpoint) -> None:
        """Resume from the last saved state."""
        prepared = self.prepared
        if last.card.fingerprint != prepared.card.fingerprint:
            raise InputError(
                f"{prepared.dataset.name} is not the data that {self.folder} was trained on. "
                "Restore that data, or start a new run."
            )
        changed = _continued(last.config) != _continued(prepared.config)
        if changed or last.card.split.digest != prepared.split.digest:
            raise InputError(
                f"{folders.CONFIG} or {folders.SPLITS} in {self.folder} were changed after the "
                "run had started. Restore them, or start a new run."
            )
        progress = last.progress
        try:
            stack = {**progress["stack"], "model": last.weights}
            self.cohort.restore({**progress, "stack": stack})
            self.seconds_before = float(progress["seconds"])
        except (KeyError, TypeError, ValueError, IndexError, RuntimeError) as error:
            raise InputError(
                f"{self.folder / folders.LAST} is damaged ({type(error).__name__}: {error}). "
                "Start a new run."
            ) from error
        done = [epoch for epoch in self.snapshots if epoch <= self.stack.epoch]
        missing = missing_snapshot(self.folder, done)
        if missing is not None:
            raise InputError(f"{missing} is missing. Start a new run.")

    def _seconds(self) -> float:
        return self.seconds_before + time.monotonic() - self.started


def last_epoch(folder: Path) -> int:
    """The epoch that a run continues after; 0 if it starts with the first.

    Raises:
        InputError: the saved state is damaged.
    """
    if not (folder / folders.LAST).is_file():
        return 0
    epoch = _last_of(folder).epoch
    return 0 if epoch is None else epoch.epoch


def _last_of(folder: Path) -> Checkpoint:
    try:
        return load_checkpoint(folder / folders.LAST)
    except InputError as error:
        raise InputError(
            f"Cannot resume from {folder / folders.LAST}: it is damaged. Remove it, and "
            f"'ihgnn train --resume {folder}' starts again with the first epoch."
        ) from error


def _continued(config: RunConfig) -> RunConfig:
    """The configuration without the settings that may change when a run is resumed."""
    free = replace(config.training, epochs=1, patience=0, device="")
    return replace(config, training=free)


def _chosen_by(config: RunConfig) -> str:
    snapshots = config.training.snapshots
    if snapshots > 1:
        return "nothing: snapshots are averaged"
    return "nothing: the last epoch" if config.data.final or snapshots else CHOSEN_BY


def _result(prepared: Prepared, outcome: Outcome, command: str) -> dict[str, Any]:
    return {
        "dataset": prepared.dataset.name,
        "best_epoch": outcome.best.epoch,
        "chosen_by": _chosen_by(prepared.config),
        "epochs": outcome.epochs,
        "stopped": outcome.stopped,
        "train": {"graphs": len(prepared.split.train)},
        "validation": {
            "graphs": len(prepared.split.validation),
            "accuracy": outcome.best.validation_accuracy,
            "loss": outcome.best.validation_loss,
        },
        "test": None if outcome.test is None else asdict(outcome.test),
        "seeds": list(prepared.config.training.seeds),
        "snapshots": list(snapshot_epochs(outcome.epochs, prepared.config.training.snapshots)),
        "members_test": list(outcome.members_test),
        "split": prepared.config.data.split_from or prepared.config.data.split,
        "config": prepared.config.as_plain(),
        "seconds": outcome.seconds,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "provenance": provenance(prepared.card, prepared.device, command),
    }


def _out_of_memory(prepared: Prepared) -> IhgnnError:
    training = prepared.config.training
    place = "The GPU" if prepared.device.type == "cuda" else "This machine"
    return IhgnnError(
        f"{place} does not have enough memory for batches of {training.batch_size} graphs of "
        f"{prepared.dataset.name}. Use a smaller --batch-size, --width or --hidden."
    )
