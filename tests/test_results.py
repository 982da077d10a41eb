"""The tables of README and docs follow from the stored results, and these fit together."""

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ihgnn_cli

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
KINDS = ("authors", "full", "race", "robust")
FILES = sorted(path for kind in KINDS for path in (RESULTS / kind).glob("*.json"))


def content(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(RESULTS)
    return importlib.import_module("table")


def test_every_page_shows_the_stored_numbers(table: ModuleType) -> None:
    shown = set()
    for page in table.pages():
        text = page.read_text(encoding="utf-8")
        assert table.filled(text) == text, page.name
        shown |= {found[1] for found in table.BLOCK.finditer(text)}
    assert shown == set(table.TABLES)


def test_a_page_that_differs_is_found_and_mended(tmp_path: Path) -> None:
    shutil.copytree(RESULTS, tmp_path / "results")
    (tmp_path / "docs").mkdir()
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "README.md").write_text(text.replace("89.9 ± 6.0", "98.9 ± 6.0"), encoding="utf-8")
    script = [sys.executable, tmp_path / "results" / "table.py"]
    for options, code in (["--check"], 1), ([], 0), (["--check"], 0):
        assert subprocess.run([*script, *options], cwd=ROOT, check=False).returncode == code
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_scores_follow_from_the_stored_graphs_and_folds(path: Path) -> None:
    found = content(path)
    folds = content(RESULTS / found["splits"])
    tests = [np.array(fold["test"]) for fold in folds]
    assert sorted(np.concatenate(tests).tolist()) == list(range(found["graphs"]))
    for scores in (found["model"], *found.get("references", ())):
        assert np.mean(scores["folds"]) == pytest.approx(scores["accuracy"])
        assert np.std(scores["folds"]) == pytest.approx(scores["accuracy_std"])
        if "right" in scores:  # not stored for the authors' recipe
            right = np.array(list(scores["right"]), dtype=int) / scores.get("runs_per_graph", 1)
            assert [right[test].mean() for test in tests] == pytest.approx(scores["folds"])


def test_the_full_protocol_is_complete_and_on_the_bundled_data() -> None:
    for path in sorted((RESULTS / "full").glob("*.json")):
        found = content(path)
        assert len(found["settings"]["grid"]) * len(found["chosen"]) == 270
        assert [len(fold["runs"]) for fold in found["chosen"]] == [3] * 10
        assert found["model_epochs"] == 300 * 350
    mutag = content(RESULTS / "full" / "MUTAG.json")
    assert mutag["data_sha256"] == ihgnn_cli.load_dataset("MUTAG").fingerprint
