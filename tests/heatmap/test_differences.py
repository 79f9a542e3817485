"""Where two maps differ: nothing of one table in 19 of 20 pairs, and what was moved is found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato._types import IntArray
from sfumato.heatmap import HeatmapRelease, check_ins, rehearse
from sfumato.heatmap.accuracy.uncertainty import SIGMA
from sfumato.heatmap.analysis.blur import smooth
from sfumato.heatmap.analysis.map_total import total_limits
from sfumato.heatmap.analysis.zone_shapes import read_zones
from sfumato.heatmap.analysis.zones import zone_totals
from sfumato.heatmap.comparison import differences
from sfumato.heatmap.comparison.difference_map import map_difference, total_change
from sfumato.heatmap.comparison.differences import Change, _corners, find_changes
from sfumato.heatmap.comparison.known_cells import DRAWS, Counted, SmallFloats, counted, of_shares
from sfumato.heatmap.inference import CountsPosterior
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.known_sums import CountedSums
from sfumato.heatmap.methods.zoom import Zoom, ZoomMethod
from sfumato.privacy import UNITS
from sfumato.records import CellSums, Columns, bound_of_sums, open_table, sum_public_cells
from sfumato.spaces import Area, area_in_degrees, area_of_image

BOX = (11.20, 43.74, 11.32, 43.81)
AREA = area_in_degrees(BOX, 6)
COLUMNS = Columns(user="user", x="lon", y="lat")
PLACE = (11.22, 43.79)  # where people are moved to
FEW = 300


@dataclass(frozen=True)
class Plain:
    """Noise that a test's own generator draws."""

    rng: np.random.Generator
    distance: Fraction | None = None
    known: bool = True

    def laplace(self, scale: Any, size: int) -> Any:
        return np.rint(self.rng.laplace(0.0, float(scale), size)).astype(np.int64)


def city(rng: np.random.Generator, *, users: int = FEW, moved: float = 0.0) -> CellSums:
    """A city of which some users are moved to one place."""
    table = check_ins(users, bounds=BOX, rng=rng).to_pandas()
    table.loc[table["user"] < moved * users, ["lon", "lat"]] = PLACE
    return sum_public_cells(open_table(table), COLUMNS, AREA)


def zooms(
    sums: CellSums, count: int, rng: np.random.Generator, *, epsilon: int = 1
) -> list[Counted]:
    """What so many releases of the same sums know, as zoom makes them."""
    return [known_from(one) for one in zoom_counts(sums, count, rng, epsilon=epsilon)]


def zoom_counts(
    sums: CellSums, count: int, rng: np.random.Generator, *, epsilon: int = 1
) -> list[NoisyCounts]:
    """What so many releases of the same sums counted."""
    method = ZoomMethod()
    mechanism: Zoom = method.mechanism(Fraction(epsilon), bound_of_sums(AREA.grid, 1), AREA.grid)
    codes = (np.arange(count)[:, None] * AREA.grid.size + sums.codes).ravel()
    many = CellSums(AREA.grid, codes, np.tile(sums.units, count), count, AREA)
    released = mechanism.sample(many, Plain(rng))  # type: ignore[arg-type]
    return [released.counts(group) for group in range(count)]


def known_from(counts: NoisyCounts) -> Counted:
    posterior = CountsPosterior(counts, mean_is_map=True, area=AREA)
    known = counted(replace(TEMPLATE, posterior=posterior))
    assert known is not None
    return known


TEMPLATE: HeatmapRelease = rehearse(
    check_ins(5, bounds=BOX, rng=np.random.default_rng(0)), COLUMNS, AREA, public=True, epsilon=1
)


def pairs(some: list[Counted]) -> Iterator[tuple[Counted, Counted]]:
    return zip(some[::2], some[1::2], strict=True)


def drawn_once(one: Counted) -> Counted:
    """The same map, which keeps the noise that it draws: the same numbers draw the same."""
    kept: dict[bytes, list[SmallFloats]] = {}

    def draw(numbers: IntArray) -> list[SmallFloats]:
        asked = numbers.tobytes()
        if asked not in kept:
            kept[asked] = list(one.draw(numbers))
        return kept[asked]

    return replace(one, draw=draw)


def less_noisy(one: Counted, part: float) -> Counted:
    """A saboteur: a map that thinks its noise is a part of what it is."""

    def quiet(numbers: IntArray) -> list[SmallFloats]:
        return [np.asarray(part * level, dtype=np.float32) for level in one.draw(numbers)]

    return replace(one, draw=quiet)


