"""Programs that the examples need; what is not installed is never downloaded here."""

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from elsewhere import entries_of, write_golden
from started import PATIENCE

import ihgnn_cli
from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.jsonl import write_jsonl
from ihgnn_cli.models.spec import Layout

OLDEST_NODE = 20


@pytest.fixture(scope="session")
def mutag_lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All graphs of MUTAG as JSON lines."""
    path = tmp_path_factory.mktemp("mutag") / "MUTAG.jsonl"
    write_jsonl(load_dataset("MUTAG"), path)
    return path


@dataclass(frozen=True)
class Exported:
    """A model of MUTAG, and its golden vectors."""

    model: Path
    golden: Path


@pytest.fixture(scope="session", params=list(Layout))
def exported(request, mutag_model, mutag_lines, tmp_path_factory) -> Exported:
    """A model of MUTAG in each layout."""
    model = tmp_path_factory.mktemp(request.param.value) / "model.onnx"
    ihgnn_cli.export(mutag_model.checkpoint, model, layout=request.param, verify=False)
    odd = {"node_labels": [0, 99, 1], "edges": [[0, 1], [1, 2], [2, 2]]}
    large = {"node_labels": [0] * 40, "edges": [[one, one + 1] for one in range(39)]}
    cases = {
        "some of MUTAG": entries_of(mutag_lines)[:4],
        "unknown label": [odd],
        "larger than m": [large],
    }
    return Exported(model, write_golden(model, cases))


@pytest.fixture(scope="session")
def node() -> str:
    """The command `node`."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node.js is not installed")
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    if int(re.findall(r"\d+", told)[0]) < OLDEST_NODE:
        pytest.skip(f"Node.js {told.strip()} is older than {OLDEST_NODE}")
    return found


@pytest.fixture
def run_node(node: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a script: `run_node(script, *args, input=text)`."""

    def run(script: Path, *args: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [node, script, *map(str, args)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
            **options,
        )

    return run
