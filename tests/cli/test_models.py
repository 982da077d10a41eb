"""What `ihgnn models` shows of a model."""

from dataclasses import replace
from typing import Any

import pytest

from ihgnn_cli.cli import models
from ihgnn_cli.models.registry import find_model


def _fails(*_: Any) -> None:
    raise ValueError("takes attributes only")


@pytest.mark.parametrize(("package", "raises"), [("somebodys-models", False), ("ihgnn", True)])
def test_a_model_of_somebody_else_that_cannot_be_made_does_not_hide_the_others(
    package: str, raises: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ihgnn = find_model("ihgnn")
    broken = replace(find_model("gin"), make=_fails, package=package)
    monkeypatch.setattr("ihgnn_cli.training.config.find_model", {"gin": broken, "ihgnn": ihgnn}.get)
    if raises:
        with pytest.raises(ValueError, match="attributes"):
            models._parameters(broken)
    else:
        assert models._parameters(broken) is None
        assert models._parameters_text(broken) == "–"