@pytest.mark.statistical
@pytest.mark.parametrize("shares", [False, True])
def test_of_one_table_at_most_one_pair_in_twenty_differs(
    rng: np.random.Generator, shares: bool
) -> None:
    """Of 40 pairs of 4 cities fewer than 7 show anything: at 1 in 20, more have p < 0.004.

    Of pairs that think their noise is 0.6 of what it is, at least 7 do.
    """
    wrong = too_sure = 0
    for _ in range(4):
        for before, after in pairs(zooms(city(rng), 20, rng)):
            sides = [of_shares(one) if shares else one for one in (before, after)]
            first, second = (drawn_once(one) for one in sides if one is not None)
            wrong += bool(find_changes(first, second, AREA).changes)
            sure, surer = (less_noisy(one, 0.6) for one in (first, second))
            too_sure += bool(find_changes(sure, surer, AREA).changes)
    assert wrong < 7 <= too_sure, (wrong, too_sure)


@pytest.mark.statistical
def test_a_planted_shift_is_found_where_it_was_planted(rng: np.random.Generator) -> None:
    """Of 1,000 users a tenth move to one place: found there in every pair, and never as a loss."""
    for _ in range(3):
        people = np.random.default_rng(rng.integers(2**32))
        state = people.bit_generator.state
        then = zooms(city(people, users=1000), 4, rng)
        people.bit_generator.state = state
        now = zooms(city(people, users=1000, moved=0.1), 4, rng)
        for before, after in zip(then, now, strict=True):
            found = find_changes(before, after, AREA)
            there = [one for one in found.changes if holds(one)]
            assert there
            assert all(one.low > 0 for one in there)
            assert max(one.low for one in there) <= 100 <= max(one.high for one in there)


def holds(one: Change) -> bool:
    return one.west <= PLACE[0] <= one.east and one.south <= PLACE[1] <= one.north


@pytest.mark.property
def test_the_other_way_round_is_the_other_sign(rng: np.random.Generator) -> None:
    (before,) = zooms(city(rng), 1, rng, epsilon=4)
    (after,) = zooms(city(rng, moved=0.5), 1, rng, epsilon=4)
    one, other = find_changes(before, after, AREA), find_changes(after, before, AREA)
    assert one.changes
    assert one.tested == other.tested
    assert np.array_equal(one.where, other.where)
    turned = {
        (two.west, two.south, two.east, two.north, two.after, two.before, -two.change, -two.high)
        for two in other.changes
    }
    assert {
        (two.west, two.south, two.east, two.north, two.before, two.after, two.change, two.low)
        for two in one.changes
    } == turned


@pytest.mark.unit
def test_a_count_that_is_far_off_is_no_change_beside_better_ones(rng: np.random.Generator) -> None:
    """The noisiest count of a split cell, moved by 20 scales: what was counted in it says otherwise."""
    (counts,) = zoom_counts(city(rng), 1, rng, epsilon=4)
    split = np.flatnonzero(~counts.last & (counts.levels <= AREA.grid.levels))
    worst = split[np.argmax(counts.scales[split])]
    values = counts.values.copy()
    values[worst] += 20 * counts.scales[worst]
    known = known_from(counts), known_from(replace(counts, values=values))
    level = counts.levels[worst]
    (column,), (row,) = AREA.grid.at_level(int(level)).decode(counts.codes[[worst]])
    then, now = (one.estimates[level][row, column] for one in known)
    assert 0 <= now - then < 8 * counts.scales[worst]
    assert not find_changes(*known, AREA).changes


@pytest.mark.statistical
def test_estimates_of_squares_use_all_counts(rng: np.random.Generator) -> None:
    """The whole of a map is known better than by its last counts alone: their sum errs more."""
    sums = city(rng, users=1000)
    exact = float(sums.units.sum()) / UNITS
    errors = []
    for counts in zoom_counts(sums, 60, rng):
        known = CountedSums.of(counts, AREA)
        assert known is not None
        whole = known_from(counts).estimates[0][0, 0]
        errors.append((whole - exact, known.values.sum() - exact))
    joined, last = np.mean(np.square(errors), axis=0)
    assert joined < last / 2


@pytest.mark.unit
def test_squares_are_the_smallest_and_lie_where_they_say(rng: np.random.Generator) -> None:
    (before,) = zooms(city(rng), 1, rng, epsilon=4)
    (after,) = zooms(city(rng, moved=0.5), 1, rng, epsilon=4)
    found = find_changes(before, after, AREA)
    grid = AREA.grid
    for one in found.changes:
        inner = [
            two
            for two in found.changes
            if two is not one
            and (one.change > 0) == (two.change > 0)
            and one.west <= two.west < two.east <= one.east
            and one.south <= two.south < two.north <= one.north
        ]
        assert not inner
        column = round((one.west - grid.bounds[0]) / grid.cell_width)
        row = round((one.south - grid.bounds[1]) / grid.cell_height)
        assert found.where[row, column]
        assert one.low <= one.change <= one.high
        assert one.low * one.high > 0


