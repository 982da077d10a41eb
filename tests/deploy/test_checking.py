"""An exported file is checked in the runtimes of this machine."""

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ihgnn_cli.deploy import checking, runtimes
from ihgnn_cli.deploy.checking import RuntimeResult, check_export
from ihgnn_cli.deploy.golden import golden_path
from ihgnn_cli.deploy.onnx_model import CPU
from ihgnn_cli.errors import IhgnnError, InputError


@pytest.fixture
def model(mutag_model, tmp_path: Path) -> Path:
    """An exported file with its golden vectors, in a folder of its own."""
    for path in (mutag_model.exported, golden_path(mutag_model.exported)):
        shutil.copy(path, tmp_path)
    return tmp_path / mutag_model.exported.name


def changed(model: Path, change: Any) -> None:
    """Change the golden vectors."""
    path = golden_path(model)
    plain = json.loads(path.read_text(encoding="utf-8"))
    change(plain)
    path.write_text(json.dumps(plain), encoding="utf-8")


def test_the_processor_gives_the_right_answers(model: Path) -> None:
    checked = check_export(model, [CPU])
    (found,) = checked.runtimes
    assert found.passed
    assert found.version.startswith("onnxruntime ")
    assert found.operators.keys() == {CPU}
    assert [each.case for each in found.cases] == [each.name for each in checked.golden.cases]
    assert len(found.cases) == 7
    assert all(each.difference < 1e-5 and each.same_class for each in found.cases)
    assert not list(model.parent.glob("*profile*"))


def test_a_wrong_answer_fails_its_case_only(model: Path) -> None:
    def shift(plain: dict[str, Any]) -> None:
        plain["cases"][1]["outputs"]["graph_embedding"]["data"][0] += 1e-2

    changed(model, shift)
    (found,) = check_export(model, [CPU]).runtimes
    assert [each.passed for each in found.cases] == [True, False, *[True] * 5]
    assert found.cases[1].difference == pytest.approx(1e-2, rel=0.9)
    assert found.cases[1].same_class
    assert not found.passed


def test_another_class_fails(model: Path) -> None:
    def swap(plain: dict[str, Any]) -> None:
        for name in ("logits", "probabilities"):
            plain["cases"][0]["outputs"][name]["data"].reverse()

    changed(model, swap)
    (found,) = check_export(model, [CPU]).runtimes
    assert (found.cases[0].same_class, found.cases[0].passed) == (False, False)


def test_a_runtime_that_fails_on_a_case_is_reported_and_the_others_go_on(model: Path) -> None:
    def cut(plain: dict[str, Any]) -> None:
        labels = plain["cases"][0]["inputs"]["node_labels"]
        labels["shape"], labels["data"] = [1, 2], labels["data"][:2]

    changed(model, cut)
    (found,) = check_export(model, [CPU]).runtimes
    assert found.cases[0].difference is None
    assert found.cases[0].error
    assert [each.passed for each in found.cases] == [False, *[True] * 6]


def test_a_runtime_that_does_not_start_or_leaves_all_to_another_has_not_passed(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not RuntimeResult("CUDAExecutionProvider", "", {CPU: 120}, ()).passed

    def refuse(name: str, path: Path) -> None:
        raise IhgnnError(f"{name} needs a GPU.")

    monkeypatch.setattr(checking, "start", refuse)
    (found,) = check_export(model, [CPU]).runtimes
    assert (found.error, found.passed, found.cases) == (f"{CPU} needs a GPU.", False, ())


def test_by_default_every_installed_runtime_is_tried(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "installed_runtimes", lambda: [CPU, "CUDAExecutionProvider"])
    names = [each.runtime for each in check_export(model).runtimes]
    assert names == [CPU, "CUDAExecutionProvider"]


@pytest.mark.skipif(
    importlib.util.find_spec("openvino") is None,
    reason="OpenVINO is not installed; nox -s interop installs it",
)
def test_openvino_gives_the_right_answers(model: Path) -> None:
    assert "openvino:CPU" in runtimes.installed_runtimes()
    (found,) = check_export(model, ["openvino:CPU"]).runtimes
    assert found.passed, found
    assert found.version.startswith("OpenVINO ")


def test_mistakes_are_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Did you mean CPUExecutionProvider"):
        check_export(model, ["CPUExecutionProvide"])
    with pytest.raises(InputError, match=r"is not a \.onnx file"):
        check_export(tmp_path)
    changed(model, lambda plain: plain.update(cases=[], left_out=[{"name": "a", "reason": "big"}]))
    with pytest.raises(InputError, match="have no cases: big"):
        check_export(model)
    model.write_bytes(b"another")
    with pytest.raises(InputError, match="belongs to another file"):
        check_export(model)
    golden_path(model).unlink()
    with pytest.raises(InputError, match=r"golden\.json is missing"):
        check_export(model)


def test_tf32_is_off_on_a_gpu() -> None:
    from ihgnn_cli.deploy.onnx_model import _of_device, _with_options

    assert _of_device("cuda:1")[0][1] == {"device_id": "1", "use_tf32": "0"}
    assert _with_options(CPU) == (CPU, {})
