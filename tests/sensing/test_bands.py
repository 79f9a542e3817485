"""Bands: exact on draws one can count, calibrated on sources drawn as believed, and communities."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.chance import assert_share

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.sensing import graph_diffusion, heat_line
from sfumato.sensing.diagnostics.mixing import Mixing
from sfumato.sensing.planning import block_graph
from sfumato.sensing.recovery.estimators.credible import bands, community_beliefs
from sfumato.sensing.recovery.estimators.posterior import posterior
from sfumato.sensing.recovery.estimators.source_posterior import SourcePosterior

LINE = heat_line(sources=100, sensors=20, diffusion_time=0.02)
SMALL = heat_line(sources=40, sensors=20, diffusion_time=0.02)


def counted(cells: IntArray, weights: FloatArray | None = None) -> SourcePosterior:
    """A posterior of exactly these draws."""
    shared = np.full(len(cells), 1 / len(cells)) if weights is None else weights
    return SourcePosterior(
        LINE, np.zeros(20), 1.0, 1.0, cells, np.where(cells >= 0, 1.0, 0.0), shared, math.nan,
        Mixing(1.0, 0.0, len(cells), 1), np.arange(100), 0.0, 1.0, 1.0, 12,
    )  # fmt: skip


MANY = 2500
"""Draws of which 0.3 / 50 is one standard error of a share of 0.9."""


@pytest.mark.unit
def test_the_smallest_balls_come_first_and_hold_their_share() -> None:
    sure = np.repeat([30, 31], [MANY * 23 // 25, MANY * 2 // 25])
    unsure = np.tile([60, 62, 64, 66, 68, 70, 72, 74, 76, 78], MANY // 10)
    found = bands(counted(np.column_stack([sure, unsure])))
    places = LINE.space.positions
    assert found[0].place[0] == places[30]
    assert found[0].radius == pytest.approx(0.005)  # half a cell: a source stands anywhere in it
    assert found[0].probability == pytest.approx(0.92 - 0.006)
    # Nine of the ten others are 0.9, and one standard error is missing: all, from the middle.
    assert found[1].place[0] in places[[68, 70]]
    assert found[1].radius == pytest.approx(0.105)
    assert found[1].probability == pytest.approx(1 - 0.006)
    assert len(found) == 2


@pytest.mark.unit
def test_of_balls_as_small_the_one_around_its_sources_is_told() -> None:
    """Half of the draws are in cell 52, a quarter in 50 and 54 each.

    Of balls of two cells and a half that around 50 holds 3/4, and is the first; that around 52 holds all.
    """
    cells = np.repeat([50, 52, 54], [MANY // 4, MANY // 2, MANY // 4])[:, np.newaxis]
    (found,) = bands(counted(cells), level=0.7)
    assert found.radius == pytest.approx(0.025)
    assert found.place[0] == LINE.space.positions[52]
    assert found.probability == pytest.approx(1 - math.sqrt(0.7 * 0.3 / MANY))


@pytest.mark.unit
def test_draws_without_a_second_source_have_no_second_band() -> None:
    cells = np.tile([[20, 70], [20, -1], [20, -1], [20, 70], [20, 70]], (MANY // 5, 1))
    assert len(bands(counted(cells))) == 1
    assert len(bands(counted(cells), level=0.55)) == 2
    rare = counted(cells, np.tile([0.32, 0.02, 0.02, 0.32, 0.32], MANY // 5) / (MANY // 5))
    assert len(bands(rare)) == 2


@pytest.mark.unit
def test_known_masses_are_believed_less_for_bands() -> None:
    """Of four draws three have largest masses, all in one cell: with a fifth beforehand, 3/7 and not 3/4."""
    cells = np.tile([[50], [50], [50], [58]], (MANY // 4, 1))
    masses = np.tile([[1.0], [1.0], [1.0], [0.6]], (MANY // 4, 1))
    beliefs = replace(counted(cells), masses=masses, known=0.75)
    for known, radius in ((0.5, 0.005), (0.2, 0.085)):
        (found,) = bands(beliefs, level=0.7, known=known)
        assert found.radius == pytest.approx(radius)
    assert bands(beliefs, level=0.7)[0].radius == pytest.approx(0.005)
    (told,) = bands(replace(beliefs, known=math.nan), level=0.7)  # nothing was to be learned
    assert told.radius == pytest.approx(0.005)


@pytest.mark.unit
def test_a_sharp_posterior_has_a_band() -> None:
    """All of it on three neighbors: a quarter of the line is far wider, a quarter of the draws is not."""
    (found,) = bands(counted(np.tile([[50], [51], [52]], (MANY // 3, 1))))
    assert found.radius == pytest.approx(0.015)
    assert found.probability == pytest.approx(1 - 0.006, abs=1e-4)


@pytest.mark.unit
def test_a_band_wider_than_a_quarter_is_none() -> None:
    assert bands(counted(np.arange(100)[:, np.newaxis])) == ()


@pytest.mark.statistical
def test_bands_hold_as_often_as_they_say(rng: np.random.Generator) -> None:
    """Sources with masses as they are believed, anywhere on the line: how often the first band holds.

    Bands of one scene are not independent, so the first of each is counted. The rival is a band that
    says 90 % and means 70 %, as one of the middles of cells does for people who stand anywhere.
    """
    held: list[bool] = []
    said: list[float] = []
    while len(held) < 260:
        count = int(rng.integers(1, 4))
        floor = 1.0 if rng.random() < 0.5 else rng.random()
        at, masses = rng.random(count), floor + (1 - floor) * rng.random(count)
        clean = SMALL.kernel(SMALL.sensors.positions - at) @ masses
        readings = clean + 0.3 * rng.standard_normal(20)
        beliefs = posterior(SMALL, readings, sigma=0.3, rng=rng, max_sources=3, anywhere=True)
        found = bands(beliefs)
        if found:
            near = np.abs(at - found[0].place[0]).min()
            held.append(bool(near <= found[0].radius + 1e-12))
            said.append(found[0].probability)
    assert_share(sum(held), len(held), float(np.mean(said)), rivals=[0.7])


@pytest.mark.unit
def test_communities_are_believed_by_their_mass(rng: np.random.Generator) -> None:
    graph, labels = block_graph([40, 40], inside=0.2, across=0.01, rng=rng)
    operator = graph_diffusion(graph, 0.5)
    truth = np.zeros(80)
    truth[7] = 1
    readings = operator.readings(truth) + 0.03 * rng.standard_normal(80)
    beliefs = posterior(operator, readings, sigma=0.03, rng=rng)
    shares = community_beliefs(beliefs, labels)
    assert shares.sum() == pytest.approx(1)
    assert shares[0] > 0.9
    assert community_beliefs(beliefs, 1 - labels)[1] == pytest.approx(shares[0])


@pytest.mark.unit
def test_mistakes_are_told() -> None:
    beliefs = counted(np.array([[3], [4]]))
    with pytest.raises(InvalidParameter, match="level must lie between 0 and 1"):
        bands(beliefs, level=1.0)
    with pytest.raises(InvalidParameter, match="known must lie between 0 and 1, got 0"):
        bands(beliefs, known=0)
    with pytest.raises(InvalidParameter, match="labels must be one whole number"):
        community_beliefs(beliefs, [0, 1])
