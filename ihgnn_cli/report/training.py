"""A figure of loss and accuracy by epoch."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ihgnn_cli.report.figures import literal, new_figure, save_figure
from ihgnn_cli.training.epoch import Epoch

if TYPE_CHECKING:
    from matplotlib.artist import Artist

_TRAIN, _VALIDATION, _BEST = "#4c72b0", "#dd8452", "#6b6b6b"
_FEW_EPOCHS = 30  # up to here, epochs are marked; a single one makes no line
# A loss this many times the upper quartile would flatten the rest of the curve.
_SPIKE = 10


def draw_curves(history: Sequence[Epoch], title: str, best_epoch: int | None, path: Path) -> None:
    """Draw loss and accuracy by epoch side by side, with a line at the best epoch.

    What is unknown is NaN. The loss is on a logarithmic scale if a spike would flatten the rest.

    Raises:
        ValueError: there are no epochs.
    """
    if not history:
        raise ValueError("There are no epochs to draw: give at least one.")
    figure = new_figure((9.6, 3.9))
    panels = figure.subplots(1, 2)
    epochs = [each.epoch for each in history]
    marker = "o" if len(history) <= _FEW_EPOCHS else ""
    for panel, quantity in zip(panels, ("loss", "accuracy"), strict=True):
        every: list[float] = []
        for name, part, color in (
            ("training", "train", _TRAIN),
            ("validation", "validation", _VALIDATION),
        ):
            shown = [getattr(each, f"{part}_{quantity}") for each in history]
            every += shown
            if any(map(math.isfinite, shown)):
                panel.plot(
                    epochs, shown, label=name, color=color, marker=marker, ms=3, linewidth=1.4
                )
        if best_epoch is not None:
            panel.axvline(
                best_epoch,
                label=f"best epoch {best_epoch}",
                color=_BEST,
                linestyle="--",
                linewidth=1.1,
                zorder=1,
            )
        if quantity == "loss" and _has_spike(every):
            panel.set_yscale("log")
            panel.yaxis.set_major_formatter("{x:g}")
        panel.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        panel.set_xlim(min(epochs) - 0.5, max(epochs) + 0.5)
        panel.set_xlabel("epoch")
        panel.set_ylabel(f"{quantity} (log scale)" if panel.get_yscale() == "log" else quantity)
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    figure.suptitle(literal(title), wrap=True)
    legend: dict[str, Artist] = {}  # by name, because some curves are in one panel only
    for panel in panels:
        handles, names = panel.get_legend_handles_labels()
        legend.update(zip(names, handles, strict=True))
    figure.legend(
        list(legend.values()), list(legend), loc="outside lower center", ncols=3, frameon=False
    )
    save_figure(figure, path)


def _has_spike(losses: Sequence[float]) -> bool:
    """Whether some losses are so large that the others need a logarithmic scale."""
    known = sorted(each for each in losses if math.isfinite(each) and each > 0)
    return bool(known) and known[-1] > _SPIKE * known[3 * len(known) // 4]
