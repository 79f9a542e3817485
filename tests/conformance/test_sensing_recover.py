"""`sense recover|check|track|whisper --json`, the Python call and the saved file say the same of one input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.cli.sense_runs import CLEAR, HALL, TOLD, alone, answer, done, hall, run, spelled, table
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.figures import sheet
from sfumato.privacy import Ledger
from sfumato.sensing import Readings, read_readings, read_site
from sfumato.sensing.pipeline import (
    check_recovery,
    find_whisper,
    plan_whisper,
    recover_sources,
    release_whisper,
    simulate_whisper,
    track_sources,
)
from sfumato.sensing.render import (
    draw_recovery,
    recovery_text,
    track_text,
    whisper_plan_text,
    whisper_text,
)
from sfumato.sensing.results import (
    CheckResult,
    RecoveryResult,
    TrackResult,
    WhisperPlan,
    WhisperResult,
    read_recovery,
    read_track,
)
from sfumato.sensing.whisper import read_whisper

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)
    monkeypatch.setattr(sheet, "DPI", 40)


def line() -> None:
    table("sensors.csv", ["sensor", "x"], [(f"s{i}", (i + 0.5) / 10) for i in range(10)])
    done(
        "site", "site.json", "--name", "row", *TOLD, "--line", "20", "--sensors", "sensors.csv",
        "--diffusion-time", "0.01", "--radius", "1/10",
    )  # fmt: skip


def plane() -> None:
    places = [(f"s{i}", 0.1 + 0.2 * (i % 4), 0.1 + 0.25 * (i // 4)) for i in range(12)]
    table("sensors.csv", ["sensor", "x", "y"], places)
    done(
        "site", "site.json", "--name", "yard", *TOLD, "--grid", "2", "--bounds", "0,0,1,1",
        "--sensors", "sensors.csv", "--diffusion-time", "0.02", "--radius", "1/10",
    )  # fmt: skip


def graph() -> None:
    table("edges.csv", ["u", "v"], [(a, b) for a, b in zip("abcde", "bcdef", strict=True)])
    done(
        "site", "site.json", "--name", "net", *TOLD, "--graph", "edges.csv", "--rate", "0.5",
        "--radius", "1",
    )  # fmt: skip


SITES = {"line": line, "plane": plane, "graph": graph}


def released(kind: str, *, rho: str = "1000", times: tuple[str, ...] = ("",)) -> Readings:
    """r.json: what the sensors of a site read of a source in its cell 3, with noise."""
    SITES[kind]()
    done("ledger", "site.json", "site.ledger", "--rho", "1e6")
    site = read_site("site.json")
    read = site.operator.columns([3])[:, 0] * 0.8
    pairs = list(zip(site.sensors.names, read.tolist(), strict=True))
    if times == ("",):
        table("exact.csv", ["sensor", "value"], pairs)
    else:
        rows = [(time, *pair) for time in times for pair in pairs]
        table("exact.csv", ["time", "sensor", "value"], rows)
    done(
        "release", "exact.csv", "--site", "site.json", "--ledger", "site.ledger", "--rho", rho,
        "--out", "r.json", "--out", "r.csv",
    )  # fmt: skip
    return read_readings("r.json")


def agree(words: list[str], result: RecoveryResult) -> Any:
    """The command, the call and the file are one result, in numbers and in words."""
    told = answer("recover", *words, "--out", "rec.json", "--overwrite")
    assert told == json.loads(json.dumps(result.summary()))
    saved = read_recovery("rec.json")
    assert json.loads(Path("rec.json").read_text()) == json.loads(json.dumps(result.to_json()))
    assert saved.summary() == told
    printed = " ".join(done("recover", *words, "--quiet").stdout.split())
    for one in (result, saved):
        assert " ".join(spelled("recover", recovery_text(one)).split()) == printed
    return told


CASES = [
    ("line", "bayes-median"), ("line", "least"), ("line", "off-grid"), ("line", "mixture"),
    ("plane", "bayes-median"), ("plane", "off-grid"), ("graph", "bayes-median"), ("graph", "least"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "estimator"), CASES)
def test_a_recovery_is_the_same_from_everywhere(kind: str, estimator: str) -> None:
    read = released(kind)
    truth = np.zeros(read.site.operator.space.size)
    truth[3] = 0.8
    table("truth.csv", ["cell", "mass"], [(read.site.cell(3), 0.8)])
    result = recover_sources(read, estimator=estimator, sources=truth)
    told = agree(["r.json", "--estimator", estimator, "--sources", "truth.csv"], result)
    assert told["answer"]["estimator"] == estimator
    assert result.diagnostics.answer_emd == told["answer"]["emd"]
    assert (result.diagnostics.community is not None) == (kind == "graph")
    assert result.estimate.masses.sum() == pytest.approx(
        sum(one["mass"] for one in told["answer"]["sources"])
    )
    html = result._repr_html_()
    assert html.startswith("<pre")
    assert 'src="data:image/png;base64,' in html
    assert draw_recovery(read_recovery("rec.json")).startswith(b"\x89PNG")


def test_readings_come_in_every_form_that_users_have() -> None:
    read = released("line")
    (snapshot,) = read.snapshots
    whole = recover_sources("r.json", estimator="least")
    assert recover_sources(Path("r.json"), estimator="least").to_json() == whole.to_json()
    assert recover_sources([read], estimator="least").to_json() == whole.to_json()
    assert (
        recover_sources(snapshot, site="site.json", estimator="least").to_json() == whole.to_json()
    )
    told = agree(
        ["r.csv", "--site", "site.json", "--estimator", "least"],
        recover_sources("r.csv", site="site.json", estimator="least"),
    )
    frame = pd.read_csv("r.csv")
    for readings in (
        frame,
        dict(zip(frame["sensor"], frame["value"], strict=True)),
        frame.set_index("sensor")["value"],
        frame["value"].to_numpy(),
        frame["value"].tolist(),
    ):
        again = recover_sources(
            readings, site=read.site, noise=float(frame["sigma"].max()), estimator="least"
        )
        assert again.summary() == told
    assert recover_sources(frame, site=read.site, estimator="least").summary() == told
    with pytest.raises(InvalidParameter, match="need `site`"):
        recover_sources([1.0, 2.0])
    with pytest.raises(InvalidParameter, match=r"one number for each of 10 sensors"):
        recover_sources([1.0, 2.0], site=read.site, noise=0.1)
    with pytest.raises(InvalidInput, match="has no sensor 'roof'"):
        recover_sources({"roof": 1.0}, site=read.site, noise=0.1)
    with pytest.raises(InvalidParameter, match="`noise` goes with"):
        recover_sources(read, noise=0.1)
    with pytest.raises(InvalidParameter, match="goes with its `site`"):
        recover_sources(snapshot)


def test_times_are_averaged_the_same_everywhere() -> None:
    read = released("line", times=("1", "2", "3"))
    agree(["r.json", "--average"], recover_sources(read, average=True))
    agree(["r.json", "--time", "2"], recover_sources(read, time="2"))
    with pytest.raises(InvalidParameter) as refusal:
        recover_sources(read)
    assert "choose one with `time`, or `average` them" in str(refusal.value)
    assert "choose one with --time, or --average them" in run("recover", "r.json").stderr


def test_several_devices_are_one_reading() -> None:
    hall()
    parts = []
    site = read_site("site.json")
    for number, names in enumerate((["door", "left"], ["right", "wall"])):
        rows = [site.sensors.names.index(name) for name in names]
        values = site.operator.columns([7])[rows, 0].tolist()
        table("part.csv", ["sensor", "value"], zip(names, values, strict=True))
        done(
            "release", "part.csv", "--site", "site.json", "--ledger", "clear.ledger", "--rho", CLEAR,
            "--some", "--out", f"part{number}.json",
        )  # fmt: skip
        parts.append(f"part{number}.json")
    result = recover_sources(parts, radius=0.001, estimator="least")
    agree([*parts, "--radius", "0.001", "--estimator", "least"], result)
    assert result.names == tuple(HALL)
    checked = check_recovery(result, readings=parts, ledgers=["clear.ledger"])
    assert checked.paid
    assert not check_recovery(result, readings=parts[:1], ledgers=["clear.ledger"]).holds


def test_a_field_is_fitted_the_same_everywhere() -> None:
    read = released("line")
    words = ["r.json", "--fit", "offset", "--fit", "time", "--count", "1"]
    result = recover_sources(read, fit=["offset", "time"], count=1)
    told = agree(words, result)
    assert result.diagnostics.field is not None
    assert told["field"] == told["answer"]["field"]
    assert result.diagnostics.faulty_sensors == ()


def test_options_that_do_not_go_together_name_parameters_here_and_options_there() -> None:
    read = released("line")
    for given, words in (
        ({"count": 3}, ["--count", "3"]),
        ({"max_sources": 3, "estimator": "least"}, ["--most", "3", "--estimator", "least"]),
        ({"estimator": "nobody"}, ["--estimator", "nobody"]),
    ):
        with pytest.raises(InvalidParameter) as refusal:
            recover_sources(read, **given)
        there = run("recover", "r.json", *words)
        assert there.exit_code == 2
        assert there.stderr.strip() == f"sfumato: {spelled('recover', str(refusal.value))}"


def test_a_check_is_the_same_from_everywhere() -> None:
    released("line")
    done("recover", "r.json", "--estimator", "least", "--out", "rec.json")
    result = check_recovery("rec.json")
    assert answer("check", "rec.json") == result.to_json()
    assert CheckResult.from_json(result.to_json()).to_json() == result.to_json()
    assert done("check", "rec.json").stdout.strip() == result.message
    paid = check_recovery("rec.json", readings="r.json", ledgers=[Ledger(Path("site.ledger"))])
    words = ["check", "rec.json", "--ledger", "site.ledger", "--readings", "r.json"]
    assert answer(*words) == paid.to_json()
    data = json.loads(Path("rec.json").read_text())
    data["sources"][0]["mass"] /= 2
    Path("bad.json").write_text(json.dumps(data))
    bad = check_recovery("bad.json")
    assert not bad.holds
    there = run("check", "bad.json")
    assert (there.exit_code, there.stderr.strip()) == (1, f"sfumato: {bad.message}")


def test_a_recovery_saved_before_diagnostics_opens() -> None:
    """Files of version 0.1 have neither remarks nor misfit nor community, and the field in the answer."""
    released("line")
    result = recover_sources("r.json", fit=["offset"], count=1)
    old = result.to_json()
    for name in ("expected_noise", "remarks", "misfit", "field"):
        del old[name]
    again = RecoveryResult.from_json(old)
    assert again.to_json()["answer"] == result.to_json()["answer"]
    assert again.diagnostics.field == result.diagnostics.field
    assert check_recovery(again).holds


@pytest.mark.parametrize("count", [1, 2])
def test_a_track_is_the_same_from_everywhere(count: int) -> None:
    read = released("line", times=("1", "2", "4"))
    result = track_sources("r.json", count=count, seed=3)
    words = ["track", "r.json", "--count", str(count), "--seed", "3"]
    told = answer(*words, "--out", "track.json")
    assert told == result.to_json() == track_sources([read], count=count, seed=3).to_json()
    assert json.loads(Path("track.json").read_text()) == told
    assert read_track("track.json").to_json() == told
    assert TrackResult.from_json(told).cost == result.cost
    printed = " ".join(done(*words, "--quiet").stdout.split())
    for one in (result, read_track("track.json")):
        assert " ".join(spelled("track", track_text(one)).split()) == printed
    assert result._repr_html_().count("<img") == 1
    assert "<img" not in read_track("track.json")._repr_html_()


def test_a_whisper_is_the_same_from_everywhere() -> None:
    files = answer("whisper", "simulate", "w", "--nodes", "30", "--seed", "5")
    made = simulate_whisper(nodes=30, seed=5, folder="same")
    assert list(files.values()) == [f.replace("same", "w") for f in made.to_json().values()]
    assert [Path(one).read_bytes() for one in files.values()] == [
        Path(one).read_bytes() for one in made.to_json().values()
    ]
    assert made.to_json().keys() == simulate_whisper(nodes=30, seed=5).to_json().keys()
    header, rows = made.tables()["answers"]
    assert Path("w/answers.csv").read_text().splitlines() == [
        ",".join(line) for line in (header, *rows)
    ]
    words = ["ledger", "create", "w.ledger", "--unit", "node", "--source", "w", "--epsilon", "9"]
    assert CliRunner().invoke(app, [*words, "--neighbors", "replace"]).exit_code == 0
    paid = release_whisper("w/answers.csv", "w/edges.csv", epsilon=2, ledger="w.ledger")
    paid.write("said.json")
    assert read_whisper("said.json").to_json() == paid.to_json()
    words = [
        "whisper",
        "release",
        "w/answers.csv",
        "--graph",
        "w/edges.csv",
        "--ledger",
        "w.ledger",
    ]
    told = answer(*words, "--epsilon", "2", "--out", "told.json")
    assert told == {"written": "told.json", **read_whisper("told.json").summary()}
    assert read_whisper("told.json").summary() == paid.summary()
    result = find_whisper(paid, start=made.start)
    told = answer("whisper", "locate", "said.json", "--start", "w/start.csv", "--out", "found.json")
    assert told == result.summary() == find_whisper("said.json", start=made.start).summary()
    saved = WhisperResult.from_json(json.loads(Path("found.json").read_text()))
    assert saved.to_json() == result.to_json()
    printed = done("whisper", "locate", "said.json", "--start", made.start, "--quiet").stdout
    assert printed.strip() == whisper_text(result) == whisper_text(saved)
    assert result._repr_html_().count("<img") == 1
    # A file from before there were several models of the spread.
    old = {name: value for name, value in result.to_json().items() if name != "spread"}
    assert WhisperResult.from_json(old).to_json() == result.to_json()
    cascade = find_whisper(paid, start=made.start, spread="si", chance=0.2, steps=2)
    words = ["--spread", "si", "--chance", "0.2", "--steps", "2", "--start", made.start]
    assert answer("whisper", "locate", "said.json", *words) == cascade.summary()
    assert "si, chance 0.2, 2 steps: probabilities are how often" in whisper_text(cascade)
    assert WhisperResult.from_json(cascade.to_json()).to_json() == cascade.to_json()
    assert cascade._repr_html_().count("<img") == 1


def test_a_plan_that_hides_who_began_is_the_same_from_everywhere() -> None:
    done("whisper", "simulate", "w", "--nodes", "30", "--seed", "5", "--quiet")
    made = simulate_whisper(nodes=30, seed=5)
    words = ["whisper", "plan", "w/edges.csv", "--target", "2", "--protect-starts-within", "1"]
    words += ["--spread", "independent-cascade", "--chance", "0.02"]
    told = answer(*words)
    plan = plan_whisper(
        "w/edges.csv", spread="independent-cascade", chance=0.02, target=2, within=1
    )
    assert told == plan.to_json() == WhisperPlan.from_json(told).to_json()
    same = plan_whisper(made.graph, spread="independent-cascade", chance=0.02, target=2, within=1)
    assert (same.epsilon, same.loss, same.pairs) == (plan.epsilon, plan.loss, plan.pairs)
    assert done(*words, "--quiet").stdout.strip() == str(plan) == whisper_plan_text(plan)
    plan.write("plan.json")
    assert WhisperPlan.from_json(json.loads(Path("plan.json").read_text())) == plan
    exact = plan_whisper(
        made.graph, spread="independent", rate=0.1, strength=9, target=2, communities=2
    )
    assert exact.exact
    assert "two nodes of one community of 2" in str(exact)
    assert "attained by some answers" in str(exact)
    with pytest.raises(InvalidParameter, match=r"rests on one model: si needs `chance`"):
        plan_whisper(made.graph, spread="si", target=2)
    with pytest.raises(InvalidInput, match="not a whole plan"):
        WhisperPlan.from_json({})
