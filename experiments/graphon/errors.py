"""Errors of estimators by density, where nothing can be estimated, the packing family, and the guard."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from experiments.graphon.protocol import apart, contrasted, generator, mean_point, packed
from experiments.sensors.points import Part, Point, Table, exact_point, picture, share

from sfumato.graphon import BlockGraphon, Network, Sampled, estimation_rate, sample_graph
from sfumato.graphon.estimation import (
    Estimate,
    constant,
    from_labels,
    guarded_fit,
    least_squares,
    spectral,
    usvt,
)
from sfumato.graphon.limits import attained_rate


def run(*, quick: bool) -> Part:
    """Errors over rho in delta_2; of USVT, which has no blocks, in the mean square over pairs."""
    n, k = (240, 4) if quick else (600, 8)
    least = round((k / n) ** 2, 9)  # as expected.toml can write it
    densities = [least, 0.3] if quick else [least, 1e-2, 3e-2, 0.1, 0.3, 1.0]
    found: list[Point] = []
    for density in densities:
        found += _table(n, k, density, graphs=2 if quick else 8)
    found += _trivial(quick=quick)
    found += _packing(n, k, densities[-1:] if quick else densities, graphs=2 if quick else 6)
    found += _guard(n, graphs=4 if quick else 150, quick=quick)
    rows: list[tuple[str, Table]] = [
        (title, _rows(found, figure))
        for figure, title in (
            ("errors", f"Error over rho, n = {n}, k = {k}"),
            ("trivial", "Error with true labels over that of a constant, rho = c k^2/n^2"),
            ("packing", "The packing family (5.9): error over that of a constant"),
            ("guard", "Guarded blocks"),
        )
    ]
    drawn = picture(
        found, "errors", title="Error over rho", metric="value", y_label="delta_2 / rho",
        caption=f"n = {n}, k = {k}, chances rho or rho / 5. 'rate' and 'attained' have no constant.",
    )  # fmt: skip
    text = (
        "A constant errs by 0.4 rho here. Where rho is k^2/n^2 even true labels do worse than it, and "
        "estimators far worse; blocks pay from rho of about 0.05 on."
    )
    return Part("errors", "Estimators by density", text, tuple(found), tuple(rows), (drawn,))


def oracle(drawn: Sampled) -> Estimate:
    """Block means of the true blocks, which nobody has."""
    return from_labels(drawn.network, drawn.labels)


Method = Callable[[Sampled, int], Estimate]
METHODS: dict[str, Method] = {
    "constant": lambda drawn, _: constant(drawn.network),
    "true labels": lambda drawn, _: oracle(drawn),
    "spectral": lambda drawn, k: spectral(drawn.network, k),
    "least squares": lambda drawn, k: least_squares(drawn.network, k),
}


def _draw(truth: BlockGraphon, n: int, rng: np.random.Generator) -> Sampled:
    """A network with at least one edge: of none, nothing can be fitted."""
    drawn = sample_graph(truth, n, rng)
    while not drawn.network.edges.size:
        drawn = sample_graph(truth, n, rng)
    return drawn


def _table(n: int, k: int, density: float, graphs: int) -> list[Point]:
    values: dict[str, list[float]] = {}
    for number in range(graphs):
        rng = generator("errors", n, k, density, number)
        truth = contrasted(k, density, rng)
        drawn = _draw(truth, n, rng)
        for name, method in METHODS.items():
            error = apart(method(drawn, k).graphon, truth)
            values.setdefault(name, []).append(error / density)
        missed = usvt(drawn.network) - truth.matrix[np.ix_(drawn.labels, drawn.labels)]
        np.fill_diagonal(missed, 0)
        values.setdefault("USVT, by pairs", []).append(
            float(np.sqrt(np.square(missed).mean())) / density
        )
    curves = (("rate", estimation_rate), ("attained", attained_rate))
    return [
        *(mean_point("errors", name, "rho", density, some) for name, some in values.items()),
        *(
            exact_point("errors", name, "rho", density, rate(n, k, density) / density)
            for name, rate in curves
        ),
    ]


def _trivial(*, quick: bool) -> list[Point]:
    n, k, graphs = (300, 6, 3) if quick else (800, 20, 4)
    points = []
    for c in (0.25, 256.0) if quick else (0.25, 1.0, 4.0, 16.0, 64.0, 256.0):
        density, ratios = c * (k / n) ** 2, []
        for number in range(graphs):
            rng = generator("trivial", n, k, c, number)
            truth = contrasted(k, density, rng)
            drawn = _draw(truth, n, rng)
            ratios.append(
                apart(oracle(drawn).graphon, truth) / apart(constant(drawn.network).graphon, truth)
            )
        points.append(mean_point("trivial", "true labels over constant", "c", c, ratios))
    return points


def _packing(n: int, k: int, densities: list[float], graphs: int) -> list[Point]:
    values: dict[tuple[str, float], list[float]] = {}
    for density in densities:
        for number in range(graphs):
            rng = generator("packing", n, k, density, number)
            truth = packed(n, k, density, rng)
            drawn = _draw(truth, n, rng)
            flat = apart(constant(drawn.network).graphon, truth)
            for name in ("true labels", "least squares"):
                error = apart(METHODS[name](drawn, k).graphon, truth)
                values.setdefault((name, density), []).append(error / flat)
    return [mean_point("packing", name, "rho", x, some) for (name, x), some in values.items()]


def _guard(n: int, *, graphs: int, quick: bool) -> list[Point]:
    """How often blocks are seen in pure chance, and the worst error over a constant's elsewhere."""
    points = []
    for density in (0.02, 0.2):
        alarms = 0
        for number in range(graphs):
            rng = generator("alarm", density, number)
            network: Network = sample_graph(BlockGraphon([[density]]), 200, rng).network
            alarms += guarded_fit(network, 4, salt=number)[1].detectable
        points.append(
            Point("guard", "alarms", "value", "rho", density, *share(alarms, graphs), graphs)
        )
    for density in (0.003, 0.3) if quick else (0.003, 0.01, 0.03, 0.1, 0.3):
        ratios = []
        for number in range(2 if quick else 6):
            rng = generator("guard", density, number)
            truth = contrasted(4, density, rng)
            drawn = _draw(truth, n, rng)
            flat = apart(constant(drawn.network).graphon, truth)
            ratios.append(
                apart(guarded_fit(drawn.network, 4)[0].graphon, truth) / flat if flat else 1.0
            )
        points.append(exact_point("guard", "worst over constant", "rho", density, max(ratios)))
    return points


def _rows(found: list[Point], figure: str) -> Table:
    here = [point for point in found if point.figure == figure]
    names = list(dict.fromkeys(point.series for point in here))
    at = {(point.series, point.x): point.middle for point in here}
    xs = sorted({point.x for point in here})
    return [
        [here[0].axis, *names],
        *(
            [f"{x:.3g}", *(f"{at[name, x]:.3g}" if (name, x) in at else "" for name in names)]
            for x in xs
        ),
    ]
