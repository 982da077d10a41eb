"""The configurations that compete: learning rate × batch size × K."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from ihgnn_cli.errors import InputError
from ihgnn_cli.training.config import RunConfig

PAPER_LR = (0.01, 0.001, 0.0001)
PAPER_BATCH_SIZE = (32, 64, 128)
PAPER_LAYERS = (3, 4, 5)
"""The paper's grid, section "Experimental setup": 27 configurations."""


@dataclass(frozen=True)
class Configuration:
    """One point of the grid."""

    lr: float
    batch_size: int
    layers: int
    """K."""

    def __str__(self) -> str:
        return f"lr {self.lr:g}, batch size {self.batch_size}, K = {self.layers}"

    def applied(self, config: RunConfig) -> RunConfig:
        """The configuration of a training with these values."""
        return replace(
            config,
            model=replace(config.model, layers=self.layers),
            training=replace(config.training, lr=self.lr, batch_size=self.batch_size),
        )


def grid(
    config: RunConfig,
    lr: Sequence[float] = PAPER_LR,
    batch_size: Sequence[int] = PAPER_BATCH_SIZE,
    layers: Sequence[int] = PAPER_LAYERS,
) -> tuple[Configuration, ...]:
    """All combinations, in the order given: of equals, the earlier one is chosen.

    Raises:
        InputError: a list is empty or holds a value twice, or a value is out of range.
    """
    for name, values in (("lr", lr), ("batch-size", batch_size), ("layers", layers)):
        if not values:
            raise InputError(f"--{name} is empty. Give one or several values, as 1,2,3.")
        for at, value in enumerate(values):
            if value in values[:at]:
                raise InputError(f"--{name} names {value:g} twice. Name it once.")
    made = tuple(Configuration(*values) for values in product(lr, batch_size, layers))
    for each in made:
        each.applied(config)  # refuses what is out of range
    return made
