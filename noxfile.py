"""Sessions: CI runs all but `bench`. `nox` alone runs the tests; `nox -r` keeps environments."""

import re
from pathlib import Path

import nox

nox.options.sessions = ["tests"]
nox.options.default_venv_backend = "virtualenv"
nox.needs_version = ">=2025.2.9"  # dependency groups

PROJECT = nox.project.load_toml("pyproject.toml")
# Measured: 98 %. The floor leaves a margin for refactoring.
COVERAGE_FLOOR = 95
# Starting commands takes most of the time: run two processes, with all tests of a file in one.
SIDE_BY_SIDE = ("-n", "2", "--dist", "loadfile")


def install(session: nox.Session, *groups: str) -> None:
    """Install the project as a user would, plus the session's dependency groups."""
    session.install(".", *nox.project.dependency_groups(PROJECT, *groups))


def temporary(session: nox.Session) -> str:
    """A folder of the session, as an absolute path: tests change the working directory."""
    return str(Path(session.create_tmp()).resolve())


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests against the installed package."""
    install(session, "test")
    session.run("pytest", *SIDE_BY_SIDE, "-m", "not long", *session.posargs)


@nox.session
def e2e(session: nox.Session) -> None:
    """Run the tests that take minutes or gigabytes: COLLAB and DD, a Ray cluster, more signals."""
    install(session, "test")
    elsewhere = ("tests/test_documentation.py", "tests/deploy/test_oldest_onnxruntime.py")
    skipped = [f"--ignore={path}" for path in elsewhere]  # sessions of their own
    session.run("pytest", "-m", "long", *skipped, *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check formatting and lint rules."""
    session.install(*nox.project.dependency_groups(PROJECT, "lint"))
    session.run("ruff", "format", "--check", "--diff", ".")
    session.run("ruff", "check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Run strict type checks, including the command line."""
    install(session, "types")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation site, and run the commands and Python blocks on its pages."""
    install(session, "test", "docs")
    session.run("mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})
    session.run("pytest", "-m", "long", "tests/test_documentation.py", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """Run the tests with a minimum coverage."""
    install(session, "test")
    session.run(
        "pytest",
        *SIDE_BY_SIDE,
        "-m",
        "not long",
        "--cov",
        "--cov-report=term",
        f"--cov-fail-under={COVERAGE_FLOOR}",
        *session.posargs,
    )


@nox.session
def newest(session: nox.Session) -> None:
    """Run the tests against the newest dependencies, even beyond the tested range."""
    names = {re.match(r"[\w.-]+", each).group() for each in PROJECT["project"]["dependencies"]}
    install(session, "test")
    # Markers select one of two onnxruntime packages; installing the other would overwrite it.
    installed = session.run("pip", "list", "--format=freeze", silent=True)
    present = sorted(name for name in names if f"\n{name}==".lower() in f"\n{installed}".lower())
    session.install("--upgrade", *present)
    session.run("pytest", *SIDE_BY_SIDE, "-m", "not long", *session.posargs)


@nox.session
def oldest_onnxruntime(session: nox.Session) -> None:
    """Run exported files without torch, and with the oldest onnxruntime."""
    install(session, "test")
    files = ("tests/deploy/test_oldest_onnxruntime.py", "tests/test_examples.py")
    session.run("pytest", "-m", "long", *files, *session.posargs)


@nox.session
def openvino(session: nox.Session) -> None:
    """Run exported files in OpenVINO, whose sort is not stable."""
    install(session, "test")
    session.install("openvino>=2025.0")
    files = ("tests/deploy/test_openvino.py", "tests/deploy/test_checking.py")
    session.run("pytest", *files, *session.posargs)


@nox.session
def serve(session: nox.Session) -> None:
    """Run the service with Triton's client, OpenAPI fuzzing and signals."""
    install(session, "test")
    session.install("tritonclient[http]", "schemathesis>=4", "httptools")
    session.run("pytest", "tests/deploy/serving", *session.posargs)


def npm(session: nox.Session, *packages: str) -> dict[str, str]:
    """Install packages of npm, and return the environment that tells the tests where."""
    folder = temporary(session)
    skip = {"ONNXRUNTIME_NODE_INSTALL": "skip"}  # no download of CUDA libraries
    options = ("--prefix", folder, "--no-audit", "--no-fund", "--no-package-lock")
    session.run("npm", "install", *options, *packages, env=skip, external=True)
    return {"IHGNN_NPM": folder}


@nox.session
def node(session: nox.Session) -> None:
    """Run exported files in onnxruntime-node (needs Node.js 20 or newer)."""
    install(session, "test")
    found = npm(session, "onnxruntime-node@^1.20", "typescript@>=5")
    files = ("tests/examples/test_encoder.py", "tests/examples/test_node.py")
    session.run("pytest", *files, *session.posargs, env=found)


@nox.session
def web(session: nox.Session) -> None:
    """Use the page in examples/web (needs Node.js and Chromium)."""
    install(session, "test")
    found = npm(session, "onnxruntime-web@^1.20", "playwright-core", "axe-core")
    session.run("pytest", "tests/examples/test_web.py", *session.posargs, env=found)


@nox.session
def cpp(session: nox.Session) -> None:
    """Build and run the C++ example (needs CMake and a compiler)."""
    install(session, "test")
    session.install("openvino>=2025.0")
    session.run("pytest", "tests/examples/test_cpp.py", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks; skips data sets that are not available."""
    install(session, "test")
    scripts = (
        "startup",
        "reading",
        "homophily",
        "training",
        "gradients",
        "versions",
        "crossval",
        "tune",
        "export",
        "predict",
        "serve",
    )
    for script in scripts:
        session.run("python", f"benchmarks/{script}.py", *session.posargs)
