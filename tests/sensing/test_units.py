"""What sensors read in is said, never guessed; and numbers of a short type are counted as rounded."""

from __future__ import annotations

import array
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.errors import InvalidParameter
from sfumato.privacy import ApproxDP, Ledger, MovedMass
from sfumato.sensing import Site, heat_line, plan, release_snapshot
from sfumato.sensing.pipeline import plan_sensors, recover_sources
from sfumato.sensing.planning import synthetic_site
from sfumato.sensing.release import Snapshot, unit_of
from sfumato.sensing.release.exact import in_sources
from sfumato.sensing.release.readings import quantise
from sfumato.sensing.render import figure, plan_text
from sfumato.sensing.results import RecoveryResult

LOSS = ApproxDP(1, "1e-6")
HALL = heat_line(sources=40, sensors=[0.1, 0.4, 0.9], diffusion_time=0.05)
MASS = synthetic_site("hall", HALL, MovedMass("1/10", "line"))
UNTOLD = Site("hall", HALL, MovedMass("1/10", "line"))
CELSIUS = replace(MASS, unit="degrees Celsius", per_source=Fraction(1, 50), largest=Fraction(100))


def book(folder: Path, site: Site) -> Ledger:
    return Ledger.create(
        folder / "hall.ledger",
        ApproxDP(10, "1e-5"),
        unit=unit_of(site.sensors),
        source=site.name,
        neighbors=site.neighbors,
        model="local",
    )


def sent(values: Any, site: Site, folder: Path) -> Snapshot:
    return release_snapshot(values, site, plan(site, LOSS), ledger=book(folder, site))


@pytest.mark.unit
def test_a_site_that_never_said_its_unit_releases_nothing(tmp_path: Path) -> None:
    ledger = book(tmp_path, UNTOLD)
    with pytest.raises(
        InvalidParameter, match=r"^site 'hall' does not say what its sensors read: .*charged$"
    ):
        release_snapshot([22.1, 24.0, 31.2], UNTOLD, plan(UNTOLD, LOSS), ledger=ledger)
    assert not ledger.statement().entries


@pytest.mark.unit
def test_both_are_said_or_neither() -> None:
    for words in ({"unit": "lux"}, {"per_source": Fraction(1)}, {"unit": "lux", "per_source": 0}):
        with pytest.raises(InvalidParameter):
            replace(UNTOLD, **words)
    with pytest.raises(InvalidParameter, match="largest must be above 0"):
        replace(MASS, largest=Fraction(-1))


@pytest.mark.unit
def test_a_site_file_keeps_what_was_said_and_old_ones_stay_what_they_were() -> None:
    for site in (MASS, UNTOLD, CELSIUS):
        again = Site.from_json(site.to_json())
        assert (again, again.digest) == (site, site.digest)
    assert "unit" not in UNTOLD.to_json()
    assert len({site.digest for site in (MASS, UNTOLD, CELSIUS, replace(MASS, unit="lux"))}) == 4


@pytest.mark.unit
def test_a_person_is_hidden_in_the_unit_of_the_readings(tmp_path: Path) -> None:
    # A source adds 1/50 of a degree where the operator is 1, so a degree is 50 sources: noise of so
    # much less in degrees hides one; what is sent is in sources, and the noise there is the same.
    mass, warm = plan(MASS, LOSS), plan(CELSIUS, LOSS)
    assert mass.sigma == warm.sigma
    one = HALL.columns([7])[:, 0]
    step = quantise(in_sources(20 + one / 50, CELSIUS), warm.exponent)
    step -= quantise(in_sources(20 + 0 * one, CELSIUS), warm.exponent)
    np.testing.assert_allclose(
        np.ldexp(step.astype(float), warm.exponent), one, atol=2.0**warm.exponent * 1.1
    )
    snapshot = sent(20 + one / 50, CELSIUS, tmp_path)
    np.testing.assert_allclose(snapshot.numbers(), 1000 + one, atol=12 * warm.sigma)


@pytest.mark.unit
def test_the_step_of_the_sensors_is_in_their_unit() -> None:
    fine = replace(CELSIUS, step=Fraction(1, 1000))
    assert fine.step_in_sources == Fraction(1, 20)
    assert plan(fine, LOSS).step == Fraction(1, 20)


@pytest.mark.property
def test_dividing_and_cutting_move_no_two_readings_further(rng: np.random.Generator) -> None:
    for per_source in (Fraction(1, 3), Fraction(7), Fraction("0.1"), Fraction(10**9, 7)):
        site = replace(CELSIUS, per_source=per_source, largest=Fraction(25))
        before = 20 + 10 * rng.random(2000)
        after = before + rng.normal(size=2000)
        moved = np.abs(in_sources(after, site) - in_sources(before, site))
        exact = [
            abs(Fraction(a) - Fraction(b)) / per_source for a, b in zip(after, before, strict=True)
        ]
        # Each quotient is rounded once.
        slip = 2 * Fraction(2) ** -53 * 31 / per_source
        assert all(Fraction(m) <= e + slip for m, e in zip(moved.tolist(), exact, strict=True))
        assert np.abs(in_sources(after, site)).max() <= float(25 / per_source)


