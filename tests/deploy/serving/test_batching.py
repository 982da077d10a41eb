"""Batches of requests: when they start, and who gets which answer."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from ihgnn_cli.deploy.serving.batching import Batcher, BatchLimits

LONG = 60.0


class Model:
    """Doubles numbers, and remembers the batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def __call__(self, work: Sequence[int]) -> list[int]:
        self.batches.append(list(work))
        if 13 in work:
            raise ValueError("13")
        return [2 * each for each in work]


def answers(model: Model, limits: BatchLimits, work: list[int], size: int = 1) -> list[object]:
    async def main() -> list[object]:
        with ThreadPoolExecutor(1) as executor:
            batcher: Batcher[int, int] = Batcher(model, limits, executor, lambda *_: None)
            serving = asyncio.create_task(batcher.serve())
            calls = [batcher.answer(each, 1, size) for each in work]
            found = await asyncio.gather(*calls, return_exceptions=True)
            await batcher.finish()
            serving.cancel()
            return list(found)

    return asyncio.run(main())


def test_concurrent_requests_share_a_batch_and_each_gets_its_own_answer() -> None:
    model = Model()
    assert answers(model, BatchLimits(4, 100, LONG), [1, 2, 3, 4]) == [2, 4, 6, 8]
    assert model.batches == [[1, 2, 3, 4]]


def test_a_batch_ends_at_its_number_of_graphs() -> None:
    model = Model()
    assert answers(model, BatchLimits(2, 100, 0.01), [1, 2, 3]) == [2, 4, 6]
    assert model.batches == [[1, 2], [3]]


def test_a_batch_ends_at_its_number_of_nodes_and_edges() -> None:
    model = Model()
    answers(model, BatchLimits(100, 20, 0.01), [1, 2, 3], size=10)
    assert model.batches == [[1, 2], [3]]


def test_a_request_alone_is_answered_after_the_waiting_time() -> None:
    assert answers(Model(), BatchLimits(100, 100, 0.001), [5]) == [10]


def test_a_request_that_fails_does_not_take_others_with_it() -> None:
    model = Model()
    one, failed, two = answers(model, BatchLimits(3, 100, LONG), [1, 13, 2])
    assert (one, str(failed), two) == (2, "13", 4)
    assert model.batches == [[1, 13, 2], [1], [13], [2]]


def test_a_request_that_was_given_up_is_left_out() -> None:
    async def main() -> list[list[int]]:
        model = Model()
        with ThreadPoolExecutor(1) as executor:
            batcher: Batcher[int, int] = Batcher(
                model, BatchLimits(2, 100, LONG), executor, lambda *_: None
            )
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(batcher.answer(1, 1, 1), 0.001)
            serving = asyncio.create_task(batcher.serve())
            assert await asyncio.gather(batcher.answer(2, 1, 1), batcher.answer(3, 1, 1)) == [4, 6]
            serving.cancel()
        return model.batches

    batches = asyncio.run(main())
    assert 1 not in [each for batch in batches for each in batch]
