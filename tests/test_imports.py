"""Imports between packages point one way: cli → report, deploy, studies → … → homophily, data."""

import ast
from pathlib import Path

import ihgnn_cli

ROOT = Path(ihgnn_cli.__file__).parent
LAYERS = (
    {"cli"},
    {"estimator"},
    {"api", "environment"},
    {"report"},  # shows the results of the ones below
    {"deploy", "studies"},
    {"jobs", "training"},
    {"inference"},
    {"models"},
    {"homophily"},
    {"data"},
)
TYPES_ONLY = ["inference.explanation -> training.classifier"]
"""Imported for type checking only."""
RANK = {package: rank for rank, layer in enumerate(LAYERS) for package in layer}


def imported(file: Path) -> set[str]:
    """The `ihgnn_cli` modules that a file imports, at the top or inside a function."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    assert not [node for node in froms if node.level], f"{file}: relative import"
    names = {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}
    names |= {node.module for node in froms if node.module != "ihgnn_cli"}
    names |= {
        f"ihgnn_cli.{each.name}" for n in froms if n.module == "ihgnn_cli" for each in n.names
    }
    return {name for name in names if name.startswith("ihgnn_cli.")}


def allowed(importer: str, target: str) -> bool:
    """Packages import lower layers only, and jobs/ none of them; anything may import the leaves.

    Leaves (errors.py, files.py, ...) are not in a layer.
    """
    if importer == target or target not in RANK:
        return True
    return importer in RANK and importer != "jobs" and RANK[importer] < RANK[target]


def test_imports_point_one_way() -> None:
    wrong = []
    for file in ROOT.rglob("*.py"):
        module = file.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        if module in ("__init__", "__main__"):
            continue
        wrong += [
            f"{module} -> {target.removeprefix('ihgnn_cli.')}"
            for target in imported(file)
            if not allowed(module.split(".")[0], target.split(".")[1])
        ]
    assert sorted(wrong) == TYPES_ONLY
