"""References: classifiers without a network, on the folds of a cross-validation.

A network that does not beat them has not learned anything that needs a network. They read node
labels and edges (one of them edge attributes, if there are any), learn from all graphs outside the
test part, and nothing is chosen on test graphs.
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits import Fold
from ihgnn_cli.files import written_whole
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.studies.fold_scores import Probabilities, Scores, fold_scores
from ihgnn_cli.studies.folds import of_repeat, repeat_seed
from ihgnn_cli.studies.signal.features import GraphFeatures

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

FILE = "references.json"
MAJORITY = "majority class"
"""The title of the reference that predicts the majority class."""
MAJORITY_KEY = "majority"
ON_ATTRIBUTES = "forest-edges"
"""The key of the reference that reads edge attributes."""
TREES = 300
PENALTY = 0.1
"""C of logistic regression."""
_PARALLEL = 1000  # graphs from which several cores build a forest faster than one
_ROUNDING = 0.005  # folds of slightly different sizes
_FORMAT = 3  # increased when the same folds would give other numbers

Report = Callable[[int, int, str], None]
"""Receives the fits done, their number, and the current one."""


@dataclass(frozen=True)
class Reference:
    """A classifier without a network, tested on every fold."""

    key: str
    title: str
    scores: Scores
    predictions: tuple[tuple[int, ...], ...]
    """The class of each test graph, by fold, as a position in the data set's classes."""

    @classmethod
    def parsed(cls, stored: Mapping[str, Any]) -> "Reference":
        """A reference from its plain values in `references.json`."""
        predictions = tuple(map(tuple, stored["predictions"]))
        scores = Scores.parsed(stored["scores"])
        return cls(stored["key"], stored["title"], scores, predictions)


def references(
    features: GraphFeatures,
    folds: Sequence[Fold],
    seed: int,
    report: Report = lambda _done, _total, _text: None,
) -> tuple[Reference, ...]:
    """Fit and test all references on the same folds.

    Args:
        features: of the graphs.
        folds: their test parts.
        seed: of the forests, and of the SVM's inner folds.
        report: receives the progress.
    """
    from threadpoolctl import threadpool_limits

    truth, classifiers = features.dataset.graph_class, _classifiers(features, seed)
    total, found = len(classifiers) * len(folds), []
    with warnings.catch_warnings(), threadpool_limits(limits=1):  # the matrices are small
        warnings.simplefilter("ignore")  # rare classes, a fit that stops after 1,000 iterations
        for number, (key, (title, matrix, model)) in enumerate(classifiers.items()):
            tested = []
            # scikit-learn's cross_val_predict refuses the first few folds of a file.
            for at, fold in enumerate(folds):
                report(number * len(folds) + at, total, title)
                tested.append(_tested(features.dataset, matrix, model, fold))
            scores = fold_scores(tested, [truth[fold.test] for fold in folds])
            predictions = tuple(tuple(each.argmax(axis=1).tolist()) for each in tested)
            found.append(Reference(key, title, scores, predictions))
    report(total, total, title)
    return tuple(found)


def _classifiers(features: GraphFeatures, seed: int) -> dict[str, tuple[str, Any, "BaseEstimator"]]:
    """The title, the features and the model of each reference."""
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from ihgnn_cli.studies.signal.kernel_svm import KernelSVM

    majority = DummyClassifier(strategy="prior")
    jobs = -1 if len(features.dataset) > _PARALLEL else 1
    forest = RandomForestClassifier(TREES, random_state=seed % 2**32, n_jobs=jobs)
    logistic = LogisticRegression(C=PENALTY, max_iter=1000)
    scaled = make_pipeline(StandardScaler(), logistic)
    common = features.logarithms.shape[1] > 0  # whether a colour occurs in two graphs
    found = {
        MAJORITY_KEY: (MAJORITY, features.histograms, majority),
        "forest": ("random forest, histograms", features.histograms, forest),
        "logistic": ("logistic regression, histograms", features.histograms, scaled),
        "logistic-wl": (
            "logistic regression, 1-WL counts",
            features.logarithms if common else features.histograms,
            logistic if common else majority,
        ),
        "svm-wl": ("SVM, 1-WL kernel", features.counts, KernelSVM(features.rounds, seed)),
    }
    if features.edge_attributes is not None:
        found[ON_ATTRIBUTES] = ("random forest, edge attributes", features.edge_attributes, forest)
    return found


