"""The papers' tables of how errors grow, as printed, and what follows from their proof."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asymptotic:
    """One row of the papers' tables: how a bound moves with one variable when the others are held.

    `follows` is what the corrected proof gives: an upper bound, which a better proof may lower.
    """

    table: str
    variable: str
    printed: str
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
        Asymptotic("private", "n", "O(1 + 1/sqrt(n))", "O(1 + 1/sqrt(n))", ""),
        Asymptotic(
            "private",
            "m",
            "O(1)",
            "min{1, O(1 + sqrt(m))}",
            "Table II of the abstract has O(sqrt(m)), which is what the bound gives; experiments find O(1).",
        ),
        Asymptotic(
            "private",
            "T",
            "min{1, O(1 + 1/T + T^2.5 exp(-A^2/4T))}",
            "min{1, O(1 + T^-3/4)}",
            "From this proof; the sensitivity grows as T^-3/4 for small T, not as T^-3/2. For one source "
            "away from the ends T^-1/2 can be had.",
        ),
        Asymptotic("noisy", "n", "O(1)", "O(1)", ""),
        Asymptotic("noisy", "m", "O(1)", "O(1)", "Experiments find 1 + 1/sqrt(m)."),
        Asymptotic(
            "noisy",
            "T",
            "min{1, O(T^1.5 + sqrt(T))}",
            "min{1, O(1 + sqrt(T))}",
            "From this proof, whose C has no factor sqrt(T); for one source away from the ends a C with "
            "T^1/4 can be had. Table I of the abstract has O(sqrt(T) + T^2).",
        ),
        Asymptotic(
            "noisy",
            "sigma",
            "min{1, O(sigma)}",
            "min{1, O(1 + sqrt(sigma) + sigma)}",
            "sqrt(sigma) is in the printed bound too, so it does not match the lower bound in sigma.",
        ),
    )
