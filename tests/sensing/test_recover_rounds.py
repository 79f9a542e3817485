"""Many rounds in one go are what each of them is alone; and which rounds a text means."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import InvalidParameter, SolverFailed
from sfumato.privacy import MovedMass
from sfumato.sensing import heat_line, heat_plane, recover_rounds, recover_sources
from sfumato.sensing.model.operators import protocol
from sfumato.sensing.model.site import Site
from sfumato.sensing.pipeline import recover_rounds as pipeline_name
from sfumato.sensing.pipeline.recover import recovered
from sfumato.sensing.planning import synthetic_site
from sfumato.sensing.recovery.round_times import matching_times
from sfumato.sensing.render import draw_rounds, rounds_text
from sfumato.sensing.results import RecoveredRounds, Verdict, told_places
from sfumato.spaces import Grid

LINE = heat_line(sources=12, sensors=6, diffusion_time=0.01)
HALL = synthetic_site("hall", LINE, MovedMass("1/10", "line"))
NOISE = 0.05


def rounds_of(site: Site, rounds: list[tuple[str, Any, tuple[int, ...]]]) -> pd.DataFrame:
    """A table of noisy readings: for each round its time, its readings, and sensors that are missing."""
    rows = [
        (time, name, value)
        for time, values, gaps in rounds
        for number, (name, value) in enumerate(zip(site.sensors.names, values, strict=True))
        if number not in gaps
    ]
    return pd.DataFrame(rows, columns=["time", "sensor", "value"])


def seen(cell: int, rng: np.random.Generator, mass: float = 0.8) -> Any:
    return LINE.columns([cell])[:, 0] * mass + rng.normal(0, NOISE, LINE.shape[0])


@pytest.mark.property
@settings(max_examples=8)
@given(
    cells=st.lists(st.integers(0, 11), min_size=1, max_size=4),
    gaps=st.lists(st.sets(st.integers(0, 5), max_size=3), min_size=4, max_size=4),
    seed=st.integers(0, 2**32 - 1),
    estimator=st.sampled_from(["least", "bayes-median", "off-grid"]),
)
def test_each_round_is_what_it_is_alone(
    cells: list[int], gaps: list[set[int]], seed: int, estimator: str
) -> None:
    rng = np.random.default_rng(seed)
    table = rounds_of(
        HALL,
        [
            (f"2026-01-01T0{hour}:00", seen(cell, rng), tuple(gap))
            for hour, (cell, gap) in enumerate(zip(cells, gaps, strict=False))
        ],
    )
    found = recover_rounds(table, site=HALL, noise=NOISE, estimator=estimator)
    assert len(found.rounds) == len(cells)
    for one, gap in zip(found.rounds, gaps, strict=False):
        alone = recover_sources(
            table, site=HALL, noise=NOISE, estimator=estimator, time=one.time, certify=False
        )
        assert one.recovery is not None
        assert one.recovery.to_json() == alone.to_json()
        assert one.missing == tuple(HALL.sensors.names[number] for number in sorted(gap))
    again = RecoveredRounds.from_json(json.loads(json.dumps(found.to_json())))
    assert again.to_json() == found.to_json()
    assert (again.table(), rounds_text(again)) == (found.table(), rounds_text(found))


@pytest.mark.property
@settings(max_examples=8)
@given(cell=st.integers(0, 11), seed=st.integers(0, 2**32 - 1), noise=st.floats(0.02, 0.4))
def test_all_mass_of_an_answer_is_told_at_most_once(cell: int, seed: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    read = LINE.columns([cell])[:, 0] + rng.normal(0, noise, LINE.shape[0])
    result = recover_sources(read, site=HALL, noise=noise)
    told = told_places(result)
    if result.answer is None:
        assert told == ()
        return
    total = float(result.answer.estimate.masses.sum())
    assert (1 - 0.005 * 6) * total <= sum(one.mass for one in told) <= total * (1 + 1e-9)
    assert [one.radius for one in told if one.radius is not None] == [
        region.radius for region in result.regions
    ]


DAY = [f"2026-03-0{day}T{hour:02}:30" for day in (1, 2) for hour in range(24)]
NIGHT = [f"2026-{at}:30+02:00" for at in ("02-28T23", "03-01T00", "03-01T23", "03-02T01")]
EXTRA = ["2026-03-01T12:30:20+01:00", "2026-03-01T12:30:20"]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("times", "asked", "found"),
    [
        (DAY, "2026-03-01T05:30", ["2026-03-01T05:30"]),
        (DAY, "05:30", ["2026-03-01T05:30", "2026-03-02T05:30"]),
        (DAY, "5:30", ["2026-03-01T05:30", "2026-03-02T05:30"]),
        (DAY, "05:31", []),
        (DAY, "2026-03-01 05:30", ["2026-03-01T05:30"]),
        (DAY, "2026-03-01T05", ["2026-03-01T05:30"]),
        (DAY, "2026-03-02", DAY[24:]),
        (DAY, "2026-03-02..", DAY[24:]),
        (DAY, "..2026-03-01", DAY[:24]),
        (DAY, "2026-03-01T22:30..2026-03-02T00:30", DAY[22:25]),
        (DAY, "22:30..23:30", [*DAY[22:24], *DAY[46:]]),
        (DAY, "23:00..01:00", [DAY[0], DAY[23], DAY[24], DAY[47]]),
        (DAY, "23:00..", [DAY[23], DAY[47]]),
        (DAY, "noon", []),
        (DAY, "..", []),
        (DAY, "25:00", []),
        (EXTRA, "2026-03-01T12:30", EXTRA),  # without a zone it is as the times are written
        (EXTRA, "2026-03-01T12:30:20", EXTRA[1:]),  # as it is written, it is that one
        (NIGHT, "2026-03-01", NIGHT[1:3]),
        (NIGHT, "2026-03-01..2026-03-01", NIGHT[1:3]),
        (NIGHT, "2026-03-01T00:00Z..2026-03-01T23:59Z", NIGHT[2:]),
        (EXTRA, "2026-03-01T11:30:20Z", EXTRA[:1]),
        (["1", "2", "10"], "2..10", ["2", "10"]),
        (["1", "2", "10"], "2.0", ["2"]),
        (["09:00", "10:00"], "09:00..09:59", ["09:00"]),
        (["before", "after"], "after", ["after"]),
        (["before", "after"], "1..2", []),
    ],
)
def test_a_text_means_these_rounds(times: list[str], asked: str, found: list[str]) -> None:
    assert matching_times(times, asked) == found


@pytest.mark.unit
def test_ranges_choose_rounds_and_one_time_one_answer(rng: np.random.Generator) -> None:
    table = rounds_of(HALL, [(f"2026-01-01T0{hour}:00", seen(5, rng), ()) for hour in range(4)])
    some = recover_rounds(table, site=HALL, noise=NOISE, estimator="least", time="01:00..02:00")
    assert [one.time for one in some.rounds] == ["2026-01-01T01:00", "2026-01-01T02:00"]
    by_clock = recover_sources(
        table, site=HALL, noise=NOISE, estimator="least", time="02:00", certify=False
    )
    assert by_clock.to_json() == some.round_at("2026-01-01T02:00").to_json()
    with pytest.raises(InvalidParameter, match="no recovery at '03:00'"):
        some.round_at("03:00")
    with pytest.raises(InvalidParameter, match="no reading at '05:00'"):
        recover_rounds(table, site=HALL, noise=NOISE, time="05:00")
    with pytest.raises(InvalidParameter, match="`recover_rounds`"):
        recover_sources(table, site=HALL, noise=NOISE, time="01:00..02:00")
    assert pipeline_name is recover_rounds


@pytest.mark.unit
def test_one_round_that_fails_is_said_and_others_are_there(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.sensing.pipeline import recover_each as module

    whole = recovered

    def sometimes(read: Any, *rest: Any, **more: Any) -> Any:
        if read.time == "2":
            raise SolverFailed("an answer must prove itself, but it did not; no estimate was made")
        return whole(read, *rest, **more)

    monkeypatch.setattr(module, "recovered", sometimes)
    table = rounds_of(HALL, [(str(number), seen(5, rng), ()) for number in (1, 2, 3)])
    found = recover_rounds(table, site=HALL, noise=NOISE, estimator="least")
    assert [one.status for one in found.rounds] == ["optimal", "failed", "optimal"]
    assert "no answer could be proved" in rounds_text(found)
    rows = list(csv.DictReader(io.StringIO(found.table())))
    assert [(row["time"], row["mass"]) for row in rows if row["status"] == "failed"] == [("2", "")]
    assert RecoveredRounds.from_json(found.to_json()).to_json() == found.to_json()
    assert draw_rounds(found).startswith(b"<!doctype html>")


def watched_parts(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The sensors of every operator to some of them, as they are made."""
    made, whole = list[Any](), protocol.part_of

    def watched(operator: protocol.Operator, rows: Any) -> protocol.Operator:
        made.append(rows)
        return whole(operator, rows)

    monkeypatch.setattr(protocol, "part_of", watched)
    return made


