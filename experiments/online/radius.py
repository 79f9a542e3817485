"""Sixty days of a corridor: a recovery radius chosen daily, and scored on released readings alone.

python -m experiments.online.radius [--out FOLDER] [--quick]

Every evening the sensors of a corridor release one reading each. Recovering where people were takes
a radius: how far readings may be from what the estimate would read. Too small a radius explains
noise, too large a one explains nothing. Nobody knows which is best, and trying them on the truth
would cost privacy. So the release is thinned: sources are recovered from the first view, once with
every radius, and each is scored by how well it tells the second. Those are functions of the
release, so the choice costs nothing beyond it.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
from experiments.sensors.points import Part, Picture, exact_point, markdown

from sfumato.figures import regret_picture
from sfumato.online import Chooser, thin
from sfumato.privacy import REHEARSAL, ZCDP, KeyedNoise, Ledger, MovedMass, guard
from sfumato.sensing import Recovery, Site, emd_of, heat_line, plan, recover
from sfumato.sensing.release import quantise

FloatArray = npt.NDArray[np.float64]

LENGTH, CELLS, SENSORS, SPREAD = 40.0, 80, 16, 25.0
RHO = ZCDP("1/2")  # of one day
FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)  # of the papers' radius, sigma sqrt(m)
EMPTY = (
    LENGTH / 4
)  # the error, in metres, of a day without an answer: that of mass spread evenly, or more


@dataclass(frozen=True, slots=True, eq=False)
class Days:
    """What was chosen and lost; tables are days by radii.

    `scores` are squared distances to the second view, `fits` to the first, which the sources were
    recovered from, and `truths` to what people really caused, which only a simulation knows;
    `metres` are errors of places. `sigma` is the noise of one reading in a view.
    """

    chooser: Chooser[float]
    chosen: tuple[float, ...]
    scores: FloatArray
    fits: FloatArray
    truths: FloatArray
    metres: FloatArray
    regret: FloatArray
    bound: FloatArray
    dependence: float
    sigma: float

    def told(self, distances: FloatArray) -> FloatArray:
        """The error of the readings of each radius, as distances to a view tell it: less the view's noise."""
        return np.asarray(distances.mean(axis=0) - SENSORS * self.sigma**2, dtype=np.float64)

    def chosen_metres(self) -> float:
        """The mean error of the radii that were chosen, which only a simulation knows."""
        places = [self.chooser.candidates.index(radius) for radius in self.chosen]
        return float(self.metres[np.arange(len(places)), places].mean())

    def fixed_metres(self) -> FloatArray:
        """The mean error of each radius, had it been taken every day."""
        return np.asarray(self.metres.mean(axis=0), dtype=np.float64)


def sixty_days(days: int = 60, *, draw: int = 0) -> Days:
    """Release, thin, recover, choose and score, day by day; `draw` numbers other people and other noise."""
    seed = hashlib.sha256(f"radius|{draw}".encode()).digest()
    rng = np.random.default_rng(list(seed))
    places = [(i + 0.5) * LENGTH / SENSORS for i in range(SENSORS)]
    hall = heat_line(sources=CELLS, sensors=places, diffusion_time=SPREAD, length=LENGTH)
    site = Site("rehearsal", hall, MovedMass(1, "line"), Fraction("0.0005"))
    noise_plan = plan(site, RHO)
    bound = noise_plan.bound()
    ledger = Ledger.rehearsal(ZCDP(RHO.rho * days), unit=bound.unit, neighbors=site.neighbors)
    # Known noise, so that these numbers can be made again: a rehearsal takes it, a real ledger does
    # not.
    noise = KeyedNoise(seed, epoch=bytes(12))
    chooser: Chooser[float] = Chooser(FACTORS, rng=rng)
    chosen, rows, paths = [], [], []
    for _ in range(days):
        people = somebody(rng)
        caused = hall.readings(people)
        units = quantise(caused, noise_plan.exponent)
        data = guard(units, bound, source=REHEARSAL, exponent=noise_plan.exponent)
        views = thin(ledger.release(noise_plan.mechanism, data, noise=noise), noise=noise)
        chosen.append(chooser.choose())
        found = [recover(hall, views.first, radius=views.sigma * f * SENSORS**0.5) for f in FACTORS]
        told = np.stack([hall.readings(one.estimate) for one in found])
        scores, fits, truths = (
            np.sum((told - y) ** 2, axis=1) for y in (views.second, views.first, caused)
        )
        chooser.observe(scores)
        rows.append(np.stack([scores, fits, truths, [metres_off(one, people) for one in found]]))
        paths.append([chooser.regret, chooser.bound])
    scores, fits, truths, metres = np.stack(rows, axis=1)
    regret, limit = np.array(paths).T
    return Days(
        chooser, tuple(chosen), scores, fits, truths, metres, regret, limit, views.dependence, views.sigma
    )  # fmt: skip


