"""Grid EMD: exact against foreign solvers, certified, a metric."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.transport.referees import cheapest_flow, grid_edges, grid_steps, norm_steps

from sfumato.errors import InvalidInput, InvalidParameter, SolverFailed
from sfumato.spaces import Grid
from sfumato.transport import GridFlow, Transport, emd, emd_norm

KINDS = ["uniform", "sparse", "poisson", "heavy", "diracs", "ties"]


def masses(kind: str, side: int, rng: np.random.Generator) -> np.ndarray:
    """Two integer masses of one kind, equal in total."""
    shape = (2, side, side)
    match kind:
        case "uniform":
            m = rng.integers(0, 1000, shape)
        case "sparse":
            m = rng.integers(0, 1000, shape) * (rng.random(shape) < 0.1)
        case "poisson":
            m = rng.poisson(0.4, shape)
        case "heavy":
            m = np.minimum(np.exp(8 * rng.standard_normal(shape)), 2.0**40).astype(np.int64)
        case "diracs":
            m = np.zeros(shape, dtype=np.int64)
            m[0, rng.integers(side), rng.integers(side)] = m[
                1, rng.integers(side), rng.integers(side)
            ] = 7
        case _:
            m = rng.integers(0, 2, shape)
    m = m.astype(np.int64)
    short = int(m[0].sum() - m[1].sum())
    m[1 if short > 0 else 0, rng.integers(side), rng.integers(side)] += abs(short)
    return m


def certified(found: Transport, *, mass: float, diameter: float) -> None:
    assert found.lower <= found.value <= found.upper
    assert found.upper - found.lower <= 1e-12 * mass * diameter


@pytest.mark.reference
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("side", "count"), [(1, 4), (2, 30), (4, 30), (8, 25), (16, 15), (32, 4)])
def test_grid_distances_are_those_of_ortools(
    kind: str, side: int, count: int, rng: np.random.Generator
) -> None:
    """648 grids in all; integer masses, so the two costs are equal as integers."""
    grid = Grid(side.bit_length() - 1, bounds=(0, 0, side, side))
    for _ in range(count):
        p, q = masses(kind, side, rng)
        found = emd(p, q, grid)
        assert found.value == grid_steps(p - q)
        certified(found, mass=float(p.sum()), diameter=grid.diameter)


@pytest.mark.reference
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("side", "count"), [(2, 15), (4, 15), (8, 10), (16, 5)])
def test_norms_are_the_definition(
    kind: str, side: int, count: int, rng: np.random.Generator
) -> None:
    grid = Grid(side.bit_length() - 1)
    for extra in (0, 1, 50, -50):
        for _ in range(count):
            p, q = masses(kind, side, rng)
            w = p - q
            w[rng.integers(side), rng.integers(side)] += extra
            for penalty in (1, 2):
                found = emd_norm(w, grid, penalty=penalty)
                assert found.value * side == norm_steps(w, penalty * side)
                certified(
                    found, mass=float(np.abs(w).sum()) + 1, diameter=max(grid.diameter, penalty)
                )


@pytest.mark.reference
def test_cells_that_are_not_square(rng: np.random.Generator) -> None:
    for side in (2, 4, 8):
        grid = Grid(side.bit_length() - 1, bounds=(0, 0, 3 * side, 5 * side))
        a, b = grid_edges(side)
        cost = np.where(b - a == 1, 3, 5)
        if side == 2:
            cost = np.array([3, 3, 5, 5])
        for _ in range(10):
            p, q = masses("uniform", side, rng)
            found = emd(p, q, grid, flow=True)
            assert found.value == cheapest_flow(a, b, cost, (p - q).ravel())
            certified(found, mass=float(p.sum()), diameter=grid.diameter)
            assert isinstance(found.flow, GridFlow)
            conserves(found.flow, p - q)
    oblong, square = Grid(3, bounds=(0, 0, 1, 1 + 1e-9)), Grid(3)
    assert emd(p, q, oblong).value == pytest.approx(emd(p, q, square).value, rel=1e-8)


def conserves(flow: GridFlow, z: np.ndarray) -> None:
    rest = z.astype(np.float64)
    rest[:, :-1] -= flow.east
    rest[:, 1:] += flow.east
    rest[:-1] -= flow.north
    rest[1:] += flow.north
    # Flow is integers times a power of two, masses here are integers below 2**53.
    assert np.abs(rest).max() <= 1e-9 * np.abs(z).max()


@pytest.mark.property
@given(st.integers(0, 4), st.data())
@settings(max_examples=60)
def test_it_is_a_metric_with_a_flow(levels: int, data: st.DataObject) -> None:
    side = 2**levels
    grid = Grid(levels, bounds=(0, 0, side, side))
    arrays = hnp.arrays(np.int64, (side, side), elements=st.integers(0, 20))
    p, q, r = (data.draw(arrays) + 1 for _ in range(3))
    pq, qp = emd(p, q, grid, normalize=True, flow=True), emd(q, p, grid, normalize=True)
    slack = 1e-12 * grid.diameter
    assert pq.value == pytest.approx(qp.value, abs=slack)
    assert emd(p, p, grid).value == 0
    through = emd(p, r, grid, normalize=True).value + emd(r, q, grid, normalize=True).value
    assert pq.value <= through + slack
    assert isinstance(pq.flow, GridFlow)
    assert np.abs(pq.flow.east).sum() + np.abs(pq.flow.north).sum() == pytest.approx(
        pq.value, abs=slack
    )
    conserves(pq.flow, p / p.sum() - q / q.sum())


@pytest.mark.property
@given(st.integers(1, 5), st.data())
@settings(max_examples=40)
def test_real_masses_lie_inside_their_certificate(levels: int, data: st.DataObject) -> None:
    """Doubles of any size: the true value, from the same masses as exact integers, is between the bounds."""
    side = 2**levels
    grid = Grid(levels, bounds=(0, 0, side, side))
    exponents = data.draw(hnp.arrays(np.int64, (2, side, side), elements=st.integers(-30, 0)))
    numbers = data.draw(hnp.arrays(np.int64, (2, side, side), elements=st.integers(0, 2**20)))
    units = numbers << (exponents + 30)  # integers below 2**50
    short = int(units[0].sum() - units[1].sum())
    units[1 if short > 0 else 0, 0, 0] += abs(short)
    p, q = np.ldexp(units.astype(np.float64), -50)
    found = emd(p, q, grid)
    true = grid_steps(units[0] - units[1]) * 2.0**-50
    assert found.lower <= true <= found.upper
    certified(found, mass=float(p.sum()) or 1.0, diameter=grid.diameter)


@pytest.mark.unit
def test_by_hand() -> None:
    grid = Grid(1)
    assert emd([[1, 0], [0, 0]], [[0, 0], [0, 1]], grid).value == 1.0
    codes = np.zeros(16)
    codes[0] = 1
    image = np.zeros((4, 4))
    image[3, 3] = 1
    assert emd(codes, image, Grid(2)).value == 1.5
    assert emd(np.zeros((2, 2)), np.zeros((2, 2)), grid) == Transport(0.0, 0.0, 0.0)
    assert emd_norm([[1, 0], [0, 0]], grid).value == 2
    assert emd_norm([[1, 0], [0, -1]], grid).value == 1
    assert emd_norm([[3, 0], [0, -1]], grid).value == 5
    assert emd_norm(np.zeros((2, 2)), grid).value == 0


@pytest.mark.unit
def test_a_large_grid_is_certified(rng: np.random.Generator) -> None:
    grid = Grid(8)
    p, q = rng.random((2, 256, 256))
    certified(emd(p, q, grid, normalize=True), mass=1, diameter=grid.diameter)


@pytest.mark.unit
@pytest.mark.parametrize("levels", [3, 7])
def test_all_mass_from_corner_to_corner(levels: int) -> None:
    """One long way for as many units as there can be."""
    grid = Grid(levels)
    p, q = np.zeros((2, grid.side, grid.side))
    p[0, 0] = q[-1, -1] = 1
    assert emd(p, q, grid).value == grid.diameter
    assert emd_norm(1.5 * p - q, grid).value == grid.diameter + 1


@pytest.mark.property
@given(st.data())
@settings(max_examples=40)
def test_flow_is_carried_to_finer_cells_on_tight_arcs(data: st.DataObject) -> None:
    from sfumato.transport.scales import carry

    z = data.draw(hnp.arrays(np.int64, (8, 8), elements=st.integers(-9, 9)))
    east = data.draw(hnp.arrays(np.int64, (4, 3), elements=st.integers(-9, 9)))
    north = data.draw(hnp.arrays(np.int64, (3, 4), elements=st.integers(-9, 9)))
    given = data.draw(hnp.arrays(np.int64, (4, 4), elements=st.integers(0, 3)))
    u = data.draw(hnp.arrays(np.int32, (8, 8), elements=st.integers(0, 1)))
    fine_east, fine_north, fine_given = carry(z, u, 0, east, north, given)
    for flow, axis in ((fine_east, 1), (fine_north, 0)):
        fall = -np.diff(u, axis=axis)
        assert (np.sign(flow) == fall)[flow != 0].all()
    assert ((u == 0) & (z < 0))[fine_given > 0].all()
    rest = z + fine_given
    rest[:, :-1] -= fine_east
    rest[:, 1:] += fine_east
    rest[:-1] -= fine_north
    rest[1:] += fine_north
    assert rest.clip(0).sum() <= z.clip(0).sum()


@pytest.mark.unit
@pytest.mark.parametrize(
    ("p", "q", "message"),
    [
        ([[1, 0], [0, 0]], [[2, 0], [0, 0]], "masses must be equal, got 1 and 2"),
        ([[1, 0], [0, -1]], [[0, 0], [0, 0]], "must not be negative, got -1"),
        ([[np.nan, 0], [0, 0]], [[1, 0], [0, 0]], "must be finite, also in sum, got NaN"),
        ([[np.inf, 0], [0, 0]], [[1, 0], [0, 0]], "must be finite"),
        ([[1e308, 1e308], [0, 0]], [[1e308, 1e308], [0, 0]], "must be finite, also in sum"),
        ([1, 0], [1, 0], r"p must have shape \(4,\), got \(2,\)"),
        ([[1, 0]], [[1, 0]], r"shape \(2, 2\), got \(1, 2\)"),
        ([["a", "b"], ["c", "d"]], [[1, 0], [0, 0]], "must be numbers"),
    ],
)
def test_bad_masses_are_refused(p: object, q: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        emd(p, q, Grid(1))  # type: ignore[arg-type]


@pytest.mark.unit
def test_bad_norms_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="at least half the diameter"):
        emd_norm(np.zeros((4, 4)), Grid(2), penalty=0.5)
    with pytest.raises(InvalidParameter, match="square cells"):
        emd_norm(np.zeros((4, 4)), Grid(2, bounds=(0, 0, 2, 1)))
    with pytest.raises(InvalidInput, match="a mass of 0 cannot be scaled"):
        emd(np.zeros((2, 2)), np.ones((2, 2)), Grid(1), normalize=True)


@pytest.mark.unit
def test_a_wrong_solution_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break the kernel's answer in each of its parts: the independent check refuses it."""
    from sfumato.transport import scales

    true = scales.solve_scales
    p, q = np.eye(4), np.fliplr(np.eye(4))

    def broken(part: int, change: object) -> None:
        def solve(units: np.ndarray, surplus: int) -> list[object]:
            out = list(true(units, surplus))
            out[part] = change(out[part])  # type: ignore[operator]
            return out

        monkeypatch.setattr(scales, "solve_scales", solve)
        with pytest.raises(SolverFailed):
            emd(p, q, Grid(2))

    broken(0, lambda u: 2 * u)
    broken(0, lambda u: -u)
    broken(2, lambda f: -f)
    broken(3, lambda f: f + 1)
