"""The registry entry of GIN: settings, cost and grid; see `baselines/gin.py`."""

from dataclasses import dataclass

from ihgnn_cli.models.settings import ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec, lazily


@dataclass(frozen=True)
class GINSettings(ModelSettings):
    """`layers` is K; `width` is for the MLPs; `dropout` is for the scores; `hidden` is not used."""

    layers: int = 4
    learn_eps: bool = False
    """Whether eps is learned (GIN-eps) or 0 (GIN-0)."""

    @property
    def unused(self) -> tuple[str, ...]:
        """As of `ModelSettings`."""
        return ("hidden",)


def _numbers(settings: GINSettings, load: Load) -> float:
    # A round keeps its MLP's input, and the input and output of its two normalizations; an edge
    # keeps its two ends, two numbers each.
    return settings.layers * 6 * settings.width * load.nodes + 4 * load.edges


MODEL = ModelSpec(
    name="gin",
    title="GIN",
    reference="Xu, Hu, Leskovec, Jegelka 2019, How powerful are graph neural networks?",
    settings=GINSettings,
    cost=Cost.EDGES,
    parameters=8_440,
    numbers=_numbers,
    make=lazily("ihgnn_cli.models.baselines.gin:GIN"),
    grid={
        "width": (16, 32, 64),
        "batch_size": (32, 128),
        "dropout": (0.0, 0.5),
        "lr": (0.01,),
    },
    grid_source=(
        "Section 7: 16 or 32 hidden units for molecules and proteins and 64 for social networks, "
        "batches of 32 or 128, dropout of 0 or 0.5, Adam at 0.01. All three widths compete here "
        "for all data. The paper also searches the number of epochs, which the caller sets here. "
        "The authors' code (main.py) has the same rate, and 5 layers with the input."
    ),
    note=(
        "GIN-0 unless learn_eps is set; 4 rounds and the input, 2-layer MLPs. The learning rate is "
        "not halved every 50 epochs as in the paper."
    ),
    layouts=("padded", "sparse"),
)
