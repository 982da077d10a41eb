"""Settings of studies that are checked before NumPy is imported."""

from ihgnn_cli.errors import SettingError

FEWEST_PERMUTATIONS = 40
"""With n shuffles p is at least 1 / (1 + n), and each of two tests asks for p < 0.025."""


def check_permutations(count: int) -> None:
    """Refuse a number of shuffles that cannot tell.

    Raises:
        InputError: it is neither 0 nor large enough.
    """
    if count != 0 and count < FEWEST_PERMUTATIONS:
        raise SettingError(
            "permutations",
            f"must be 0 (no test) or at least {FEWEST_PERMUTATIONS}, not {count}.",
        )
