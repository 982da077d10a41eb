"""Every draw is a function of the seed and of what it is for."""

import subprocess
import sys
from itertools import product

import pytest
import torch

from ihgnn_cli.training.seeds import generator


def draw(seed: int, purpose: str, number: int = 0) -> list[int]:
    drawn = generator(seed, purpose, number)
    return torch.randint(2**40, (4,), generator=drawn).tolist()


def test_the_same_seed_and_purpose_draw_the_same() -> None:
    assert draw(7, "epoch", 3) == draw(7, "epoch", 3)


def test_seed_purpose_and_number_each_change_what_is_drawn() -> None:
    found = [draw(*each) for each in product((0, 1, 2), ("epoch", "parameters"), (0, 1, 2))]
    assert len({tuple(each) for each in found}) == len(found) == 18


def test_seed_and_number_do_not_run_into_each_other() -> None:
    """Neither 1 and 11 with 11 and 1, nor a purpose that ends in a number."""
    assert draw(1, "epoch", 11) != draw(11, "epoch", 1)
    assert draw(1, "epoch", 11) != draw(1, "epoch1", 1)


def test_one_draw_leaves_the_others_alone() -> None:
    first, second = generator(0, "a"), generator(0, "b")
    torch.rand(100, generator=first)
    assert torch.randint(2**40, (4,), generator=second).tolist() == draw(0, "b")


def test_drawing_leaves_torch_s_own_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    draw(0, "epoch")
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("seed", [0, 2**31, 2**63 - 1, 2**64])
def test_any_seed_will_do(seed: int) -> None:
    assert len(set(draw(seed, "epoch"))) == 4


def test_generators_are_on_the_cpu() -> None:
    """So that a GPU draws no other numbers."""
    assert generator(0, "epoch").device == torch.device("cpu")


def test_another_process_draws_the_same() -> None:
    script = (
        "import torch\n"
        "from ihgnn_cli.training.seeds import generator\n"
        "print(torch.randint(2**40, (4,), generator=generator(7, 'epoch', 3)).tolist())\n"
    )
    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    assert told.stdout.decode().strip() == str(draw(7, "epoch", 3))
