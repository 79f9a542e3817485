"""Epsilon alone: Laplace noise of one scale, for what all readings move in l1, paid without a delta."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pytest
from numpy.random import Generator
from scipy import stats
from tests.chance import LEVEL

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import ApproxDP, MovedMass, PureDP, SwappedCells
from sfumato.sensing import (
    describe_site,
    graph_diffusion,
    heat_line,
    heat_plane,
    linear,
    open_ledger,
    plan,
    plan_sensors,
    release_readings,
    sensitivity,
    unseal_readings,
)
from sfumato.sensing.diagnostics.laplace_tails import chance_of_squares
from sfumato.sensing.diagnostics.misfit import DOUBTFUL, misfit
from sfumato.sensing.diagnostics.track_fit import fit_rounds
from sfumato.sensing.model.changes import Largest
from sfumato.sensing.model.l1_changes import l1_changes
from sfumato.sensing.model.operators.heat_line import HeatLine
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.operators.weighted import weighted
from sfumato.sensing.model.sensitivity import l1_sensitivity
from sfumato.sensing.pipeline import (
    LiveReading,
    LiveRecovery,
    LiveRound,
    make_device_key,
    make_master_key,
)
from sfumato.sensing.recovery import default_radius
from sfumato.sensing.release.noise_plan import NoisePlan, check_noise_plan
from sfumato.sensing.release.readings import quantise
from sfumato.sensing.release.rounds import _laplace_variation, best_guess
from sfumato.sensing.render import plan_text
from sfumato.sensing.results.plan import SensorPlan
from sfumato.sensing.results.track import TrackResult
from sfumato.spaces import Graph, Grid, Line, Points

RING = Graph([(i, (i + 1) % 14) for i in range(14)] + [(0, 5), (3, 9)])
SPOTS = Points([[0.1, 0.2], [0.8, 0.3], [0.4, 0.9], [0.6, 0.6]])
OPERATORS: dict[str, Operator] = {
    "line": heat_line(sources=30, sensors=9, diffusion_time=0.002),
    "plane": heat_plane(
        sources=Grid(3, (0, 0, 1, 1)), sensors=[[0.2, 0.3], [0.7, 0.6], [0.5, 0.9]],
        diffusion_time=0.02,
    ),
    "points": heat_plane(
        sources=SPOTS, sensors=[[0.2, 0.3], [0.7, 0.6], [0.5, 0.9]], diffusion_time=0.02
    ),
    "graph": graph_diffusion(RING, rate=0.7, sensors=[0, 2, 3, 8, 11]),
    "matrix": linear(np.vander([0.2, 0.9, 1.4], 8) * [[1], [-1], [1]], Line(8)),
}  # fmt: skip


def moves(name: str, rng: Generator, count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Readings of units at two places, anywhere that the promise is for, and how far apart these are."""
    operator = OPERATORS[name]
    if name in ("graph", "matrix"):
        size, matrix = operator.space.size, operator.dense()
        begin, end = (
            operator.space.edges[rng.integers(0, len(operator.space.edges), count)].T
            if isinstance(operator.space, Graph)
            else rng.integers(0, size - 1, count) + np.array([[0], [1]])
        )
        far = 1 / size if name == "matrix" else 1.0
        return matrix[:, begin] - matrix[:, end], np.full(count, far)
    axes = operator.sensors.positions.shape[1]
    at = rng.uniform(0, 1, (count, axes)) if name != "points" else rng.uniform(0.2, 0.6, (count, 2))
    step = rng.normal(0, 0.02, (count, axes))
    there = np.clip(at + step, 0.1, 0.8) if name == "points" else np.clip(at + step, 0, 1)
    width = operator.kernel_width or 0.0

    def reads(places: np.ndarray) -> np.ndarray:
        off = operator.sensors.positions[:, np.newaxis] - places
        heights = np.exp(-np.square(off).sum(axis=2) / width**2 / 2)
        return np.asarray(heights / (width * np.sqrt(2 * np.pi)) ** axes)

    norm = 2 if name == "points" else 1
    return reads(at) - reads(there), np.linalg.norm(there - at, ord=norm, axis=1)


