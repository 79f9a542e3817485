"""Which community? Figure 3 of [gilbert18], 8.3 of [mcmillan18], at the printed parameters and others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from experiments.sensors.points import Part, Picture, Point, Table, picture, share
from experiments.sensors.protocol import METHODS, FloatArray, Method, generator

from sfumato.errors import SolverFailed
from sfumato.figures import draw_graph_recovery
from sfumato.privacy import MovedMass, gaussian_sigma
from sfumato.sensing import graph_diffusion, recover, sensitivity
from sfumato.sensing.model.operators import GraphDiffusion
from sfumato.sensing.planning import block_graph
from sfumato.sensing.recovery import community_of

NODES, DELTA = 500, 0.1
RATES = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
BEST = "best possible at this noise"
BOTH = (METHODS[0], METHODS[2])
AVERAGES = (
    ("network-printed", METHODS[0], 4.0),
    ("network-4", METHODS[2], 4.0),
    ("network", METHODS[2], 16.0),
)
AVERAGED = "Figure 3 averaged: one source on one graph, mean mass over draws of the noise"
AVERAGE_ROW = ["method", "epsilon", "answered", "in its community", "in the other", "at the source"]


@dataclass(frozen=True, slots=True)
class Case:
    """One place of a panel: how the graph is made, the rate tau and epsilon."""

    figure: str
    axis: str
    x: float
    rate: float
    epsilon: float
    inside: float = 0.05
    across: float = 0.001


def cases(*, quick: bool) -> list[Case]:
    """Both panels, and the caption read literally: 5 % across and 0.1 % inside."""
    if quick:
        return [Case("g-epsilon", "epsilon", epsilon, 2.0, epsilon) for epsilon in (4.0, 16.0)]
    return [
        *(Case("g-tau", "tau", rate, rate, 4.0) for rate in RATES),
        *(Case("g-tau16", "tau", rate, rate, 16.0) for rate in RATES),
        *(Case("g-epsilon", "epsilon", epsilon, 2.0, epsilon) for epsilon in EPSILONS),
        Case("g-literal", "tau", 2.0, 2.0, 4.0, inside=0.001, across=0.05),
    ]


def run(*, quick: bool) -> Part:
    """Count how often the right community holds most of the recovered mass."""
    graphs = 3 if quick else 40
    wanted = cases(quick=quick)
    counts: dict[tuple[Case, str], Counter[str]] = {}
    for number in range(graphs):
        for shape in dict.fromkeys((case.inside, case.across) for case in wanted):
            here = [case for case in wanted if (case.inside, case.across) == shape]
            _one_graph(number, shape, here, counts)
    found, rows = _summary(wanted, counts)
    about = (
        f"Stochastic block model of two communities of {NODES // 2} nodes (sizes are ours), 5 % inside and "
        "0.1 % across (the caption has them swapped), a unit at a random node of the first, delta = "
        f"{DELTA}, neighbors: a unit moved along one edge; {graphs} graphs, one draw on each, the noise "
        "anew for each tau and epsilon. Other sizes and numbers of communities may answer otherwise. "
        "'Right': the first community holds most of the recovered mass. 'None': nothing was recovered (zero) "
        "or nothing is feasible. 'Best possible' is Bayes' rule for one unit at any node, from the same "
        "readings: no method that favors neither community is right more often on average."
    )
    labels = {
        "g-tau": "epsilon = 4",
        "g-tau16": "epsilon = 16",
        "g-epsilon": "tau = 2",
    }
    titles = {
        name: f"Figure 3 of the full version: right community, {label}"
        for name, label in labels.items()
    }
    pictures = [
        picture(
            found,
            figure,
            title=titles[figure],
            caption=f"{graphs} graphs with one draw each; share of all draws, 95 % intervals.",
            metric="value",
            y_scale="linear",
            y_label="share of draws",
        )
        for figure in dict.fromkeys(case.figure for case in wanted)
        if figure in labels
    ]
    means = [_average(*panel, graphs) for panel in AVERAGES[-1 if quick else 0 :]]
    pictures += [drawn for drawn, _ in means]
    return Part(
        "network", "Which community: Figure 3 of the full version", about, tuple(found),
        (("", rows), (AVERAGED, [AVERAGE_ROW, *(row for _, row in means)])),
        tuple(pictures), unsolved=_unsolved(counts),
    )  # fmt: skip


def _one_graph(
    number: int,
    shape: tuple[float, float],
    here: list[Case],
    counts: dict[tuple[Case, str], Counter[str]],
) -> None:
    rng = generator("graph", *shape, number)
    graph, labels = block_graph([NODES // 2] * 2, inside=shape[0], across=shape[1], rng=rng)
    truth = np.zeros(NODES)
    truth[rng.integers(NODES // 2)] = 1.0
    for rate in dict.fromkeys(case.rate for case in here):
        operator = graph_diffusion(graph, rate)
        moved = sensitivity(operator, MovedMass(1, "graph")).l2
        columns = operator.columns(np.arange(NODES))
        # Points that two panels share are computed once.
        known: dict[float, dict[str, tuple[bool, str]]] = {}
        for case in (case for case in here if case.rate == rate):
            if case.epsilon not in known:
                standard = _noise(number, shape, rate, case.epsilon)
                known[case.epsilon] = _answers(
                    operator, columns, labels, truth, standard, moved, case.epsilon
                )
            for name, (best, answer) in known[case.epsilon].items():
                tally = counts.setdefault((case, name), Counter())
                tally[answer] += 1
                tally["best"] += best


def _noise(number: int, shape: tuple[float, float], rate: float, epsilon: float) -> FloatArray:
    """Standard noise, the same for all methods and another for each place of a panel."""
    return generator("graph noise", *shape, number, rate, epsilon).standard_normal(NODES)


def _answers(
    operator: GraphDiffusion,
    columns: FloatArray,
    labels: np.typing.NDArray[np.int64],
    truth: FloatArray,
    standard: FloatArray,
    moved: float,
    epsilon: float,
) -> dict[str, tuple[bool, str]]:
    """For each method: whether Bayes' rule is right, and what the recovery says."""
    out: dict[str, tuple[bool, str]] = {}
    for method in BOTH:
        sigma = gaussian_sigma(epsilon, DELTA, sensitivity=moved, method=method.calibration)
        readings = operator.readings(truth) + sigma * standard
        out[method.name] = (
            best_guess(columns, readings, sigma, labels) == 0,
            _community(operator, readings, sigma, method.radius == "papers", labels),
        )
    return out