def _tested(
    dataset: GraphDataset, matrix: Any, model: "BaseEstimator", fold: Fold
) -> Probabilities:
    """The probabilities of a fold's test graphs, with one column for every class of the data."""
    train = np.setdiff1d(np.arange(len(dataset)), fold.test)
    known = np.unique(dataset.graph_class[train])
    found = np.zeros((len(fold.test), len(dataset.class_values)))
    if len(known) == 1:  # which several models refuse
        found[:, known] = 1
    else:
        fitted: Any = model.fit(matrix[train], dataset.graph_class[train])
        found[:, known] = fitted.predict_proba(matrix[fold.test])
    return found


def below_majority_share(majority: float, share: float) -> str | None:
    """A note on the reference "majority class", if its accuracy is below the class's share."""
    if majority >= share - _ROUNDING:
        return None
    return (
        f"The majority class has {100 * share:.1f} % of all graphs. The reference predicts the "
        "majority class of the training graphs, which can be the rarer class in the test part."
    )


def best_reference(found: Sequence[Reference], dataset: GraphDataset) -> Reference:
    """The reference with the highest accuracy, the first of equals, that reads what networks read.

    They read edge attributes only in bins.
    """
    fair = [each for each in found if each.key != ON_ATTRIBUTES or dataset.edge_bins is not None]
    return max(fair, key=lambda each: each.scores.accuracy)


def left_out_note(dataset: GraphDataset) -> str | None:
    """A note on the reference that cannot be the best one, if there is one."""
    if dataset.edge_attributes is None or dataset.edge_bins is not None:
        return None
    why = "a network reads edge attributes only with --edge-bins"
    if dataset.edge_attributes.shape[1] > 1:
        why = "networks do not read several edge attributes"
    elif np.ptp(dataset.edge_attributes) == 0:
        why = "all edges have the same attribute"
    return f"Random forest, edge attributes: does not count as the best reference, because {why}."


def stored_references(
    path: Path,
    dataset: GraphDataset,
    folds: Sequence[Fold],
    seed: int,
    report: Report = lambda _done, _total, _text: None,
) -> tuple[Reference, ...]:
    """The references of these folds from a file; if it has others, compute and write them."""
    tests = json.dumps([fold.test.tolist() for fold in folds])
    identity = {
        "format": _FORMAT,
        "data_sha256": dataset.fingerprint,
        "tests_sha256": hashlib.sha256(tests.encode()).hexdigest(),
        "seed": seed,
    }
    found = _read(path, identity)
    if found is None:
        found = references(GraphFeatures(dataset), folds, seed, report)
        content = jsonable({**identity, "references": [asdict(each) for each in found]})
        with written_whole(path) as temporary:
            temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")
    return found


def _read(path: Path, identity: dict[str, Any]) -> tuple[Reference, ...] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        listed = content.pop("references")
        if content != identity:
            return None
        return tuple(map(Reference.parsed, listed))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # missing, damaged or of another version


def repeated_references(
    folder: Path,
    dataset: GraphDataset,
    folds: Sequence[Fold],
    seed: int,
    *,
    repeats: int = 1,
    tell: Report = lambda _done, _total, _text: None,
) -> tuple[Reference, ...]:
    """The references of all partitions of a job, each kept in a file of the folder.

    A repeat's references are those of a job with its seed.
    """
    each = len(folds) // repeats
    found = []
    for repeat in range(repeats):

        def tell_of_all(done: int, total: int, text: str, before: int = repeat) -> None:
            tell(before * total + done, repeats * total, text)

        part = folds[repeat * each : (repeat + 1) * each]
        path = folder / of_repeat(FILE, repeat)
        of = stored_references(path, dataset, part, repeat_seed(seed, repeat), tell_of_all)
        found.append(of)
    return tuple(
        Reference(
            same[0].key,
            same[0].title,
            Scores.joined([part.scores for part in same]),
            tuple(fold for part in same for fold in part.predictions),
        )
        for same in zip(*found, strict=True)
    )