@pytest.mark.unit
def test_what_depends_on_the_site_is_made_once(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One operator for all rounds that read the same sensors: its caches serve all of them."""
    made = watched_parts(monkeypatch)
    gaps: list[tuple[int, ...]] = [(), (2,), (), (2,), (0, 2)]
    table = rounds_of(HALL, [(str(n), seen(5, rng), gap) for n, gap in enumerate(gaps)])
    found = recover_rounds(table, site=HALL, noise=NOISE, estimator="least")
    assert [len(rows) for rows in made] == [6, 5, 4]
    operators = [one.recovery.certificate.operator for one in found.rounds if one.recovery]
    assert operators[1] is operators[3]
    assert operators[0] is operators[2] is LINE


@pytest.mark.unit
def test_a_table_has_a_place_a_mass_and_a_band_in_every_row(rng: np.random.Generator) -> None:
    plane = heat_plane(
        sources=Grid(3, (0.0, 0.0, 1.0, 1.0)),
        sensors=[(x, y) for x in (0.2, 0.5, 0.8) for y in (0.2, 0.5, 0.8)],
        diffusion_time=0.02,
    )
    site = synthetic_site("yard", plane, MovedMass("1/10", plane.space.metric))
    clear = plane.columns([30])[:, 0]
    nothing = np.zeros(9)
    table = rounds_of(site, [("09:00", clear, ()), ("10:00", nothing, (4,))])
    found = recover_rounds(table, site=site, noise=0.02)
    rows = list(csv.DictReader(io.StringIO(found.table())))
    assert list(rows[0]) == ["time", "status", "x", "y", "mass", "radius", "probability", "missing"]
    first = [row for row in rows if row["time"] == "09:00"]
    x, y = plane.space.places(np.array([30]))[0]
    assert (float(first[0]["x"]), float(first[0]["y"])) == (x, y)
    assert float(first[0]["probability"]) > 0.9
    assert float(first[0]["mass"]) == pytest.approx(1, abs=0.1)
    (last,) = (row for row in rows if row["time"] == "10:00")
    assert (last["status"], last["x"], last["mass"], last["missing"]) == ("zero", "", "", "1")
    assert "in 1 of 2 rounds sensors are missing (4)" in rounds_text(found)


@pytest.mark.unit
def test_words_counts_and_the_end_follow_the_verdict(
    rng: np.random.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R is infeasible by the luck of the noise in one round, and because nothing fits in another."""
    monkeypatch.chdir(tmp_path)
    found = recover_rounds(
        rounds_of(HALL, [("1", seen(3, rng), ()), ("2", 100 * np.array([1, -1] * 3), ())]),
        site=HALL, noise=NOISE, estimator="least", seed=1,
    )  # fmt: skip
    first, second = found.rounds
    assert second.recovery is not None
    assert second.recovery.verdict.kind == "misfit"
    assert found.misfits == 1
    text = rounds_text(found)
    assert "in 1 the readings do not fit the site" in text
    assert "do not rely on 1 of 2 rounds" in text
    told = replace(
        second.recovery.diagnostics, verdict=Verdict("nothing", "nothing can be told: noise alone")
    )
    noise = replace(second, recovery=replace(second.recovery, diagnostics=told))
    quiet = replace(found, rounds=(first, noise))
    assert quiet.misfits == 0
    text = rounds_text(quiet)
    assert "in 1 nothing can be told from the noise" in text
    assert "do not fit" not in text
    HALL.write("site.json")
    for values, code in ((seen(3, rng).tolist(), 0), ([100.0, -100.0] * 3, 9)):
        rows = [f"1,{name},{value}" for name, value in zip(HALL.sensors.names, values, strict=True)]
        Path("r.csv").write_text("\n".join(["time,sensor,value", *rows]) + "\n", encoding="utf-8")
        words = ["r.csv", "--site", "site.json", "--sigma", str(NOISE), "--estimator", "least"]
        said = CliRunner().invoke(app, ["sense", "recover", *words, "--each", "--json"])
        assert said.exit_code == code, said.output


@pytest.mark.unit
def test_rounds_say_which_sensors_were_left_out(rng: np.random.Generator) -> None:
    line = heat_line(sources=20, sensors=20, diffusion_time=0.02)
    site = synthetic_site("row", line, MovedMass("1/10", "line"))
    rounds: list[tuple[str, Any, tuple[int, ...]]] = []
    for number in range(3):
        read = line.columns([9])[:, 0] + 0.01 * rng.normal(size=20)
        read[4] += 2.0 if number else 0.0
        rounds.append((str(number), read, ()))
    table = rounds_of(site, rounds)
    words = rounds_text(recover_rounds(table, site=site, noise=0.01, estimator="least"))
    assert (
        "contradicted by the others, and used all the same: sensor '4' in 2 of 3 rounds; `fit='sensors'` "
        "leaves them out"
    ) in words
    fitted = recover_rounds(table, site=site, noise=0.01, estimator="least", fit=["sensors"])
    words = rounds_text(fitted)
    assert "contradicted by the others, and left out: sensor '4' in 2 of 3 rounds" in words
    assert "used all the same" not in words
    well = recover_rounds(
        table[table["time"] == "0"], site=site, noise=0.01, estimator="least", fit=["sensors"]
    )
    assert "no sensor is contradicted by the others in any round: none was left out" in rounds_text(
        well
    )


@pytest.mark.unit
def test_operators_of_few_sets_of_sensors_are_kept(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds with the same sensors share an operator; of many sets the last few are kept."""
    made = watched_parts(monkeypatch)
    monkeypatch.setattr(protocol, "KEPT_PARTS", 2)
    gaps: list[tuple[int, ...]] = [(0,), (1,), (0,), (2,), (0,)]
    table = rounds_of(HALL, [(str(n), seen(5, rng), gone) for n, gone in enumerate(gaps)])
    recover_rounds(table, site=HALL, noise=NOISE, estimator="least")
    assert len(made) == 3
