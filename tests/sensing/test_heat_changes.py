"""People stand between the centers of cells: heat is bounded over all places, against brute force."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.privacy import ApproxDP, MovedMass, SwappedCells
from sfumato.privacy.accounting import gaussian_delta
from sfumato.sensing import Site, heat_line, heat_plane, plan, sensitivity
from sfumato.sensing.model.heat_changes import heat_changes, reach
from sfumato.sensing.model.operators import HeatLine, HeatPlane
from sfumato.sensing.model.operators.places import even_places
from sfumato.sensing.model.steepest import PEAKS, Heat, majorant, steepest
from sfumato.spaces import Grid, Line, Points

NEAR = 1e-4  # how far apart the pairs of brute force are, in the unit sqrt(2T)


def read_at(operator: HeatLine | HeatPlane, places: np.ndarray) -> np.ndarray:
    """What sensors read of a unit at any place: places by sensors, from the formula alone."""
    far = ((places[:, np.newaxis, :] - operator.sensors.positions) ** 2).sum(axis=2)
    time, axes = operator.diffusion_time, places.shape[1]
    return np.asarray(np.exp(-far / (4 * time)) / (4 * math.pi * time) ** (axes / 2))


def lattice(low: np.ndarray, high: np.ndarray, count: int) -> np.ndarray:
    axes = [np.linspace(a, b, count) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=1)


def by_force(operator: HeatLine | HeatPlane, *, count: int) -> float:
    """The largest change over distance between places of a fine lattice and places beside them."""
    box = reach(operator.space)
    apart = NEAR * math.sqrt(2 * operator.diffusion_time)
    places = lattice(box.low, box.high, count)
    straight = isinstance(operator.space, Points) and operator.space.norm == "euclidean"
    if places.shape[1] == 1:
        ways = np.array([[1.0]])
    elif straight:
        ways = np.array(
            [(math.cos(t), math.sin(t)) for t in np.linspace(0, math.pi, 16, endpoint=False)]
        )
    else:
        ways = np.eye(2)
    moved = (
        read_at(operator, places + apart / 2 * w) - read_at(operator, places - apart / 2 * w)
        for w in ways
    )
    return max(float(np.linalg.norm(change, axis=1).max()) for change in moved) / apart


def floor(levels: int, sensors: int = 16, time: float = 2.0) -> HeatPlane:
    places = even_places(sensors, np.zeros(2), np.full(2, 16.0))
    return heat_plane(sources=Grid(levels, (0, 0, 16, 16)), sensors=places, diffusion_time=time)


def everywhere(rng: np.random.Generator) -> list[HeatLine | HeatPlane]:
    spots = 8 * rng.random((5, 2))
    return [
        floor(2),
        floor(3, 9),
        heat_plane(
            sources=Grid(1, (-3, 2, 5, 4)), sensors=4 * rng.random((3, 2)), diffusion_time=0.3
        ),
        heat_plane(sources=Grid(0, (0, 0, 2, 1)), sensors=rng.random((2, 2)), diffusion_time=0.5),
        heat_plane(sources=Points(spots), sensors=8 * rng.random((6, 2)), diffusion_time=0.7),
        heat_plane(sources=Points(spots, "l1"), sensors=8 * rng.random((6, 2)), diffusion_time=0.7),
        heat_line(sources=4, sensors=3, diffusion_time=0.003),
        heat_line(sources=10, sensors=7, diffusion_time=2.0),
        heat_line(sources=[0.0, 2.0, 3.0, 7.0], sensors=rng.random(4) * 7, diffusion_time=0.2),
    ]


@pytest.mark.reference
def test_no_place_between_centers_moves_readings_further(rng: np.random.Generator) -> None:
    for operator in everywhere(rng):
        found = sensitivity(operator, MovedMass(1, operator.space.metric))
        attained = by_force(operator, count=4000 if isinstance(operator, HeatLine) else 160)
        assert attained <= found.l2, "a place between centers moves the readings further"
        # The lattice misses the steepest place by half a step: less than a hundredth of the change.
        assert found.l2 <= attained * 1.01
        assert found.exact
        alone = max(
            by_force(type(operator)(operator.space, one, operator.diffusion_time), count=60)  # type: ignore[arg-type]
            for one in [
                type(operator.sensors)(place[np.newaxis]) for place in operator.sensors.positions
            ]
        )
        assert alone <= found.per_sensor.max() <= alone * 1.05


@pytest.mark.reference
def test_a_coarse_floor_is_no_quieter_than_a_fine_one() -> None:
    # Centers of cells of 4 m, with a blur of 2 m, miss where readings change most: they said
    # 0.01253.
    coarse, fine = (
        sensitivity(floor(levels), MovedMass(1, Grid(1).metric)).l2 for levels in (2, 6)
    )
    operator = floor(2)
    columns = operator.columns(np.arange(16))
    steps = [(i, int(j)) for i in range(16) for j in operator.space.neighbors(i)]
    centers = max(float(np.linalg.norm(columns[:, i] - columns[:, j])) / 4 for i, j in steps)
    assert (round(centers, 5), round(coarse, 5)) == (0.01253, 0.0174)
    assert coarse == fine
    # What is claimed as (1, 1e-6) keeps it for two people a step apart at the steepest place.
    noise = plan(Site("floor", operator, MovedMass(1, operator.space.metric)), ApproxDP(1, "1e-6"))
    true = by_force(operator, count=160)
    assert gaussian_delta(1, sigma=noise.sigma, sensitivity=true) <= 1e-6
    too_little = noise.sigma * centers / coarse
    assert gaussian_delta(1, sigma=too_little, sensitivity=true) > 5e-5


@pytest.mark.reference
def test_the_steepest_place_against_fifty_digits(rng: np.random.Generator) -> None:
    for corner in (0.0, 4_649_000.1):
        for operator in everywhere(rng):
            if not isinstance(operator.space, Grid):
                continue
            bounds: Any = tuple(corner + side for side in operator.space.bounds)
            sensors, time = operator.sensors.positions + corner, operator.diffusion_time
            moved = heat_plane(sources=Grid(1, bounds), sensors=sensors, diffusion_time=time)
            found = sensitivity(moved, MovedMass(1, moved.space.metric))
            assert found.place is not None
            with mpmath.workdps(50):
                x, y = (mpmath.mpf(value) for value in found.place)
                slopes = []
                for axis in (0, 1):
                    total = mpmath.mpf(0)
                    for a, b in sensors.tolist():
                        far = (a - x) ** 2 + (b - y) ** 2
                        kernel = mpmath.exp(-far / (4 * mpmath.mpf(time))) / (4 * mpmath.pi * time)
                        total += (((a - x), (b - y))[axis] / (2 * mpmath.mpf(time)) * kernel) ** 2
                    slopes.append(mpmath.sqrt(total))
                assert (
                    max(slopes) * (1 - mpmath.mpf(10) ** -12)
                    <= found.l2
                    <= max(slopes) * (1 + 3e-6)
                )


@pytest.mark.property
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32), wide=st.floats(0.1, 100), sensors=st.integers(1, 12))
def test_bounds_hold_at_places_at_random(seed: int, wide: float, sensors: int) -> None:
    rng = np.random.default_rng(seed)
    for axes, columns in (
        (1, ((1,),)),
        (2, ((1, 0),)),
        (2, ((1, 0), (0, 1))),
        (2, ((0, 2),)),
        (2, ((1, 1),)),
    ):
        at = wide * rng.random((sensors, axes))
        heat = Heat(at, np.zeros(axes), np.full(axes, wide))
        found = steepest(heat, columns)
        places = wide * rng.random((50, axes))
        places[0] = found.place
        u = at - places[:, np.newaxis, :]
        kernel = np.exp(-(u**2).sum(axis=2) / 2)
        hermite = {0: np.ones_like(u), 1: u, 2: u**2 - 1}
        parts = [
            kernel * np.prod([hermite[k][:, :, axis] for axis, k in enumerate(orders)], axis=0)
            for orders in columns
        ]
        sizes = np.linalg.norm(np.stack(parts, axis=2), ord=2, axis=(1, 2))
        assert (sizes <= found.bound).all()
        assert sizes[0] == pytest.approx(found.attained, rel=1e-9)
        assert found.bound <= found.attained * (1.06) + 1e-140


@pytest.mark.property
def test_majorants_never_rise_and_cover_what_lies_beyond() -> None:
    u = np.linspace(0, 12, 20_001)
    for order in range(len(PEAKS)):
        bound = majorant(u, order)
        value = np.abs(np.polynomial.hermite_e.hermeval(u, [0.0] * order + [1.0])) * np.exp(
            -(u**2) / 2
        )
        beyond = np.maximum.accumulate(value[::-1])[::-1]
        assert (bound >= beyond).all()
        assert (bound <= beyond * (1 + 1e-5)).all()


def step_sizes(space: Line | Grid) -> np.ndarray:
    return np.diff(space.positions) if isinstance(space, Line) else np.zeros(1)


@pytest.mark.reference
def test_swapped_cells_wherever_their_sources_stand(rng: np.random.Generator) -> None:
    for operator in everywhere(rng):
        space = operator.space
        found = sensitivity(operator, SwappedCells(1))
        if space.size == 1:
            assert found.l2 == 0
            continue
        box = reach(space)
        attained = one_way = 0.0
        for _ in range(1500):
            if isinstance(space, Line):
                at = space.positions
                i = int(rng.integers(at.size - 1))
                step, wide = at[[i + 1]] - at[[i]], at[[i + 1]] - at[[i]]
                corner = at[[i]] - (at[[i]] - at[[i - 1]] if i else wide)
                wide = at[[i]] - corner
            elif isinstance(space, Grid):
                wide = np.array([space.cell_width, space.cell_height])
                axis = int(rng.integers(2))
                step = np.where(np.arange(2) == axis, wide, 0.0)
                cell = rng.integers(0, space.side - (np.arange(2) == axis))
                corner = box.low + cell * wide
            else:
                corner = box.low + rng.random(2) * (box.high - box.low)
                step, wide = box.low + rng.random(2) * (box.high - box.low) - corner, np.zeros(2)
            one, other = corner + rng.random((2, wide.size)) * wide
            there = read_at(operator, np.stack([one, one + step, other, other + step]))
            alone, both = there[1] - there[0], there[1] - there[0] - (there[3] - there[2])
            one_way = max(one_way, float(np.linalg.norm(alone)))
            attained = max(attained, float(np.linalg.norm(alone)), float(np.linalg.norm(both)))
            assert (np.abs(alone) <= found.per_sensor).all()
            assert (np.abs(both) <= found.per_sensor).all()
        assert attained <= found.l2
        if isinstance(space, Points) or np.ptp(step_sizes(space)) > 1e-9:
            assert not found.exact  # no more is known of these than that it is a bound
        else:
            # Where cells are wider than the blur the bound may be twice what one cell alone can do.
            assert found.l2 <= 2.2 * one_way


@pytest.mark.unit
def test_small_cells_are_swapped_as_in_the_papers() -> None:
    # The papers' hall: what two cells beside each other change, to a ten-thousandth.
    for cells in (100, 20_000):  # steps above and below a thousandth of the blur
        hall = heat_line(sources=cells, sensors=50, diffusion_time=0.05)
        columns = hall.columns(np.arange(cells))
        steps = np.linalg.norm(np.diff(columns, axis=1), axis=0).max()
        found = sensitivity(hall, SwappedCells(1))
        assert steps <= found.l2 <= steps * 1.0002
        assert found.exact


@pytest.mark.unit
def test_where_people_may_stand() -> None:
    assert reach(Grid(2, (1, 2, 5, 4))).high.tolist() == [5, 4]
    uneven = reach(Line.at([0, 2, 3]))
    assert (uneven.low.tolist(), uneven.high.tolist()) == ([-2], [4])
    places = reach(Points([(0, 5), (3, 1)]))
    assert (places.low.tolist(), places.high.tolist()) == ([0, 1], [3, 5])
    # One cell of a grid or a line is a space to walk in; one place of a list is not.
    assert sensitivity(floor(0), MovedMass(1, Grid(0).metric)).l2 > 0.01
    assert (
        sensitivity(heat_line(sources=1, sensors=2, diffusion_time=1), MovedMass(1, "line")).l2
        > 0.1
    )


@pytest.mark.property
def test_more_sensors_never_read_less(rng: np.random.Generator) -> None:
    places = rng.random((12, 2)) * 16
    sizes = [
        sensitivity(
            heat_plane(sources=Grid(2, (0, 0, 16, 16)), sensors=places[:m], diffusion_time=2),
            MovedMass(1, Grid(1).metric),
        ).l2
        for m in (1, 3, 6, 12)
    ]
    assert all(fewer <= more * (1 + 2e-6) for fewer, more in pairwise(sizes))


@pytest.mark.unit
def test_a_bound_that_is_not_met_is_not_called_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.sensing.model import steepest as module

    exact = sensitivity(floor(2, 9, 1.9), MovedMass(1, Grid(1).metric))
    monkeypatch.setattr(module, "OPEN", ((0, 1e-6),))
    bound = sensitivity(floor(2, 9, 1.90000001), MovedMass(1, Grid(1).metric))
    assert (exact.exact, bound.exact) == (True, False)
    assert bound.l2 > exact.l2


@pytest.mark.unit
def test_sensors_far_from_everybody_read_almost_nothing() -> None:
    far = sensitivity(
        heat_line(sources=4, sensors=[1e6], diffusion_time=1e-3), MovedMass(1, "line")
    )
    assert 0 < far.l2 < 1e-140
    assert far.exact


@pytest.mark.unit
def test_one_cell_alone_is_a_place_to_move_in() -> None:
    alone, pair = (
        heat_line(sources=n, sensors=[0.2, 0.5, 0.8], diffusion_time=0.01) for n in (1, 2)
    )
    assert heat_changes(alone, over_distance=True).l2 == pytest.approx(
        heat_changes(pair, over_distance=True).l2
    )
    assert heat_changes(alone, over_distance=False).l2 == 0
