"""Whether the papers' radius admits the true sources: [gilbert17, after lem. 7], "w.h.p. f_0 is feasible"."""

from __future__ import annotations

import math

import numpy as np
from experiments.sensors.points import Part, Point, Table, exact_point, share
from experiments.sensors.protocol import METHODS, Setting, attempt, generator, place_sources

from sfumato.sensing import heat_line
from sfumato.sensing.planning import papers_radius_coverage

SENSORS = (10, 50, 100, 1000)
SETTING = Setting(T=0.05, sigma=0.1)


def run(*, quick: bool) -> Part:
    """How often each radius holds the truth, and how often it holds anything at all."""
    trials = 100 if quick else 1000
    found: list[Point] = []
    failed = total = 0
    rows: Table = [
        ["m", "radius", "truth within it", "exactly, or by design", "something within it"]
    ]
    for m in SENSORS[:3] if quick else SENSORS:
        line = heat_line(sources=SETTING.n, sensors=m, diffusion_time=SETTING.T)
        truth = place_sources(line.space, 1, generator("coverage"))
        clean = line.readings(truth)
        found.append(exact_point("coverage", "exact, papers", "m", m, papers_radius_coverage(m)))
        for method in (METHODS[0], METHODS[2]):
            hits = some = tried = 0
            for trial in range(trials):
                noise = SETTING.sigma * generator("coverage", m, trial).standard_normal(m)
                answer = attempt(line, clean + noise, SETTING.sigma, method.radius)
                if answer is None:
                    continue
                tried += 1
                hits += math.sqrt(float(np.sum(noise**2))) <= answer.radius
                some += answer.status != "infeasible"
            failed, total = failed + trials - tried, total + trials
            for label, count in (("truth", hits), ("something", some)):
                ends = share(count, tried)
                found.append(
                    Point("coverage", f"{method.name}, {label}", "value", "m", m, *ends, tried)
                )
            exact = f"{papers_radius_coverage(m):.1%}" if method.radius else "about 90%"
            rows.append([str(m), method.name, f"{hits / tried:.1%}", exact, f"{some / tried:.1%}"])
    about = (
        f"n = 100, T = 0.05, sigma = 0.1, one source at 0.5, {trials} draws. 'Truth within it': the true "
        "sources are feasible, |noise| <= radius. 'Something within it': some sources in the box are; "
        "that none are is proved by a ray."
    )
    unsolved = (("coverage", failed, total),)
    return Part(
        "coverage", "Is the truth feasible?", about, tuple(found), (("", rows),), unsolved=unsolved
    )