@pytest.mark.parametrize("name", OPERATORS)
def test_no_move_changes_the_sum_of_readings_by_more(name: str, rng: Generator) -> None:
    operator = OPERATORS[name]
    near = MovedMass("1/4", operator.space.metric)
    changed, far = moves(name, rng, 3000)
    rates = np.abs(changed).sum(axis=0) / far / 4
    bound = l1_sensitivity(operator, near)
    assert rates.max() <= bound
    # And it is not much above: the largest found comes near, but where directions of sensors differ.
    assert bound <= rates.max() * (1.5 if name == "points" else 1.05)
    two, count = sensitivity(operator, near), len(operator.sensors)
    assert two.l2 < bound <= two.l2 * np.sqrt(count) * (1 + 1e-9)
    # Two cells one step apart that are swapped, full or not.
    swapped = l1_sensitivity(operator, SwappedCells(1))
    matrix = operator.dense()
    if name != "graph":
        assert np.abs(matrix[:, 0] - matrix[:, 1]).sum() <= swapped
    assert swapped >= sensitivity(operator, SwappedCells(1)).l2


@pytest.mark.parametrize("name", OPERATORS)
def test_neighbors_move_quantised_readings_within_the_bound(name: str, rng: Generator) -> None:
    """Sums of what integers change, the sensors' own rounding counted, are within what is paid for."""
    operator = OPERATORS[name]
    site = describe_site(
        "hall", operator=operator, radius="1/4", unit="mass", per_source=1, step="1/128"
    ).site
    made = plan(site, PureDP("1/2"))
    assert isinstance(made.cost, PureDP)
    assert Fraction("0.499") < made.cost.epsilon <= Fraction("1/2")
    changed, far = moves(name, rng)
    before = rng.uniform(0, 2, (len(operator.sensors), 1))
    after = before + changed / far / 4
    rounded = [np.round(one * 128) / 128 for one in (before, after)]
    one, other = (quantise(values, made.exponent) for values in rounded)
    assert np.abs(one - other).sum(axis=0).max() <= made.moved
    assert np.abs(one - other).max(axis=1).max() <= made.per_sensor_moved.max() / 2.0**made.exponent
    assert NoisePlan.from_json(made.to_json()).to_json() == made.to_json()


def test_a_release_pays_epsilon_alone_and_its_noise_is_laplace(
    tmp_path: Path, rng: Generator
) -> None:
    line = heat_line(sources=40, sensors=400, diffusion_time=0.01)
    site = describe_site("hall", operator=line, radius="1/20", unit="mass", per_source=1).site
    book = open_ledger(site, tmp_path / "hall.ledger", PureDP(400)).ledger
    make_master_key(tmp_path / "master.key")
    make_device_key(tmp_path / "master.key", tmp_path / "hall.key", name="hall")
    truth = line.columns([20])[:, 0]
    exact = dict(zip(site.sensors.names, truth.tolist(), strict=True))
    out = tmp_path / "noisy.json"
    made = release_readings(
        exact, site, ledger=book, loss=PureDP(100), device=tmp_path / "hall.key", out=[out]
    )
    wanted = plan(site, PureDP(100))
    assert made.sigma == pytest.approx(wanted.sigma)
    assert "epsilon 100 for each source" in made.statement
    left = book.left()
    assert isinstance(left, PureDP)
    assert left.epsilon == 400 - wanted.cost.epsilon  # type: ignore[union-attr]
    # The noise has this law, and not that of a Gaussian as wide.
    snapshot = made.readings.snapshots[0]
    noise = (snapshot.numbers() - truth) / made.sigma
    assert stats.kstest(noise, stats.laplace(scale=np.sqrt(0.5)).cdf).pvalue > LEVEL
    # Exactly off again, by the key.
    rows = unseal_readings(out, key=tmp_path / "master.key").rows
    assert np.abs(np.array([value for *_, value in rows]) - truth).max() <= 2.0**wanted.exponent
    # A share of an epsilon is an epsilon; and nothing that needs a delta is paid from it.
    shared = release_readings(exact, site, ledger=book, share=4)
    assert shared.sigma == pytest.approx(made.sigma)


