"""What the benchmarks measure and the tests can hold: memory; and how they count."""

import os
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
GIGABYTE = 2**30


@pytest.fixture
def crossval(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return import_module("crossval")


@pytest.fixture
def export(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return import_module("export")


@pytest.fixture
def stack_costs(crossval: ModuleType) -> ModuleType:
    return import_module("_stack")


@pytest.fixture
def training(crossval: ModuleType) -> ModuleType:
    return import_module("_plain")


@pytest.mark.long
@pytest.mark.parametrize("name", ["DD", "COLLAB"])
def test_an_epoch_of_the_largest_data_sets_takes_less_than_3_gb(name: str, real_data: Path) -> None:
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "training.py", "--memory-of", name],
        env={**os.environ, "IHGNN_DATA": str(real_data)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(done.stdout.split()[1]) < 3 * GIGABYTE


@pytest.mark.long
def test_a_checkout_compared_with_itself_launches_the_same_operations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    versions = import_module("versions")
    before, now = versions.compare("MUTAG", 2, (BENCHMARKS.parent, sys.executable), runs=1)
    assert before.launches == now.launches > 100
    assert len(now.seconds) == versions.EPOCHS["MUTAG"]


def test_bundled_data_is_at_hand_and_other_data_where_the_folder_holds_it(
    training: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IHGNN_DATA", str(tmp_path))
    assert training.at_hand("MUTAG")
    assert not training.at_hand("PROTEINS")
    (tmp_path / "PROTEINS.zip").touch()
    assert training.at_hand("PROTEINS")


def test_a_stack_larger_than_the_folds_goes_over_them_again(training: ModuleType) -> None:
    task = training.load_task("MUTAG")
    members = training.stack(task, 12).members
    assert [each.seed for each in members] == list(range(12))
    assert [each.train is task.splits[0].train for each in members] == [
        fold == 0 for fold in (*range(10), 0, 1)
    ]


def test_an_epoch_of_the_plain_loop_trains_it(training: ModuleType) -> None:
    moved: list[object] = []
    hook = register_optimizer_step_post_hook(lambda optimizer, *_: moved.append(optimizer))
    try:
        training.plain(training.load_task("MUTAG"), fold=1)()
    finally:
        hook.remove()
    assert len(moved) == 5  # 152 graphs in batches of 32


def test_products_count_whether_they_make_fill_or_add_to_a_tensor(stack_costs: ModuleType) -> None:
    left, right, out = torch.ones(2, 3, 4), torch.ones(2, 4, 5), torch.ones(2, 3, 5)
    for call in (
        partial(torch.bmm, left, right),
        partial(torch.bmm, left, right, out=out),
        partial(torch.baddbmm, out, left, right),
        partial(out.baddbmm_, left, right),
    ):
        assert stack_costs.operations(call) == 2 * (2 * 3 * 4 * 5)
    assert stack_costs.operations(partial(torch.add, left, left)) == 0


def test_a_phase_inside_another_stops_it_and_validation_is_stopped_by_none(
    stack_costs: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    def passes(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(stack_costs.time, "perf_counter", lambda: now)
    clock = stack_costs.Clock()
    readout = clock.timed(stack_costs.READOUT, lambda: passes(1))

    def step() -> None:
        passes(10)
        readout()

    passes(100)
    clock.timed(stack_costs.BACKWARD, step)()
    clock.timed(stack_costs.VALIDATION, step)()
    for seconds in clock.timed_items(stack_costs.BATCHES, lambda: map(passes, [1000, 2000]))():
        assert seconds is None
        passes(0.5)
    clock.switch(stack_costs.REST)
    assert clock.seconds == {
        stack_costs.REST: 101,
        stack_costs.BACKWARD: 10,
        stack_costs.READOUT: 1,
        stack_costs.VALIDATION: 11,
        stack_costs.BATCHES: 3000,
    }


def test_the_profile_names_every_phase_of_an_epoch(stack_costs: ModuleType) -> None:
    threads = torch.get_num_threads()
    try:
        shares, seconds = stack_costs.profile("MUTAG", epochs=1)
    finally:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(False)
    assert tuple(shares) == stack_costs.PHASES
    assert min(shares.values()) > 0  # a method that was renamed would have none
    assert sum(shares.values()) == pytest.approx(1)
    assert seconds > 0


def test_the_claims_of_crossval_are_ratios_of_medians(crossval: ModuleType) -> None:
    commands = [
        crossval.command_of(
            {"model_epochs": 400, "model_epochs_per_second": rate, "seconds": 4, "workers": 2},
            seconds=8,
        )
        for rate in (100.0, 160.0, 120.0)
    ]
    assert [each.per_second_whole for each in commands] == [50, 50, 50]
    rates = crossval.Rates((20.0, 10.0, 1.0), (40.0, 30.0, 50.0), tuple(commands))
    grown = [
        {"scale": 1, "graphs": 10, "seconds": 1, "seconds_per_graph": 0.1},
        {"scale": 8, "graphs": 80, "seconds": 16, "seconds_per_graph": 0.2},
    ]
    one, several, growth = crossval.claims({"MUTAG": rates}, grown)
    assert (one.target, one.measured, one.met) == (7, 12, True)
    assert (several.target, several.measured, several.met) == (3, 3, True)
    assert (growth.target, growth.measured, growth.met) == (0.8, 0.5, False)


def test_the_claims_of_export_are_ratios_to_torch_by_batch_size(export: ModuleType) -> None:
    def sides(plain: float, padded: float, sparse: float) -> dict[str, object]:
        names = (export.TORCH, export.PADDED, export.SPARSE)
        values = zip(names, (plain, padded, sparse), strict=True)
        return {name: export.Timing((value, value, 9.0)) for name, value in values}

    times = {"MUTAG": {1: sides(4, 2, 1), 32: sides(8, 4, 2), 256: sides(9, 3, 3)}}
    found = export.claims(times)
    assert [(each.target, each.measured) for each in found] == [
        *((2.5, 2), (1.2, 2), (1.2, 3)),
        *((4, 4), (2, 4), (1.8, 3)),
    ]
    assert [each.met for each in found] == [False, True, True, True, True, True]


def test_the_padded_plain_model_is_the_model_that_is_exported(export: ModuleType) -> None:
    from tiny_models import PATH, STAR, TRIANGLE, M, dataset, untrained

    from ihgnn_cli.deploy.inputs import padded_inputs
    from ihgnn_cli.deploy.modules import MODULES
    from ihgnn_cli.deploy.verification import reference_of
    from ihgnn_cli.models.spec import Layout
    from ihgnn_cli.models.stacked import readable_weights

    data = dataset(PATH, STAR, TRIANGLE)
    checkpoint = untrained(data)
    sizes = checkpoint.card.inputs
    plain = import_module("_padded_plain").PaddedPlain(
        sizes.features, sizes.classes, sizes.max_nodes, **vars(checkpoint.config.model)
    )
    plain.load_state_dict(readable_weights(checkpoint.weights, 0))
    inputs = padded_inputs(checkpoint.card, data, np.arange(3), M)
    given = {name: torch.from_numpy(each) for name, each in inputs.items()}
    exported = MODULES[Layout.PADDED](reference_of(checkpoint).members)
    with torch.no_grad():
        found, expected = plain.eval()(**given), exported(**given)
    for mine, name in zip(found, ("logits", "probabilities", "graph_embedding"), strict=True):
        torch.testing.assert_close(mine, expected[name])


def test_a_process_that_fails_ends_the_measurement(
    crossval: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = partial(partial, partial(int, "no number"))
    with pytest.raises(EOFError), crossval.at_once([broken], [set()]) as rate:
        rate(1)
    assert "ValueError" in capfd.readouterr().err
