"""Noise for each sensor beside one sigma for all, on 20 sites, at equal epsilon and delta: pairs of draws.

python -m experiments.sensors.noise_each [--trials 200] [--data DIR] [--out docs/reference/noise-per-sensor.md]

Asked: never less information than one sigma has, on any site; on sparse networks of two communities a z-score
of the community statistic at least twice as large. A miss is exit code 1. Real sites need --data.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from experiments.sensors.protocol import FloatArray, generator
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from sfumato.privacy import ApproxDP
from sfumato.sensing import (
    Operator,
    Site,
    describe_site,
    emd_of,
    graph_diffusion,
    heat_line,
    heat_plane,
    plan,
    recover,
)
from sfumato.sensing.planning import block_graph, noise_each
from sfumato.sensing.recovery import communities
from sfumato.spaces import Graph, Grid
from sfumato.transport import emd

IntArray = npt.NDArray[np.int64]
COST = ApproxDP(4, "1e-5")
SPARSE = "sparse network"
HEAD = """# Noise for each sensor, measured

`python -m experiments.sensors.noise_each --data DIR --out docs/reference/noise-per-sensor.md` prints this
page; DIR holds the real networks and rooms. Each site twice, with one sigma and with noise for each sensor
(`sense plan --noise each`), at epsilon 4, delta 1e-5 for one reading, with the same sources and the same
standard normal draws.

*Information* is how many times that of one sigma the readings have on what is wanted: the two communities of a
graph, neighboring places elsewhere; *at most* is what no weights exceed (the dual of the program). *If wrong*
is how many times as far as the noise is for readings move, if the time of diffusion is 10 % off: with noise for
each sensor, and with one sigma. *Off* are sensors that `keep` 0 would switch off. On graphs *z* is how many
deviations the two communities are apart by the likelihood ratio of their means, and *right* how often that
statistic names the community of a source at a random node. Elsewhere *error* is the mean earth mover's distance
of R, and *ratio* that of both with its 95 % interval over pairs. Why it is as private:
[proof](../proofs/noise-per-sensor.md).

What it does not do: information on neighboring places is not all that answers hang on. With `keep` 1/4 in
place of 9/10, R on a line (T 0.005, 300 pairs) was 1.54 ± 0.32 times as far off, though every place was told
at least as well; so sensors there keep 9/10 of their weight, and gain little. A network whose communities
hardly show (the political blogs) still does not show them.

| site | sensors | information | at most | if wrong | off | z, one | z, each | right, one | right, each |
|---|---|---|---|---|---|---|---|---|---|
"""
MIDDLE = """
| site | sensors | information | at most | if wrong | off | error, one | error, each | ratio |
|---|---|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A site's line of the table, and whether it is as asked."""

    text: str
    graph: bool
    fails: str


