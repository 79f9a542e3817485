"""What is printed in Part IV and false, as numbers: each is 'printed' against what is true."""

from __future__ import annotations

import itertools
import math

import numpy as np
from experiments.audit.protocol import worst
from experiments.audit.theorems import majority_error
from experiments.sensors.points import Part, Point, Table, exact_point
from scipy import stats

from sfumato.audit.property_testing import THIRD
from sfumato.privacy.accounting import max_divergence

EPSILON = 0.5


def run(*, quick: bool) -> Part:  # noqa: ARG001  every part is called alike
    """All of it is computed, and takes no time: a quick run is a full one."""
    rows: Table = [["figure", "what", "printed", "true"]]
    found: list[Point] = []
    for figure, what, printed, true in examples():
        found.append(exact_point(figure, "printed", "value", 0, printed))
        found.append(exact_point(figure, "true", "value", 0, true))
        rows.append([figure, what, f"{printed:.4g}", f"{true:.4g}"])
    text = "Numbers that decide the corrections of docs/errata.md; no chance in any of them."
    return Part("counterexamples", "Counterexamples", text, tuple(found), (("", rows),))


def examples() -> list[tuple[str, str, float, float]]:
    """Name, words, what the thesis says, what is so."""
    grown = math.exp(EPSILON)
    up = grown / 2 + 0.01
    reverse = worst((np.array([0.5, 0.5]), np.array([up, 1 - up])), EPSILON)
    thirds = np.repeat([0.1, 0.9, 0], 4) / 4, np.repeat([0, 0.9, 0.1], 4) / 4
    laws = np.array([0.1, 0.1, 0.8]), np.array([grown * 0.1, (2 - grown) * 0.1, 0.8])
    pure = max(float(max_divergence(*both)) for both in (laws, laws[::-1]))
    gamma, a = 0.1, 0.01
    pairs = math.ceil(math.log(3) * (2 * (a / 2 + gamma) ** 2 + 2 * a) / a**2)
    error = float(stats.binom.sf(math.floor((gamma + a) * pairs), pairs, gamma + a / 2))
    odd = math.ceil(math.log(2 / 0.05)) | 1
    return [
        ("thm-10.7-pair", "delta of the pair at epsilon 0.5, said to be 0.01", 0.01, reverse),
        (
            "thm-10.7-n",
            "delta of the pair with mass a = 0.1, said to be 2 a",
            0.2,
            worst(thirds, EPSILON),
        ),
        ("thm-10.8-bias", "bias of (Z)+ in deviations of Z", 1.0, largest_bias()),
        ("thm-10.11-chain", "4 + 1 + 2 + 1 + 4 steps", 10, 4 + 1 + 2 + 1 + 4),
        ("thm-10.12-laws", "epsilon of the stated laws, said to be 0.5", EPSILON, pure),
        ("thm-10.3-pairs", f"error of {pairs} pairs at gamma 0.1, a = 0.01", THIRD, error),
        (
            "alg-3-majority",
            f"error of a majority of {odd}, a = 0.05",
            0.025,
            majority_error(odd, THIRD),
        ),
        (
            "sec-10.4-log",
            "ln((1/2 + a)/(1/2 - a)) over a, a = 0.01",
            1.0,
            math.log(0.51 / 0.49) / 0.01,
        ),
        (
            "lem-10.6-tight",
            "what (1, 0), (0.4, 0.6) can lose by moves of 0.05",
            (1 + grown) * 0.05,
            reach() - 0.6,
        ),
    ]


def largest_bias() -> float:
    """The largest (E (Z)+ - (E Z)+) / sd(Z) of Z = X - e**epsilon Y found, X and Y Poisson."""
    x = np.arange(200.0)
    found = []
    for p, q in itertools.product((0.1, 1.0, 8.0, 50.0), repeat=2):
        for grown in (1.0, math.exp(0.5), math.e):
            weights = np.outer(stats.poisson.pmf(x, p), stats.poisson.pmf(x, q))
            positive = float((weights * np.maximum(x[:, None] - grown * x[None, :], 0)).sum())
            found.append((positive - max(0.0, p - grown * q)) / math.sqrt(p + grown**2 * q))
    return max(found)


def reach() -> float:
    """The largest delta at epsilon 0.5 of laws within 0.05 of (1, 0) and of (0.4, 0.6)."""
    moves = itertools.product(np.linspace(0.95, 1, 21), np.linspace(0.35, 0.45, 21))
    return max(worst((np.array([p, 1 - p]), np.array([q, 1 - q])), EPSILON) for p, q in moves)
