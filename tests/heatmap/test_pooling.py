"""Partial pooling: exact sums, the empirical-Bayes fit against slow solvers, help and harm, and files."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from scipy import stats
from scipy.optimize import minimize
from tests.chance import LEVEL

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap import (
    HeatmapRelease,
    as_text,
    compare_maps,
    plan_release,
    pool_maps,
    read_heatmap,
    rehearse_heatmap,
    release_heatmap,
)
from sfumato.heatmap.accuracy.map_error import MapError
from sfumato.heatmap.accuracy.noise_mark import SimulatedNoise
from sfumato.heatmap.analysis import similarity, smooth
from sfumato.heatmap.inference import CountsPosterior, NoisyCounts, common_counts, pool_counts
from sfumato.heatmap.inference import partial_pooling as pooling
from sfumato.heatmap.inference.cascade import MASSES, SHAPES
from sfumato.heatmap.inference.posterior import first_passes
from sfumato.heatmap.methods.zoom import ZoomMethod
from sfumato.heatmap.pipeline import pooling as pipeline
from sfumato.heatmap.render.error import error_facts, error_lines, errors_line
from sfumato.privacy import UNITS, KeyedNoise, Ledger, PureDP
from sfumato.records import CellSums, bound_of_sums
from sfumato.spaces import Area, Grid

FloatArray = npt.NDArray[np.float64]

AREA = Area(Grid(5), (0.0, 0.0, 1.0, 1.0), "plane")
FRAMES, USERS = 8, 30


def counts_of(values: list[float], level: int = 1, scale: float = 2.0) -> NoisyCounts:
    """Counts of all cells of a level."""
    size = len(values)
    return NoisyCounts(
        np.full(size, level), np.arange(size), np.array(values), np.full(size, scale),
        np.zeros(size, dtype=bool),
    )  # fmt: skip


def town(rng: np.random.Generator, *, odd: bool) -> tuple[list[NoisyCounts], list[FloatArray]]:
    """Released counts and exact masses of frames alike; the last may be a crowd in one far corner."""
    grid, middle = AREA.grid, rng.uniform(0.2, 0.6, (3, 2))
    masses = np.zeros((FRAMES, grid.size), dtype=np.int64)
    for frame in range(FRAMES):
        at = middle[rng.integers(0, 3, USERS)] + rng.normal(0, 0.03, (USERS, 2))
        if odd and frame == FRAMES - 1:
            at = 0.9 + rng.normal(0, 0.02, (USERS, 2))
        at = np.clip(at, 0, 0.999)
        np.add.at(masses[frame], grid.cells_of(at[:, 0], at[:, 1]), UNITS)
    codes = np.flatnonzero(masses)
    sums = CellSums(grid, codes, masses.ravel()[codes], FRAMES, AREA)
    mechanism = ZoomMethod().mechanism(Fraction(1), bound_of_sums(grid, FRAMES), grid)
    tree = mechanism.sample(sums, SimulatedNoise(int(rng.integers(2**31))))
    return [tree.counts(frame) for frame in range(FRAMES)], list(masses / UNITS)


@lru_cache(maxsize=1)
def some_frames() -> tuple[NoisyCounts, ...]:
    """Frames of different trees; what is asked of them is exact, so any will do."""
    return tuple(town(np.random.default_rng(7), odd=True)[0])


# -- exact


@pytest.mark.unit
def test_maps_that_are_the_same_add_up() -> None:
    one = counts_of([8.0, 4.0, 2.0, 0.0])
    found = common_counts([one] * 4, np.full(4, 14.0))
    assert np.allclose(found.values, 4 * one.values)
    assert np.allclose(found.scales, 2 * one.scales)  # noise of four adds in squares


@pytest.mark.unit
def test_maps_of_different_trees_and_sizes_meet_cell_by_cell() -> None:
    small, large = counts_of([3.0, 1.0, 0.0, 0.0]), counts_of([12.0] * 16, level=2, scale=1.0)
    found = common_counts([small, large], np.array([10.0, 30.0]))
    assert found.levels.tolist() == [1] * 4 + [2] * 16
    # Counted in one map only: as many times as much as that map is a part of all.
    assert np.allclose(found.values, [12.0, 4.0, 0.0, 0.0] + [16.0] * 16)
    assert np.allclose(found.scales, [8.0] * 4 + [4 / 3] * 16)
    # Two counts of one cell are weighed by precision: 1 / 2**2 and 1 / 1**2.
    twice = common_counts([small, counts_of([6.0] * 4, scale=1.0)], np.array([1.0, 1.0]))
    assert twice.values[0] == pytest.approx(2 * (3 / 4 + 6) / (1 / 4 + 1))


@pytest.mark.unit
def test_totals_stay_and_the_order_of_maps_changes_nothing() -> None:
    frames = some_frames()
    found, model = pool_counts(frames, AREA)
    back, other = pool_counts(frames[::-1], AREA)
    assert np.array_equal(model.common.values, other.common.values)
    for one, same, counts in zip(found, back[::-1], frames, strict=True):
        assert np.array_equal(one.means(5), same.means(5))
        assert np.array_equal(one.maps(9, 4), same.maps(9, 4))
        alone = CountsPosterior(counts, mean_is_map=True, area=AREA)
        assert one.means(5).sum() == pytest.approx(alone.means(0)[0], rel=1e-9)
        # Draws have the totals of the map alone, quantile by quantile.
        assert np.allclose(one.maps(9, 3).sum(axis=(1, 2)), alone.totals(9), rtol=1e-6)
        assert one.pooled_maps == FRAMES


@pytest.mark.unit
def test_identical_maps_are_pooled_to_identical_ones() -> None:
    one = some_frames()[0]
    found, _ = pool_counts([one] * 3, AREA)
    assert np.array_equal(found[0].means(5), found[1].means(5))
    assert np.array_equal(found[1].pooling.chances, found[2].pooling.chances)


@pytest.mark.unit
def test_what_a_map_has_from_others_can_be_kept_and_is_refused_when_damaged() -> None:
    frames = some_frames()
    found, _ = pool_counts(frames, AREA)
    told = json.loads(json.dumps(found[2].pooling.to_json()))
    again = pooling.PooledPosterior(frames[2], pooling.Pooling.from_json(told), AREA)
    assert np.array_equal(again.means(5), found[2].means(5))
    assert np.array_equal(again.maps(7, 4), found[2].maps(7, 4))
    for wrong in ({"chances": [1.0, 1.0, 1.0]}, {"mixtures": [[1.0]]}, {"maps": 1}):
        with pytest.raises(InvalidInput):
            pooling.Pooling.from_json({**told, **wrong})
    with pytest.raises(ValueError, match="not known"):
        pooling.Pooling.from_json({**told, "strengths": [0.0, 1.0]})


@pytest.mark.unit
def test_one_map_or_counts_that_were_kept_back_are_refused() -> None:
    one = some_frames()[0]
    with pytest.raises(InvalidParameter, match="at least two maps, got 1"):
        pool_counts([one])
    hidden = NoisyCounts(one.levels, one.codes, one.values, one.scales, one.levels >= 2)
    with pytest.raises(InvalidParameter, match="all of whose counts"):
        pool_counts([one, hidden])


# -- the fit against slow solvers


@pytest.mark.reference
def test_usual_strengths_are_the_most_likely_ones(rng: np.random.Generator) -> None:
    logs = rng.normal(0, 2, (9, 3))

    def cost(free: FloatArray) -> float:
        chances = np.exp(np.append(free, 0.0))
        chances /= chances.sum()
        return -float(
            np.log(np.exp(logs) @ chances).sum() + pooling.PSEUDO_MAPS * np.log(chances).sum()
        )

    best = np.append(minimize(cost, np.zeros(2), tol=1e-12).x, 0.0)
    assert np.allclose(pooling.usual_strengths(logs), np.exp(best) / np.exp(best).sum(), atol=1e-4)


@pytest.mark.reference
def test_evidence_is_that_of_an_integral_over_all_shares() -> None:
    """How much more likely counts are around one center than another, with every share integrated."""
    values, scale, shape = [9.0, 4.0, 5.0, 1.0], 2.0, SHAPES.index(3.0)
    counts = counts_of(values, scale=scale)
    mixture = np.zeros((len(MASSES) + 1, len(SHAPES)))
    mixture[:, shape] = 1.0
    sizes = np.linspace(0.0, 70.0, 120)
    u = (np.arange(300) + 0.5) / 300

    def beta(center: float) -> FloatArray:
        a = 2 * SHAPES[shape]
        weights = stats.beta(a * center, a * (1 - center)).pdf(u)
        return np.asarray(weights / weights.sum())

    def half(first: float, second: float) -> FloatArray:
        """The likelihood of two quarters by the mass of their half [mass]."""
        mass = np.linspace(0.0, 70.0, 600)
        away = np.abs(first - mass[:, None] * u) + np.abs(second - mass[:, None] * (1 - u))
        return np.asarray(np.exp(-away / scale) @ beta(0.5))

    def slow(center: float) -> float:
        mass, (one, two) = np.linspace(0.0, 70.0, 600), (half(*values[:2]), half(*values[2:]))
        both = np.interp(sizes[:, None] * u, mass, one) * np.interp(
            sizes[:, None] * (1 - u), mass, two
        )
        return float(np.log((both @ beta(center)).sum()))

    def ours(center: float) -> float:
        centers = np.array([[center, 0.5, 0.5]])
        (one,) = first_passes(counts, None, [lambda masses, level: centers])
        return pooling.log_evidence(one.finish(mixture))

    # Logits 0, 1 and -2 are among those of the tables.
    high, low = 1 / (1 + np.exp(-1.0)), 1 / (1 + np.exp(2.0))
    assert ours(high) - ours(0.5) == pytest.approx(slow(high) - slow(0.5), abs=0.05)
    assert ours(low) - ours(0.5) == pytest.approx(slow(low) - slow(0.5), abs=0.1)
    assert ours(low) < ours(0.5) - 0.5  # and it tells a wrong center from a right one


# -- help and harm


@pytest.mark.statistical
def test_it_helps_maps_that_are_alike_and_hardly_hurts_an_odd_one(
    rng: np.random.Generator,
) -> None:
    """Against the rival of one common map for all, which helps as much and ruins the odd one.

    And the intervals of its draws hold as often as they say, those half as wide do not.
    """
    helped, odd, rival, inside, narrow = [], [], [], [], []
    for _ in range(20):
        counts, truths = town(rng, odd=True)
        found, model = pool_counts(counts, AREA)
        common = CountsPosterior(model.common, mean_is_map=True, area=AREA).means(5)
        change = []
        for one, frame, truth in zip(found, counts, truths, strict=True):
            alone = CountsPosterior(frame, mean_is_map=True, area=AREA)
            before, after, same = (_seen(m, truth) for m in (alone.means(5), one.means(5), common))
            change.append((after - before, same - before))
            draws = one.maps(39, 2).reshape(39, -1)
            low, middle, high = np.quantile(draws, (0.05, 0.5, 0.95), axis=0)
            there = AREA.grid.image(truth).reshape(4, 8, 4, 8).sum(axis=(1, 3)).ravel()
            busy = there >= 1
            inside += ((low <= there) & (there <= high))[busy].tolist()
            quarter = (high - low) / 4
            narrow += (np.abs(there - middle) <= quarter)[busy].tolist()
        helped.append(np.mean([one for one, _ in change[:-1]]))
        odd.append(change[-1][0])
        rival.append(change[-1][1])
    assert stats.ttest_1samp(helped, 0.03, alternative="greater").pvalue < LEVEL
    # The same limit on both sides: the odd one loses less than a twentieth, and with the rival more.
    assert stats.ttest_1samp(odd, -0.05, alternative="greater").pvalue < LEVEL
    assert stats.ttest_1samp(rival, -0.05, alternative="less").pvalue < LEVEL
    assert 0.8 <= np.mean(inside) <= 0.99
    assert np.mean(narrow) < 0.75


def _seen(mass: FloatArray, truth: FloatArray) -> float:
    pictures = (AREA.grid.image(one / one.sum()) for one in (mass, truth))
    one, other = (smooth(picture, 0.02) for picture in pictures)
    return similarity(one, other)


# -- the pipeline


BOX = (11.2, 43.74, 11.32, 43.81)
GROUPS = ("a", "b", "c")


def table(rng: np.random.Generator) -> pa.Table:
    """Sixty people in three groups, all around one place."""
    user = np.repeat(np.arange(60), 3)
    return pa.table(
        {
            "user": [f"u{number}" for number in user],
            "lon": 11.25 + rng.normal(0, 0.008, 180),
            "lat": 43.77 + rng.normal(0, 0.005, 180),
            "kind": np.array(GROUPS)[np.arange(180) % 3],
        }
    )


def rehearsed(rows: pa.Table, **more: Any) -> Any:
    return rehearse_heatmap(
        rows, user="user", by="kind", bounds=BOX, levels=4, public=True, epsilon=1, groups=GROUPS,
        noise=KeyedNoise(bytes(32), epoch=bytes(12)), **more,
    )  # fmt: skip


def same(one: HeatmapRelease, other: HeatmapRelease) -> bool:
    """Whether two maps show and say the same."""
    return (
        one.statement == other.statement
        and np.array_equal(one.image(), other.image())
        and one.noise == other.noise
        and one.error() == other.error()
        and np.array_equal(one.band().high, other.band().high)
    )


@pytest.mark.unit
def test_pooling_then_or_later_from_saved_files_is_the_same(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    rows = table(rng)
    at_once = rehearsed(rows, pooling="partial", outputs=tmp_path / "at-once-{by}.json")
    rehearsed(rows, outputs=tmp_path / "alone-{by}.json")
    saved = [tmp_path / f"alone-{group}.json" for group in GROUPS]
    later = pool_maps(saved[::-1], [tmp_path / "{by}.json", tmp_path / "{by}.geojson"])
    assert "partly pooled over 3 maps at no cost" in at_once.statement
    for group, one, two in zip(GROUPS, at_once.maps, later.maps, strict=True):
        assert one.group == two.group == group
        assert same(one, two)
        assert same(one, read_heatmap(tmp_path / f"at-once-{group}.json"))
        told = json.loads((tmp_path / f"{group}.geojson").read_text())["sfumato"]
        assert "partly pooled over 3 maps" in told["statement"]
        # Zones and totals go by the law of the noise on the map's own counts.
        alone = read_heatmap(tmp_path / f"alone-{group}.json")
        assert two.total().low == pytest.approx(alone.total().low)
        assert two.tiles.total == pytest.approx(alone.tiles.total, rel=1e-9)
        assert "pooled" not in alone.statement
    # Pooled maps keep their own counts: pooled again they are the same.
    assert all(map(same, pool_maps(later.maps).maps, later.maps))
    # What draws miss was measured on maps by themselves.
    alone, said = read_heatmap(saved[0]), later.maps[0].error()
    assert (said.emd, said.similarity, said.pearson) == (None,) * 3
    assert alone.error().emd is not None
    assert MapError.from_json(json.loads(json.dumps(said.to_json()))) == said
    assert "not stated: it is pooled" in error_lines(said)[0]
    assert "not stated: it is pooled" in errors_line([one.error() for one in later.maps])
    assert error_facts(said)[0][1].startswith("not stated: it is pooled")
    # That one map is pooled and the other not is said, whichever is the first.
    pooled = later.maps[0]
    for pair in ((alone, pooled), (pooled, alone)):
        assert "is pooled with other maps and" in as_text(compare_maps(*pair))
    assert "pooled with" not in as_text(compare_maps(pooled, later.maps[1]))


@pytest.mark.unit
def test_a_map_from_before_pooling_opens(rng: np.random.Generator, tmp_path: Path) -> None:
    rehearsed(table(rng), outputs=tmp_path / "{by}.json")
    data = json.loads((tmp_path / "a.json").read_text())
    del data["pooling"]
    (tmp_path / "old.json").write_text(json.dumps(data))
    old = read_heatmap(tmp_path / "old.json")
    assert old.pooled_maps == 1
    assert same(old, read_heatmap(tmp_path / "a.json"))
    data["pooling"] = {"kind": "full"}
    (tmp_path / "odd.json").write_text(json.dumps(data))
    with pytest.raises(InvalidInput, match="not a whole map"):
        read_heatmap(tmp_path / "odd.json")


@pytest.mark.unit
def test_what_cannot_be_pooled_is_refused_before_a_charge(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    rows = table(rng)
    ledger = Ledger.create(tmp_path / "l.ledger", PureDP(1), unit="user", source="s")
    asked: dict[str, Any] = {
        "user": "user",
        "bounds": BOX,
        "levels": 4,
        "ledger": ledger,
        "epsilon": 1,
    }
    with pytest.raises(InvalidParameter, match=r"between several maps: .* nothing"):
        plan_release(rows, pooling="partial", **asked)
    with pytest.raises(InvalidParameter, match="got method pyramid; nothing was charged"):
        plan_release(rows, pooling="partial", by="kind", groups=GROUPS, method="pyramid", **asked)
    with pytest.raises(InvalidParameter, match="none or partial, got 'full'"):
        plan_release(rows, pooling="full", by="kind", groups=GROUPS, **asked)  # type: ignore[arg-type]
    assert not ledger.statement().entries
    found = rehearsed(rows).maps
    with pytest.raises(InvalidParameter, match="at least two maps, got 1; nothing was written"):
        pool_maps(found[:1])
    with pytest.raises(InvalidParameter, match="each map once"):
        pool_maps([found[0], found[0]])
    other = rehearse_heatmap(rows, user="user", bounds=BOX, levels=4, public=True, epsilon=2).maps[
        0
    ]
    with pytest.raises(InvalidParameter, match="of one release, got maps of several"):
        pool_maps([found[0], other])


@pytest.mark.fault
def test_maps_that_are_paid_for_are_there_whatever_pooling_does(
    rng: np.random.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise MemoryError("none left")

    monkeypatch.setattr(pipeline, "pool_counts", broken)
    ledger = Ledger.create(tmp_path / "l.ledger", PureDP(1), unit="user", source="s")
    told: list[str] = []
    found = release_heatmap(
        table(rng), user="user", by="kind", bounds=BOX, levels=4, ledger=ledger, epsilon=1,
        groups=GROUPS, pooling="partial", outputs=tmp_path / "{by}.json", warn=told.append,
    )  # fmt: skip
    assert told == [
        "could not pool the maps (none left): they are paid for, and written one by one"
    ]
    assert len(found.written) == len(GROUPS)
    assert "pooled" not in found.statement
