"""A stack that does not fit in memory is trained in halves."""

from collections.abc import Sequence

import pytest
import torch

from ihgnn_cli.training.halving import train_in_halves


def trained(items: str, room: int, error: Exception) -> tuple[list[str], list[str], list[str]]:
    """What was trained together, what was halved, and what does not fit alone."""
    together: list[str] = []
    halved: list[str] = []

    def train(part: Sequence[str]) -> None:
        if len(part) > room:
            raise error
        together.append("".join(part))

    left = train_in_halves(items, train, lambda part: halved.append("".join(part)))
    return together, halved, left


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: not enough memory"),
    ],
)
def test_stacks_are_halved_until_they_fit(error: Exception) -> None:
    assert trained("abcde", 5, error) == (["abcde"], [], [])
    assert trained("abcde", 2, error) == (["ab", "c", "de"], ["abcde", "abc"], [])


def test_items_that_do_not_fit_alone_are_returned() -> None:
    together, halved, left = trained("abc", 0, MemoryError())
    assert (together, left) == ([], ["a", "b", "c"])
    assert halved == ["abc", "ab", "a", "b", "c"]


def test_other_errors_are_raised() -> None:
    with pytest.raises(RuntimeError, match="shapes"):
        trained("ab", 0, RuntimeError("shapes do not match"))