def test_the_test_of_the_physics_keeps_its_level(rng: Generator) -> None:
    """Squares of Laplace noise are more uneven: taken for Gaussian ones they would warn too often."""
    line = heat_line(sources=40, sensors=60, diffusion_time=0.05)
    clean = line.columns([13])[:, 0]
    noises = rng.laplace(scale=0.1 * np.sqrt(0.5), size=(300, 60))
    told = [misfit(line, clean + noise, sigma=0.1, laplace=True).outside for noise in noises]
    taken = [misfit(line, clean + noise, sigma=0.1).outside for noise in noises]
    for share in (0.2, 0.05):
        below = sum(value <= share for value in told)
        assert stats.binomtest(below, 300, share, alternative="greater").pvalue > LEVEL
    below = sum(value <= 0.05 for value in taken)
    assert stats.binomtest(below, 300, 0.05, alternative="greater").pvalue < LEVEL
    # Readings that no noise explains are still found out.
    wrong = np.where(np.arange(60) == 7, 3.0, clean)
    assert misfit(line, wrong, sigma=0.1, laplace=True).p_value < DOUBTFUL


def test_plans_of_epsilon_alone(rng: Generator) -> None:
    line = heat_line(sources=20, sensors=10, diffusion_time=0.01)
    site = describe_site("hall", operator=line, radius="1/20", unit="mass", per_source=1).site
    made = plan_sensors(site, PureDP(2), readings=4)
    assert made.shared is not None
    assert made.shared.each.epsilon <= Fraction(1, 2)  # type: ignore[union-attr]
    assert "Laplace noise of one scale" in plan_text(made)
    assert made.papers.lower is None  # proved of Gaussian noise
    again = SensorPlan.from_json(made.to_json())
    assert again.to_json() == made.to_json()
    # Half the epsilon, twice the noise.
    one, other = (plan(site, PureDP(epsilon)).sigma for epsilon in (1, "1/2"))
    assert other == pytest.approx(2 * one, rel=1e-3)
    row = plan_sensors(site, PureDP("1/100")).costs[-1]
    assert row.readings == 1440
    assert row.epsilon < 14.4  # as rho they cost less than added up


def test_what_is_refused(tmp_path: Path) -> None:
    line = heat_line(sources=20, sensors=10, diffusion_time=0.01)
    site = describe_site("hall", operator=line, radius="1/20", unit="mass", per_source=1).site
    with pytest.raises(InvalidParameter, match="one scale"):
        plan_sensors(site, PureDP(1), noise="each")
    gains = describe_site("hall", operator=weighted(line, np.full(10, 2.0)), radius="1/20").site
    with pytest.raises(InvalidParameter, match="one scale"):
        plan(gains, PureDP(1))
    with pytest.raises(InvalidParameter, match="papers"):
        plan(site, PureDP(1), calibration="papers")
    told = plan(site, PureDP(1)).to_json()
    del told["sensitivity"]["l1"]
    with pytest.raises(InvalidInput, match="l1"):
        NoisePlan.from_json(told)
    assert plan(site, ApproxDP(1, "1e-6")).sensitivity.l1 is None


EDITS: list[tuple[str, dict[str, object], str]] = [
    ("", {"step": "0"}, "step"),  # the site's is 1/8
    ("", {"exponent": -9.9}, "whole number"),
    ("sensitivity", {"l1": 1.0}, "below that in l2"),
    ("sensitivity", {"l2": -5.0}, "not negative"),
    ("sensitivity", {"per_sensor": [float("nan")] * 10}, "finite"),
    (
        "sensitivity",
        {"neighbors": {"kind": "moved-mass", "radius": "1/9", "metric": "line"}},
        "relat",
    ),
]


@pytest.mark.unit
@pytest.mark.parametrize(("part", "edit", "said"), EDITS, ids=str)
def test_a_plan_that_was_edited_is_refused_where_the_site_or_arithmetic_tells(
    part: str, edit: dict[str, object], said: str
) -> None:
    line = heat_line(sources=20, sensors=10, diffusion_time=0.01)
    site = describe_site(
        "hall", operator=line, radius="1/20", unit="mass", per_source=1, step="1/8"
    ).site
    told = plan(site, PureDP(1)).to_json()
    check_noise_plan(NoisePlan.from_json(told), site)
    (told[part] if part else told).update(edit)
    with pytest.raises((InvalidInput, InvalidParameter), match=said):
        check_noise_plan(NoisePlan.from_json(told), site)


