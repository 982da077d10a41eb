"""What this installation is made of, for bug reports: also where half of it is broken."""

import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ihgnn_cli import __version__
from ihgnn_cli.deploy.providers import loadable_providers
from ihgnn_cli.paths import cache_root, data_root
from ihgnn_cli.training.devices import CudaDevice, cuda_devices
from ihgnn_cli.versions import package_versions

Found = TypeVar("Found")


@dataclass(frozen=True)
class Environment:
    """Versions, devices and folders."""

    ihgnn: str
    python: str
    platform: str
    packages: dict[str, str]
    """Only those that are installed."""
    cuda_devices: list[CudaDevice] | str
    """Those that torch can use, or why torch does not start."""
    onnx_providers: dict[str, bool] | str
    """By name, whether the provider really loads, or why onnxruntime does not start."""
    data_root: str
    cache: str


def describe_environment() -> Environment:
    """Look around."""
    return Environment(
        ihgnn=__version__,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=platform.platform(),
        packages=package_versions(),
        cuda_devices=_or_reason(cuda_devices),
        onnx_providers=_or_reason(loadable_providers),
        data_root=str(data_root()),
        cache=str(cache_root()),
    )


def _or_reason(look: Callable[[], Found]) -> Found | str:
    """What a broken installation says is what the report is for."""
    try:
        return look()
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
