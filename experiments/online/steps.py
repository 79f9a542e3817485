"""Table 2: how far plays move in one round, with the right sign and with the printed one."""

from __future__ import annotations

import math

import numpy as np
from experiments.online.protocol import NOISES, generator
from experiments.online.stability import lipschitz_bound, log_ratios, one_step_privacy, printed_play
from experiments.sensors.points import Part, Point, Table, exact_point

from sfumato.online import expected_play, perturbation

COUNT = 8
ASKED = (0.05, 0.2, 1.0)


def run(*, quick: bool) -> Part:
    """Measured over asked, for every noise, and Proposition 13.4 on random losses."""
    found: list[Point] = []
    rows: Table = [["noise", "asked", "argmin(L - Z)", "argmin(L + Z)"]]
    for name in NOISES:
        for asked in ASKED[1:2] if quick else ASKED:
            noise = perturbation(name, asked, count=COUNT)
            right = one_step_privacy(noise, COUNT).measured
            printed = with_printed_sign(name, asked)
            found.append(exact_point("one-step", name, "epsilon", asked, right / asked))
            found.append(exact_point("printed", name, "epsilon", asked, printed / asked))
            rows.append([name, f"{asked:g}", f"{right:.4f}", f"{printed:.4f}"])
        found.append(
            exact_point("lipschitz", name, "cases", 0, lipschitz(name, 60 if quick else 600))
        )
    found.append(exact_point("sec-12.1", "printed", "rounds", 1000, one_line(printed=True)))
    found.append(exact_point("sec-12.1", "leader", "rounds", 1000, one_line(printed=False)))
    text = (
        f"The largest |ln P_t(i) / P_t+1(i)| found for {COUNT} candidates; the bound is the epsilon asked. "
        "With the printed sign the left tail of the noise decides, which its hazard does not bound."
    )
    return Part("steps", "One-step privacy", text, tuple(found), (("", rows),))


def with_printed_sign(name: str, asked: float) -> float:
    """The largest one-step ratio of argmin(L + Z) over some losses: a bound from below."""
    noise = perturbation(name, asked, count=COUNT)
    gaps = np.linspace(0, 8, 17) / asked
    before = np.zeros((gaps.size, COUNT))
    before[:, 0] = gaps
    after = before.copy()
    after[:, 0] += 1
    plays, moved = printed_play(before, noise)[:, 0], printed_play(after, noise)[:, 0]
    seen = np.minimum(plays, moved) > 1e-6  # below it four digits are not known
    return float(log_ratios(plays[seen], moved[seen]).max())


def lipschitz(name: str, cases: int) -> float:
    """The largest |ln ratio| of plays over hazard times oscillation, for random losses and moves."""
    rng = generator("lipschitz", name, cases)
    noise = perturbation(name, 0.2, count=COUNT)
    losses = rng.random((cases, COUNT)) * rng.choice([1.0, 10.0, 60.0], size=(cases, 1))
    moves = rng.random((cases, COUNT)) * (rng.random((cases, COUNT)) < 0.4) * 4
    moves[:, 0] = 4.0
    found = log_ratios(expected_play(losses, noise), expected_play(losses + moves, noise)).max(
        axis=1
    )
    bounds = [
        lipschitz_bound(at, at + move, noise=noise) for at, move in zip(losses, moves, strict=True)
    ]
    return float(np.max(found / np.array(bounds)))


def one_line(*, printed: bool) -> float:
    """Regret over rounds on [-1, 1] with losses -0.5, 1, -1, ...: of the plays printed, or of the leader."""
    losses = np.array([-0.5] + [(-1.0) ** t for t in range(999)])
    plays = -np.sign(np.cumsum(losses) - losses)
    if printed:
        plays = -plays
    return (float(plays @ losses) + math.fabs(losses.sum())) / losses.size
