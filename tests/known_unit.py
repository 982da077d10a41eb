"""A unit of a cross-validation, and what its validation found."""

from ihgnn_cli.studies.grid import Configuration
from ihgnn_cli.studies.units import Stage, Unit, Validated
from ihgnn_cli.training.epoch import Epoch

A = Configuration(0.01, 32, 3)
FIRST = Unit(Stage.SELECT, 0, 0, A, 0)
KNOWN = Validated(
    unit=FIRST,
    seed=5,
    split_sha256="ab",
    epochs=2,
    diverged=False,
    best=Epoch(2, 0.5, 0.75, 0.25, 0.9),
    validation_graphs=10,
    hits=(4, 9),
    losses=(0.5, 0.25),
    seconds=1.5,
    members=3,
    device="cpu",
)
