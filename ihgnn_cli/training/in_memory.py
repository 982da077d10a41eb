"""Training without a folder, on all graphs of a data set or with some held out for validation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits import Split, random_bits, stratified
from ihgnn_cli.errors import IhgnnError, InputError, SettingError
from ihgnn_cli.models.card import Snapshot, describe
from ihgnn_cli.settings import checked
from ihgnn_cli.training.checkpoint import Checkpoint
from ihgnn_cli.training.cohort import new_cohort
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.devices import computing, resolve_device
from ihgnn_cli.training.epoch import Epoch, mean_epoch
from ihgnn_cli.training.loading import load_data, store_for
from ihgnn_cli.training.needs import require_room, step_elements
from ihgnn_cli.training.snapshots import Weights, joined, snapshot_epochs
from ihgnn_cli.training.stack import Member

_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained model and its history."""

    checkpoint: Checkpoint
    """From the best epoch on validation, or from the last epoch if there is no validation."""
    history: tuple[Epoch, ...]
    """Validation loss and accuracy are NaN if there is no validation."""


def fit_in_memory(
    config: RunConfig, dataset: GraphDataset, validation_fraction: float = 0.0
) -> Fitted:
    """Train on a data set without writing to disk.

    Args:
        config: the configuration; its split is ignored.
        dataset: graphs of at least two classes.
        validation_fraction: stratified share of the graphs that choose the epoch; with 0 all
            graphs are used for training, and the last epoch is kept.

    Raises:
        InputError: the settings or the data are not valid.
        IhgnnError: the training has diverged.
    """
    if config.training.patience and not validation_fraction:
        raise InputError("patience needs graphs to validate: set validation_fraction, say 0.1.")
    device = resolve_device(config.training.device)
    config, dataset = load_data(config, dataset=dataset)
    require_room(config, dataset, device, ensemble=config.training.ensemble)
    seed = config.training.seed
    train, validation = _parts(dataset, validation_fraction, seed)
    config = config.with_epochs(len(train))
    split = Split(train, validation, _NONE, may_be_empty=True)
    card = describe("", dataset, config.data.features, split, config.data.inputs)
    store = store_for(config, dataset, card.max_nodes, device)
    training = config.training
    members = [Member(each, training.lr, train, validation) for each in training.seeds]
    kept_epochs = snapshot_epochs(training.epochs, training.snapshots)
    cohort = new_cohort(
        config,
        card.inputs,
        store,
        members,
        keep_weights=not kept_epochs,
        places_seed=training.seed,
    )
    snapshots: list[Weights] = []
    with computing(step_elements(config, store, train)):
        while not cohort.finished:
            cohort.advance()
            for course in cohort.courses:
                _refuse_divergence(course.diverged, config)
            if cohort.stack.epoch in kept_epochs:
                cohort.stack.refresh_statistics()
                snapshots.append(_copied(cohort.stack.model.state_dict()))
    history = [
        mean_epoch(each) for each in zip(*(it.history for it in cohort.courses), strict=True)
    ]
    best = [course.best or course.history[-1] for course in cohort.courses]
    at = history[-1] if snapshots else mean_epoch(best)
    split_text = f"{len(train)} to train, {len(validation)} to validate"
    chosen = bool(len(validation)) and not snapshots
    snapshot = Snapshot(at.epoch, chosen, training.seeds, split_text, len(snapshots))
    kept = joined(snapshots or [_copied(course.best_weights) for course in cohort.courses])
    count = len(next(iter(kept.values())))
    checkpoint = Checkpoint(config, replace(card, snapshot=snapshot), kept, count, at)
    return Fitted(checkpoint, tuple(history))


def _copied(weights: Mapping[str, Tensor]) -> Weights:
    return {name: each.detach().cpu().clone() for name, each in weights.items()}


def _parts(
    dataset: GraphDataset, fraction: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    graphs = len(dataset)
    fraction = checked("validation_fraction", fraction, float)
    if not 0 <= fraction < 1:
        problem = f"must be at least 0 and below 1, not {fraction:g}."
        raise SettingError("validation_fraction", problem)
    if not fraction:
        return np.arange(graphs), _NONE
    size = max(1, round(fraction * graphs))
    if size >= graphs:
        raise InputError(
            f"validation_fraction {fraction:g} leaves none of {graphs} graphs to train on."
        )
    train, validation = stratified(dataset.graph_class, (graphs - size, size), random_bits(seed))
    return train, validation


def _refuse_divergence(epoch: Epoch | None, config: RunConfig) -> None:
    if epoch is not None:
        raise IhgnnError(
            f"The loss of epoch {epoch.epoch} is not a finite number: training has diverged at lr "
            f"{config.training.lr:g}. Use a smaller lr or fewer layers, or check the node "
            "attributes for huge values."
        )
