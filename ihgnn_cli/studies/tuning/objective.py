"""The objective of a search: trains one trial, and reports its validation accuracy.

A trial trains alone; its inner folds, if there are several, are one stack. Test graphs are not
used.
"""

import time
from collections.abc import Sequence
from fractions import Fraction
from statistics import fmean

import numpy as np
import optuna
import torch

from ihgnn_cli.data.batching.batches import GraphStore
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.studies.tuning.search import Search
from ihgnn_cli.studies.tuning.trials import FAILURE, Outcome, set_outcome, suggested
from ihgnn_cli.training.cohort import Cohort, new_cohort
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.course import Course
from ihgnn_cli.training.devices import computing, is_full_memory
from ihgnn_cli.training.loading import store_for
from ihgnn_cli.training.snapshots import snapshot_epochs
from ihgnn_cli.training.stack import Member

OUT_OF_MEMORY = "out of memory"
DIVERGED = "the loss was not finite in the first epoch"
DIVERGED_LATER = "the loss was not finite, and snapshots of all epochs are averaged"
_LEAST = 1e-12  # probability in a loss


class CannotTrainError(IhgnnError):
    """The settings of a trial cannot be trained; the search goes on."""


class Objective:
    """Trains trials on one device.

    Args:
        search: the data, the splits, the space and the reporting interval.
        device: the device of the worker.
    """

    def __init__(self, search: Search, device: torch.device) -> None:
        self.search = search
        self.device = device
        self.model_epochs = 0
        """Trained so far."""
        self.is_done = False
        """Whether the last trial was trained to its end."""
        self._stores: dict[int | None, GraphStore] = {}

    def __call__(self, trial: optuna.Trial) -> float:
        """Train a trial and return its validation accuracy.

        Raises:
            CannotTrainError: its settings cannot be trained.
            optuna.TrialPruned: it was stopped early.
        """
        self.is_done = False
        try:
            config = self.search.config.with_values(suggested(trial, self.search.space.parts))
            outcome, pruned = self._train(config, trial)
        except (InputError, CannotTrainError) as error:  # as width and heads that do not fit
            reason = str(error)
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not is_full_memory(error):
                raise
            self._stores.clear()
            reason = OUT_OF_MEMORY
        else:
            set_outcome(trial, outcome)
            self.is_done = True
            if pruned:
                raise optuna.TrialPruned
            return outcome.accuracy
        torch.cuda.empty_cache()  # outside of the except block: the exception holds what filled it
        trial.set_user_attr(FAILURE, reason)
        raise CannotTrainError(reason)

    def _train(self, config: RunConfig, trial: optuna.Trial) -> tuple[Outcome, bool]:
        """Train a model on each inner split; returns the result, and if it was stopped early."""
        began, search, epoch, pruned = time.perf_counter(), self.search, 0, False
        cohort = self._cohort(config)
        sums = [torch.zeros(())] * len(search.inner)
        averaged = snapshot_epochs(config.training.epochs, config.training.snapshots)
        validation = [split.validation for split in search.inner]
        # An interrupted trial is trained from the beginning and has reported before.
        reported = trial.study.get_trials(deepcopy=False)[trial.number].last_step or 0
        with computing(0):  # one thread: a worker has one core
            while not cohort.finished and not pruned:
                cohort.advance()
                epoch += 1
                if epoch in averaged:
                    cohort.add_snapshot(sums, cohort.stack.store, validation)
                if epoch % search.interval == 0 and epoch > reported:
                    pruned = _report(trial, epoch, cohort.courses)
        self.model_epochs += sum(len(course.history) for course in cohort.courses)
        is_average = bool(averaged) and not pruned
        loss, epochs, right = (self._averaged if is_average else self._best)(cohort.courses, sums)
        shares = [Fraction(each, len(of)) for each, of in zip(right, validation, strict=True)]
        return (
            Outcome(
                loss=loss,
                best_epochs=epochs,
                model_epochs=sum(len(course.history) for course in cohort.courses),
                seconds=round(time.perf_counter() - began, 3),
                accuracy=float(sum(shares) / len(shares)),
            ),
            pruned,
        )

    def _cohort(self, config: RunConfig) -> Cohort:
        """Untrained models, one per inner split."""
        training = config.training
        members = [
            Member(training.seed, training.lr, split.train, split.validation, config.model.dropout)
            for split in self.search.inner
        ]
        inputs = inputs_of(self.search.dataset, config.data.features, config.data.inputs)
        store = self._store(config)
        return new_cohort(
            config, inputs, store, members, keep_weights=False, places_seed=training.seed
        )

    def _store(self, config: RunConfig) -> GraphStore:
        """The graphs for models with this number of rounds; keeps one store at a time."""
        rounds = config.spec.rounds(config.model)
        if rounds not in self._stores:
            self._stores.clear()  # frees memory for the next one
            data = self.search.dataset
            self._stores[rounds] = store_for(config, data, data.max_nodes, self.device)
        return self._stores[rounds]

    def _best(
        self, courses: Sequence[Course], _sums: Sequence[torch.Tensor]
    ) -> tuple[float, tuple[int, ...], list[int]]:
        """Loss, epochs and correct validation graphs of the best epochs, by split."""
        best = [course.best for course in courses if course.best is not None]
        if len(best) < len(courses):
            raise CannotTrainError(DIVERGED)
        right = [
            round(each.validation_accuracy * len(split.validation))
            for each, split in zip(best, self.search.inner, strict=True)
        ]
        loss = fmean(each.validation_loss for each in best)
        return loss, tuple(each.epoch for each in best), right

    def _averaged(
        self, courses: Sequence[Course], sums: Sequence[torch.Tensor]
    ) -> tuple[float, tuple[int, ...], list[int]]:
        """Loss, last epochs and correct validation graphs of the mean predictions, by split."""
        if any(course.diverged is not None for course in courses):
            raise CannotTrainError(DIVERGED_LATER)
        losses, right = [], []
        for total, split in zip(sums, self.search.inner, strict=True):
            likely = (total / total.sum(dim=1, keepdim=True)).numpy()
            true = self.search.dataset.graph_class[split.validation]
            own = likely[np.arange(len(true)), true]
            losses.append(float(-np.log(np.maximum(own, _LEAST)).mean()))
            right.append(int((likely.argmax(axis=1) == true).sum()))
        return fmean(losses), tuple(len(course.history) for course in courses), right


def _report(trial: optuna.Trial, epoch: int, courses: Sequence[Course]) -> bool:
    """Report the accuracy of the best epochs so far; returns whether to stop the trial."""
    best = [course.best for course in courses if course.best is not None]
    if len(best) < len(courses):
        return False
    trial.report(fmean(each.validation_accuracy for each in best), epoch)
    return trial.should_prune()
