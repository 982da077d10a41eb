"""Exported files that several tests read; an export takes seconds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import pytest
from tiny_models import ALL, AUTHORS, SMALL, dataset, untrained

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.deploy.export import Export, export_onnx
from ihgnn_cli.deploy.verification import reference_of
from ihgnn_cli.models.card import Snapshot
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.models.spec import Layout
from ihgnn_cli.training.checkpoint import Checkpoint


@dataclass(frozen=True)
class Exported:
    """A checkpoint and its file."""

    checkpoint: Checkpoint
    done: Export
    data: GraphDataset


def one_model() -> Checkpoint:
    """One model of labels."""
    return untrained(dataset(*ALL), replace(SMALL, layers=1))


def three_models() -> Checkpoint:
    """Three models that read labels and attributes and do most things the other way."""
    settings = replace(SMALL, layers=1, variant=Variant.NO_ADAPTIVE, **AUTHORS)
    checkpoint = untrained(dataset(*ALL), settings, Features.BOTH, members=3)
    snapshot = Snapshot(1, True, (0, 1, 2), "/home/me/splits.json:0")
    card = replace(checkpoint.card, dataset="/home/me/tiny.jsonl", snapshot=snapshot)
    return replace(checkpoint, card=card)


@pytest.fixture(scope="session")
def exported_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, Layout], Exported]:
    """The export of one model or of three in a layout, verified; made once."""

    @cache
    def made(members: int, layout: Layout) -> Exported:
        checkpoint = one_model() if members == 1 else three_models()
        path = tmp_path_factory.mktemp("exported") / "model.onnx"
        done = export_onnx(reference_of(checkpoint), path, layout, graphs=dataset(*ALL[:5]))
        return Exported(checkpoint, done, dataset(*ALL))

    return made


@pytest.fixture(params=[(1, "padded"), (3, "padded"), (1, "sparse"), (3, "sparse")], ids=str)
def exported(request: pytest.FixtureRequest, exported_file) -> Exported:
    members, layout = request.param
    return exported_file(members, Layout(layout))
