"""Messages that refer to the documentation."""

import ast
import re
from pathlib import Path

import ihgnn_cli

PACKAGE = Path(ihgnn_cli.__file__).parent
DOCS = Path(__file__).parents[2] / "docs"


def texts() -> list[str]:
    """All texts in the code of the package that are not documentation of the code."""
    found = []
    for file in PACKAGE.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        comments = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        found += [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in comments
        ]
    return found


def test_messages_cite_pages_that_exist() -> None:
    cited = {name for text in texts() for name in re.findall(r"\bdocs/(\w+)\.md", text)}
    assert {"data", "models"} <= cited <= {page.stem for page in DOCS.glob("*.md")}
    assert not [text for text in texts() if re.search(r"\b(examples|results)/\w", text)]