@pytest.mark.unit
def test_noise_of_groups_of_one_release_is_independent(rng: np.random.Generator) -> None:
    """Two maps of one zoom have noise of their own: errors of 400 pairs of first counts do not go together."""
    codes = np.array([0, 5 * 4**4], dtype=np.int64)
    units = np.array([50 * UNITS, 80 * UNITS], dtype=np.int64)
    several = CellSums(
        AREA.grid, np.concatenate([codes, codes + AREA.grid.size]), np.tile(units, 2), 2, AREA
    )
    mechanism = ZoomMethod().mechanism(Fraction(1), bound_of_sums(AREA.grid, 2), AREA.grid)
    errors: list[list[float]] = [[], []]
    for _ in range(25):
        released = mechanism.sample(several, Plain(rng))  # type: ignore[arg-type]
        for group in (0, 1):
            counts = released.counts(group)
            exact = several.of_cells(2, counts.codes[:16] + 16 * group) / UNITS
            errors[group] += (counts.values[:16] - exact).tolist()
    together = float(np.corrcoef(np.array(errors))[0, 1])
    assert abs(together) < 4.9 / np.sqrt(400)  # p = 1e-6


@pytest.mark.statistical
def test_bands_and_totals_hold_the_true_change(rng: np.random.Generator) -> None:
    """The band of the difference holds 90 % of its cells, on average over pairs; so do totals."""
    area: Area = AREA
    inside = held = 0.0
    count = 8
    for _ in range(count):
        table = check_ins(FEW, bounds=BOX, rng=rng)
        less = table.filter(np.asarray(table["user"]) >= 60)
        maps = [
            rehearse(rows, COLUMNS, area, public=True, epsilon=2, noise=None)
            for rows in (table, less)
        ]
        truths = [sum_public_cells(open_table(rows), COLUMNS, area) for rows in (table, less)]
        images = [area.grid.image(one.of_level(area.grid.levels) / UNITS) for one in truths]
        found = map_difference(*maps)
        true = smooth(images[1], SIGMA) - smooth(images[0], SIGMA)
        assert found.low is not None
        assert found.high is not None
        inside += float(((found.low <= true) & (true <= found.high)).mean())
        ends = total_change(*maps, coverage=0.9)
        assert ends is not None
        change = float(images[1].sum() - images[0].sum())
        held += ends[0] <= change <= ends[1]
    assert inside / count >= 0.85, inside
    assert held >= count - 3, held


@pytest.mark.statistical
def test_totals_hold_and_are_no_wider_than_their_noise(rng: np.random.Generator) -> None:
    """Of 24 releases at least 18 hold (p < 0.01 at 90 %), in the width of a few first counts.

    A map's total and a zone around it say the same.
    """
    sums = city(rng)
    exact, held, wide = float(sums.units.sum()) / UNITS, 0, []
    for counts in zoom_counts(sums, 24, rng):
        low, high = total_limits(CountsPosterior(counts, mean_is_map=True, area=AREA), AREA)
        held += low <= exact <= high
        wide.append(high - low)
    assert held >= 18
    # Twelve first counts or so of scale 4: their sum has a deviation of 20.
    assert np.median(wide) < 5 * 20
    release = rehearse(check_ins(FEW, bounds=BOX, rng=rng), COLUMNS, AREA, public=True, epsilon=1)
    west, south, east, north = BOX
    corners = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    (zone,) = zone_totals(release, read_zones({"all": corners}))
    total = release.total()
    assert zone.low == pytest.approx(total.low)
    assert zone.high == pytest.approx(total.high)
    assert release.to_json()["noise_scale"] > 0


@pytest.mark.unit
def test_ranks_leave_one_in_twenty(rng: np.random.Generator) -> None:
    """Limits of several sizes at once: of fresh draws about one in twenty is beyond any."""
    law = rng.standard_exponential((DRAWS, 5)).cumsum(axis=1)
    limits = differences._limits(law)
    fresh = rng.standard_exponential((20_000, 5)).cumsum(axis=1)
    beyond = float((fresh > limits).any(axis=1).mean())
    assert 0.02 <= beyond <= 0.08


@pytest.mark.unit
def test_squares_of_an_image_end_where_it_ends() -> None:
    """The grid of 800 x 600 pixels is one of 800 x 800: below 600 there is nothing to look at."""
    image = area_of_image(800, 600, 6)
    assert image.grid.bounds == (0, 0, 800, 800)
    assert _corners((1, 1), 1, image) == (400, 400, 800, 600)
    assert _corners((0, 1), 1, image) == (400, 0, 800, 400)
