"""Table 1: the expected regret of every learner on six sequences, exactly, and over its bound.

And the shipped `Chooser`, which is told nothing, beside Hedge at the rate of a formula that knows
L*.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from experiments.online.ball_leader import gaussian_regret_bound, tuned_sigma
from experiments.online.protocol import COUNT, NOISES, FloatArray, chosen, losses_of
from experiments.online.stability import path_privacy
from experiments.sensors.points import Part, Picture, Point, Table, exact_point

from sfumato.figures import regret_picture
from sfumato.online import (
    SEQUENCES,
    Gaussian,
    best_loss,
    doubling_bound,
    excess,
    hedge,
    hedge_rate,
    leader,
    lookahead_play,
    perturbation,
    perturbed_leader,
    play,
    play_doubling,
    regret,
    regret_bound,
    totals_before,
    tuned_epsilon,
)

DRAWS = 20  # of each sequence that is drawn, where means are compared
CAPTION = (
    "Two candidates take turns to lose 1 and the others always do, so whoever leads loses next. Expected "
    "regret against the best single candidate until then: of the chooser, which is told nothing, and of "
    "leaders perturbed by gumbel and pareto noise scaled for the best loss at the end."
)
MARKS = {"leader killer": 1, "fair coins": DRAWS, "one good": DRAWS}


def run(*, quick: bool) -> Part:
    """All learners on all sequences."""
    rounds = 200 if quick else 2000
    found: list[Point] = []
    for x, name in enumerate(SEQUENCES):
        losses = losses_of(name, rounds)
        for figure, learner, value in measured(losses):
            found.append(exact_point(figure, learner, "sequence", x, value))
        if name in MARKS:
            ours, mark = against_hedge(name, 500 if quick else rounds)
            found.append(exact_point("mean", "chooser", "sequence", x, ours))
            found.append(exact_point("mean", "hedge", "sequence", x, mark))
    text = (
        f"{rounds} rounds, {COUNT} candidates; expected regret by quadrature, without chance. Noises are "
        "scaled to the epsilon with the least bound for the best loss L*, hedge to sqrt(2 ln N / L*); "
        "chooser and doubling do not know it."
    )
    tables = (
        ("Regret", numbers(found, "regret")),
        ("Regret over bound", numbers(found, "ratio")),
        ("Bound over worst case", numbers(found, "worst case")),
        (f"Mean regret, {DRAWS} draws where there is chance", numbers(found, "mean")),
    )
    pictures = (killer(rounds),)
    return Part("regrets", "Regret against bound", text, tuple(found), tables, pictures)


def measured(losses: FloatArray) -> Iterator[tuple[str, str, float]]:
    """Figure, learner and value: regrets, ratios to bounds, and the privacy along the path over epsilon."""
    best, rounds = best_loss(losses), losses.shape[0]
    yield "regret", "best loss", best
    yield "regret", "leader", regret(losses, play(losses, leader))
    rate = hedge_rate(best, count=COUNT)
    yield "regret", "hedge", regret(losses, play(losses, lambda sums: hedge(sums, rate)))
    yield "regret", "hedge 0.5", regret(losses, play(losses, lambda sums: hedge(sums, 0.5)))
    chooser, plays, _ = chosen(losses)
    yield "regret", "chooser", regret(losses, plays)
    yield "ratio", "chooser", regret(losses, plays) / chooser.bound
    yield "worst case", "chooser", chooser.bound / chooser.worst_case
    for name in NOISES:
        epsilon = tuned_epsilon(name, best, count=COUNT)
        noise = perturbation(name, epsilon, count=COUNT)
        plays = play(losses, perturbed_leader(noise))
        lost, ahead = regret(losses, plays), excess(noise, COUNT)
        yield "regret", name, lost
        yield "ratio", name, lost / regret_bound(epsilon, best_loss=best, ahead=ahead)
        yield "ahead", name, regret(losses, lookahead_play(losses, perturbed_leader(noise))) / ahead
        yield "path", name, path_privacy(plays) / epsilon
    lost = regret(losses, play_doubling(losses, "gumbel"))
    yield "regret", "doubling", lost
    yield "ratio", "doubling", lost / doubling_bound("gumbel", best, count=COUNT)
    unit, longest = excess(Gaussian(1.0), COUNT), math.sqrt(COUNT)
    sigma = tuned_sigma(best, unit_ahead=unit, longest=longest, rounds=rounds)
    lost = regret(losses, play(losses, perturbed_leader(Gaussian(sigma))))
    bound = gaussian_regret_bound(
        sigma, best_loss=best, ahead=sigma * unit, longest=longest, max_total=float(rounds)
    )
    yield "regret", "gaussian", lost
    yield "ratio", "gaussian", lost / bound


def against_hedge(name: str, rounds: int) -> tuple[float, float]:
    """Mean regrets of the chooser and of Hedge at the formula's rate, on the same draws."""
    tables = [losses_of(name, rounds, draw=draw) for draw in range(MARKS[name])]
    ours, marks = [], []
    for losses in tables:
        rate = hedge_rate(best_loss(losses), count=COUNT)
        ours.append(regret(losses, chosen(losses)[1]))
        marks.append(regret(losses, hedge(totals_before(losses), rate)))
    return float(np.mean(ours)), float(np.mean(marks))


def numbers(found: list[Point], figure: str) -> Table:
    """One row for each sequence, one column for each learner."""
    at = {(point.series, point.x): point.middle for point in found if point.figure == figure}
    learners = list(dict.fromkeys(learner for learner, _ in at))
    rows = [["sequence", *learners]]
    for x, name in enumerate(SEQUENCES):
        if (learners[0], x) in at:
            rows.append([name, *(f"{at[learner, x]:.4g}" for learner in learners)])
    return rows


def killer(rounds: int) -> Picture:
    """Regret after every round on the sequence that hits the leader, and bounds of those that have one."""
    losses = losses_of("leader killer", rounds)
    sums = np.cumsum(losses, axis=0)
    best = sums.min(axis=1)
    _, plays, limits = chosen(losses)
    paths, bounds = {"Chooser": _path(losses, plays)}, {"Chooser": limits}
    for name in ("gumbel", "pareto"):
        epsilon = tuned_epsilon(name, float(best[-1]), count=COUNT)
        noise = perturbation(name, epsilon, count=COUNT)
        paths[name] = _path(losses, play(losses, perturbed_leader(noise)))
        ahead = excess(noise, COUNT)
        bounds[name] = np.array(
            [regret_bound(epsilon, best_loss=float(one), ahead=ahead) for one in best],
            dtype=np.float64,
        )
    png = regret_picture(paths, bounds, caption=CAPTION, title="Losses that hit whoever leads")
    words = (
        "Regret by rounds of the chooser and of two perturbed leaders, below their dashed bounds"
    )
    return Picture("leader-killer", png, words)


def _path(losses: FloatArray, plays: FloatArray) -> FloatArray:
    best = np.cumsum(losses, axis=0).min(axis=1)
    path: FloatArray = np.cumsum(np.sum(losses * plays, axis=1)) - best
    return path
