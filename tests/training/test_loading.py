"""Loading: the data of a configuration, and a path to it that holds anywhere."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.access import Access
from ihgnn_cli.errors import DownloadError, InputError
from ihgnn_cli.training.config import configure
from ihgnn_cli.training.loading import load_data


def write_graphs(path: Path, *, attributes: bool = False) -> None:
    """Two graphs of an edge each."""
    lines = []
    for name in ("yes", "no"):
        graph: dict[str, object] = {"node_labels": ["C", "O"], "edges": [[0, 1]], "class": name}
        if attributes:
            graph["node_attributes"] = [[1.5], [2.5]]
        lines.append(json.dumps(graph) + "\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))


def test_a_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_graphs(tmp_path / "here" / "graphs.jsonl")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    given = configure(overrides={"dataset": "graphs.jsonl", "epochs": 7, "features": "labels"})
    config, dataset = load_data(given)
    assert config.data.dataset == str(tmp_path / "here" / "graphs.jsonl")
    assert config.training == given.training
    assert config.model == given.model
    assert dataset.name == "graphs"
    monkeypatch.chdir(tmp_path / "elsewhere")
    again, same = load_data(config)
    assert again == config
    assert same.fingerprint == dataset.fingerprint


def test_a_folder_is_a_path_too(
    write_tu: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_tu(A="1, 2\n2, 1\n", graph_indicator="1\n1\n2\n", graph_labels="0\n1\n")
    monkeypatch.chdir(folder.parent)
    config, dataset = load_data(configure(overrides={"dataset": "TINY"}))
    assert config.data.dataset == str(folder)
    assert len(dataset) == 2


def test_a_bundled_name_stays_a_name() -> None:
    config, dataset = load_data(configure())
    assert config == configure(overrides={"features": "labels"})
    assert dataset.fingerprint == load_dataset("MUTAG").fingerprint


def test_a_name_in_the_data_root_stays_a_name(tmp_path: Path) -> None:
    """The root may be another one on another day."""
    write_graphs(tmp_path / "root" / "GRAPHS.jsonl")
    given = configure(overrides={"dataset": "GRAPHS", "features": "labels"})
    config, dataset = load_data(given, Access(tmp_path / "root"))
    assert config == given
    assert dataset.name == "GRAPHS"


@pytest.mark.parametrize("features", ["attributes", "both"])
def test_missing_attributes_are_refused(tmp_path: Path, features: str) -> None:
    write_graphs(tmp_path / "graphs.jsonl")
    given = {"dataset": str(tmp_path / "graphs.jsonl"), "features": features}
    with pytest.raises(InputError) as caught:
        load_data(configure(overrides=given))
    assert str(caught.value) == "graphs has no node attributes. Use --features labels."


@pytest.mark.parametrize("features", ["labels", "attributes", "both"])
def test_attributes_that_are_there_may_be_used_or_not(tmp_path: Path, features: str) -> None:
    write_graphs(tmp_path / "graphs.jsonl", attributes=True)
    given = {"dataset": str(tmp_path / "graphs.jsonl"), "features": features}
    config, dataset = load_data(configure(overrides=given))
    assert config.data.features == features
    assert dataset.node_attributes is not None
    assert dataset.node_attributes.tolist() == [[1.5], [2.5]] * 2


def test_what_is_nowhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No file or folder"):
        load_data(configure(overrides={"dataset": str(tmp_path / "graphs.jsonl")}))
    with pytest.raises(DownloadError, match="--offline forbids"):
        load_data(configure(overrides={"dataset": "PROTEINS"}), Access(offline=True))
