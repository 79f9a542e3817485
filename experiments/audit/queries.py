"""Table 9.1 as measured: the samples each tester needs, between the bounds from below and above."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from experiments.audit.protocol import IntArray, accepted, draw, generator, spread
from experiments.audit.theorems import blind_pair
from experiments.sensors.points import Part, Picture, Point, Table, exact_point, picture

from sfumato.audit.property_testing import (
    approx_samples,
    approx_test,
    distinguishing_bound,
    identity_samples,
    identity_test,
    nearest_far_pair,
    rare_output_bound,
    specified_pure_samples,
    specified_pure_test,
    two_point_bound,
)
from sfumato.privacy.accounting import max_divergence, total_variation

EPSILON, DELTA, PROXIMITY = 0.5, 0.05, 0.1
LEAST, NEEDED, ENOUGH, PRINTED = "no test with less", "needed here", "enough", "printed"
Accepts = Callable[[int], float]


def run(*, quick: bool) -> Part:
    """One figure for each cell of the table, and two for what it leaves out."""
    trials = 100 if quick else 400
    found: list[Point] = []
    for part in (by_outputs, by_proximity, stated, by_mass):
        found += part(trials, quick=quick)
    found += unverifiable() + distinguishing()
    tables: list[tuple[str, Table]] = []
    pictures: list[Picture] = []
    for figure, title in TITLES.items():
        tables.append((title, numbers(found, figure)))
        pictures.append(
            picture(found, figure, title=title, caption="", metric="value", y_label="samples")
        )
    text = (
        f"'{NEEDED}' is the least number of samples of each input, to 3 %, with which the tester errs in at "
        f"most one of three tests ({trials} each) at the claim and at the proximity. '{LEAST}' is Le Cam's "
        f"bound, '{ENOUGH}' what is proved of our testers, '{PRINTED}' the thesis' size."
    )
    return Part(
        "queries", "Table 9.1 as measured", text, tuple(found), tuple(tables), tuple(pictures)
    )


TITLES = {
    "approx-n": f"Approximate DP without information, epsilon {EPSILON}, proximity {PROXIMITY}",
    "approx-a": f"Approximate DP without information, epsilon {EPSILON}, 64 outputs",
    "stated-n": "Identity to an even law, distance 0.1",
    "pure-b": f"Pure DP from stated laws, epsilon {EPSILON}, proximity 0.4",
    "blind": "Pure DP without information: the epsilon that so many samples cannot exclude",
    "distinguish": "Samples that tell nobody's inputs apart, delta + proximity = 1e-4",
}


def needed(accepts: Accepts, enough: int) -> float:
    """The least samples, to 3 %, with at most a third of wrong acceptances: by bisection on a log scale."""
    low, high = 0.0, math.log(enough)
    while high - low > 0.03:
        middle = (low + high) / 2
        low, high = (
            (low, middle) if accepts(max(2, round(math.exp(middle)))) <= 1 / 3 else (middle, high)
        )
    return math.exp(high)


def by_outputs(trials: int, *, quick: bool) -> list[Point]:
    """Algorithm 4 against the number of outputs: linear."""
    out: list[Point] = []
    for n in (4, 64, 1024) if quick else (4, 16, 64, 256, 1024, 4096):
        out += approximate("approx-n", "n", n, n, PROXIMITY, trials)
    return out


def by_proximity(trials: int, *, quick: bool) -> list[Point]:
    """Algorithm 4 against the proximity: its inverse square."""
    out: list[Point] = []
    for proximity in (0.05, 0.2) if quick else (0.02, 0.05, 0.1, 0.2, 0.4):
        out += approximate("approx-a", "proximity", proximity, 64, proximity, trials)
    return out


def approximate(
    figure: str, axis: str, x: float, n: int, proximity: float, trials: int
) -> list[Point]:
    """The four numbers of samples of Algorithm 4 at one setting."""
    far = spread(nearest_far_pair(EPSILON, DELTA, proximity=proximity), n)
    enough = approx_samples(n, EPSILON, proximity=proximity)
    rng = generator(figure, x)

    def decide(p: IntArray, q: IntArray) -> bool:
        return approx_test(p, q, outputs=n, epsilon=EPSILON, delta=DELTA).accepted

    def accepts(samples: int) -> float:
        return accepted(decide, *draw(rng, far, samples, trials)) / trials

    printed = 16 * max(n, 3) * (1 + math.exp(2 * EPSILON)) / proximity**2
    least = two_point_bound(EPSILON, DELTA, proximity=proximity)
    return four(figure, axis, x, (least, needed(accepts, enough), enough, printed))


def four(figure: str, axis: str, x: float, values: Sequence[float]) -> list[Point]:
    """Points of the series in their order."""
    names = (LEAST, NEEDED, ENOUGH, PRINTED)
    return [
        exact_point(figure, name, axis, x, value)
        for name, value in zip(names, values, strict=False)
    ]


def stated(trials: int, *, quick: bool) -> list[Point]:
    """Algorithm 5's identity test against the number of outputs: its square root."""
    out: list[Point] = []
    for n in (16, 256, 4096) if quick else (16, 64, 256, 1024, 4096, 16384):
        out += identical(n, 0.1, trials)
    return out


