"""`sfumato sense recover` and `check`: the sources of readings with noise, and proofs that hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.sense_runs import (
    CLEAR,
    HALL,
    ROOMY,
    TOLD,
    alone,
    answer,
    clear,
    done,
    entries,
    hall,
    hall_readings,
    refused,
    release,
    rows,
    run,
    table,
)

from sfumato.sensing import (
    read_readings,
    read_recovery,
    read_site,
)
from sfumato.sensing.recovery.radius import default_radius

pytestmark = pytest.mark.unit

# R alone: what other estimators answer is tested with them.
LEAST = ("--estimator", "least")
PLAIN = (*ROOMY, *LEAST)
EDGES = [("ann", "bob"), ("bob", "cid"), ("ann", "cid"), ("cid", "dan"), ("dan", "eve"), ("eve", "fay"),
         ("dan", "fay")]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)


def noisy(path: str = "r.json") -> np.ndarray[Any, Any]:
    return read_readings(path).snapshots[0].numbers()


# times


def test_every_time_is_paid_for_and_all_can_be_averaged() -> None:
    hall()
    times = ["09:00", "09:10", "09:20", "09:30"]
    lines = [(time, *pair) for time in times for pair in zip(HALL, hall_readings(6), strict=True)]
    table("readings.csv", ["time", "sensor", "value"], lines[::-1])
    told = answer(*release("--ledger", "clear.ledger", out=["r.json", "r.csv"], rho=CLEAR))
    assert (told["readings"], len(entries("clear.ledger"))) == (4, 4)
    assert [row["time"] for row in rows("r.csv")] == [time for time in times[::-1] for _ in HALL]
    sentence = refused(2, "recover", "r.json")
    assert sentence == (
        "there are 4 times, from 09:30 on: choose one with --time, or --average them, or recover each of them "
        "with --each; nothing was recovered"
    )
    assert refused(2, "recover", "r.json", "--time", "10:00").startswith(
        "there is no reading at '10:00'"
    )
    one = answer("recover", "r.json", "--time", "09:10", "--out", "one.json", *PLAIN)
    mean = answer("recover", "r.json", "--average", "--out", "mean.json", *PLAIN)
    assert (one["time"], one["averaged"], mean["time"], mean["averaged"]) == (
        "09:10",
        False,
        "",
        True,
    )
    assert mean["sigma"] == pytest.approx(one["sigma"] / 2, rel=1e-12)
    assert mean["statement"] == f"4 readings, each {one['statement']}"
    snapshots = read_readings("r.json").snapshots
    assert read_recovery("mean.json").certificate.readings == pytest.approx(
        np.mean([s.numbers() for s in snapshots], axis=0), rel=1e-14
    )
    for name in ("one.json", "mean.json"):
        done("check", name, "--ledger", "clear.ledger", "--readings", "r.json")
    # The table says the same as the whole file.
    again = answer("recover", "r.csv", "--site", "site.json", "--time", "09:10", *PLAIN)
    assert again["sources"] == one["sources"]
    assert again["statement"] == "nothing was promised by sfumato for these readings"
    assert "r.csv has 4 times" in refused(
        2, "recover", "r.csv", "--site", "site.json", "--sigma", "1"
    )
    assert "no reading at 'x'" in refused(
        2, "recover", "r.csv", "--site", "site.json", "--sigma", "1", "--time", "x"
    )


# recover


def test_the_radius_is_what_was_asked_for() -> None:
    hall()
    done(*release(out=["r.json", "r.csv"]))
    sigma = rows("r.csv")[0]["sigma"]
    noisy = ["recover", "r.csv", "--site", "site.json"]
    assert answer(*noisy, "--radius", "0.25", *LEAST)["radius"] == 0.25
    assert answer("recover", "r.json", "--radius", "0.25", *LEAST)["radius"] == 0.25
    papers = answer(*noisy, "--sigma", sigma, "--radius", "papers", *LEAST)["radius"]
    assert papers == pytest.approx(float(sigma) * 2, rel=1e-12)
    usual = answer("recover", "r.json", *LEAST)
    (snapshot,) = read_readings("r.json").snapshots
    wanted = default_radius(read_site("site.json").operator, snapshot.numbers(), snapshot.sigma)
    assert usual["radius"] == wanted
    again = answer(*noisy, "--sigma", sigma, *LEAST)
    assert (again["radius"], again["sources"]) == (usual["radius"], usual["sources"])


def test_a_ceiling_that_explains_nothing_is_proved_to() -> None:
    clear(5)
    said = done("recover", "r.json", "--upper", "0.01", "--out", "rec.json", codes=[9])
    assert "hall: infeasible; radius " in said.stdout
    verdict, *_ = said.stdout.splitlines()
    assert verdict.startswith(
        "verdict: do not rely on this: the readings do not fit the stated physics"
    )
    assert "no sources in the box explain the readings within the radius" in said.stdout
    told = json.loads(Path("rec.json").read_text())
    assert (told["objective"], told["gap"], told["sources"]) == (None, None, [])
    checked = answer("check", "rec.json")
    assert (checked["holds"], checked["objective"], checked["bound"] > 0) == (True, None, True)
    assert (
        answer("recover", "r.json", "--upper", "0.01", "--sources", sources(5), codes=[9])["status"]
        == "infeasible"
    )


def sources(*cells: int) -> str:
    return table("sources.csv", ["cell", "mass"], [(cell, 1) for cell in cells])


def test_readings_of_nothing_tell_nothing() -> None:
    clear()
    said = done(
        "recover",
        "r.json",
        "--radius",
        "1",
        "--out",
        "rec.json",
        "--out",
        "rec.csv",
        "--plot",
        "rec.png",
    )
    verdict, found = said.stdout.splitlines()
    assert found.startswith("hall: zero; radius 1, noise about ")
    sigma = json.loads(Path("rec.json").read_text())["sigma"]
    assert found.endswith(f" (sigma {sigma:.4g} mass)")
    # A radius that is too wide is no misfit: these are the readings of an empty hall.
    assert verdict == (
        "verdict: nothing can be told: the readings are within their noise of no sources at all"
    )
    assert json.loads(Path("rec.json").read_text())["answer"] is None
    assert Path("rec.csv").read_text() == "cell,x,mass,share\n"
    assert answer("check", "rec.json")["holds"]


def test_words_and_pictures_show_the_sources() -> None:
    clear(5, 15)
    words = ["recover", "r.json", "--sources", sources(5, 15), "--plot", "a.png", *PLAIN]
    said = done(*words)
    assert said.stdout.splitlines()[1].startswith("hall: optimal, ")
    assert "│ 5 " in said.stdout
    assert "│ 15 " in said.stdout
    assert "earth mover's distance to the true sources, both scaled to 1: " in said.stdout
    assert refused(8, *words).startswith("a.png exists already and is kept")
    first = Path("a.png").read_bytes()
    done(*words, "--overwrite")
    assert Path("a.png").read_bytes() == first  # the same picture again
    done("recover", "r.json", "--plot", "b.png", *PLAIN)
    assert Path("b.png").read_bytes() != first  # the truth is in the picture only where it is given


def test_names_that_look_like_markup_are_printed_as_they_are() -> None:
    table("edges.csv", ["u", "v"], [("[bold]a", "[/x]"), ("[/x]", "c")])
    done(
        "site",
        "site.json",
        "--name",
        "[/b] net",
        *TOLD,
        "--graph",
        "edges.csv",
        "--rate",
        "0.1",
        "--radius",
        "1",
    )
    table("r.csv", ["sensor", "value"], [("[bold]a", 1), ("[/x]", 0.1), ("c", 0)])
    said = done("recover", "r.csv", "--site", "site.json", "--radius", "0.1")
    assert said.stdout.splitlines()[1].startswith("[/b] net: optimal")
    assert "[bold]a" in said.stdout


def network() -> None:
    """Two triangles with a bridge; the source is eve."""
    table("edges.csv", ["u", "v"], EDGES)
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
    made = read_site("net.json")
    exact = made.operator.readings([0, 0, 0, 0, 1, 0])
    done("ledger", "net.json", "net.ledger", "--rho", CLEAR)
    table("net.csv", ["sensor", "value"], zip(made.sensors.names, exact.tolist(), strict=True))
    done(
        "release",
        "net.csv",
        "--site",
        "net.json",
        "--ledger",
        "net.ledger",
        "--share",
        "1",
        "--out",
        "r.json",
    )


def test_which_community_a_source_is_in() -> None:
    network()
    told = answer("recover", "r.json", "--out", "rec.csv", *PLAIN)
    assert told["community"]["label"] == 1  # label 0 is that of ann, the first node
    assert told["community"]["nodes"] == 3
    assert told["community"]["shares"] == pytest.approx([0, 1], abs=0.03)
    assert max(rows("rec.csv"), key=lambda row: float(row["mass"]))["name"] == "eve"
    assert "community" not in answer("recover", "r.json", "--communities", "1", *PLAIN)
    assert (
        len(answer("recover", "r.json", "--communities", "3", *PLAIN)["community"]["shares"]) == 3
    )
    assert "community 1 of 3 nodes, 100% of the mass" in done("recover", "r.json", *PLAIN).stdout
    assert "7" in refused(2, "recover", "r.json", "--communities", "7", *PLAIN)
    truth = table("sources.csv", ["cell", "mass"], [("eve", 2)])
    # Readings of the answer are within 0.002 of the truth's, and no direction shrinks by more than
    # exp(-0.3 * 6), twice the largest degree: 0.012 in l2, 0.03 in l1, moved over at most 4 edges.
    assert answer("recover", "r.json", "--sources", truth, *PLAIN)["emd"] < 0.06


def test_a_network_is_drawn_where_one_likes() -> None:
    network()
    places = [
        ("ann", 0, 0),
        ("bob", 0, 1),
        ("cid", 1, 0),
        ("dan", 2, 0),
        ("eve", 3, 1),
        ("fay", 3, 0),
    ]
    table("layout.csv", ["node", "x", "y"], places)
    done("recover", "r.json", "--plot", "a.png", "--layout", "layout.csv", *PLAIN)
    done("recover", "r.json", "--plot", "b.png", *PLAIN)
    assert Path("a.png").read_bytes() != Path("b.png").read_bytes()
    table("short.csv", ["node", "x", "y"], places[:-1])
    sentence = refused(4, "recover", "r.json", "--plot", "c.png", "--layout", "short.csv", *PLAIN)
    assert sentence == "short.csv has no place for node 'fay'; nothing was drawn"


# check


def tampered(change: Any) -> str:
    data = json.loads(Path("rec.json").read_text())
    change(data)
    Path("bad.json").write_text(json.dumps(data))
    return "bad.json"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda data: data["sources"][0].update(mass=data["sources"][0]["mass"] / 2), "from the readings"),
        (lambda data: data["sources"].append({"cell": 19, "mass": 0.5}), "from the readings"),
        (lambda data: data["sources"][0].update(mass=1.5), "leaves the box"),
        (lambda data: data.update(objective=data["objective"] * 1.001), "the objective is said to be"),
        (lambda data: data.update(dual=[x * 0.9 for x in data["dual"]]), "proves no total below"),
        (lambda data: data.update(status="zero"), "not zero everywhere"),
        (lambda data: data["readings"].update(door=-5.0), "from the readings"),
    ],
)  # fmt: skip
def test_a_recovery_that_was_changed_does_not_hold(change: Any, why: str) -> None:
    clear(5)
    done("recover", "r.json", "--out", "rec.json", *PLAIN)
    assert answer("check", "rec.json")["holds"]
    assert why in refused(1, "check", tampered(change))


def test_a_check_says_who_paid() -> None:
    clear(5)
    done(*release("--ledger", "hall.ledger", out=["other.json"]))
    done("recover", "r.json", "--out", "rec.json", *PLAIN)
    ledger = ["--ledger", "clear.ledger"]
    assert answer("check", "rec.json", *ledger, "--readings", "r.json")["paid"]
    sentence = refused(1, "check", "rec.json", "--ledger", "hall.ledger", "--readings", "r.json")
    assert sentence.startswith("r.json: the release is of ledger ")
    # Readings that were paid for, but not those of this recovery.
    sentence = refused(
        1, "check", "rec.json", "--ledger", "hall.ledger", "--readings", "other.json"
    )
    assert sentence == "rec.json was not made from these readings"
    assert (
        refused(2, "check", "rec.json", *ledger)
        == "--ledger and --readings go together; nothing was checked"
    )
    refused(2, "check", "rec.json", "--readings", "r.json")
    assert refused(4, "check", "rec.json", "--ledger", "none", "--readings", "r.json")
    failed = run("check", tampered(lambda data: data.update(radius=0.0)), "--json")
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert json.loads(failed.stderr)["error"]["exit"] == 1


def test_readings_of_different_noise_are_averaged_by_what_they_tell() -> None:
    clear(5)
    for time, rho in ((0, "1e4"), (1, "100")):
        lines = [(time, name, value) for name, value in zip(HALL, hall_readings(5), strict=True)]
        table("now.csv", ["time", "sensor", "value"], lines)
        words = [
            "--site",
            "site.json",
            "--ledger",
            "clear.ledger",
            "--rho",
            rho,
            "--out",
            f"t{time}.json",
        ]
        done("release", "now.csv", *words)
    first, second = (read_readings(f"t{time}.json").snapshots[0].sigma for time in (0, 1))
    told = answer("recover", "t1.json", "t0.json", "--average", *LEAST, "--out", "both.json")
    assert told["sigma"] == pytest.approx((first**-2 + second**-2) ** -0.5, rel=1e-12)
    assert told["sigma"] < first < 0.2 * second  # a plain mean has half of the second
    done(
        "check",
        "both.json",
        "--ledger",
        "clear.ledger",
        "--readings",
        "t0.json",
        "--readings",
        "t1.json",
    )


def test_an_average_is_of_its_files_in_any_order() -> None:
    clear(5)
    days = ["mon", "tue", "wed", "thu"]
    for day in days:
        lines = [(day, name, value) for name, value in zip(HALL, hall_readings(5), strict=True)]
        table("now.csv", ["time", "sensor", "value"], lines)
        words = [
            "--site",
            "site.json",
            "--ledger",
            "clear.ledger",
            "--rho",
            "1e4",
            "--out",
            f"{day}.json",
        ]
        done("release", "now.csv", *words)
    files = [f"{day}.json" for day in days]
    done("recover", *files, "--average", *LEAST, "--out", "avg.json")
    paid = ["--ledger", "clear.ledger"]
    for order in (files, files[::-1], [files[3], files[1], files[2], files[0]]):
        done("check", "avg.json", *paid, *(word for file in order for word in ("--readings", file)))
    some = [word for file in files[:3] for word in ("--readings", file)]
    sentence = refused(1, "check", "avg.json", *paid, *some)
    assert "was not made from these readings" in sentence
