"""Odds of a channel, what its reports are made of, and the checks that all channels share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy.accounting import Number, exact, exp_below

Report = tuple[int, ...]

# Odds have this many bits after the point: weights that a phone adds up in 64-bit integers.
BITS = 16
MAX_EPSILON = 16
MAX_CELLS = 4096
# Outputs or hash functions of a channel.
MAX_REPORTS = 2**20


class Uniform(Protocol):
    """Where integers come from: a `Noise` of the package, or bytes that somebody else drew."""

    def uniform(self, below: int, size: int) -> list[int]:
        """Integers from 0 to below - 1, all equally likely."""


def odds_below(epsilon: Number) -> Fraction:
    """Odds for an epsilon: e**epsilon rounded down to 16 bits after the point, at least 1.

    Args:
        epsilon: Above 0, at most 16.

    Returns:
        The odds; their logarithm is at most epsilon.

    Raises:
        InvalidParameter: Epsilon is out of range.

    Example:
        >>> odds_below(1)
        Fraction(178145, 65536)

    """
    value = exact(epsilon, name="epsilon")
    if not 0 < value <= MAX_EPSILON:
        raise InvalidParameter(
            f"epsilon of a local answer must lie in (0, {MAX_EPSILON}], got {epsilon}; no channel was made"
        )
    return max(Fraction(1), Fraction(math.floor(exp_below(value) * 2**BITS), 2**BITS))


def check_channel(cells: int, odds: Fraction) -> None:
    """Refuse numbers of cells and odds out of range."""
    if not 2 <= cells <= MAX_CELLS:
        raise InvalidParameter(
            f"a channel is over 2 to {MAX_CELLS} cells, got {cells}; no channel was made"
        )
    if not 1 <= odds <= exp_below(Fraction(MAX_EPSILON)):
        raise InvalidParameter(f"odds must lie in 1..e**{MAX_EPSILON}; no channel was made")


def check_cell(cell: int, cells: int) -> None:
    """Refuse what is no cell, and do not say which it was."""
    if not 0 <= cell < cells:
        raise InvalidParameter(f"a cell is one of 0..{cells - 1}, got another; nothing was drawn")


def check_cells(report: Sequence[int], cells: int) -> None:
    """Refuse a report of what are no cells."""
    if any(type(one) is not int or not 0 <= one < cells for one in report):
        raise no_report(tuple(report), f"cells below {cells}")


def no_report(report: Report, rule: str) -> InvalidInput:
    """What is said of what is no report."""
    return InvalidInput(f"a report of this channel is {rule}, got {str(report)[:60]}")