def identical(n: int, distance: float, trials: int) -> list[Point]:
    """An even law, and one with every other output likelier."""
    law, rng = np.full(n, 1 / n), generator("stated", n)
    far = law * (1 + 2 * distance * np.tile([1, -1], n // 2))
    enough = identity_samples(n, distance)

    def accepts(samples: int) -> float:
        return (
            sum(identity_test(x, law).accepted for x in rng.multinomial(samples, far, trials))
            / trials
        )

    return four("stated-n", "n", n, (math.log(1.5) / distance, needed(accepts, enough), enough))


def by_mass(trials: int, *, quick: bool) -> list[Point]:
    """Algorithm 6 against the least stated mass: its inverse, printed as the inverse square."""
    out: list[Point] = []
    for mass in (0.1, 0.001) if quick else (0.2, 0.1, 0.03, 0.01, 0.003, 0.001):
        out += rare(mass, 0.4, trials)
    return out


def rare(mass: float, proximity: float, trials: int) -> list[Point]:
    """The pair of thm. 10.12, corrected: an output of the first input is rarer than stated."""
    second = np.array([math.exp(EPSILON) * mass, 1 - math.exp(EPSILON) * mass])
    true = math.exp(-proximity) * mass
    laws, far = (np.array([mass, 1 - mass]), second), (np.array([true, 1 - true]), second)
    enough = specified_pure_samples(2, mass, proximity=proximity)
    rng = generator("mass", mass)

    def decide(x: IntArray, y: IntArray) -> bool:
        return specified_pure_test(
            x, y, laws=laws, epsilon=EPSILON + 1e-9, proximity=proximity
        ).accepted

    def errs(samples: int) -> float:
        # Shares of few samples are seldom near the masses: here both errors must be small.
        wrong = accepted(decide, *draw(rng, far, samples, trials)) / trials
        right = accepted(decide, *draw(rng, laws, samples, trials)) / trials
        return max(wrong, 1 - right)

    least = rare_output_bound(2, EPSILON, mass, proximity=proximity)
    # For a proximity of 12 steps, so that its step is a third of ours.
    printed = math.log(2) / (proximity / 12 * mass) ** 2
    return four("pure-b", "least mass", mass, (least, needed(errs, enough), enough, printed))


def unverifiable() -> list[Point]:
    """Of two algorithms that r samples do not tell apart, the epsilon of the one that is not private."""
    out = []
    for samples in (10, 10**3, 10**5, 10**7, 10**9):
        private, far = blind_pair(EPSILON, proximity=PROXIMITY, samples=samples)
        epsilon = max(float(max_divergence(*both)) for both in (far, far[::-1]))
        apart = samples * float(total_variation(private[1], far[1]))
        out.append(exact_point("blind", "epsilon not excluded", "samples", samples, epsilon))
        out.append(
            exact_point(
                "blind", "total variation of the samples, at most", "samples", samples, apart
            )
        )
    return out


def distinguishing() -> list[Point]:
    """Thm. 10.2: what verifying takes at least, because with less nobody could break it."""
    return [
        exact_point(
            "distinguish", LEAST, "epsilon", e, distinguishing_bound(e, 0.0, proximity=1e-4)
        )
        for e in (0.001, 0.01, 0.1, 1.0, 4.0)
    ]


def numbers(found: Sequence[Point], figure: str) -> Table:
    """One row for each x, one column for each series."""
    here = [point for point in found if point.figure == figure]
    names = list(dict.fromkeys(point.series for point in here))
    at = {(point.series, point.x): point.middle for point in here}
    rows: Table = [[here[0].axis, *names]]
    for x in sorted({point.x for point in here}):
        rows.append([f"{x:g}", *(f"{at[name, x]:,.4g}" for name in names)])
    return rows
