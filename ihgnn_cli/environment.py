"""What this installation is made of: for bug reports, and for the provenance of results."""

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from ihgnn_cli import __version__
from ihgnn_cli.deploy.providers import loadable_providers
from ihgnn_cli.paths import cache_root, data_root
from ihgnn_cli.training.devices import CudaDevice, cuda_devices

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


@dataclass(frozen=True)
class Environment:
    """Versions, devices and folders."""

    ihgnn: str
    python: str
    platform: str
    packages: dict[str, str]
    """Only those that are installed."""
    cuda_devices: list[CudaDevice]
    onnx_providers: dict[str, bool]
    """By name, whether the provider really loads."""
    data_root: str
    cache: str


def package_versions() -> dict[str, str]:
    """Versions of the packages that results depend on."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def describe_environment() -> Environment:
    """Look around."""
    return Environment(
        ihgnn=__version__,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=platform.platform(),
        packages=package_versions(),
        cuda_devices=cuda_devices(),
        onnx_providers=loadable_providers(),
        data_root=str(data_root()),
        cache=str(cache_root()),
    )
