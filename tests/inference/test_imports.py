"""Exported models are used without torch, so nothing in the package may import it at the top."""

import subprocess
import sys
from pathlib import Path

import ihgnn_cli.inference


def test_inference_imports_neither_torch_nor_scikit_learn_nor_matplotlib() -> None:
    modules = [path.stem for path in Path(ihgnn_cli.inference.__path__[0]).glob("[!_]*.py")]
    assert "explanation" in modules
    code = (
        "import sys\n"
        f"from ihgnn_cli.inference import {', '.join(modules)}\n"
        "loaded = {'torch', 'torch_geometric', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
