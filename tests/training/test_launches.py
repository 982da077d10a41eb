"""What a GPU waits for: operations launched by a training step, and values read from the device."""

from importlib import import_module
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# Of revision a813f91, with the share of the validation: 237 and 250.
MOST = {1: 210, 10: 218}


@pytest.mark.parametrize("models", MOST)
def test_a_training_step_launches_few_operations_and_reads_no_value(
    models: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    server, plain = import_module("_epoch_server"), import_module("_plain")
    stack = plain.stack(plain.load_task("MUTAG"), models)
    stack.train_epoch()  # also creates the validation batches
    with server.Launches() as seen:
        stack.train_epoch()
    assert seen.count[server.READ] == 0
    assert seen.count.total() / 5 <= MOST[models]
