"""The papers' tables of how errors grow, as printed, and what follows from their proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from experiments.sensors.points import Point, Table
from experiments.sensors.protocol import OURS, PAPERS

TURNS = "6c"
"""The panel that falls and then rises: it has an exponent on either side of its least."""


@dataclass(frozen=True, slots=True)
class Asymptotic:
    """One row of the papers' tables: how a bound moves with one variable when the others are held.

    `abstract` is what the abstract prints in its own tables, I (noisy) and II (private; in t = 2T), and
    `follows` what the corrected proof gives: an upper bound, which a better proof may lower.
    """

    table: str
    variable: str
    printed: str
    abstract: str
    follows: str
    note: str


def tables() -> tuple[Asymptotic, ...]:
    """Tables 1 (private recovery) and 2 (noisy recovery) as printed, and what follows from the proof.

    [gilbert17, tables 1, 2] [gilbert18, table 1] [mcmillan18, table 8.1] [gilbertheat17, tables I,
    II]. The theorem assumes T < 1/2, so what grows with T means nothing; only small T does. An
    error on [0, 1] is at most 1, so O(1) alone says nothing either.

    >>> [(row.table, row.variable) for row in tables() if row.printed != row.follows]
    [('private', 'm'), ('private', 'T'), ('noisy', 'T'), ('noisy', 'sigma')]
    """
    return (
        Asymptotic("private", "n", "O(1 + 1/sqrt(n))", "O(1 + 1/sqrt(n))", "O(1 + 1/sqrt(n))", ""),
        Asymptotic(
            "private",
            "m",
            "O(1)",
            "O(sqrt(m))",
            "min{1, O(1 + sqrt(m))}",
            "The abstract has what the bound gives; experiments find O(1).",
        ),
        Asymptotic(
            "private",
            "T",
            "min{1, O(1 + 1/T + T^2.5 exp(-A^2/4T))}",
            "O(1/t + sqrt(t) + t^2 exp(-B^2/4 mu t))",
            "min{1, O(1 + T^-3/4)}",
            "From this proof; the sensitivity grows as T^-3/4 for small T, not as T^-3/2. For one source "
            "away from the ends T^-1/2 can be had.",
        ),
        Asymptotic("noisy", "n", "O(1)", "O(1)", "O(1)", ""),
        Asymptotic("noisy", "m", "O(1)", "O(1)", "O(1)", "Experiments find 1 + 1/sqrt(m)."),
        Asymptotic(
            "noisy",
            "T",
            "min{1, O(T^1.5 + sqrt(T))}",
            "O(sqrt(T) + T^2)",
            "min{1, O(1 + sqrt(T))}",
            "From this proof, whose C has no factor sqrt(T); for one source away from the ends a C with "
            "T^1/4 can be had.",
        ),
        Asymptotic(
            "noisy",
            "sigma",
            "min{1, O(sigma)}",
            "O(sigma)",
            "min{1, O(1 + sqrt(sigma) + sigma)}",
            "sqrt(sigma) is in the printed bound too, so it does not match the lower bound in sigma.",
        ),
    )


def rates(found: tuple[Point, ...], name: str, figures: Mapping[str, str]) -> Table:
    """One of the tables beside the exponents that were measured: `figures` has the panel of each variable."""
    rows = [
        [
            "variable",
            "printed",
            "the abstract",
            "follows from the corrected proof",
            "papers, measured",
            "ours, measured",
        ]
    ]
    for row in tables():
        if row.table == name:
            slopes = [exponent(found, figures[row.variable], series) for series in (PAPERS, OURS)]
            rows.append([row.variable, row.printed, row.abstract, row.follows, *slopes])
    return rows


def exponent(found: tuple[Point, ...], figure: str, series: str) -> str:
    """The exponent of a power law through all points of a series, or both ends' where it turns."""
    some = [p for p in found if (p.figure, p.series, p.metric) == (figure, series, "emd")]
    x, y = np.log([p.x for p in some]), np.log([p.middle for p in some])
    if figure == TURNS:
        low = int(np.argmin(y))
        halves = [(x[: low + 1], y[: low + 1]), (x[low:], y[low:])]
        told = [f"{np.polyfit(a, b, 1)[0]:.2f}" if a.size > 1 else "-" for a, b in halves]
        return f"{told[0]} below T = {some[low].x:g}, {told[1]} above"
    return f"{np.polyfit(x, y, 1)[0]:.2f}"
