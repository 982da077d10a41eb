"""What results say of their making, once each."""

from typing import Any

import finished_crossvals

from ihgnn_cli.report.origins import commands, origin_facts
from ihgnn_cli.studies.crossval.result import CrossvalResult


def result(date: str = "2026-01-02", **changes: Any) -> CrossvalResult:
    provenance = {
        "ihgnn": "0.1.0",
        "python": "3.11.7",
        "platform": "Linux",
        "packages": {"torch": "2.13.0"},
        "device_name": "a processor",
        "command": "ihgnn crossval --dataset MUTAG",
        **changes,
    }
    return finished_crossvals.result(provenance=provenance, finished=date)


def test_equal_facts_are_told_once_and_different_ones_side_by_side() -> None:
    later = result("2026-01-01", packages={"torch": "2.7.0"})
    assert origin_facts([result(), result(), later]) == [
        ("Results", "3 finished cross-validations"),
        ("ihgnn", "0.1.0"),
        ("Python", "3.11.7"),
        ("torch", "2.13.0, 2.7.0"),
        ("Processor or GPU", "a processor"),
        ("System", "Linux"),
        ("Finished", "2026-01-01 to 2026-01-02"),
        ("Trained", "900 models in 90 min of worker time"),
    ]


def test_what_is_not_known_is_left_out() -> None:
    none = finished_crossvals.result(provenance={}, models=0, finished="")
    assert origin_facts([none]) == [("Results", "1 finished cross-validation")]
    assert origin_facts([]) == []
    assert commands([none]) == ()


def test_commands_come_once_and_without_passwords() -> None:
    secret = result(command="ihgnn tune --storage postgresql://me:secret@host/db")
    assert commands([result(), secret, result()]) == (
        "ihgnn crossval --dataset MUTAG",
        "ihgnn tune --storage postgresql://me:***@host/db",
    )