@dataclass(frozen=True, eq=False)
class Louder(HeatLine):
    """Heat of a source twice as strong, derived from ours, which says its own changes."""

    kind: ClassVar[str] = "louder"

    def columns(self, cells: npt.ArrayLike) -> FloatArray:
        return 2 * super().columns(cells)

    def changes(self, *, over_distance: bool) -> Largest:
        found = super().changes(over_distance=over_distance)
        return replace(found, l2=2 * found.l2, per_sensor=2 * found.per_sensor)


@pytest.mark.unit
def test_what_is_known_of_ours_is_not_believed_of_one_that_says_its_own_changes() -> None:
    line = heat_line(sources=40, sensors=8, diffusion_time=0.02)
    louder = Louder(**{one.name: getattr(line, one.name) for one in fields(line)})
    moved = np.abs(np.diff(louder.columns(np.arange(40)), axis=1)).sum(axis=0).max()
    step = 1 / 40
    assert l1_changes(louder, over_distance=True) >= moved / step
    assert l1_changes(line, over_distance=True) < moved / step


@pytest.mark.unit
def test_sources_move_within_a_single_cell_too() -> None:
    line = heat_line(sources=1, sensors=3, diffusion_time=0.02)
    # No sum of absolute values is below the root of the sum of squares.
    assert l1_changes(line, over_distance=True) >= line.changes(over_distance=True).l2 > 1
    node = graph_diffusion(Graph([], nodes=1), rate=1.0)
    assert l1_changes(node, over_distance=True) == 0


@pytest.mark.statistical
def test_squares_of_laplace_noise_have_their_own_chances(rng: Generator) -> None:
    """Their p-values keep their levels, by made-up noise and by the bound; chi-square's do not."""
    squares = np.square(rng.laplace(scale=np.sqrt(0.5), size=(3000, 30))).sum(axis=1)
    told = [chance_of_squares(30, square) for square in squares]
    for share in (0.2, 0.05, 0.01):
        below = sum(chance <= share for chance in told)
        assert stats.binomtest(below, 3000, share, alternative="greater").pvalue > LEVEL
    taken = int((stats.chi2.sf(squares, 30) <= 0.05).sum())
    assert stats.binomtest(taken, 3000, 0.05, alternative="greater").pvalue < LEVEL
    # Where nothing was made up: one number above a cut and no others, or none above it.
    for far in (100.0, 1000.0):
        alone = np.exp(-np.sqrt(2 * far))
        assert alone <= chance_of_squares(1, far) <= 30 * alone
    assert chance_of_squares(10_000, 10_000 * 1.02) > 0.05
    assert chance_of_squares(10_000, 10_000 * 1.5) < 1e-6


@pytest.mark.statistical
def test_tracks_know_that_noise_is_laplace(rng: Generator) -> None:
    line = heat_line(sources=60, sensors=20, diffusion_time=0.01)
    site = describe_site("hall", operator=line, radius="1/100", unit="mass", per_source=1).site

    def followed(*, laplace: bool, broken: float) -> tuple[list[float], TrackResult]:
        rounds = []
        for number, cell in enumerate(np.clip(30 + rng.integers(-2, 3, 4).cumsum(), 2, 57)):
            read = line.columns([cell])[:, 0] + rng.laplace(scale=0.1 * np.sqrt(0.5), size=20)
            read[4] += broken
            rounds.append(
                LiveRound(
                    f"2026-11-18T09:00:0{number}Z",
                    {
                        name: LiveReading(float(value), 0.1, PureDP(1), laplace=laplace)
                        for name, value in zip(site.sensors.names, read, strict=True)
                    },
                )
            )
        found = LiveRecovery(site).track(rounds)
        values = np.array([[one.value for one in each.readings.values()] for each in rounds])
        assert found.track is not None
        fits = fit_rounds(
            found.track,
            values,
            noises=[0.1] * 4,
            min_noises=[0.1] * 4,
            max_mass=1.0,
            laplace=laplace,
        )
        return [one.p_value for one in fits], found

    told = [followed(laplace=True, broken=0.0) for _ in range(25)]
    below = sum(chance <= 0.05 for chances, _ in told for chance in chances)
    assert stats.binomtest(below, 100, 0.05, alternative="greater").pvalue > LEVEL
    kinds = [found.verdict.kind for _, found in told]
    assert kinds.count("misfit") <= 1
    assert str(told[0][1].cost) == "epsilon 4"
    # Readings that no noise explains are still found out, and the sensor is named.
    _, found = followed(laplace=True, broken=3.0)
    assert found.verdict.kind == "misfit"
    assert [one.sensor for one in found.faulty_sensors] == [site.sensors.names[4]]


