"""`nox` runs the tests; `nox -s NAME` another session, `nox -r` keeps its environment."""

import re
from pathlib import Path

import nox

nox.options.sessions = ["tests"]
nox.options.default_venv_backend = "virtualenv"
nox.needs_version = ">=2025.2.9"  # dependency groups

PROJECT = nox.project.load_toml("pyproject.toml")
# Starting commands takes most of the time: run processes side by side, each with whole files.
SIDE_BY_SIDE = ("-n", "2", "--dist", "loadfile")
# Sessions of their own run these.
ELSEWHERE = ("tests/test_documentation.py", "tests/deploy/test_oldest_onnxruntime.py")
# What exported models run in: packages of pip, packages of npm, tests.
RUNTIMES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "serve": (
        ("tritonclient[http,grpc]", "schemathesis>=4"),
        (),
        ("tests/deploy/test_service.py", "tests/e2e/test_serve.py"),
    ),
    "node": (
        (),
        ("onnxruntime-node@^1.20", "typescript@>=5"),
        ("tests/examples/test_encoder.py", "tests/examples/test_node.py"),
    ),
    "web": (
        (),
        ("onnxruntime-web@^1.20", "playwright-core", "axe-core"),
        ("tests/examples/test_web.py",),
    ),
    "cpp": (("openvino>=2025.0",), (), ("tests/examples/test_cpp.py",)),
    "openvino": (("openvino>=2025.0",), (), ("tests/deploy/test_openvino.py",)),
    "oldest": ((), (), ("tests/deploy/test_oldest_onnxruntime.py", "tests/test_examples.py")),
}


def install(session: nox.Session, *groups: str) -> None:
    """Install the project as a user would, and dependency groups."""
    session.install(".", *nox.project.dependency_groups(PROJECT, *groups))


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests against the installed package; `-- --cov` measures coverage."""
    install(session, "test")
    session.run("pytest", *SIDE_BY_SIDE, "-m", "not long", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check formatting and lint rules."""
    session.install(*nox.project.dependency_groups(PROJECT, "lint"))
    session.run("ruff", "format", "--check", "--diff", ".")
    session.run("ruff", "check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Run strict type checks."""
    install(session, "types")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site, check the tables of results, and run the blocks on the pages."""
    install(session, "test", "docs")
    session.run("mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})
    session.run("python", "results/table.py", "--check")
    session.run("pytest", "-m", "long", "tests/test_documentation.py", *session.posargs)


@nox.session
@nox.parametrize("runtime", [nox.param(name, id=name) for name in RUNTIMES])
def interop(session: nox.Session, runtime: str) -> None:
    """Run exported models elsewhere. Needs Node.js (node, web), Chromium (web), CMake (cpp)."""
    packages, modules, files = RUNTIMES[runtime]
    install(session, "test")
    if packages:
        session.install(*packages)
    env = {}
    if modules:
        folder = str(Path(session.create_tmp()).resolve())  # tests change the working directory
        options = ("--prefix", folder, "--no-audit", "--no-fund", "--no-package-lock")
        no_cuda = {"ONNXRUNTIME_NODE_INSTALL": "skip"}
        session.run("npm", "install", *options, *modules, env=no_cuda, external=True)
        env["IHGNN_NPM"] = folder
    session.run("pytest", "-m", "long or not long", *files, *session.posargs, env=env)


@nox.session
def newest(session: nox.Session) -> None:
    """Run the tests with the newest dependencies, even beyond the tested range."""
    names = {re.match(r"[\w.-]+", each).group() for each in PROJECT["project"]["dependencies"]}
    install(session, "test")
    # Markers select one of two onnxruntime packages; installing the other would overwrite it.
    installed = session.run("pip", "list", "--format=freeze", silent=True)
    present = sorted(name for name in names if f"\n{name}==".lower() in f"\n{installed}".lower())
    session.install("--upgrade", *present)
    session.run("pytest", *SIDE_BY_SIDE, "-m", "not long", *session.posargs)


@nox.session
def e2e(session: nox.Session) -> None:
    """Run what takes minutes or gigabytes: real data (IHGNN_DATA), Ray, PostgreSQL, signals."""
    install(session, "test")
    others = [f"--ignore={path}" for path in ELSEWHERE]
    session.run("pytest", "-m", "long", *others, *session.posargs)
    session.run("pytest", "tests/e2e", "tests/contract", env={"IHGNN_E2E": "process"})
