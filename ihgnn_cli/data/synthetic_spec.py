"""The fields of a synthetic data set, as text `synthetic:homophily=0.3,graphs=500`.

The text is the data set's name, and equal data sets have equal names: `str` of a `SyntheticSpec`
lists the fields in a fixed order and leaves out defaults (except the homophily).
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, fields

from ihgnn_cli.errors import InputError
from ihgnn_cli.words import hint

PREFIX = "synthetic:"
EXAMPLE = "synthetic:homophily=0.3,graphs=500"
MAX_SIGNAL = 0.5
"""Above, labels that a class does not favour would have almost no homophilic edges."""
LEAST_OF_TWO = 0.1
"""Minimum homophily with two labels: their heterophilic edges are all alike."""
LEAST_DEGREE = 1.75
"""Minimum degree for the label with the fewest edges; below, isolated nodes would lower beta."""
_WHOLE = re.compile(r"[0-9]{1,19}")
_DECIMAL = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_MAX_SEED = 2**63 - 1
_MAX_LABELS = 100
_MAX_PAIRS = 200_000_000  # pairs of nodes; takes half a minute


@dataclass(frozen=True)
class SyntheticSpec:
    """The fields of a synthetic data set; a range is a pair, a single number is given twice.

    Raises:
        InputError: a field is out of range, or the fields contradict each other.
    """

    homophily: tuple[float, float] = (0.5, 0.5)
    """Mean node homophily beta of each graph; from a range, each graph draws its own."""
    graphs: int = 1000
    nodes: tuple[int, int] = (40, 60)
    labels: int = 4
    classes: int = 2
    degree: float = 4.0
    """Mean number of neighbours."""
    signal: float = 0.15
    """Share of edges that follow the pattern of the class."""
    noise: float = 0.0
    """Share of graphs whose class is replaced by another one."""
    seed: int = 0

    def __post_init__(self) -> None:
        self._check_fields()
        self._check_combination()

    def __str__(self) -> str:
        parts = [f"homophily={_written(self.homophily)}"]
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            if value != field.default:
                parts.append(f"{field.name}={_written(value)}")
        return PREFIX + ",".join(parts)

    @property
    def patterns(self) -> int:
        """Number of classes these labels can distinguish: rounds in which all labels meet once."""
        return self.labels if self.labels == 2 or self.labels % 2 else self.labels - 1

    def edges(self, nodes: int) -> int:
        """Number of edges of a graph with this many nodes."""
        return int(nodes * self.degree / 2 + 0.5)

    def _check_fields(self) -> None:
        if not 0 <= self.homophily[0] <= self.homophily[1] <= 1:
            raise _wrong("homophily", "a number from 0 to 1, or a range such as 0.2..0.8", self)
        if not 2 <= self.labels <= _MAX_LABELS:
            raise _wrong("labels", f"from 2 to {_MAX_LABELS}", self)
        if self.nodes[0] > self.nodes[1]:
            raise _wrong("nodes", "a number, or a range from less to more such as 40..60", self)
        if self.classes < 2:
            raise _wrong("classes", "at least 2", self)
        if self.graphs < self.classes:
            raise _wrong("graphs", f"at least one for each of the {self.classes} classes", self)
        if not 0 < self.signal <= MAX_SIGNAL:
            raise _wrong("signal", f"above 0 and at most {MAX_SIGNAL}", self)
        if not 0 <= self.noise <= 1:
            raise _wrong("noise", "from 0 to 1", self)
        if not 0 <= self.seed <= _MAX_SEED:
            raise _wrong("seed", "from 0 to 2^63 - 1", self)

    def _check_combination(self) -> None:
        least = 2 * self.labels
        if self.nodes[0] < least:
            raise _wrong("nodes", f"at least {least}, two of each of {self.labels} labels", self)
        if self.classes > self.patterns:
            more = self.classes + (0 if self.classes % 2 else 1)
            raise InputError(
                f"{PREFIX} {self.labels} labels make patterns for {self.patterns} classes, not "
                f"{self.classes}. Use labels={more} or more, or fewer classes."
            )
        if self.labels == 2 and self.homophily[0] < LEAST_OF_TWO:
            raise InputError(
                f"{PREFIX} with two labels all heterophilic edges are alike, and classes differ in "
                f"the others only. Use labels=3 or more, or a homophily from {LEAST_OF_TWO}."
            )
        pairs = self.graphs * self.nodes[1] ** 2 // 2
        if pairs > _MAX_PAIRS:
            raise InputError(
                f"{PREFIX} {self.graphs:,} graphs of {self.nodes[1]:,} nodes take too long to "
                "generate each time. Use fewer graphs or nodes."
            )
        least_degree = self._least_degree()
        if self.degree < least_degree:
            raise InputError(
                f"{PREFIX} degree={_written(self.degree)} would leave nodes without neighbours at "
                f"this homophily and signal. Use a degree from {_tenths(math.ceil, least_degree)}."
            )
        most = self._most_degree()
        if self.degree > most:
            raise InputError(
                f"{PREFIX} degree={_written(self.degree)} does not fit into {self.nodes[0]} nodes "
                f"with {self.labels} labels at this homophily and signal. Use more nodes, or a "
                f"degree of at most {_tenths(math.floor, most)}."
            )

    def _least_degree(self) -> float:
        """The degree at which the label with the fewest edges has `LEAST_DEGREE` neighbours."""
        shares = [edge_share(self, beta) for beta in self.homophily]
        of_ends = [h * p + (1 - h) * q for h in shares for p, q in end_shares(self)]
        return LEAST_DEGREE / (self.labels * min(of_ends))

    def _most_degree(self) -> float:
        """The degree at which the smallest graph has no room for more favoured edges."""
        nodes, each = self.nodes[0], self.nodes[0] // self.labels
        couples = self.labels // 2
        of_label = self.signal + (1 - self.signal) / self.labels
        of_couple = self.signal / couples
        of_couple += (1 - self.signal) / (self.labels * (self.labels - 1) / 2)
        same = edge_share(self, self.homophily[1]) * of_label
        other = (1 - edge_share(self, self.homophily[0])) * of_couple
        found = [nodes - 1.0]
        if same:
            found.append(each * (each - 1) / (nodes * same))
        if other:
            found.append(2 * each * each / (nodes * other))
        return min(found)


def end_shares(spec: SyntheticSpec) -> tuple[tuple[float, float], tuple[float, float]]:
    """The shares (p, q) of the favoured label, and of each other label.

    p is a label's share of the ends of homophilic edges, q its share for heterophilic edges.
    """
    labels, signal = spec.labels, spec.signal
    rest = (1 - signal) / labels
    if labels % 2:  # a round leaves out the favoured label
        return (signal + rest, rest), (rest, rest + signal / (labels - 1))
    return (signal + rest, 1 / labels), (rest, 1 / labels)


def edge_share(spec: SyntheticSpec, beta: float) -> float:
    """The share of homophilic edges that gives the expected node homophily beta.

    The favoured label has more homophilic edges than the others, so the mean over nodes is not the
    share of edges h but (docs/synthetic.md)

        beta(h) = mean over the labels a of h·p_a / (h·p_a + (1 - h)·q_a)
    """
    favoured, other = end_shares(spec)

    def expected(share: float) -> float:
        of_favoured, of_other = (
            share * p / (share * p + (1 - share) * q) for p, q in (favoured, other)
        )
        return (of_favoured + (spec.labels - 1) * of_other) / spec.labels

    if beta in (0, 1):
        return float(beta)
    low, high = 0.0, 1.0
    for _ in range(40):  # to 1e-12; beta(h) is increasing
        middle = (low + high) / 2
        low, high = (middle, high) if expected(middle) < beta else (low, middle)
    return (low + high) / 2


def _written(value: object) -> str:
    if isinstance(value, tuple):
        low, high = value
        return _written(low) if low == high else f"{_written(low)}..{_written(high)}"
    return repr(value).removesuffix(".0")


def _wrong(name: str, wanted: str, spec: SyntheticSpec) -> InputError:
    return InputError(f"{PREFIX} {name} must be {wanted}, not {_written(getattr(spec, name))}.")


def _tenths(rounded: Callable[[float], int], number: float) -> str:
    """One decimal, rounded to the side that is accepted."""
    return f"{rounded(number * 10) / 10:g}"


def is_synthetic(given: str) -> bool:
    """Whether a name is that of a synthetic data set."""
    return given.startswith(PREFIX)


def parse_synthetic(text: str) -> SyntheticSpec:
    """Parse `synthetic:FIELD=VALUE,...`; fields may come in any order.

    Raises:
        InputError: a field is unknown, named twice, malformed or out of range.
    """
    values: dict[str, object] = {}
    body = text.removeprefix(PREFIX)
    for part in body.split(",") if body.strip() else []:
        name, equals, value = (each.strip() for each in part.partition("="))
        if name not in _PARSERS:
            meant = hint(name.lower(), list(_PARSERS))
            raise InputError(f"{PREFIX} no field '{name}'. {meant} Example: {EXAMPLE}")
        if not equals or not value:
            raise InputError(f"{PREFIX} {name} has no value. Example: {EXAMPLE}")
        if name in values:
            raise InputError(f"{PREFIX} {name} is given twice. Give it once.")
        values[name] = _PARSERS[name](name, value)
    return SyntheticSpec(**values)  # type: ignore[arg-type]


def _whole(name: str, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise InputError(f"{PREFIX} {name} is a whole number, not '{text}'. Example: {EXAMPLE}")
    return int(text)


def _decimal(name: str, text: str) -> float:
    if not _DECIMAL.fullmatch(text):
        raise InputError(f"{PREFIX} {name} is a number, not '{text}'. Example: {EXAMPLE}")
    return float(text)


def _wholes(name: str, text: str) -> tuple[int, int]:
    low, _, high = text.partition("..") if ".." in text else (text, "", text)
    return _whole(name, low.strip()), _whole(name, high.strip())


def _decimals(name: str, text: str) -> tuple[float, float]:
    low, _, high = text.partition("..") if ".." in text else (text, "", text)
    return _decimal(name, low.strip()), _decimal(name, high.strip())


_PARSERS = {
    "homophily": _decimals,
    "graphs": _whole,
    "nodes": _wholes,
    "labels": _whole,
    "classes": _whole,
    "degree": _decimal,
    "signal": _decimal,
    "noise": _decimal,
    "seed": _whole,
}
