"""Provenance of a table: versions, machines, dates and commands of its results."""

from collections.abc import Sequence

from ihgnn_cli.masking import masked_text
from ihgnn_cli.studies.crossval.result import CrossvalResult
from ihgnn_cli.words import counted, duration

_PACKAGES = ("torch", "torch-geometric", "numpy")


def origin_facts(results: Sequence[CrossvalResult]) -> list[tuple[str, str]]:
    """The provenance in `result.json` files: names, each with its distinct values."""
    provenance = [result.provenance for result in results]
    packages = [each.get("packages") or {} for each in provenance]
    facts = [
        ("Results", counted(len(results), "finished cross-validation")),
        ("ihgnn", _listed([each.get("ihgnn") for each in provenance])),
        ("Python", _listed([each.get("python") for each in provenance])),
        *((name, _listed([each.get(name) for each in packages])) for name in _PACKAGES),
        ("Processor or GPU", _listed([each.get("device_name") for each in provenance])),
        ("System", _listed([each.get("platform") for each in provenance])),
        ("Finished", _period([result.finished for result in results])),
        ("Trained", _work(results)),
    ]
    return [(name, content) for name, content in facts if content] if results else []


def commands(results: Sequence[CrossvalResult]) -> tuple[str, ...]:
    """The distinct commands that made the results, without passwords."""
    found = (str(result.provenance.get("command") or "") for result in results)
    return tuple(dict.fromkeys(masked_text(each) for each in found if each))


def _listed(values: Sequence[object]) -> str:
    return ", ".join(dict.fromkeys(str(value) for value in values if value))


def _period(dates: Sequence[object]) -> str:
    known = sorted(str(each) for each in dates if each)
    if not known:
        return ""
    return known[0] if known[0] == known[-1] else f"{known[0]} to {known[-1]}"


def _work(results: Sequence[CrossvalResult]) -> str:
    models = sum(result.models for result in results)
    seconds = sum(result.worker_seconds for result in results)
    return f"{counted(models, 'model')} in {duration(seconds)} of worker time" if models else ""
