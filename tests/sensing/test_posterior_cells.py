"""On fine lines and grids some cells stand for others; what is said of sources must hold all the same."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pandas as pd
import pytest
from tests.chance import assert_share

from sfumato._types import IntArray
from sfumato.errors import InvalidParameter
from sfumato.privacy import MovedMass
from sfumato.sensing import graph_diffusion, heat_line, heat_plane, linear, recover_sources
from sfumato.sensing.model.operators.places import wide_cells
from sfumato.sensing.planning import synthetic_site
from sfumato.sensing.recovery.estimators.credible import bands
from sfumato.sensing.recovery.estimators.posterior import posterior
from sfumato.sensing.recovery.estimators.posterior_cells import Runs, all_runs, beside, closer
from sfumato.spaces import Graph, Grid, Line


@pytest.mark.unit
def test_too_many_cells_of_which_none_stands_for_others_are_refused(
    rng: np.random.Generator,
) -> None:
    long_road = Graph([(i, i + 1) for i in range(4200)])
    with pytest.raises(InvalidParameter, match="at most 4096 cells, got 4201"):
        posterior(graph_diffusion(long_road, 0.5), np.zeros(4201), sigma=1.0, rng=rng)
    narrow = heat_line(sources=5000, sensors=30, diffusion_time=1e-8)  # as wide as 0.7 cells
    with pytest.raises(InvalidParameter, match="at most 4096 cells, got 5000"):
        posterior(narrow, np.zeros(30), sigma=1.0, rng=rng)


@pytest.mark.statistical
@pytest.mark.parametrize("time", [0.05, 1e-4])
def test_bands_hold_where_cells_are_finer_than_what_is_looked_at(
    time: float, rng: np.random.Generator
) -> None:
    """At noise of half a cell: the rival is a look at every fourth cell alone, right one time in four."""
    line = heat_line(sources=1000, sensors=50 if time > 0.01 else 100, diffusion_time=time)
    step = float(np.linalg.norm(line.columns([500]) - line.columns([501])))
    sigma, trials, held, ones = 0.5 * step, 36, 0, 0
    for _ in range(trials):
        cell = int(rng.integers(20, 980))
        read = line.columns([cell])[:, 0] + sigma * rng.standard_normal(len(line.sensors))
        beliefs = posterior(line, read, sigma=sigma, rng=rng)
        first, *_ = bands(beliefs)
        held += bool(abs(line.space.positions[cell] - first.place[0]) <= first.radius + 1e-12)
        ones += int(beliefs.counts.argmax() == 1)
    assert ones == trials
    # A band of whole cells holds a little more than 90 % by what it says.
    assert_share(held, trials, 0.94, rivals=[0.25])


@pytest.mark.unit
def test_a_fine_plane_is_looked_at_closer_where_a_source_is(rng: np.random.Generator) -> None:
    """Heat narrower than the blocks that are looked at first, and readings much clearer than noise."""
    middle = (np.arange(30) + 0.5) / 30
    places = np.stack(np.meshgrid(middle, middle), axis=-1).reshape(-1, 2)
    plane = heat_plane(sources=Grid(7), sensors=places, diffusion_time=2e-4)
    cell = int(rng.integers(4**7))
    read = plane.columns([cell])[:, 0] + 5 * rng.standard_normal(900)
    beliefs = posterior(plane, read, sigma=5.0, rng=rng)
    assert (beliefs.reach, beliefs.widened, beliefs.message) == (0, 1, "")
    assert beliefs.counts[1] > 0.99
    (band,) = bands(beliefs)
    np.testing.assert_array_equal(band.place, Grid(7).centers(np.array([cell])).ravel())


@pytest.mark.unit
def test_cells_of_a_matrix_do_not_stand_for_each_other(rng: np.random.Generator) -> None:
    table = linear(rng.random((40, 400)), Line(400))
    read = table.columns([133])[:, 0] + 0.05 * rng.standard_normal(40)
    beliefs = posterior(table, read, sigma=0.05, rng=rng)
    assert beliefs.looked_at.size == 400
    assert beliefs.near([133 / 400 + 1 / 400], 1e-9) > 0.99


def covered(runs: Runs) -> IntArray:
    pairs = zip(runs.starts.tolist(), runs.lengths.tolist(), strict=True)
    return np.concatenate([np.arange(start, start + length) for start, length in pairs])


@pytest.mark.unit
def test_runs_cover_every_cell_once_and_are_cut_where_the_mass_is() -> None:
    for operator in (
        heat_line(sources=1000, sensors=9, diffusion_time=0.02),
        heat_plane(sources=Grid(7), sensors=np.array([[0.5, 0.5]]), diffusion_time=0.02),
    ):
        runs = all_runs(operator)
        np.testing.assert_array_equal(covered(runs), np.arange(operator.space.size))
        assert runs.share == 1
        shares = np.zeros(runs.starts.size)
        shares[100] = 1.0
        nearer = closer(runs, shares)
        assert nearer is not None
        cells = covered(nearer)
        assert np.unique(cells).size == cells.size
        around = np.arange(runs.starts[99], runs.starts[101] + runs.lengths[101])
        assert set(around.tolist()) <= set(cells.tolist())
        assert nearer.share < 0.2
        assert nearer.reach < runs.reach
        assert int(nearer.lengths.max()) == 1
        assert closer(nearer, np.ones(nearer.starts.size)) is None  # nothing left to cut


@pytest.mark.unit
def test_an_operator_is_let_go_with_its_last_user(rng: np.random.Generator) -> None:
    """What is kept for an operator must not hold it: it would be kept for ever."""
    line = heat_line(sources=300, sensors=9, diffusion_time=0.02)
    posterior(line, np.ones(9), sigma=1.0, rng=rng)
    gone = weakref.ref(line)
    del line
    gc.collect()
    assert gone() is None


@pytest.mark.unit
def test_a_faint_source_beside_a_clear_one_is_found_on_fine_lines_too(
    rng: np.random.Generator,
) -> None:
    """One of a tenth of the mass, hidden from a first look that takes noise for as large as cells make it."""
    for sigma in (0.1, 0.005):
        line = heat_line(sources=2000, sensors=50, diffusion_time=0.001)
        truth = np.zeros(2000)
        truth[[599, 1399]] = 1.0, 0.1
        read = line.readings(truth) + sigma * rng.standard_normal(50)
        beliefs = posterior(line, read, sigma=sigma, rng=rng)
        assert beliefs.near([0.7], 0.05) > 0.99
        assert beliefs.message == ""
        assert beliefs.looked_at.size < 1500


@pytest.mark.unit
def test_runs_beside_others_overlap_nothing() -> None:
    line = heat_line(sources=1000, sensors=9, diffusion_time=0.02)
    first = all_runs(line)
    shares = np.zeros(first.starts.size)
    shares[100] = 1.0
    nearer = closer(first, shares)
    assert nearer is not None
    for faint in (np.array([10]), np.array([97, 103])):  # elsewhere, and half of it there already
        more = beside(nearer, first, faint)
        assert more is not None
        cells = covered(more)
        assert np.unique(cells).size == cells.size
        wanted = np.concatenate([np.arange(first.starts[i], first.starts[i] + 4) for i in faint])
        assert set(covered(nearer).tolist()) | set(wanted.tolist()) <= set(cells.tolist())
        assert int(more.lengths.max()) == 1


@pytest.mark.unit
def test_cells_that_are_wide_for_the_noise_are_told(rng: np.random.Generator) -> None:
    """A band of somebody anywhere in such a cell is far wider than readings would allow."""
    line = heat_line(sources=20, sensors=20, diffusion_time=0.01)
    site = synthetic_site("hall", line, MovedMass("1/10", line.space.metric))
    for sigma, told in ((0.03, True), (1.0, False)):
        read = line.columns([9])[:, 0] + sigma * rng.standard_normal(20)
        table = pd.DataFrame({"sensor": site.sensors.names, "value": read})
        found = recover_sources(table, site=site, noise=sigma, certify=False)
        assert found.answer is not None
        said = [one for one in found.diagnostics.remarks if one.startswith("cells are wide")]
        assert bool(said) is told
    assert "finer cells tell more" in wide_cells(line, 0.03, 1.0)
    finer = heat_line(sources=2000, sensors=20, diffusion_time=0.01)
    assert wide_cells(finer, 0.03, 1.0) == wide_cells(line, 0.0, 1.0) == ""
