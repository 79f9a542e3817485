"""Where answers are doubted or miss: two walkers whose draws do not agree, four sources of unequal masses.

python -m experiments.sensors.doubts [--walks 20] [--draws 100]

The first table splits walks by whether the chains agree, and says how often the 90 % radii hold all the
same; the second splits 90 % bands by the number of sources that was believed likeliest: where known
masses have half of the chance beforehand, and a fifth. Walks and draws
are others than those of docs/reference/scenes.md and docs/reference/estimators.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from experiments.sensors.estimators import UNEQUAL, Setting, draw, noise, scene
from experiments.sensors.protocol import generator
from experiments.sensors.scenes import STATED, rows, share, walks

from sfumato.sensing import emd_of, heat_line, posterior
from sfumato.sensing.recovery.estimators import bands
from sfumato.sensing.tracking import track

SEEN_WALKS, SEEN_DRAWS = 8, 1000  # those of the pages, and those on which bands were widened


def walk_table(count: int) -> str:
    """Two sources that walk: radii and errors where the chains agree, and where not."""
    line = heat_line(sources=100, sensors=50, diffusion_time=STATED)
    at, lines = line.space.positions, []
    for epsilon, kind in ((1.0, "1"), (4.0, "0.3 to 1")):
        sigma = noise("line", STATED, epsilon, "analytic")
        found: dict[bool, list[tuple[list[bool], float, float]]] = {True: [], False: []}
        for trial in range(SEEN_WALKS, SEEN_WALKS + count):
            rng = generator("scenes", "walk", epsilon, 2, kind, trial)
            masses = np.ones(2) if kind == "1" else rng.uniform(*UNEQUAL, 2)
            cells, truths = walks(masses, rng)
            clean = np.array([line.readings(truth) for truth in truths])
            y = clean + sigma * rng.standard_normal(clean.shape)
            told = track(line, y, sigma=sigma, count=2, rng=rng)
            held = []
            for number, radii in enumerate(told.radii):
                away = np.abs(at[told.cells[number]][:, np.newaxis] - at[cells[number]])
                # Names are nobody's business here: each is with the one that is nearer in all.
                same = away[0, 0] + away[1, 1] <= away[0, 1] + away[1, 0]
                held += (np.diag(away if same else away[:, ::-1]) <= radii + 1e-12).tolist()
            off = np.mean([emd_of(told.estimate(n), truth) for n, truth in enumerate(truths)])
            apart = float(np.abs(at[cells[:, 0]] - at[cells[:, 1]]).mean())
            found[told.mixed].append((held, float(off), apart))
        for mixed, some in found.items():
            every = [one for held, _, _ in some for one in held]
            means = [f"{np.mean([each[i] for each in some]):.4f}" if some else "-" for i in (1, 2)]
            lines.append(
                [f"{epsilon:g}", kind, "yes" if mixed else "no", str(len(some)), *means,
                 share(every) if every else "-"]
            )  # fmt: skip
    header = [
        "epsilon a round",
        "mass",
        "draws agree",
        "walks",
        "track",
        "apart",
        "in the 90 % radius",
    ]
    return rows(header, lines)


def band_table(count: int) -> str:
    """Bands of four sources by how many were believed: by a half or a fifth for known masses."""
    lines = []
    for masses, kind in ((UNEQUAL, "0.3 to 1"), ((1.0, 1.0), "1")):
        name = f"4 sources, mass {kind}"
        setting, operator = Setting(name, 4, masses), scene("line", STATED)
        sigma = noise("line", STATED, setting.epsilon, "analytic")
        found: list[tuple[int, bool, bool, float]] = []
        for trial in range(SEEN_DRAWS, SEEN_DRAWS + count):
            truth, standard = draw(setting, trial)
            rng = generator("bandsbeliefs", name, trial)
            y = operator.readings(truth) + sigma * standard
            beliefs = posterior(operator, y, sigma=sigma, rng=rng)
            places = operator.space.places(np.flatnonzero(truth))
            for careful, all_bands in (
                (False, bands(beliefs, known=0.5)),
                (True, bands(beliefs, known=0.2)),
            ):
                for band in all_bands:
                    away = operator.space.distances_between(band.place[np.newaxis], places).min()
                    held = bool(away <= band.radius + 1e-12)
                    found.append((int(beliefs.counts.argmax()), careful, held, band.radius))
        for low, high, said in (
            (1, 3, "1 to 3"),
            (4, 4, "4"),
            (5, 99, "5 or more"),
            (1, 99, "all"),
        ):
            cells = [kind, said]
            for careful in (False, True):
                some = [one for one in found if low <= one[0] <= high and one[1] == careful]
                held_some = [one[2] for one in some]
                error = np.sqrt(0.09 / max(1, len(some)))
                cells += [f"{share(held_some)} (± {error:.1%})" if some else "-"]
                cells += [f"{np.mean([one[3] for one in some]):.4f}" if some else "-"]
            lines.append(cells)
    header = [
        "mass",
        "sources believed",
        "a half: held",
        "mean radius",
        "a fifth: held",
        "mean radius",
    ]
    return rows(header, lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="Where answers are doubted or miss", prog="doubts")
    parser.add_argument("--walks", type=int, default=20, help="walks of each kind")
    parser.add_argument("--draws", type=int, default=100, help="draws of four sources of each kind")
    given = parser.parse_args(argv)
    print(walk_table(given.walks))
    print()
    print(band_table(given.draws))


if __name__ == "__main__":
    main()
