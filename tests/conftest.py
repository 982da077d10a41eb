"""Shared ground: no test sees the user's folders, and real data comes through `IHGNN_DATA`."""

import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Threads that wait for each other are many times slower beside any other busy process.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Machines of CI are slow at times, and a test fails for the same reason twice or not at all.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")

# Taken before any test's environment is cleaned.
_REAL_DATA = os.environ.get("IHGNN_DATA")

# Variables that users, terminals and CI systems may have set. Rich and Typer read the first group
# when a console is created, which happens when its module is imported.
_TERMINAL = (
    *("COLUMNS", "LINES", "TERM", "TERMINAL_WIDTH", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
    *("FORCE_COLOR", "PY_COLORS", "NO_COLOR", "CLICOLOR_FORCE", "GITHUB_ACTIONS"),
)
_OTHERS = (
    *("IHGNN_DEBUG", "IHGNN_MIRROR", "RAY_ADDRESS", "PYTHONWARNINGS", "PYTHONIOENCODING"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "ALL_PROXY"),
)
WriteTU = Callable[..., Path]


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Clean the variables of terminals before any module is imported; pytest has read them."""
    for name in _TERMINAL:
        os.environ.pop(name, None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests may take half an hour."""
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.timeout(1800))


def _clean(patch: pytest.MonkeyPatch, user: Path) -> None:
    for name in (*_TERMINAL, *_OTHERS):
        patch.delenv(name, raising=False)
    patch.setenv("IHGNN_CACHE", str(user / "cache"))
    patch.setenv("IHGNN_DATA", str(user / "data-root"))
    patch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # the discard port: refused at once
    patch.setenv("NO_PROXY", "127.0.0.1")
    patch.setenv("PYTHONUTF8", "1")  # the same output on every system


@pytest.fixture(scope="session", autouse=True)
def clean_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Session fixtures are created before `clean_environment` runs."""
    with pytest.MonkeyPatch.context() as patch:
        _clean(patch, tmp_path_factory.mktemp("shared"))
        yield


@pytest.fixture(autouse=True)
def clean_environment(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each test has an empty cache, an empty data root, and no way to the TU server."""
    _clean(monkeypatch, tmp_path_factory.mktemp("user"))


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Draws without a seed do not depend on the tests before."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with the paper's data sets as NAME.zip."""
    if not _REAL_DATA or not Path(_REAL_DATA).is_dir():
        pytest.skip("set IHGNN_DATA to a folder with the paper's data sets as NAME.zip")
    return Path(_REAL_DATA)


@dataclass(frozen=True)
class SmallModel:
    """A model of MUTAG that took a moment to train, and its export."""

    run: Path
    checkpoint: Path
    exported: Path


@pytest.fixture(scope="session")
def mutag_model(tmp_path_factory: pytest.TempPathFactory) -> SmallModel:
    from ihgnn_cli.cli.app import app

    folder = tmp_path_factory.mktemp("mutag-model")
    model = SmallModel(folder / "run", folder / "run" / "ckpt.pt", folder / "model.onnx")
    small = ["--width", "8", "--hidden", "16", "--epochs", "5", "--device", "cpu", "--quiet"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IHGNN_CACHE", str(folder / "cache"))
        app(["train", *small, "--out", str(model.run)], standalone_mode=False)
        app(["export", str(model.checkpoint), str(model.exported)], standalone_mode=False)
    return model


@pytest.fixture
def thread_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Workers of jobs and searches are threads of this process, which start at once."""
    from tuned import fast_sqlite
    from worker_threads import use_threads

    use_threads(monkeypatch)
    with fast_sqlite():
        yield


@pytest.fixture
def permissions(tmp_path: Path) -> None:
    """Skip where closing a file or folder closes it to nobody, as for root."""
    probe = tmp_path / "probe"
    probe.touch(mode=0)
    if os.access(probe, os.R_OK):
        pytest.skip("permissions do not bind this user")


@pytest.fixture
def write_tu(tmp_path: Path) -> WriteTU:
    """Write a TU folder, its parts given by name: `write_tu(A="1, 2\\n", graph_labels="1\\n")`."""

    def write(name: str = "TINY", folder: Path | None = None, **parts: str | bytes) -> Path:
        target = folder or tmp_path / name
        target.mkdir(parents=True, exist_ok=True)
        for part, content in parts.items():
            data = content.encode() if isinstance(content, str) else content
            (target / f"{name}_{part}.txt").write_bytes(data)
        return target

    return write


@pytest.fixture
def zip_folder(tmp_path: Path) -> Callable[[Path], Path]:
    """Pack a folder as the TU server does: `NAME/NAME_A.txt` and so on in `NAME.zip`."""

    def pack(folder: Path) -> Path:
        target = tmp_path / "zips" / f"{folder.name}.zip"
        target.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(folder.iterdir()):
                archive.write(file, f"{folder.name}/{file.name}")
        return target

    return pack
