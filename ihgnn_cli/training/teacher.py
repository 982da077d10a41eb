"""The teacher of a distillation: an ensemble whose probabilities a single model learns.

The run folder of the student keeps what the teacher said about its graphs, so that a run is resumed
without the teacher. Its answers for test graphs are for the report alone.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits.split import Split
from ihgnn_cli.errors import InputError
from ihgnn_cli.files import write_json
from ihgnn_cli.inference.vocabulary import encode_dataset
from ihgnn_cli.training.checkpoint import Checkpoint, load_checkpoint
from ihgnn_cli.training.classifier import TorchClassifier
from ihgnn_cli.training.folder import TEACHER


@dataclass(frozen=True)
class Taught:
    """A student and its teacher on the test graphs."""

    checkpoint: str
    """The teacher's."""
    members: int
    """Of the teacher."""
    teacher_accuracy: float | None
    """`None` if there are no test graphs."""
    agreement: float | None
    """Share of test graphs for which both predict the same class."""


@dataclass(frozen=True, eq=False)
class Teacher:
    """What an ensemble says about the graphs of a split."""

    checkpoint: str
    members: int
    train: NDArray[np.float64]
    """[len(split.train), C] probabilities."""
    test: NDArray[np.float64]
    """[len(split.test), C]"""

    def targets(
        self, truth: NDArray[np.integer], split: Split, label_share: float
    ) -> NDArray[np.float32]:
        """[G, C] the target of each graph; 0 for graphs that do not train.

        Args:
            truth: [G] the class of each graph.
            split: which graphs train.
            label_share: the share of the true class in the target.
        """
        classes = self.train.shape[1]
        targets = np.zeros((len(truth), classes), dtype=np.float32)
        labels = np.eye(classes)[truth[split.train]]
        targets[split.train] = (1 - label_share) * self.train + label_share * labels
        return targets

    def beside(self, student: NDArray[np.float64] | None, truth: NDArray[np.integer]) -> Taught:
        """The teacher beside its student, whose probabilities [G, C] are of the test graphs."""
        own, accuracy, agreement = self.test.argmax(axis=1), None, None
        if student is not None:
            accuracy = float(np.mean(own == truth))
            agreement = float(np.mean(own == student.argmax(axis=1)))
        return Taught(self.checkpoint, self.members, accuracy, agreement)


def ask_teacher(path: Path, dataset: GraphDataset, split: Split, device: torch.device) -> Teacher:
    """The probabilities of an ensemble for the graphs that a student trains on.

    Raises:
        InputError: the checkpoint cannot be read, has one member, or belongs to other data or to
            another split.
    """
    checkpoint = load_checkpoint(path)
    refuse_single(checkpoint, path)
    card = checkpoint.card
    if (card.fingerprint, card.split.digest) != (dataset.fingerprint, split.digest):
        raise InputError(
            f"{path} was trained on other graphs than this run would be (the data has changed, or "
            "the split is another), so it may know the test graphs. Distill it on its own data."
        )
    classifier, encoded = TorchClassifier(checkpoint, device), encode_dataset(card, dataset).dataset
    train, test = (
        classifier.probabilities(encoded, part)
        if len(part)
        else np.empty((0, len(card.class_values)))
        for part in (split.train, split.test)
    )
    return Teacher(str(path), checkpoint.members, train, test)


def refuse_single(checkpoint: Checkpoint, path: Path) -> None:
    """Check that a checkpoint has several members.

    Raises:
        InputError: it has one.
    """
    if checkpoint.members == 1:
        raise InputError(
            f"{path} holds a single model, so there is no ensemble to distill. Give a checkpoint "
            "that was trained with --recipe robust, --ensemble N or --snapshots N."
        )


def write_teacher(teacher: Teacher, folder: Path) -> None:
    """Keep the answers in a run's folder, unless they are there."""
    path = folder / TEACHER
    if not path.is_file():
        plain: dict[str, Any] = {**vars(teacher)}
        plain |= {name: plain[name].tolist() for name in ("train", "test")}
        write_json(path, plain)


def read_teacher(folder: Path, split: Split) -> Teacher | None:
    """The answers in a run's folder; `None` if it has none.

    Raises:
        InputError: the file is damaged.
    """
    path = folder / TEACHER
    if not path.is_file():
        return None
    try:
        plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        train, test = (np.array(plain[name], dtype=np.float64) for name in ("train", "test"))
        found = Teacher(str(plain["checkpoint"]), int(plain["members"]), train, test)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged. Distill again into another --out.") from error
    if (len(train), len(test), train.ndim) != (len(split.train), len(split.test), 2):
        raise InputError(f"{path} has other graphs than the run. Distill again.")
    return found
