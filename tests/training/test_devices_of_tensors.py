"""Training computes where it was told to, on devices that a test machine need not have."""

import numpy as np
import pytest
import torch

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.batching.batches import GraphStore
from ihgnn_cli.data.features import Features
from ihgnn_cli.models.registry import IHGNN as IHGNN_NAME
from ihgnn_cli.models.registry import model_names
from ihgnn_cli.models.settings import IHGNNSettings, Inputs, Variant
from ihgnn_cli.models.stacked import StackedIHGNN
from ihgnn_cli.training.checkpoint import build
from ihgnn_cli.training.config import configure
from ihgnn_cli.training.epoch import Epoch
from ihgnn_cli.training.kinds import ClassWeights
from ihgnn_cli.training.loss import CrossEntropy
from ihgnn_cli.training.seeds import generator
from ihgnn_cli.training.stack import Member, Stack

MUTAG = load_dataset("MUTAG")
INPUTS = Inputs(len(MUTAG.label_values), 0, 2, MUTAG.max_nodes)


def model(variant: Variant, members: int) -> StackedIHGNN:
    settings = IHGNNSettings(layers=2, width=4, hidden=8, variant=variant)
    return StackedIHGNN(
        settings, INPUTS, [generator(seed, "parameters") for seed in range(members)]
    )


@pytest.mark.parametrize("rounds", [2, None])
@pytest.mark.parametrize("variant", Variant)
def test_no_tensor_of_a_step_is_left_on_the_cpu(variant: Variant, rounds: int | None) -> None:
    """An operation on tensors of the meta device and others would raise."""
    meta = torch.device("meta")
    store = GraphStore(MUTAG, Features.LABELS, MUTAG.max_nodes, rounds, meta)
    batch = store.batch([np.arange(5), np.arange(3)])
    moved = model(variant, members=2).to(meta)
    assert moved(batch).device == meta
    moved.train()
    assert moved.train_step(batch, torch.ones(2, 5, 8, device=meta), [], CrossEntropy()).shape == (
        2,
        5,
        2,
    )
    assert all(each.grad.device == meta for each in moved.parameters())
    moved.recompute_statistics([batch])
    assert moved.input.norm.running_mean.device == meta


@pytest.mark.parametrize("settings", [{}, {"label_smoothing": 0.1, "weight_decay": 0.1}])
def test_an_epoch_reads_nothing_from_the_device_before_its_end(settings: dict[str, float]) -> None:
    """All steps of training and Adam run without values; only the epoch's losses need some."""
    meta = torch.device("meta")
    stack = Stack(
        model(Variant.FULL, 2).to(meta),
        GraphStore(MUTAG, Features.LABELS, MUTAG.max_nodes, 2, meta),
        [Member(seed, 0.001, np.arange(150), np.arange(150, 188)) for seed in range(2)],
        batch_size=32,
        dropout=0.5,
        class_weights=ClassWeights.BALANCED,
        **settings,
    )
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        stack.train_epoch()
    assert stack.state()["optimizer"]["steps"] == [5, 5]  # type: ignore[index]


# Which operations these two do depends on the values, which tensors of the meta device lack.
_BY_VALUE = ("tokengt", "dgcnn")


@pytest.mark.parametrize(
    "name", [each for each in model_names() if each not in (IHGNN_NAME, *_BY_VALUE)]
)
def test_no_tensor_of_another_models_step_is_left_on_the_cpu(name: str) -> None:
    meta, cpu = torch.device("meta"), torch.device("cpu")
    config, graphs = configure(model=name), [np.arange(5), np.arange(3)]
    here = GraphStore(MUTAG, Features.LABELS, MUTAG.max_nodes, None, cpu).batch(graphs)
    build(config, INPUTS, [0, 1])(here)  # what is derived from graphs needs their edges
    batch = GraphStore(MUTAG, Features.LABELS, MUTAG.max_nodes, None, meta).batch(graphs)
    for key, made in here.store.cache.items():
        batch.store.cache[key] = tuple(each.to(meta) for each in made)
    moved = build(config, INPUTS, [0, 1]).to(meta)
    assert moved(batch).device == meta
    moved.train()
    assert moved.train_step(batch, torch.empty(0), [0, 1], CrossEntropy()).shape == (2, 5, 2)


def trained(device: str) -> Epoch:
    place = torch.device(device)
    stack = Stack(
        model(Variant.FULL, 1).to(place),
        GraphStore(MUTAG, Features.LABELS, MUTAG.max_nodes, 2, place),
        [Member(0, 0.001, np.arange(150), np.arange(150, 188))],
        batch_size=32,
        dropout=0.5,
    )
    return stack.train_epoch()[0]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_gpu_comes_to_the_same_numbers_as_the_cpu() -> None:
    here, there = trained("cpu"), trained("cuda")
    assert there.train_loss == pytest.approx(here.train_loss, abs=1e-4)
    assert there.validation_loss == pytest.approx(here.validation_loss, abs=1e-3)
