"""Accuracy against confidence, before and after temperature scaling fitted on other graphs.

Temperature scaling (Guo et al. 2017) divides the logits by one number T, here the logarithms of the
probabilities, so that it works for the mean of an ensemble too. It changes no predicted class.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.homophily.summary import bin_positions
from ihgnn_cli.inference.metrics import CALIBRATION_BINS, measure
from ihgnn_cli.words import counted

FEW_GRAPHS = 100
"""Validation graphs below which a temperature is called uncertain."""
# Temperatures from 1/20 to 20; the logarithm is found to about 0.001.
_RANGE, _STEPS, _ROUNDS = np.log(20), 21, 4
_DIGITS = 3  # differences that are not shown do not count
_TINY = np.finfo(np.float64).tiny  # for the logarithm of 0


@dataclass(frozen=True)
class ReliabilityBin:
    """The graphs whose predicted class has a probability from `low` up to `high`."""

    low: float
    high: float
    graphs: int
    confidence: float
    """Mean probability of the predicted class."""
    accuracy: float


@dataclass(frozen=True)
class Reliability:
    """Confidence and accuracy of some predictions."""

    calibration_error: float
    log_loss: float
    bins: tuple[ReliabilityBin, ...]
    """Without empty ones."""


@dataclass(frozen=True)
class Calibration:
    """The calibration of a model on the evaluated graphs."""

    plain: Reliability
    temperature: float | None
    """Fitted on the model's validation graphs; `None` if there are none."""
    fitted_on: int
    """Number of those graphs."""
    scaled: Reliability | None
    """With that temperature."""

    @property
    def caution(self) -> str | None:
        """Why the temperature should not be relied on, if there is a reason."""
        if self.scaled is None:
            return None
        reasons = []
        worse = [
            name
            for name, before, after in (
                (
                    "the calibration error",
                    self.plain.calibration_error,
                    self.scaled.calibration_error,
                ),
                ("the log-loss", self.plain.log_loss, self.scaled.log_loss),
            )
            if round(after, _DIGITS) > round(before, _DIGITS)
        ]
        if worse:
            reasons.append(f"it makes {' and '.join(worse)} of the evaluated graphs worse")
        if self.fitted_on < FEW_GRAPHS:
            graphs = counted(self.fitted_on, "validation graph")
            reasons.append(f"it was fitted on {graphs}, fewer than {FEW_GRAPHS}")
        return f"Do not rely on the temperature: {', and '.join(reasons)}." if reasons else None


def calibrate(
    probabilities: NDArray[np.float64],
    truth: NDArray[np.int64],
    validation: tuple[NDArray[np.float64], NDArray[np.int64]] | None,
) -> Calibration:
    """The calibration of predictions.

    Args:
        probabilities: [G, C]
        truth: [G]
        validation: probabilities and truth of other graphs, to fit the temperature.
    """
    plain = reliability(probabilities, truth)
    if validation is None:
        return Calibration(plain, None, 0, None)
    temperature = fit_temperature(*validation)
    scaled = reliability(with_temperature(probabilities, temperature), truth)
    return Calibration(plain, temperature, len(validation[1]), scaled)


def reliability(probabilities: NDArray[np.float64], truth: NDArray[np.int64]) -> Reliability:
    """Confidence and accuracy in 15 equal bins of confidence."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    places = bin_positions(confidence, 0, 1, CALIBRATION_BINS)
    bins = []
    for place in np.unique(places).tolist():
        inside = places == place
        bins.append(
            ReliabilityBin(
                low=place / CALIBRATION_BINS,
                high=(place + 1) / CALIBRATION_BINS,
                graphs=int(inside.sum()),
                confidence=float(confidence[inside].mean()),
                accuracy=float(right[inside].mean()),
            )
        )
    found = measure(probabilities, truth, resamples=1)
    return Reliability(found.calibration_error, found.log_loss, tuple(bins))


def with_temperature(probabilities: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """[G, C] the probabilities of the logits divided by a temperature."""
    log_p = np.log(np.clip(probabilities, _TINY, 1)) / temperature
    log_p -= log_p.max(axis=1, keepdims=True)
    scaled = np.exp(log_p)
    scaled /= scaled.sum(axis=1, keepdims=True)
    return scaled


def fit_temperature(probabilities: NDArray[np.float64], truth: NDArray[np.int64]) -> float:
    """The temperature with the smallest log-loss, from 1/20 to 20."""
    rows = np.arange(len(truth))
    middle, reach = 0.0, float(_RANGE)
    for _ in range(_ROUNDS):  # the loss is convex in 1 / T, so a finer search finds its minimum
        tried = np.clip(np.linspace(middle - reach, middle + reach, _STEPS), -_RANGE, _RANGE)
        losses = [
            -np.log(
                with_temperature(probabilities, float(np.exp(each)))[rows, truth] + 1e-300
            ).sum()
            for each in tried
        ]
        middle, reach = float(tried[int(np.argmin(losses))]), 2 * reach / (_STEPS - 1)
    return float(np.exp(middle))
