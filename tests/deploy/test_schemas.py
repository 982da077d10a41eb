"""The JSON files of an export have the form that the schemas and the TypeScript types describe."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from started import PATIENCE
from tiny_models import ALL, dataset, untrained, with_distances

from ihgnn_cli import deploy
from ihgnn_cli.data.edge_labels import with_edge_labels
from ihgnn_cli.data.features import Features
from ihgnn_cli.deploy.form import Form, Layout
from ihgnn_cli.deploy.golden_vectors import candidates, golden_vectors
from ihgnn_cli.deploy.metadata import Limits, for_callers, metadata

TYPES = Path(__file__).parents[2] / "examples" / "node" / "model.d.ts"
# The configuration of `nox -s typescript`.
TSC = os.environ.get("IHGNN_TSC") or shutil.which("tsc")

LIMITS = Limits(node_limit=6, numbers=(48, 1, 0), embedding=8, order_margin=True)
Files = dict[str, dict[str, Any]]


def schema(name: str) -> Draft202012Validator:
    path = Path(deploy.__file__).with_name(f"{name}.schema.json")
    plain = json.loads(path.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(plain)
    return Draft202012Validator(plain)


def files(
    form: Form,
    features: Features = Features.LABELS,
    labelled: bool = True,
    bonds: bool = False,
    bins: int = 0,
) -> Files:
    """What an export would write beside the model."""
    data = dataset(*ALL, labelled=labelled, edge_labels=bonds)
    data = with_distances(data) if bins else data
    data = with_edge_labels(data, use=bonds, background="q" if bonds else "", bins=bins)
    checkpoint = untrained(data, features=features)
    settings = checkpoint.config.as_plain()["model"]
    about = metadata(checkpoint.card, settings, 1, form, LIMITS)
    cases, names = candidates(checkpoint, data, form), about["outputs"].keys()
    golden = golden_vectors(checkpoint, cases, form, names, model="model.onnx", sha256=64 * "0")
    return {
        "model": json.loads(json.dumps(for_callers(about))),
        "golden": json.loads(golden.text()),
    }


EXPORTS = {
    "padded": files(Form()),
    "fixed": files(Form(nodes=8)),
    "sparse, both": files(Form(Layout.SPARSE), Features.BOTH),
    "sparse, degrees": files(Form(Layout.SPARSE), labelled=False),
    "sparse, edge labels": files(Form(Layout.SPARSE), bonds=True),
    "sparse, edge bins": files(Form(Layout.SPARSE), bins=2),
    "edge labels and bins": files(Form(), bonds=True, bins=2),
}


@pytest.mark.parametrize("name", ["model", "golden"])
@pytest.mark.parametrize("export", EXPORTS)
def test_exports_are_valid_and_every_key_is_described(name: str, export: str) -> None:
    plain, validator = EXPORTS[export][name], schema(name)
    validator.validate(plain)
    described = validator.schema["properties"]
    assert plain.keys() == described.keys()
    if name == "model":
        # Only models with inputs that are computed from the graph have columns, and only those
        # that read edge labels have these.
        some = {"columns", "edge_label_values", "background_edge_label", "edge_bins", "conformal"}
        assert {*plain["card"], *some} == described["card"]["properties"].keys()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("model", {"layout": "dense"}),
        ("model", {"inputs": {"ptr": {"type": "int64"}}}),
        ("golden", {"model_sha256": "abc"}),
        ("golden", {"cases": [{"name": "no graphs"}]}),
    ],
)
def test_other_values_are_not_valid(name: str, change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        schema(name).validate({**EXPORTS["padded"][name], **change})


@pytest.mark.skipif(
    TSC is None, reason="TypeScript is not installed; nox -s typescript installs it"
)
def test_exports_have_the_typescript_types(tmp_path: Path) -> None:
    shutil.copy(TYPES, tmp_path)
    lines = ['import type { Golden, Model } from "./model";']
    for number, (export, made) in enumerate(EXPORTS.items()):
        lines.append(f"// {export}")
        lines.append(f"export const model{number}: Model = {json.dumps(made['model'])};")
        lines.append(f"export const golden{number}: Golden = {json.dumps(made['golden'])};")
    check = [str(TSC), "--strict", "--noEmit", "--target", "es2022", "exports.ts"]

    def checked(text: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "exports.ts").write_text(text, encoding="utf-8")
        return subprocess.run(
            check, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE
        )

    done = checked("\n".join(lines))
    assert done.returncode == 0, done.stdout[-2000:]
    wrong = checked("\n".join(lines).replace('"layout": "sparse"', '"layout": "dense"'))
    assert "is not assignable to type 'Layout'" in wrong.stdout