def tried(name: str, site: Site, trials: int) -> Row:
    """Both kinds of noise on the same sources and draws."""
    found, bare = noise_each(site), noise_each(site, keep=0)
    one, each = plan(site, COST), plan(found.site, COST)
    operator = site.operator
    off = len(bare.site.off) if bare.used else 0
    head = (
        f"| {name} | {len(site.sensors)} | {found.gain:.2f} | {max(found.most, found.gain):.2f} | "
        f"{found.wrong:.2f}, {found.wrong_of_one:.2f} | {off} | "
    )
    fails = "less information than one sigma" if found.gain < 1 else ""
    rng = generator("noise each", name)
    cells = rng.integers(operator.space.size, size=trials)
    normal = rng.standard_normal((trials, len(site.sensors)))
    if isinstance(operator.space, Graph):
        labels = communities(operator.space, count=2)
        scores = [_scores(operator, sigmas, labels, cells, normal) for sigmas in
                  (np.full(len(site.sensors), one.sigma), each.sigmas)]  # fmt: skip
        (z_one, right_one), (z_each, right_each) = scores
        if name.startswith(SPARSE) and z_each < 2 * z_one:
            fails = "z-score below twice that of one sigma"
        text = f"{z_one:.2f} | {z_each:.2f} | {right_one:.0%} | {right_each:.0%} |"
        return Row(head + text, graph=True, fails=fails)
    few = cells[: max(2, trials // 4)]
    errors = np.array([
        [_error(operator, one.sigma, cell, draw), _error(found.site.operator, each.sigma, cell, draw)]
        for cell, draw in zip(few.tolist(), normal, strict=False)
    ])  # fmt: skip
    before, after = errors.mean(axis=0)
    ratio = after / before
    # The spread of a ratio of two means of pairs, by its first-order expansion.
    wide = 1.96 * np.std(errors[:, 1] - ratio * errors[:, 0], ddof=1) / np.sqrt(len(few)) / before
    text = f"{before:.4f} | {after:.4f} | {ratio:.2f} ± {wide:.2f} |"
    return Row(head + text, graph=False, fails=fails)


def _scores(
    operator: Operator,
    sigmas: FloatArray,
    labels: IntArray,
    cells: IntArray,
    normal: FloatArray,
) -> tuple[float, float]:
    """How far apart the communities are, in deviations, and how often the side is the right one."""
    means = [operator.readings((labels == side) / (labels == side).sum()) for side in (0, 1)]
    weights = (means[1] - means[0]) / sigmas**2
    middle = weights @ (means[0] + means[1]) / 2
    read = operator.columns(np.asarray(cells)).T + normal * sigmas
    said = (read @ weights > middle).astype(int)
    z = float(weights @ (means[1] - means[0]) / np.linalg.norm(weights * sigmas))
    return z, float((said == labels[cells]).mean())


def _error(operator: Operator, sigma: float, cell: int, draw: FloatArray) -> float:
    """How far R is from the truth; where nothing is told, mass is spread evenly."""
    truth = np.zeros(operator.space.size)
    truth[cell] = 1.0
    found = recover(operator, operator.readings(truth) + sigma * draw, sigma=sigma)
    if found.status != "optimal" or not found.estimate.any():
        return emd(np.ones(truth.size), truth, operator.space, normalize=True).value
    return emd_of(found, truth)


def sites(data: Path | None) -> Iterator[tuple[str, Site]]:
    """Made-up ones, and real ones where their data is."""
    for number in range(6):
        yield _network(f"{SPARSE} {number + 1}", [100, 100], 0.06, 0.003, number)
    yield _network("larger network", [250, 250], 0.05, 0.001, 0)
    for number in range(2):
        yield _network(f"dense network {number + 1}", [60, 60], 0.5, 0.05, number)
    rng = generator("noise each", "places")
    for time in (0.05, 0.005, 0.0005):
        yield (
            f"line, T {time}",
            _site(heat_line(sources=100, sensors=50, diffusion_time=time), "1/100"),
        )
    uneven = heat_line(sources=100, sensors=np.sort(rng.random(30)), diffusion_time=0.005)
    yield "line, sensors at random", _site(uneven, "1/100")
    square = Grid(4, (0, 0, 1, 1))
    for count in (16, 40):
        plane = heat_plane(sources=square, sensors=rng.random((count, 2)), diffusion_time=0.01)
        yield f"plane, {count} sensors at random", _site(plane, "1/50")
    if data is not None:
        yield from _real(data)


def _real(data: Path) -> Iterator[tuple[str, Site]]:
    graphs = data / "graphs"
    roads = [(int(r["u"]), int(r["v"])) for r in _rows(graphs / "minnesota_road_edges.csv")]
    yield "Minnesota roads, every 5th node", _everywhere(_connected(roads), 5)
    blogs = pq.read_table(graphs / "polblogs_edges.parquet")
    yield (
        "political blogs, every 4th node",
        _everywhere(
            _connected(list(zip(blogs["src"].to_pylist(), blogs["dst"].to_pylist(), strict=True))),
            4,
        ),
    )
    bay = pq.read_table(graphs / "pems_bay_distances.parquet").to_pylist()
    near = [(r["src"], r["dst"]) for r in bay if 0 < r["road_distance_m"] < 2500]
    yield "Bay Area road sensors", _everywhere(_connected(near), 1)
    motes = _rows(data / "sensors" / "intel_lab_mote_positions.csv")
    places = np.array([[float(r["x_m"]), float(r["y_m"])] for r in motes])
    lab = heat_plane(sources=Grid(4, (0, 0, 41, 32)), sensors=places, diffusion_time=8.0)
    yield "Intel lab, 54 motes", _site(lab, "1")
    corner = places[(places[:, 0] < 21)]
    half = heat_plane(sources=Grid(4, (0, 0, 41, 32)), sensors=corner, diffusion_time=8.0)
    yield "Intel lab, one half", _site(half, "1")


def _network(
    name: str, sizes: list[int], inside: float, across: float, seed: int
) -> tuple[str, Site]:
    graph, _ = block_graph(
        sizes, inside=inside, across=across, rng=generator("noise each", name, seed)
    )
    return name, _site(graph_diffusion(graph, rate=2.0), "1")


def _connected(edges: Sequence[tuple[int, int]]) -> Graph:
    """The largest connected part, its nodes numbered anew."""
    names, numbers = np.unique(np.array(edges), return_inverse=True)
    pairs = numbers.reshape(-1, 2)
    joined = sparse.coo_array((np.ones(len(pairs)), pairs.T), shape=(names.size, names.size))
    _, part = connected_components(joined, directed=False)
    kept = np.flatnonzero(part == np.bincount(part).argmax())
    again = np.full(names.size, -1)
    again[kept] = np.arange(kept.size)
    pairs = np.sort(again[pairs[(again[pairs] >= 0).all(axis=1)]], axis=1)
    return Graph(np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0))


def _everywhere(graph: Graph, every: int) -> Site:
    return _site(graph_diffusion(graph, rate=2.0, sensors=np.arange(0, graph.size, every)), "1")


def _site(operator: Operator, radius: str) -> Site:
    return describe_site("site", operator=operator, radius=radius).site


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def main() -> None:
    """The tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", default="", help="sites whose name has this in it")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows = []
    for name, site in sites(asked.data):
        if asked.only in name:
            rows.append(tried(name, site, asked.trials))
            print(rows[-1].text, rows[-1].fails, flush=True)
    if asked.out:
        told = [[row.text for row in rows if row.graph is kind] for kind in (True, False)]
        text = HEAD + "\n".join(told[0]) + "\n" + MIDDLE + "\n".join(told[1]) + "\n"
        asked.out.write_text(text, encoding="utf-8")
    sys.exit(any(row.fails for row in rows))


if __name__ == "__main__":
    main()
