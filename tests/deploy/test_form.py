"""Which forms of export there are, and what padding costs."""

import pytest

from ihgnn_cli.deploy.form import Form, Layout, is_absurd, padded_bytes
from ihgnn_cli.errors import InputError


def test_the_default_runs_in_the_oldest_onnxruntime() -> None:
    form = Form()
    assert (form.layout, form.opset, form.ir_version) == (Layout.PADDED, 18, 8)
    assert Form(opset=21).ir_version == 10


@pytest.mark.parametrize("opset", [17, 24, 0, -1])
def test_other_opsets_than_the_tested_ones_are_refused(opset: int) -> None:
    with pytest.raises(InputError, match="Use 18 to 23"):
        Form(opset=opset)


def test_a_size_to_pad_to_is_at_least_1_and_of_the_padded_layout() -> None:
    assert Form(nodes=1).nodes == 1
    with pytest.raises(InputError, match="at least 1"):
        Form(nodes=0)
    with pytest.raises(InputError, match="which does not pad"):
        Form(Layout.SPARSE, nodes=30)


def test_a_fixed_batch_needs_a_fixed_size_too() -> None:
    assert Form(nodes=9, batch=4).batch == 4
    with pytest.raises(InputError, match="with --max-nodes as well"):
        Form(batch=4)
    with pytest.raises(InputError, match="at least 1"):
        Form(nodes=9, batch=0)
    with pytest.raises(InputError, match="--batch has no effect with --layout sparse"):
        Form(Layout.SPARSE, batch=4)


@pytest.mark.parametrize(
    ("nodes", "size", "absurd"),
    [(28, 3_136, False), (620, 1_537_600, False), (5_748, 132_158_016, True)],
    ids=["MUTAG", "PROTEINS", "DD"],
)
def test_padding_to_the_largest_graph_of_dd_is_absurd(nodes: int, size: int, absurd: bool) -> None:
    assert padded_bytes(nodes) == size
    assert is_absurd(size) is absurd
