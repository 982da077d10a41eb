"""A model that was trained in a loop of its own is exported and verified like any other."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from ihgnn_cli import IHGNN, export, load
from ihgnn_cli.errors import InputError


def graphs(columns: int = 4) -> list[Data]:
    """Rings of one label and paths of two; the last columns of x never occur."""
    made = []
    for number in range(8):
        nodes = 4 + number % 3
        label = torch.arange(nodes) % (1 + number % 2)
        source = torch.arange(nodes)
        target = (source + 1) % nodes
        if number % 2:
            source, target = source[:-1], target[:-1]
        edges = torch.stack([torch.cat([source, target]), torch.cat([target, source])])
        x = torch.nn.functional.one_hot(label, columns).float()
        made.append(Data(x=x, edge_index=edges, y=torch.tensor([number % 2])))
    return made


@pytest.mark.parametrize("layout", ["padded", "sparse"])
def test_the_file_answers_as_the_model(layout: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    data = graphs()
    model = IHGNN(4, 2, 6, layers=1, width=4, hidden=4)
    optimizer = torch.optim.Adam(model.parameters())
    batch = Batch.from_data_list(data)
    for _ in range(3):
        optimizer.zero_grad()
        logits = model(batch.x, batch.edge_index, batch.batch)
        torch.nn.functional.cross_entropy(logits, batch.y).backward()
        optimizer.step()
    model.eval()
    done = export(model, tmp_path / "own.onnx", like=data, layout=layout)
    assert done.parity is not None
    assert done.golden_path is not None
    with torch.no_grad():
        expected = model(batch.x, batch.edge_index, batch.batch).softmax(1)
    found = load(done.path, "cpu").predict(data)
    answers = [list(each.probabilities.values()) for each in found]
    np.testing.assert_allclose(answers, expected, atol=1e-5)


def test_data_that_the_model_was_not_trained_on_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.onnx"
    model = IHGNN(3, 2, 6)
    with pytest.raises(InputError, match=r"reads 3 columns, and .* has 4"):
        export(model, path, like=graphs())
    with pytest.raises(InputError, match="has 3 classes"):
        export(IHGNN(4, 3, 6), path, like=graphs())
    with pytest.raises(InputError, match="takes a path and like="):
        export(model, path)
    with pytest.raises(InputError, match="Cannot export Linear"):
        export(torch.nn.Linear(1, 1), path, like=graphs())
    assert not path.exists()
