"""A track has a verdict, on each round and on the whole: a stuck sensor is named, and ends in exit 9."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.sense_runs import run

from sfumato.cli.endings import UNRELIABLE
from sfumato.figures import sheet
from sfumato.figures.recovery import track as track_picture
from sfumato.privacy import ZCDP
from sfumato.sensing import describe_site, heat_line, heat_plane, open_ledger
from sfumato.sensing.model.operators.places import even_places
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.site import Site
from sfumato.sensing.pipeline import release_readings, track_sources
from sfumato.sensing.release import Readings
from sfumato.sensing.render import draw_track, track_text
from sfumato.sensing.results import TrackResult
from sfumato.spaces import Grid

pytestmark = pytest.mark.unit

SIDE = 20.0
LINE = heat_line(sources=40, sensors=20, diffusion_time=0.01)
FLOOR = heat_plane(
    sources=Grid(3, (0, 0, SIDE, SIDE)),
    sensors=even_places(36, np.zeros(2), np.full(2, SIDE)),
    diffusion_time=2.0,
)
PATHS = {"line": [10, 11, 12, 13, 14, 15], "floor": [21, 20, 22, 23, 21, 20]}
RHO = {"line": "2e4", "floor": "2e4"}
STUCK = {"line": ("15", 3.0), "floor": ("30", 0.25)}

Release = Callable[..., Readings]


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Site, Path]]:
    made = {}
    for name, operator in {"line": LINE, "floor": FLOOR}.items():
        site = describe_site(name, operator=operator, radius="1/10", unit="mass", per_source=1).site
        path = tmp_path_factory.mktemp(name) / "site.ledger"
        open_ledger(site, path, ZCDP("1e9"))
        made[name] = site, path
    return made


@pytest.fixture
def released(sites: dict[str, tuple[Site, Path]]) -> Release:
    """Noisy readings of rounds with units in these cells; some sensors read another number."""

    def release(
        where: str,
        rounds: list[list[int]],
        stuck: dict[tuple[int, str], float] | None = None,
        gaps: set[tuple[int, str]] = frozenset(),  # type: ignore[assignment]
    ) -> Readings:
        site, ledger = sites[where]
        operator: Operator = site.operator
        told = []
        for number, cells in enumerate(rounds):
            read = operator.columns(cells).sum(axis=1).tolist()
            row = {
                name: (stuck or {}).get((number, name), value)
                for name, value in zip(site.sensors.names, read, strict=True)
                if (number, name) not in gaps
            }
            told.append((str(number), row))
        return release_readings(
            told, site, ledger=ledger, loss=ZCDP(RHO[where]), some=bool(gaps)
        ).readings

    return release


def stuck_from(where: str, first: int) -> dict[tuple[int, str], float]:
    name, value = STUCK[where]
    return {(number, name): value for number in range(first, 6)}


def surely_faulty(found: TrackResult) -> list[str]:
    """Others are suspected too by chance, in 1 of 100 draws."""
    return [one.sensor for one in found.faulty_sensors if one.p_value < 1e-6]


def alone(where: str) -> list[list[int]]:
    return [[cell] for cell in PATHS[where]]


def test_somebody_between_two_cells_is_followed_there(sites: dict[str, tuple[Site, Path]]) -> None:
    """Each radius holds a whole cell, on either side of which somebody may be, and nothing is wrong."""
    site, ledger = sites["line"]
    places = LINE.space.places(np.arange(40))[:, 0]
    finer = heat_line(sources=4000, sensors=20, diffusion_time=0.01)
    where = (places[20] + places[21]) / 2
    read = finer.columns([int(np.searchsorted(finer.space.positions, where - 1e-9))])[:, 0]
    row = dict(zip(site.sensors.names, read.tolist(), strict=True))
    rounds = [(str(number), row) for number in range(6)]
    released = release_readings(rounds, site, ledger=ledger, loss=ZCDP("20")).readings
    found = track_sources(released)
    assert found.verdict.kind == "rely", found.verdict
    for one in found.rounds:
        (source,) = one.sources
        assert source.radius >= 1 / 80
        assert abs(places[source.cell] - where) <= source.radius + 1e-12


@pytest.mark.parametrize("where", ["line", "floor"])
def test_readings_that_a_track_explains_may_be_relied_on(where: str, released: Release) -> None:
    found = track_sources(released(where, alone(where)))
    assert found.verdict.kind == "rely", found.verdict
    assert {one.verdict.kind for one in found.rounds} == {"rely"}
    assert (found.faulty_sensors, found.misfits) == ((), 0)


@pytest.mark.parametrize("where", ["line", "floor"])
def test_a_stuck_sensor_is_one_verdict_in_words_json_and_file(
    where: str, released: Release, tmp_path: Path
) -> None:
    noisy = released(where, alone(where), stuck_from(where, 0))
    found = track_sources(noisy)
    assert found.verdict.kind == "misfit"
    assert surely_faulty(found) == [STUCK[where][0]], found.faulty_sensors
    text = track_text(found)
    assert text.splitlines()[0] == f"verdict: {found.verdict.message}"
    assert f"sensor {STUCK[where][0]!r} " in text
    assert "`leave_out_faulty` leaves it out" in text
    assert all(not one.verdict.reliable for one in found.rounds)
    assert text.count("do not rely on this") == 1 + len(found.rounds)
    found.write(tmp_path / "t.json")
    data = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    again = TrackResult.from_json(data)
    assert again.verdict == found.verdict
    assert again.rounds == found.rounds
    assert track_text(again) == text
    # A file of before has no verdict, and says none.
    del data["verdict"]
    assert not track_text(TrackResult.from_json(data)).startswith("verdict")
    left = track_sources(noisy, leave_out_faulty=True)
    assert left.verdict.kind == "care", left.verdict
    assert "sensors contradict the others, and were left out" in left.verdict.message
    assert [one.sources[0].cell for one in left.rounds] == PATHS[where], left.faulty_sensors
    assert any(one.endswith("and was left out") for one in left.remarks)


@pytest.mark.parametrize("where", ["line", "floor"])
def test_a_sensor_that_breaks_on_the_way_is_found_in_its_rounds(
    where: str, released: Release
) -> None:
    found = track_sources(released(where, alone(where), stuck_from(where, 4)))
    assert found.verdict.kind == "misfit"
    assert [one.verdict.kind for one in found.rounds] == ["care"] * 4 + ["misfit"] * 2
    assert surely_faulty(found) == [STUCK[where][0]], found.faulty_sensors
    assert "in 2 of 6 rounds the readings are not explained; the first, at 4:" in (
        found.verdict.message
    )


def test_a_stuck_sensor_is_found_where_no_two_rounds_have_the_same_sensors(
    released: Release,
) -> None:
    gaps = {(number, str(number)) for number in range(6)}
    found = track_sources(released("line", alone("line"), stuck_from("line", 0), gaps))
    assert found.verdict.kind == "misfit"
    assert surely_faulty(found) == [STUCK["line"][0]]
    assert any("looked for in 1 of 6 rounds" in one for one in found.remarks)


def test_one_source_does_not_explain_two(released: Release) -> None:
    both = [[cell, 35] for cell in PATHS["line"]]
    found = track_sources(released("line", both))
    assert found.verdict.kind == "misfit"
    assert "the source that was followed does not explain the readings" in found.verdict.message
    assert found.verdict.message.endswith("more would: give a larger `count`")
    assert found.faulty_sensors == ()


def test_of_noise_alone_nothing_is_told(released: Release) -> None:
    found = track_sources(released("line", [[]] * 6))
    assert found.verdict.kind == "nothing"
    assert found.fewer is not None
    assert found.fewer >= 1
    assert "times as likely where there is no source at all" in found.verdict.message


def test_a_source_between_two_cells_is_no_misfit(released: Release, sites: dict[str, Any]) -> None:
    """At this noise, 0.016 of readings up to 2.8, no single cell explains it; two that share it do."""
    line, ledger = sites["line"]
    half = heat_line(sources=80, sensors=LINE.sensors.positions, diffusion_time=0.01)
    middle = (LINE.space.positions[11] + LINE.space.positions[12]) / 2
    (cell,) = np.flatnonzero(np.isclose(half.space.positions, middle))
    read = dict(zip(line.sensors.names, half.columns([cell])[:, 0].tolist(), strict=True))
    noisy = release_readings(
        [("0", read), ("1", read)], line, ledger=ledger, loss=ZCDP(RHO["line"])
    ).readings
    assert track_sources(noisy).verdict.kind == "rely"
    best = min(
        float(np.sum((half.columns([cell])[:, 0] - LINE.columns([at])[:, 0]) ** 2))
        for at in (11, 12)
    )
    assert (
        best > 100 * noisy.snapshots[0].sigma ** 2
    )  # chi-square of 20 sensors is below 60 but 1e-5


def test_a_command_ends_by_its_verdict_and_the_picture_says_it(
    released: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sheet, "DPI", 30)
    noisy = released("floor", alone("floor"), stuck_from("floor", 0))
    noisy.write("r.json")
    said = run("track", "r.json", "--json", "--plot", "t.png")
    assert said.exit_code == UNRELIABLE == 9
    found = track_sources("r.json")
    assert json.loads(said.stdout)["verdict"] == found.verdict.to_json()
    assert run("track", "r.json", "--without-suspects", "--quiet").exit_code == 0
    figures: list[Any] = []

    def keep(figure: Any) -> bytes:
        figures.append(figure)
        return b""

    monkeypatch.setattr(track_picture, "png", keep)
    draw_track(found)
    (figure,) = figures
    words = [one.get_text() for one in figure.texts]
    assert "do not rely on this: the readings do not fit" in words
    caption = " ".join(" ".join(words).split())
    assert "Verdict: do not rely on this" in caption
    assert "`" not in caption


def test_where_most_sensors_would_have_to_go_the_site_is_wrong(
    sites: dict[str, tuple[Site, Path]],
) -> None:
    """Names in another order: sensors were thrown away until the rest agreed, and that was relied on."""
    site, ledger = sites["line"]
    names = list(site.sensors.names)
    other = np.random.default_rng(3).permutation(len(names))
    rows = [
        (f"2026-11-16T09:0{number}Z", dict(zip([names[at] for at in other], read, strict=True)))
        for number, read in enumerate(LINE.columns(PATHS["line"]).T.tolist())
    ]
    noisy = release_readings(rows, site, ledger=str(ledger), loss=ZCDP(RHO["line"])).readings
    found = track_sources(noisy, leave_out_faulty=True)
    assert found.verdict.kind == "misfit", found.verdict
    assert "too many to be broken" in found.verdict.message


def test_a_level_that_rose_is_nobody_to_follow(tmp_path: Path) -> None:
    site = describe_site(
        "hall", operator=LINE, radius="1/10", unit="C", per_source=1, ambient="20C"
    ).site
    open_ledger(site, tmp_path / "a.ledger", ZCDP("1e9"))
    rows = [(str(number), dict.fromkeys(site.sensors.names, 20.3)) for number in range(4)]
    noisy = release_readings(
        rows, site, ledger=str(tmp_path / "a.ledger"), loss=ZCDP("2e2")
    ).readings
    found = track_sources(noisy)
    assert found.verdict.kind != "rely", found.verdict
    told = [found.verdict.message, *found.verdict.reasons]
    assert found.verdict.kind == "misfit" or any("above their level" in one for one in told)
