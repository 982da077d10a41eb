"""`ihgnn tune` as a user runs it; tests/cli/test_tune.py has everything that needs no process."""

import json
import re

import pytest
from tuned import TINY, rows


def test_a_search_ends_with_a_tested_model_and_all_its_files(ihgnn, tmp_path) -> None:
    result = ihgnn("tune", *TINY, "--trials", "4", "--workers", "2")
    assert result.returncode == 0, result.stderr
    assert re.search(r"^Test accuracy \d+\.\d%$", result.stdout, re.MULTILINE)
    assert "no trial saw the test graphs" in result.stdout
    assert "\x1b" not in result.stdout + result.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("MUTAG-tune-")
    found = json.loads((folder / "result.json").read_text())
    for name in ("history", "curves", "parallel", "slices"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "data:image/png;base64," in page
    assert not re.search(r"""(src|href)=["'](?!data:)""", page)  # nothing is fetched
    assert len(rows(folder)) == 4
    assert found["trials"]["complete"] + found["trials"]["pruned"] == 4
    # The best by the rule: accuracy, then loss, then the earlier.
    complete = [row for row in rows(folder) if row["state"] == "complete"]
    best = max(
        complete,
        key=lambda row: (float(row["validation_accuracy"]), -float(row["validation_loss"])),
    )
    assert found["best"]["trial"] == int(best["trial"])
    # The paper's defaults are the first trial where they are in the space, and here they are not.
    assert float(rows(folder)[0]["lr"]) != 0.001
    checkpoint = folder / found["final"]["folder"] / "ckpt.pt"
    evaluated = ihgnn("evaluate", checkpoint, "--json")
    accuracy = json.loads(evaluated.stdout)["accuracy"]
    assert accuracy == pytest.approx(found["final"]["test"]["accuracy"])