@pytest.mark.statistical
@pytest.mark.parametrize("terms", [1, 4])
def test_the_radius_of_r_holds_nine_of_ten_draws_of_laplace_noise(
    rng: Generator, terms: int
) -> None:
    """Where every sensor is a direction; that of Gaussian noise holds fewer."""
    alone = linear(np.eye(8), Line(8))
    drawn = rng.laplace(scale=np.sqrt(0.5 * terms), size=(40_000, terms, 8)).mean(axis=1)
    lengths = np.linalg.norm(drawn, axis=1)
    told, taken = (
        int((lengths <= default_radius(alone, np.zeros(8), 1.0, max_mass=9.0, laplace=many)).sum())
        for many in (terms, 0)
    )
    # The gamma law is not its law: eight deviations of so many draws, and 2 % of the draws more.
    assert 0.9 - 0.012 < told / 40_000 < 0.9 + 0.032
    assert stats.binomtest(taken, 40_000, 0.9, alternative="less").pvalue < LEVEL


@pytest.mark.reference
@pytest.mark.parametrize("scale", [1, 3, 10])
@pytest.mark.parametrize("moved", [(1,), (1, 1), (2, 0, 5), (3, 3, 3), (7, 2)])
def test_what_a_guess_finds_out_is_bounded_by_affinity(scale: int, moved: tuple[int, ...]) -> None:
    """Against the exact distance in variation, of every outcome of up to three sensors."""
    far = 12 * scale + 8
    at = np.arange(-far, far + 1)
    one = np.ones(1)
    other = np.ones(1)
    for step in moved:
        law = np.exp(-np.abs(at) / scale) * np.tanh(1 / (2 * scale))
        there = np.exp(-np.abs(at - step) / scale) * np.tanh(1 / (2 * scale))
        one, other = np.outer(one, law).ravel(), np.outer(other, there).ravel()
    exact = np.abs(one - other).sum() / 2
    l2 = Fraction(float(np.linalg.norm(moved)))
    small = SimpleNamespace(width=Fraction(scale), moved=Fraction(sum(moved)), moved_together=l2)
    # What lies farther out than 12 scales is less than 3 sensors times exp(-12).
    assert exact <= _laplace_variation(small, 1) + 3 * np.exp(-12)  # type: ignore[arg-type]
    # It says something: of a shift of a scale or less, it is at most 2.1 times the distance.
    if np.linalg.norm(moved) <= scale:
        assert _laplace_variation(small, 1) <= 2.1 * exact  # type: ignore[arg-type]


@pytest.mark.statistical
def test_many_sensors_with_laplace_noise_tell_less_than_epsilon_allows(rng: Generator) -> None:
    """The best guess between the two neighbors that readings tell apart best, over 40,000 readings."""
    line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    site = describe_site(
        "hall", operator=line, radius="1/100", unit="mass", per_source=1, step="1/10000"
    ).site
    noise = plan(site, PureDP(2))
    says, allowed = best_guess(noise), 1 / (1 + math.exp(-2))
    columns = line.columns(np.arange(100))
    gap = np.diff(columns, axis=1)
    shift = gap[:, np.linalg.norm(gap, axis=0).argmax()]
    scale = noise.sigma / math.sqrt(2)
    drawn = rng.laplace(0, scale, (40_000, 50))
    likelier = (np.abs(drawn + shift) - np.abs(drawn)).sum(axis=1)
    right = int((likelier > 0).sum() + (likelier == 0).sum() // 2)
    assert stats.binomtest(right, 40_000, says, alternative="greater").pvalue >= LEVEL
    assert stats.binomtest(right, 40_000, allowed).pvalue < LEVEL
    assert says < 0.6 < 0.88 < allowed
    assert best_guess(noise, 10) > says