@pytest.mark.unit
@pytest.mark.parametrize("short", [np.float32, np.float16])
def test_a_short_type_is_refused_unless_the_step_covers_it(short: Any, tmp_path: Path) -> None:
    values = np.array([22.1, 24.0, 31.2], dtype=short)
    apart = Fraction(float(np.spacing(short(100))))
    bare, blunt = replace(CELSIUS, largest=None), replace(CELSIUS, step=apart * Fraction(999, 1000))
    for number, site in enumerate((bare, CELSIUS, blunt)):
        folder = tmp_path / str(number)
        folder.mkdir()
        ledger, planned = book(folder, site), plan(site, LOSS)
        for given in (
            values,
            list(values),
            dict(zip(site.sensors.names, values, strict=True)),
            [*values[:2], 3.0],
            (*values[:2], 3.0),
            pa.array(values),
            *(foreign(values) if short is np.float32 else []),
        ):
            with pytest.raises(
                InvalidParameter, match=f"of type {np.dtype(short)} are rounded.*nothing was ch"
            ):
                release_snapshot(given, site, planned, ledger=ledger)
        assert not ledger.statement().entries
    told = replace(CELSIUS, step=apart)
    assert sent(values, told, tmp_path).numbers().shape == (3,)


def foreign(values: Any) -> list[Any]:
    """The same float32 as other libraries hold it."""
    numbers = array.array("f", values)
    return [
        numbers,
        memoryview(numbers),
        pl.Series(values),
        pd.Series(values),
        pd.Series(values, dtype="Float32"),
    ]


@pytest.mark.reference
def test_what_a_short_type_rounds_away_is_counted() -> None:
    # Readings that are neighbors, rounded to float16, in lattice units: further apart than physics
    # says.
    told = replace(CELSIUS, step=Fraction(float(np.spacing(np.float16(100)))))
    noise = plan(told, LOSS)
    edge = 64 + float(np.spacing(np.float16(64))) / 2
    before, after = np.full(3, edge - 1e-9), np.full(3, edge + 1e-9)
    units = [
        quantise(in_sources(x.astype(np.float16).astype(np.float64), told), noise.exponent)
        for x in (before, after)
    ]
    reached = np.linalg.norm(units[1] - units[0])
    without = plan(replace(told, step=Fraction(0)), LOSS)
    assert reached * 2.0**noise.exponent > float(without.moved) * 2.0**without.exponent
    assert reached <= noise.moved


@pytest.mark.unit
def test_plans_verdicts_and_pictures_tell_readings_in_the_unit_of_the_site(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = heat_line(sources=20, sensors=20, diffusion_time=0.02)
    mass = synthetic_site("row", line, MovedMass("1/10", "line"))
    warm = replace(mass, unit="C", per_source=Fraction(20))
    planned = plan_sensors(warm, LOSS, trials=0)
    told = plan_text(planned)
    first, second, third = planned.outlook.signal, planned.outlook.sigma, planned.peak
    assert f"read as up to {20 * first:.2g} C through noise of sigma {20 * second:.2g} C;" in told
    assert f"read as up to {20 * third:.4g} C by a sensor" in told
    assert f"of sigma {20 * planned.noise.sigma:.4g} C for" in told
    assert f"at noise {20 * planned.noise.sigma:.3g} C" in told
    readings = line.columns([9])[:, 0] + 0.01 * rng.normal(size=20)
    readings[4] += 2.0
    found = recover_sources(readings, site=warm, noise=0.01, estimator="least")
    (bad,) = found.diagnostics.suspects
    assert bad.message.startswith(f"sensor '4' reads {20 * bad.off:+.3g} ± ")
    assert " C off what the others say" in bad.message
    assert bad.message in " ".join(found.verdict.reasons)
    assert RecoveryResult.from_json(found.to_json()).diagnostics.suspects == (bad,)
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(figure, "draw_line_recovery", lambda *_, **given: drawn.update(given))
    figure.draw_recovery(found)
    assert drawn["unit"] == "C"
    assert drawn["readings"] == pytest.approx(20 * readings)
    assert drawn["sigma"] == pytest.approx(0.2)
    assert "`" not in drawn["caption"]
    # Of a made-up site readings are plain numbers, as before.
    plain = recover_sources(readings, site=mass, noise=0.01, estimator="least")
    assert " C " not in plain.diagnostics.suspects[0].message
