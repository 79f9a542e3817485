"""Table 5.1 of the thesis: when even blocks cannot be told from none, as printed and as it follows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sfumato.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class Contiguity:
    """One row of table 5.1: when k even blocks cannot be told from none, and the error that follows."""

    printed: str
    follows: str
    regime: str
    error: str
    citation: str


def contiguity_table() -> tuple[Contiguity, ...]:
    """Table 5.1 of the thesis as printed, and as the works it cites have it [mcmillan18, table 5.1].

    The third condition has n**2 for n, k + 1 for k - 1, and no k below: it would never hold for
    large n.

    >>> [row.printed == row.follows for row in contiguity_table()]
    [True, True, False]
    """
    two = "n (p - q)^2 <= 2 (p + q)"
    return (
        Contiguity(two, two, "p = a/n, q = b/n, k = 2", "min(rho, sqrt(rho / n))", "mossel15"),
        Contiguity(
            two, two, "rho n to infinity, rho to 0, k = 2", "min(rho, sqrt(rho / n))", "banerjee18"
        ),
        Contiguity(
            "n^2 (p - q)^2 (k - 1) / (p + (k + 1) q) <= 2 log(k - 1)",
            "n (p - q)^2 (k - 1) / (k (p + (k - 1) q)) < 2 log(k - 1)",
            "p = a/n, q = b/n, k >= 3",
            "min(rho / sqrt(k), sqrt(rho log(k) / n))",
            "banks16",
        ),
    )


def contiguity_floor(within: float, between: float, k: int) -> float:
    """How far k even blocks are from one: what cannot be estimated where the two cannot be told apart.

    delta_2 = |p - q| sqrt(k - 1) / k between chances p within, q between blocks and their mean. If
    the laws are contiguous, an estimator errs by a constant part of it on one of the two
    [mcmillan18, lem. 5.5]: half of it times one less their total variation, which contiguity keeps
    below 1 and does not say.

    >>> contiguity_floor(0.75, 0.25, 2)
    0.25
    """
    for chance in (within, between):
        if not 0 <= chance <= 1:
            raise InvalidParameter(
                f"the chance of an edge must lie in [0, 1], got {chance}; nothing was computed"
            )
    if k < 1:
        raise InvalidParameter(f"k must be at least 1, got {k}; nothing was computed")
    return abs(within - between) * math.sqrt(k - 1) / k
