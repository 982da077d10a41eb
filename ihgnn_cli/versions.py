"""Versions of the packages that results depend on, for bug reports and provenance."""

from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "torch",
    "torch-geometric",
    "onnx",
    "onnxscript",
    "onnxruntime-gpu",
    "onnxruntime",
    "optuna",
    "numpy",
    "scipy",
    "scikit-learn",
    "matplotlib",
    "typer",
    "rich",
)


def package_versions() -> dict[str, str]:
    """The version of each installed package."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def code_sha256(package: Path = Path(__file__).parent) -> str:
    """SHA-256 of a package's Python files: development versions share a version number."""
    digest = sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()}\n".encode())
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()