def somebody(rng: np.random.Generator) -> FloatArray:
    """One to four people, each anywhere: nobody in it exists."""
    people = np.zeros(CELLS)
    people[rng.choice(CELLS, rng.integers(1, 5), replace=False)] = 1
    return people


def metres_off(found: Recovery, people: FloatArray) -> float:
    """How far the recovered mass is from the people, on average; EMPTY without an answer."""
    return emd_of(found, people) if found.status == "optimal" else EMPTY


def run(*, quick: bool) -> Part:
    """Some draws of the sixty days: what the chooser lost, and how good its radii were in truth."""
    draws = [sixty_days(draw=number) for number in range(2 if quick else 12)]
    first = draws[0]
    fixed = np.mean([one.fixed_metres() for one in draws], axis=0)
    usual = FACTORS.index(1.5)  # one radius for all draws: the best of each would be told too well
    numbers = {
        "regret over bound": max(float(one.regret[-1] / one.bound[-1]) for one in draws),
        "dependence of two views": first.dependence,
        "metres off, chosen daily": float(np.mean([one.chosen_metres() for one in draws])),
        "metres off, best fixed radius": float(
            np.mean([one.fixed_metres().min() for one in draws])
        ),
        "metres off, any radius": float(fixed.mean()),
        "error of readings, true": float(
            np.mean([one.truths.mean(axis=0)[usual] for one in draws])
        ),
        "error of readings, by the second view": float(
            np.mean([one.told(one.scores)[usual] for one in draws])
        ),
        "error of readings, by the first view": float(
            np.mean([one.told(one.fits)[usual] for one in draws])
        ),
    }
    png = regret_picture(
        {"chosen daily": first.regret}, {"chosen daily": first.bound}, rehearsal=True,
        title="A recovery radius, chosen daily",
        caption=f"{len(first.chosen)} days, {SENSORS} sensors, {RHO} a day, {len(FACTORS)} radii. Squared "
        "distance to the second view of each release, above that of the best single radius.",
    )  # fmt: skip
    points = [
        exact_point("radius", name, "draws", len(draws), value) for name, value in numbers.items()
    ]
    rows = [["", "value"], *([name, f"{value:.3g}"] for name, value in numbers.items())]
    tables = (
        ("A radius chosen daily: the largest ratio, else means over days and draws", rows),
        ("Mean error of each radius", [[f"{f:g}" for f in FACTORS], [f"{m:.2f} m" for m in fixed]]),
    )
    about = " ".join((__doc__ or "").split("\n\n")[2].split())
    name = "Regret of a radius chosen daily, against its bound"
    return Part(
        "radius",
        "Sixty days of a corridor",
        about,
        tuple(points),
        tables,
        (Picture("radius", png, name),),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Print the days of one draw, and what they came to; write the picture."""
    parser = argparse.ArgumentParser(description="A recovery radius chosen daily", prog="radius")
    parser.add_argument(
        "--out", type=Path, default=Path("demo/online"), help="folder for the picture"
    )
    parser.add_argument("--quick", action="store_true", help="fewer draws, in seconds")
    given = parser.parse_args(argv)
    part = run(quick=given.quick)
    for title, rows in part.tables:
        print(f"{title}\n\n{markdown(rows)}\n")
    given.out.mkdir(parents=True, exist_ok=True)
    for picture in part.pictures:
        (given.out / f"{picture.name}.png").write_bytes(picture.png)
        print(given.out / f"{picture.name}.png")
    ratio = next(point.middle for point in part.points if point.series == "regret over bound")
    if not ratio <= 1:
        raise SystemExit(f"the regret is {ratio:g} times its bound")


if __name__ == "__main__":
    main()
