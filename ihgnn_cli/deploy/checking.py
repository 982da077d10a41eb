"""Checks an exported file in the runtimes of this machine, with its golden vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ihgnn_cli.deploy.comparison import compared
from ihgnn_cli.deploy.golden import Golden, GoldenCase, read_golden
from ihgnn_cli.deploy.onnx_model import SUFFIX
from ihgnn_cli.deploy.runtimes import Runtime, check_runtimes, installed_runtimes, start
from ihgnn_cli.errors import IhgnnError, InputError


@dataclass(frozen=True)
class CaseResult:
    """One case in one runtime."""

    case: str
    graphs: int
    difference: float | None
    """The largest of any output, relative to the graph's largest expected value or 1; `None` if
    the runtime failed."""
    same_class: bool
    """Whether all classes are the expected ones."""
    passed: bool
    error: str = ""
    """What the runtime said if it failed."""


@dataclass(frozen=True)
class RuntimeResult:
    """All cases in one runtime."""

    runtime: str
    version: str
    operators: dict[str, int]
    """How many operators ran where; a provider leaves what it cannot do to the CPU."""
    cases: tuple[CaseResult, ...]
    error: str = ""
    """Why the runtime did not start, if it did not."""

    @property
    def used(self) -> bool:
        """Whether the runtime itself ran any operator."""
        return self.operators.get(self.runtime, 0) > 0

    @property
    def passed(self) -> bool:
        """Whether it ran, and all answers are right."""
        return self.used and all(each.passed for each in self.cases)


@dataclass(frozen=True)
class Checked:
    """The check of an exported file."""

    model: Path
    golden: Golden
    runtimes: tuple[RuntimeResult, ...]


def check_export(model: Path, runtimes: Sequence[str] = ()) -> Checked:
    """Run the golden cases of an exported file.

    Args:
        model: the .onnx file, with its golden vectors beside it.
        runtimes: names of onnxruntime providers, or openvino:DEVICE; by default all that are
            installed.

    Raises:
        InputError: a file is missing or damaged, the golden vectors belong to another file or have
            no cases, or a runtime is not installed.
    """
    if model.suffix.lower() != SUFFIX or not model.is_file():
        raise InputError(f"{model} is not a {SUFFIX} file. Give a file that 'ihgnn export' wrote.")
    golden = read_golden(model)
    if not golden.cases:
        raise InputError(
            f"The golden vectors of {model} have no cases: {golden.left_out[0]['reason']}. Export "
            "it with a smaller --max-nodes, or on other graphs (--dataset)."
        )
    check_runtimes(runtimes)
    names = dict.fromkeys(runtimes or installed_runtimes())
    return Checked(model, golden, tuple(_of_runtime(each, model, golden) for each in names))


def _of_runtime(name: str, model: Path, golden: Golden) -> RuntimeResult:
    try:
        runtime = start(name, model)
    except IhgnnError as error:
        return RuntimeResult(name, "", {}, (), str(error))
    cases = tuple(_of_case(runtime, case, golden.tolerance) for case in golden.cases)
    return RuntimeResult(name, runtime.version, runtime.operators(), cases)


def _of_case(runtime: Runtime, case: GoldenCase, tolerance: float) -> CaseResult:
    graphs = len(case.graphs)
    try:
        found = runtime.run(case.inputs, list(case.outputs))
    except Exception as error:  # noqa: BLE001 - each runtime has its own types
        return CaseResult(case.name, graphs, None, False, False, str(error))
    apart = compared(case.outputs, found, tolerance)
    return CaseResult(
        case=case.name,
        graphs=graphs,
        difference=float(apart.largest.max()),
        same_class=not apart.changed.any(),
        passed=not apart.beyond(tolerance).any(),
    )
