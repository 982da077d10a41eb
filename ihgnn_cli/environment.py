"""Describe the installation for bug reports, even if parts of it are broken."""

import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ihgnn_cli import __version__
from ihgnn_cli.deploy.providers import loadable_providers
from ihgnn_cli.paths import cache_root, data_root
from ihgnn_cli.training.devices import CudaDevice, cuda_devices
from ihgnn_cli.versions import code_sha256, package_versions

Found = TypeVar("Found")


@dataclass(frozen=True)
class Environment:
    """Versions, devices and folders of this installation."""

    ihgnn: str
    code_sha256: str
    """Hash of the package's Python files, as results record it."""
    python: str
    platform: str
    packages: dict[str, str]
    """Versions of the installed packages."""
    cuda_devices: list[CudaDevice] | str
    """Devices that torch can use, or why torch cannot be imported."""
    onnx_providers: dict[str, bool] | str
    """Whether each provider loads, or why onnxruntime cannot be imported."""
    data_root: str
    cache: str


def describe_environment() -> Environment:
    """Collect the description."""
    return Environment(
        ihgnn=__version__,
        code_sha256=code_sha256(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=platform.platform(),
        packages=package_versions(),
        cuda_devices=_or_reason(cuda_devices),
        onnx_providers=_or_reason(loadable_providers),
        data_root=str(data_root()),
        cache=str(cache_root()),
    )


def _or_reason(look: Callable[[], Found]) -> Found | str:
    """The result, or the error of a broken installation as text."""
    try:
        return look()
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
