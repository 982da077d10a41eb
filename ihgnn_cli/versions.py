"""Versions of the packages that results depend on, for bug reports and provenance."""

from importlib.metadata import PackageNotFoundError, version

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
