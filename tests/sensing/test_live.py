"""Rounds of a running network: the same recovery as of saved readings, gaps said, drifting sensors named."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import ZCDP, ApproxDP
from sfumato.sensing import Site, heat_line, recover_sources
from sfumato.sensing.pipeline import (
    LiveReading,
    LiveRecovery,
    LiveRound,
    describe_site,
    epsilon_after,
)

pytestmark = pytest.mark.unit

SIGMA = 0.05


@pytest.fixture(scope="module")
def hall() -> Site:
    line = heat_line(sources=60, sensors=20, diffusion_time=0.01)
    return describe_site("hall", operator=line, radius="1/100", unit="mass", per_source=1).site


def rounds_of(
    hall: Site, cells: list[int], rng: np.random.Generator, *, drift: float = 0.0
) -> list[LiveRound]:
    """A source that walks, and perhaps a sensor that drifts."""
    found = []
    for number, cell in enumerate(cells):
        read = hall.operator.columns([cell])[:, 0] + rng.normal(0, SIGMA, len(hall.sensors))
        read[7] += drift * number
        found.append(
            LiveRound(
                f"2026-11-18T09:00:{number:02}Z",
                {
                    name: LiveReading(float(value), SIGMA, ZCDP(1))
                    for name, value in zip(hall.sensors.names, read, strict=True)
                },
            )
        )
    return found


def test_a_live_round_is_recovered_as_its_readings_are(
    hall: Site, rng: np.random.Generator
) -> None:
    (one,) = rounds_of(hall, [30], rng)
    live = LiveRecovery(hall).recover(one)
    values = {name: read.value for name, read in one.readings.items()}
    alone = recover_sources(values, site=hall, noise=SIGMA)
    assert live.recovery is not None
    assert live.recovery.sources() == alone.sources()
    assert [region.radius for region in live.recovery.regions] == [
        region.radius for region in alone.regions
    ]
    assert live.recovery.certificate.gap == alone.certificate.gap
    assert "rho 1 for each source" in live.recovery.statement
    assert "computational" in live.recovery.statement


def test_a_round_without_some_sensors_is_solved_and_says_so(
    hall: Site, rng: np.random.Generator
) -> None:
    (one,) = rounds_of(hall, [30], rng)
    gone = hall.sensors.names[3], hall.sensors.names[11]
    there = {name: read for name, read in one.readings.items() if name not in gone}
    found = LiveRecovery(hall, estimator="least").recover(LiveRound(one.time, there))
    assert found.missing == gone
    assert found.recovery is not None
    assert len(found.recovery.names) == len(hall.sensors) - 2


def test_a_walk_is_followed_and_a_drifting_sensor_is_named(
    hall: Site, rng: np.random.Generator
) -> None:
    live = LiveRecovery(hall)
    followed = live.track(rounds_of(hall, [10, 14, 18, 22, 26, 30], rng))
    assert not followed.faulty_sensors
    assert abs(followed.rounds[-1].sources[0].cell - 30) <= 3
    drifting = live.track(rounds_of(hall, [30] * 8, rng, drift=0.2))
    (bad,) = drifting.faulty_sensors
    assert (bad.sensor, bad.shows) == (hall.sensors.names[7], "drift")


def test_rounds_together_are_a_result_with_its_cost(hall: Site, rng: np.random.Generator) -> None:
    live = LiveRecovery(hall, estimator="least")
    rounds = rounds_of(hall, [10, 14], rng)
    made = live.together([live.recover(one) for one in rounds], [one.cost for one in rounds])
    assert made.cost == ZCDP(2)
    assert [one.time for one in made.rounds] == [one.time for one in rounds]


def test_what_no_round_is_refused(hall: Site, rng: np.random.Generator) -> None:
    live = LiveRecovery(hall, estimator="least")
    with pytest.raises(InvalidInput, match="no reading"):
        live.recover(LiveRound("now", {}))
    with pytest.raises(InvalidParameter, match="no sensor 'attic'"):
        live.recover(LiveRound("now", {"attic": LiveReading(0.0, 1.0, ZCDP(1))}))
    with pytest.raises(InvalidInput, match="no track"):
        live.track(rounds_of(hall, [3], rng))


def test_epsilon_of_many_rounds_is_that_of_the_ledgers_table() -> None:
    assert epsilon_after(ApproxDP(1, "1e-6"), 1) == pytest.approx(1, abs=1e-6)
    assert round(epsilon_after(ApproxDP(1, "1e-6"), 100), 2) == 13.51
