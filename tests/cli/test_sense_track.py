"""`sfumato sense track`: moving sources followed, in the order of times, with the cost of all rounds."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.cli.sense_runs import HALL, TOLD, alone, answer, done, hall, refused, spelled, table

from sfumato.cli.endings import UNRELIABLE
from sfumato.figures import sheet
from sfumato.privacy import ZCDP, ApproxDP, Loss, PureDP, as_approx, gaussian_sigma
from sfumato.privacy.accounting.codec import encode
from sfumato.privacy.accounting.numbers import exact, plain
from sfumato.sensing import read_readings, read_site
from sfumato.sensing.model.operators.places import half_cells, off_center
from sfumato.sensing.pipeline import track_sources
from sfumato.sensing.pipeline.track import uneven
from sfumato.sensing.release import cost_after
from sfumato.sensing.render import draw_track
from sfumato.sensing.render.track import one_too_many
from sfumato.sensing.results import TrackResult
from sfumato.sensing.tracking.cost import cost_of, dearest, losses_of

pytestmark = pytest.mark.unit

CELLS = [4, 6, 8, 10, 12]
PER_ROUND = ApproxDP(1, "1e-6")
RHO = "1e7"  # noise of about 0.0001: the path is as good as seen


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)
    monkeypatch.setattr(sheet, "DPI", 50)  # drawing is slow, and nothing here needs more pixels


def released(
    times: list[str], cells: list[int] = CELLS, *, out: str = "r.json", rho: str = RHO
) -> str:
    """Noisy readings of a unit that is in one cell after the other, at these times."""
    operator = read_site("site.json").operator
    lines: list[Any] = []
    for time, cell in zip(times, cells, strict=True):
        read = operator.columns([cell])[:, 0].tolist()
        lines += [
            ([time] if time else []) + [name, value] for name, value in zip(HALL, read, strict=True)
        ]
    table("rounds.csv", (["time"] if times[0] else []) + ["sensor", "value"], lines)
    done(
        "release",
        "rounds.csv",
        "--site",
        "site.json",
        "--ledger",
        "clear.ledger",
        "--rho",
        rho,
        "--out",
        out,
    )
    return out


def outline() -> str:
    """walls.geojson: a line."""
    line = {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}
    Path("walls.geojson").write_text(json.dumps(line))
    return "walls.geojson"


def cells(told: Any) -> list[int]:
    return [one["sources"][0]["cell"] for one in told["rounds"]]


def test_a_source_is_followed_in_the_order_of_times() -> None:
    hall()
    times = [f"2026-01-01T0{hour}:00" for hour in range(5)]
    released(times[::-1], CELLS[::-1])
    told = answer("track", "r.json", "--out", "t.json", "--plot", "t.png")
    assert cells(told) == CELLS
    assert [one["time"] for one in told["rounds"]] == times
    assert json.loads(Path("t.json").read_text()) == told
    # Nobody knows where in its cell the source was: half of one is in each radius, though there is next to no
    # noise; and what that changes in the readings is the error of the mass, of which 1 is the largest.
    operator = read_site("site.json").operator
    half = half_cells(operator)[CELLS].min()
    radii = [one["sources"][0]["radius"] for one in told["rounds"]]
    assert half - 1e-12 <= min(radii) <= max(radii) <= 3 * half + 1e-12
    sizes = np.linalg.norm(operator.columns(CELLS), axis=0)
    error = off_center(operator) / math.sqrt(float(sizes @ sizes))
    assert told["masses"] == pytest.approx([1], abs=4 * error)
    assert 0.05 < told["speed"] < 0.3  # it goes 0.1 in a round; six speeds are tried, in ratios
    assert (told["rhat"], told["mixed"]) == (None, True)
    said = done("track", "r.json").stdout
    first, second, *_ = said.splitlines()
    assert first == f"verdict: {told['verdict']['said']}"
    assert told["verdict"]["kind"] == "rely"
    assert second.startswith("hall: 5 rounds, 1 source of mass ")
    assert said.splitlines()[-1] == told["statement"]
    assert refused(8, "track", "r.json", "--out", "t.json").startswith(
        "t.json exists already and is kept"
    )


def test_what_all_rounds_cost_is_in_view() -> None:
    hall()
    released(["1", "2", "10"], CELLS[:3])
    told = answer("track", "r.json")
    assert [one["time"] for one in told["rounds"]] == ["1", "2", "10"]  # as numbers, not as text
    (each,) = {snapshot.guarantee.loss for snapshot in read_readings("r.json").snapshots}
    assert isinstance(each, ZCDP)
    assert told["cost"] == encode(ZCDP(3 * each.rho))
    assert told["statement"].startswith(
        "3 rounds together, for a source that was there in all: rho 3e+07; it is at most epsilon "
    )


def test_costs_add_up_or_say_that_they_do_not() -> None:
    whole, words = cost_of([ZCDP("1/2")] * 4)
    assert whole == ZCDP(2)
    assert f"at most epsilon {plain(as_approx(ZCDP(2), '1e-6').epsilon)} at" in words
    whole, words = cost_of([ApproxDP(1, "1e-6")] * 24)
    assert whole == ApproxDP(24, "24e-6")
    assert words.endswith(
        "at most epsilon 5.78859 at delta 1e-06"
    )  # as `cost_after` has it, rounded up
    mixed: list[Loss] = [ApproxDP(1, "1e-6"), ApproxDP(2, "1e-6")]
    assert cost_of(mixed)[0] == ApproxDP(3, "2e-6")
    kinds: list[Loss] = [ZCDP(1), ApproxDP(1, "1e-6")]
    deltas: list[Loss] = [ApproxDP(1, "0.6")] * 2
    for losses in (kinds, deltas):
        assert cost_of(losses) == (
            None,
            "2 rounds together, for a source that was there in all: their costs do not add up to a promise",
        )
    assert cost_of([PureDP(1)] * 2)[0] == PureDP(2)


@pytest.mark.parametrize("count", [2, 3, 7, 24, 100, 365])
def test_what_is_said_to_be_at_most_is_not_less(count: int) -> None:
    """100 rounds cost 13.507 at most: 13.5, the nearest with three digits, would promise too much."""
    for each, delta in (
        (ZCDP("1/3"), "1e-6"),
        (ApproxDP("1/7", "1/3000000"), "1/3000000"),
        (PER_ROUND, None),
    ):
        (row,) = cost_after(each, [count], delta=delta)
        said = re.search(r"at most epsilon (\S+) at delta (\S+)$", cost_of([each] * count)[1])
        assert said is not None
        assert row.epsilon <= float(said[1]) <= row.epsilon * (1 + 1e-5)
        assert exact(delta or PER_ROUND.delta) <= exact(said[2])


def test_of_several_receipts_the_one_of_least_noise_bounds_them() -> None:
    """Unit noise of (2, 1e-9) is 2.84, of (1, 0.1) 1.09: the larger epsilon is not the dearer promise."""
    much, little = ApproxDP(2, "1e-9"), ApproxDP(1, "0.1")
    assert gaussian_sigma(2, "1e-9") > 2 * gaussian_sigma(1, "0.1")
    assert dearest([much, little]) == dearest([little, much]) == little
    assert dearest([ZCDP(1), ZCDP(3), ZCDP(2)]) == ZCDP(3)
    assert dearest([PureDP(1), PureDP(2)]) == PureDP(2)
    assert dearest([ApproxDP(1, 0)] * 2) == ApproxDP(1, 0)
    assert dearest([ApproxDP(1, 0), little]) is None  # no Gaussian noise has it
    assert dearest([ZCDP("1e-9"), little]) is None
    whole, words = cost_of([ZCDP(1), None])
    assert whole is None
    assert words.endswith("devices of one round promised in ways that one number does not bound")


def test_a_round_of_several_devices_costs_what_its_dearest_says() -> None:
    def device(*costs: tuple[str, Loss]) -> Any:
        receipts = [
            SimpleNamespace(time=t, guarantee=SimpleNamespace(loss=loss)) for t, loss in costs
        ]
        return SimpleNamespace(snapshots=receipts)

    much, little = ApproxDP(2, "1e-9"), ApproxDP(1, "0.1")
    assert losses_of([device(("1", much), ("2", much)), device(("1", little))]) == [little, much]
    assert losses_of([device(("1", little), ("2", little)), device(("2", ZCDP(9)))]) == [
        little,
        None,
    ]
    assert losses_of([device(("", much)), device(("", little))]) == [
        much,
        little,
    ]  # two rounds without times


def test_files_without_times_are_rounds_in_their_order() -> None:
    hall()
    files = [released([""], [cell], out=f"r{cell}.json") for cell in CELLS[:3]]
    assert cells(answer("track", *files)) == CELLS[:3]
    assert cells(answer("track", *files[::-1])) == CELLS[2::-1]
    assert "twice, with the same receipt" in refused(4, "track", *files, files[0])
    timed = released(["9", "10"], CELLS[:2], out="timed.json")
    assert "some have none" in refused(4, "track", *files, timed)
    assert refused(4, "track", files[0]).startswith("one round is no track")


def test_several_sources_are_drawn_from_the_readings() -> None:
    hall()
    operator = read_site("site.json").operator
    lines = [
        (time, name, value)
        for time in range(3)
        for name, value in zip(
            HALL, (operator.columns([3 + time, 16]) @ np.ones(2)).tolist(), strict=True
        )
    ]
    table("readings.csv", ["time", "sensor", "value"], lines)
    done(
        "release",
        "readings.csv",
        "--site",
        "site.json",
        "--ledger",
        "hall.ledger",
        "--rho",
        "30",
        "--out",
        "r.json",
    )
    first = answer("track", "r.json", "--count", "2")
    assert answer("track", "r.json", "--count", "2", "--plot", "t.png") == first
    assert [len(one["sources"]) for one in first["rounds"]] == [2, 2, 2]
    said = done("track", "r.json", "--count", "2", "--seed", "1", "--out", "t.json").stdout
    assert "source 2" in said
    assert json.loads(Path("t.json").read_text())["rhat"] != first["rhat"]


def test_on_a_graph_a_track_has_a_table_and_a_picture() -> None:
    hall()
    table("edges.csv", ["u", "v"], [("a", "b"), ("b", "c"), ("c", "d")])
    done(
        "site",
        "net.json",
        "--name",
        "net",
        *TOLD,
        "--graph",
        "edges.csv",
        "--rate",
        "0.3",
        "--radius",
        "1",
    )
    done("ledger", "net.json", "net.ledger", "--rho", "1e9")
    operator = read_site("net.json").operator
    lines = [
        (time, name, value)
        for time in range(3)
        for name, value in zip("abcd", operator.columns([time])[:, 0].tolist(), strict=True)
    ]
    table("n.csv", ["time", "sensor", "value"], lines)
    done(
        "release",
        "n.csv",
        "--site",
        "net.json",
        "--ledger",
        "net.ledger",
        "--rho",
        "1e7",
        "--out",
        "r.json",
    )
    told = answer("track", "r.json")
    assert [one["sources"][0]["name"] for one in told["rounds"]] == ["a", "b", "c"]
    done("track", "r.json", "--plot", "t.png")
    result = track_sources("r.json")
    assert Path("t.png").read_bytes() == draw_track(result)
    table("at.csv", ["node", "x", "y"], [(name, 2 * i, i) for i, name in enumerate("abcd")])
    done("track", "r.json", "--plot", "laid.png", "--layout", "at.csv")
    assert Path("laid.png").read_bytes() == draw_track(result, layout="at.csv")
    assert "a floor plan lies under" in refused(
        2, "track", "r.json", "--plot", "o.png", "--outline", outline()
    )
    other = released(["4", "5"], CELLS[:2], out="hall.json")
    assert "different sites" in refused(4, "track", "r.json", other)


def test_a_second_source_that_is_not_there_is_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    hall()
    released(list("01234"), rho="100")  # noise of 0.03: with less, chains do not mix
    told = answer("track", "r.json", "--count", "2", "--seed", "1")
    assert told["fewer"] > 1
    assert told["upper"] == 1
    said = " ".join(done("track", "r.json", "--count", "2", "--seed", "1").stdout.split())
    better = "times as likely as with 2: 1 source explains them better, try --count 1 "
    assert told["mixed"]
    assert better in said
    monkeypatch.setattr("sfumato.sensing.diagnostics.mixing.RHAT", 0.5)
    unmixed = done("track", "r.json", "--count", "2", "--seed", "1")
    assert "did NOT mix" in unmixed.stdout
    assert "times as likely" not in unmixed.stdout
    assert answer("track", "r.json")["fewer"] < 1e-9  # that nobody is there at all


def doubts(fewer: float | None, masses: int, *, mixed: bool = True) -> list[str]:
    found = TrackResult("here", (), (1.0,) * masses, 0.1, None, mixed, fewer, 2.0, None, "")
    return [spelled("track", line) for line in one_too_many(found)]


def test_doubts_are_told_by_how_likely_one_fewer_is() -> None:
    assert doubts(None, 1) == []
    assert doubts(0.01, 2) == []
    assert doubts(0.5, 2) == [
        "if a source may have any mass up to 2, with 1 source the readings are about 0.5 times as likely as "
        "with 2: the weakest source may not be there"
    ]
    assert doubts(12.34, 3) == [
        "if a source may have any mass up to 2, with 2 sources the readings are about 12 times as likely as "
        "with 3: 2 sources explain them better, try --count 2"
    ]
    assert doubts(12.34, 3, mixed=False) == []


def row_of_rounds(*, drift: float) -> list[str]:
    """Eight rounds of a unit at 0.5 read by 20 sensors, of which s4 drifts: r.json."""
    table("many.csv", ["sensor", "x"], [(f"s{i}", (i + 1) / 20) for i in range(20)])
    done(
        "site", "row.json", "--name", "row", *TOLD, "--line", "40", "--sensors", "many.csv",
        "--diffusion-time", "0.02", "--radius", "1/10",
    )  # fmt: skip
    done("ledger", "row.json", "row.ledger", "--rho", "1e6")
    read = read_site("row.json").operator.columns([19])[:, 0]
    # Rows of the last round come first: rounds are told apart by their times, not by where they
    # stand.
    lines = [
        (time, f"s{i}", read[i] + (drift * time if i == 4 else 0))
        for time in reversed(range(8))
        for i in range(20)
    ]
    table("rounds.csv", ["time", "sensor", "value"], lines)
    words = ["--site", "row.json", "--ledger", "row.ledger", "--rho", "1e4"]
    done("release", "rounds.csv", *words, "--out", "r.json")
    return ["track", "r.json"]


def test_a_drifting_sensor_is_told_and_left_out_on_demand() -> None:
    words = row_of_rounds(drift=0.5)
    used = answer(*words, codes=[UNRELIABLE])
    assert used["verdict"]["kind"] == "misfit"
    (bad,) = used["suspects"]
    assert (bad["sensor"], used["left_out"]) == ("s4", False)
    assert abs(bad["drift"] - 0.5) < 6 * bad["drift_error"] < 0.1
    said = " ".join(done(*words, codes=[UNRELIABLE]).stdout.split())
    assert "; --without-suspects leaves it out" in said
    left = answer(*words, "--without-suspects")
    assert (left["suspects"], left["left_out"]) == (used["suspects"], True)
    assert set(cells(left)) <= {18, 19, 20}
    assert set(cells(used)) - {18, 19, 20}  # the rival: it was there for somebody
    assert "sensor 's4' drifts by +0.5" in " ".join(
        done(*words, "--without-suspects").stdout.split()
    )


def test_an_average_looks_for_bad_sensors_in_each_of_its_rounds() -> None:
    row_of_rounds(drift=0.2)
    told = answer("recover", "r.json", "--average", "--fit", "sensors", "--out", "rec.json")
    (bad,) = told["answer"]["field"]["suspects"]
    assert (bad["sensor"], bad["drift"]) == ("s4", pytest.approx(0.2, abs=0.05))
    assert told["answer"]["bands"][0]["x"] == pytest.approx(0.5, abs=0.05)
    assert answer("check", "rec.json")["holds"]
    (alone_,) = answer("recover", "r.json", "--time", "7", "--fit", "sensors")["answer"]["field"][
        "suspects"
    ]
    assert alone_["drift"] is None
    assert alone_["off"] == pytest.approx(1.4, abs=0.2)


def test_rounds_that_are_not_evenly_spaced_are_told() -> None:
    said = "rounds are not evenly spaced in time, and every step counts as one all the same"
    assert uneven(["0", "1", "2", "3.4"]) == []
    assert uneven(["0", "1", "2", "3.6"]) == [said]
    assert uneven(["2026-01-01T00:00", "2026-01-01T00:01", "2026-01-01T10:00"]) == [said]
    assert (
        uneven(["23:00", "23:10", "00:00"]) == uneven(["", ""]) == uneven(["first", "second"]) == []
    )


def test_hours_across_midnight_stay_as_they_come_and_one_moment_twice_is_refused() -> None:
    hall()
    released(["23:00", "23:30", "00:00", "00:30", "01:00"])
    assert cells(answer("track", "r.json")) == CELLS
    released(["1", "1.0", "2", "3", "4"], out="twice.json")
    assert "two of the times are one moment" in refused(4, "track", "twice.json")
