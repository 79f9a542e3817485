"""Estimators take noise for Gaussian: what becomes of them where it is Laplace, of the same deviation.

python -m experiments.sensors.laplace [--trials 200] [--out FILE]

The line of the estimators' table: 100 cells, 50 sensors, T 0.05, noise of sigma 0.066 (that of epsilon 4, delta
0.1 for a radius of 0.01), two sources of masses 0.3 to 1. The same sources with either noise.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from experiments.sensors.protocol import generator

from sfumato.privacy import ApproxDP, MovedMass, PureDP
from sfumato.sensing import bayes_median, emd_of, heat_line, misfit, plan, posterior, recover
from sfumato.sensing.planning import synthetic_site
from sfumato.sensing.recovery.estimators import bands

HEAD = """# Laplace noise, measured

`python -m experiments.sensors.laplace --out docs/reference/laplace.md` prints this page. Estimators, the
radius of R and bands take noise for Gaussian of its deviation. The line of [the estimators'
table](estimators.md) (100 cells, 50 sensors, T 0.05, a radius of 0.01), two sources of masses 0.3 to 1 in
random cells, {trials} draws, the same sources with either noise of deviation 0.066. *Out of reach*: no
sources are within R's radius of the readings, which is to happen in at most 10 %. *Bands held*: the share
of statements "a source within r of here with 90 %" that were true, the mean over draws. *Warned*: the test
of the physics gave p below 0.05, taking the noise for Gaussian (*taken*), and told that it is Laplace
(*told*).

| noise | error of R | Bayes median | out of reach | bands held | warned, taken | warned, told |
|---|---|---|---|---|---|---|
"""
COSTS = """
What epsilon alone costs, as deviations of the noise of one reading of all sensors:

| site | epsilon | delta 1e-6 | no delta | times |
|---|---|---|---|---|
"""


def main() -> None:
    """The tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    sigma, lines = 0.0661, []
    for name in ("Gaussian", "Laplace"):
        rows = []
        for trial in range(asked.trials):
            rng = generator("laplace", "sources", trial)
            truth = np.zeros(100)
            truth[rng.choice(100, 2, replace=False)] = rng.uniform(0.3, 1, 2)
            noise = (
                rng.standard_normal(50) if name == "Gaussian" else rng.laplace(0, np.sqrt(0.5), 50)
            )
            y = line.readings(truth) + sigma * noise
            found = recover(line, y, sigma=sigma)
            beliefs = posterior(line, y, sigma=sigma, rng=rng)
            at = line.space.places(np.flatnonzero(truth))
            held = [float(np.abs(at - one.place).min() <= one.radius) for one in bands(beliefs)]
            taken = misfit(line, y, sigma=sigma).p_value < 0.05
            told = misfit(line, y, sigma=sigma, laplace=True).p_value < 0.05
            solved = found.status == "optimal"
            rows.append(
                (
                    emd_of(found, truth) if solved else np.nan,
                    emd_of(bayes_median(beliefs), truth),
                    found.status == "infeasible",
                    np.mean(held) if held else np.nan,
                    taken,
                    told,
                )
            )
        r, bayes, *shares = np.nanmean(np.array(rows, dtype=np.float64), axis=0)
        said = " | ".join(f"{share:.1%}" for share in shares)
        lines.append(f"| {name} | {r:.4f} | {bayes:.4f} | {said} |")
        print(lines[-1], flush=True)
    costs = []
    for sensors in (8, 50, 200):
        hall = heat_line(sources=100, sensors=sensors, diffusion_time=0.05)
        site = synthetic_site("hall", hall, MovedMass("1/100", "line"))
        for epsilon in (1, 4):
            gauss = plan(site, ApproxDP(epsilon, "1e-6")).sigma
            pure = plan(site, PureDP(epsilon)).sigma
            name = f"line, {sensors} sensors"
            costs.append(f"| {name} | {epsilon} | {gauss:.3f} | {pure:.3f} | {pure / gauss:.2f} |")
            print(costs[-1], flush=True)
    if asked.out:
        text = HEAD.format(trials=asked.trials) + "\n".join(lines) + "\n" + COSTS
        asked.out.write_text(text + "\n".join(costs) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