def best_guess(
    columns: FloatArray, readings: FloatArray, sigma: float, labels: np.typing.NDArray[np.int64]
) -> int:
    """The more probable community of a unit at a node chosen at random, given its noisy readings."""
    fit = -((columns - readings[:, np.newaxis]) ** 2).sum(axis=0) / (2 * sigma**2)
    weights = np.bincount(labels, weights=np.exp(fit - fit.max()))
    return int(np.argmax(weights))


def _community(
    operator: GraphDiffusion,
    readings: FloatArray,
    sigma: float,
    papers: bool,
    labels: np.typing.NDArray[np.int64],
) -> str:
    try:
        found = recover(operator, readings, sigma=sigma, radius="papers" if papers else None)
    except SolverFailed:
        return "failed"
    if found.status != "optimal":
        return found.status
    return "right" if community_of(found.estimate, labels).label == 0 else "wrong"


def _summary(
    wanted: list[Case], counts: dict[tuple[Case, str], Counter[str]]
) -> tuple[list[Point], Table]:
    found: list[Point] = []
    rows: Table = [
        [
            "inside / across",
            "tau",
            "epsilon",
            "method",
            "right",
            "wrong",
            "none (zero / infeasible)",
            BEST,
        ]
    ]
    for case in wanted:
        for method in BOTH:
            tally = counts[case, method.name]
            trials = sum(tally[word] for word in ("right", "wrong", "zero", "infeasible", "failed"))
            for series, hits in (
                (method.name, tally["right"]),
                (f"{method.name}: {BEST}", tally["best"]),
            ):
                ends = share(hits, trials)
                found.append(Point(case.figure, series, "value", case.axis, case.x, *ends, trials))
            none = f"{tally['zero']} / {tally['infeasible']}" + (
                f", {tally['failed']} not solved" if tally["failed"] else ""
            )
            row = [
                f"{case.inside:g} / {case.across:g}",
                f"{case.rate:g}",
                f"{case.epsilon:g}",
                method.name,
            ]
            row += [
                f"{tally['right']} of {trials}",
                str(tally["wrong"]),
                none,
                f"{tally['best']} of {trials}",
            ]
            if row not in rows:
                rows.append(row)
    return found, rows


def _unsolved(counts: dict[tuple[Case, str], Counter[str]]) -> tuple[tuple[str, int, int], ...]:
    """How many recoveries of each panel failed, and how many were tried."""
    out: dict[str, Counter[str]] = {}
    for (case, _), tally in counts.items():
        out.setdefault(case.figure, Counter()).update(tally)
    return tuple(
        (figure, all_["failed"], all_.total() - all_["best"]) for figure, all_ in out.items()
    )


def _average(name: str, method: Method, epsilon: float, draws: int) -> tuple[Picture, list[str]]:
    """Figure 3 as the papers say it: the average behaviour, on the first graph at tau = 2.

    One source on the left, the noise anew in each draw; means are of the vectors of draws with an answer.
    """
    rng = generator("graph", 0.05, 0.001, 0)
    graph, labels = block_graph([NODES // 2] * 2, inside=0.05, across=0.001, rng=rng)
    operator = graph_diffusion(graph, 2.0)
    moved = sensitivity(operator, MovedMass(1, "graph")).l2
    sigma = gaussian_sigma(epsilon, DELTA, sensitivity=moved, method=method.calibration)
    source = int(rng.integers(NODES // 2))
    truth = np.zeros(NODES)
    truth[source] = 1.0
    clean, read, estimate, answered = operator.readings(truth), np.zeros(NODES), np.zeros(NODES), 0
    for trial in range(draws):
        noise = generator("graph average", epsilon, trial).standard_normal(NODES)
        readings = clean + sigma * noise
        read += readings / draws
        found = recover(operator, readings, sigma=sigma, radius=method.radius)
        if found.status == "optimal":
            estimate += found.estimate
            answered += 1
    estimate /= max(answered, 1)
    sides = np.bincount(labels, weights=estimate, minlength=2)
    title = f"Figure 3 of the full version, averaged: epsilon = {epsilon:g}, {method.name}"
    png = draw_graph_recovery(
        graph,
        estimate,
        labels=labels,
        sources=truth,
        readings=read,
        caption=f"{title}. n = {NODES}, 5 % inside, 0.1 % across, tau = 2, delta = {DELTA}. Means of "
        f"{draws} draws of the noise; {answered} of them have an answer.",
        titles=("mean reading", "mean of what was recovered"),
        remark="" if answered else "no draw has an answer",
        rehearsal=True,
    )
    told = [f"{side:.3f}" for side in (*sides, estimate[source])] if answered else ["-"] * 3
    return (
        Picture(name, png, title),
        [method.name, f"{epsilon:g}", f"{answered} of {draws}", *told],
    )
