"""`sfumato sense plan`: before anything is deployed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from tests.cli.sense_runs import VALUES, alone, answer, done, entries, hall, refused, table

from sfumato.cli.sense import plan as sense_plan
from sfumato.figures.recovery.forecast_panels import draw_recovery_forecast
from sfumato.privacy import ZCDP, ApproxDP, MovedMass, SwappedCells
from sfumato.privacy.accounting.codec import encode
from sfumato.sensing import Site, heat_line, linear, plan, read_readings, read_site, resolution
from sfumato.sensing.planning import design as designs
from sfumato.sensing.planning import requirement as needs
from sfumato.sensing.planning.forecast import Estimator, Scene, Trial
from sfumato.sensing.release.rounds import cost_after, share_of
from sfumato.spaces import Line

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("alone_here")]

SMALL = ("--cells", "20", "--sensors", "6", "--epsilon", "4", "--delta", "1/10")
# The noise of a rho is planned a hundred times as quickly.
QUICK = ("--cells", "20", "--sensors", "6", "--rho", "8")
PNG = b"\x89PNG"


@pytest.fixture
def alone_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)


def test_a_line_is_planned_before_there_is_a_site() -> None:
    told = answer("plan", *SMALL, "--trials", "0")
    line = heat_line(sources=20, sensors=6, diffusion_time=0.05)
    site = Site("planned line", line, MovedMass("1/100", "line"))
    wanted = plan(site, ApproxDP(4, "1/10"))
    assert (told["site"], told["sensors"], told["cells"]) == ("planned line", 6, 20)
    assert told["sigma"] == wanted.sigma
    assert told["resolution"]["separation"] == resolution(line, sigma=wanted.sigma).separation
    assert [row["epsilon"] for row in told["after_readings"]] == [
        row.epsilon for row in cost_after(wanted, (1, 24, 100, 1440))
    ]
    assert told["papers"]["noisy"]["applies"] is False  # 6 sqrt(T / 2) < 1
    assert "forecast" not in told
    # What a ledger adds up if each is paid like this one: 2.4 is no delta.
    assert [row["charged"] for row in told["after_readings"]] == [
        encode(ApproxDP(4, "1/10")),
        None,
        None,
        None,
    ]
    long = answer("plan", *SMALL, "--trials", "0", "--length", "10", "--diffusion-time", "5")
    assert long["neighbors"]["radius"] == "1/10"  # a hundredth of the line
    # The same line in another unit: densities are a tenth of it, distances ten times.
    assert long["sigma"] == pytest.approx(told["sigma"] / 10, rel=1e-3)
    assert long["resolution"]["separation"] == pytest.approx(
        10 * told["resolution"]["separation"], rel=1e-2
    )


@pytest.mark.parametrize(("on", "cells"), [("plane", 1024), ("graph", 200)])
def test_a_plane_and_a_graph_are_planned_too(on: str, cells: int) -> None:
    told = answer("plan", "--on", on, "--epsilon", "1", "--trials", "0", "--seed", "1")
    assert (told["cells"], told["sensors"]) == (cells, 49 if on == "plane" else 200)
    assert told["papers"] is None
    if on == "graph":
        few = answer("plan", "--on", on, "--sensors", "30", "--rho", "1/2", "--trials", "0")
        assert few["sensors"] == 30


def test_a_site_is_planned_at_once_unless_sources_are_expected() -> None:
    hall()
    quick = done("plan", "site.json", "--epsilon", "4").stdout.splitlines()
    assert quick[-1] == "--sources 1 forecasts how far off answers will be"
    assert any("cannot be told from a single one" in line for line in quick)
    told = answer(
        "plan", "site.json", "--epsilon", "4", "--sources", "2", "--masses", "free", "--trials", "3"
    )
    found = told["forecast"]
    assert (found["sources"], found["masses"]) == (2, "free")
    assert set(found["estimators"]) == {"least mass", "bayes median"}
    for one in found["estimators"].values():
        assert 0 <= one["low"] <= one["mean"] <= one["high"]
        assert one["trials"] == 3
    assert found["best"] == min(
        found["estimators"], key=lambda name: found["estimators"][name]["mean"]
    )


def test_a_seed_is_the_same_forecast_and_the_text_says_the_same() -> None:
    words = ("plan", *QUICK, "--trials", "2", "--seed", "7")
    told = answer(*words)
    assert answer(*words) == told
    assert answer(*words[:-1], "8")["forecast"] != told["forecast"]
    text = done(*words, "--quiet").stdout
    for name, key in (("least mass (R)", "least mass"), ("Bayes median", "bayes median")):
        row = next(line for line in text.splitlines() if line.startswith(name))
        assert f"{told['forecast']['estimators'][key]['mean']:.2g}" in row
    assert f"no reading at all  {told['forecast']['even']:.2g}" in text


def test_noise_that_drowns_everything_is_called_guessing() -> None:
    words = (
        "plan",
        "--cells",
        "20",
        "--sensors",
        "6",
        "--rho",
        "1e-5",
        "--trials",
        "2",
        "--seed",
        "1",
    )
    assert "that is close to guessing" in done(*words).stdout
    assert "guessing" not in done("plan", *QUICK, "--trials", "2", "--seed", "1").stdout


def test_how_far_it_is_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    @contextmanager
    def recorded(*, quiet: bool) -> Iterator[Callable[[str], None]]:
        yield told.append

    monkeypatch.setattr(sense_plan, "watching", recorded)
    small: dict[str, Any] = {"TIMES": (-1, 0), "SOME": (0, 1), "COSTS": (0,), "COUNTS": (1,)}
    with (
        mock.patch.multiple(designs, error_of=by_law, **small),
        mock.patch.object(needs, "error_of", by_law),
    ):
        done("plan", *QUICK, "--trials", "2", "--seed", "1", "--want", "0.002", "--out", "plan.png")
    assert "simulating up to 2 recoveries: least mass: 2 trials" in told
    assert "simulating what a mean error of 0.002 takes: sensors: 3 of 7" in told
    assert "simulating what a mean error of 0.002 takes: rho: 2 tried" in told
    assert "simulating errors against diffusion time (1 of 4): bayes median, 2 of 2" in told


def test_readings_share_what_they_may_cost() -> None:
    hall()
    told = answer("plan", "site.json", "--epsilon", "1", "--readings", "24")
    site = read_site("site.json")
    total = ApproxDP(1, "1e-5")  # the delta that `sense ledger` gives a budget
    assert told["sigma"] == plan(site, share_of(total, 24)).sigma
    assert told["shared"]["readings"] == 24
    one, all_of_them = told["after_readings"]
    assert (one["readings"], all_of_them["readings"]) == (1, 24)
    assert all_of_them["epsilon"] <= 1 + 1e-9
    assert (
        "24 readings together may cost epsilon 1"
        in done("plan", "site.json", "--epsilon", "1", "--readings", "24").stdout
    )


def by_law(scene: Scene, lot: Trial, estimator: Estimator) -> float:
    """Errors in place of recoveries: sigma times chance."""
    return float(scene.sigma * (1 + lot.masses[0]) / len(scene.operator.sensors))


def test_what_is_wanted_is_said_with_its_doubt() -> None:
    with mock.patch.object(needs, "error_of", by_law):
        words = ("plan", *QUICK, "--trials", "3", "--seed", "1")
        told = answer(*words, "--want", "0.002")["needed"]
        text = done(*words, "--want", "0.002").stdout
        never = done(*words, "--want", "1e-9").stdout
        always = done(*words, "--want", "1e9").stdout
    for axis in ("sensors", "rho"):
        need = told[axis]
        assert need["too_little"] < need["value"] < need["surely"]
        assert {need["too_little"], need["surely"]} <= {one["value"] for one in need["means"]}
    need = told["sensors"]
    ends = f"{need['too_little']:g} sensors are too few and {need['surely']:g} sensors are enough"
    about = int(np.ceil(need["value"]))
    assert f"takes about {about} sensors: {ends}, each with 95 % (Bayes median)" in text
    need = told["rho"]
    ends = f"rho {need['too_little']:.2g} is too little and rho {need['surely']:.2g} is enough"
    assert f"takes about rho {need['value']:.2g}: {ends}, each with 95 %" in text
    assert "tried, with mean errors: 2 sensors " in text
    assert "a mean error of 1e-09 at rho 8 was not reached from 2 sensors to 96 sensors" in never
    assert "the least mean error of those tried is " in text
    aim = "a mean error of 1e+09 with 6 sensors takes about rho 0.5, the least tried: "
    assert f"{aim}rho 0.5 is enough, with 95 %" in always


def test_what_many_readings_tell_together_is_said() -> None:
    """A guesser has all of them: as good as from one reading of the same total, up to what rho proves."""
    loss = ("plan", *QUICK[:-1], "0.5", "--trials", "0")
    one, many = answer(*loss), answer(*loss, "--readings", "40")
    assert many["sigma"] > 5 * one["sigma"]
    assert many["best_guess"] == pytest.approx(one["best_guess"], rel=1e-3)
    alone = [told["epsilon_of_one_sensor"]["largest"] for told in (one, many)]
    assert alone[1] == pytest.approx(alone[0], rel=0.01)
    best = many["resolution"]["best"]
    assert many["resolution_of_all"]["best"] < (np.inf if best is None else best)
    assert "resolution_of_all" not in one
    text = done(*loss, "--readings", "40").stdout
    assert (
        "who must guess between two equally likely places the radius apart, from all 40 readings, is right"
        in text
    )
    assert "in the mean of 40 readings two sources" in text


def test_what_a_release_of_a_share_can_draw_a_plan_can_too() -> None:
    """A total that no single reading could have, since rho is drawn on finer lattices than epsilon."""
    hall()
    done("ledger", "site.json", "tiny.ledger", "--epsilon", "0.002")
    table("v.csv", ["sensor", "value"], VALUES.items())
    released = answer(
        "release",
        "v.csv",
        "--site",
        "site.json",
        "--ledger",
        "tiny.ledger",
        "--share",
        "2",
        "--dry-run",
        "--out",
        "noisy.json",
    )
    planned = answer("plan", "site.json", "--epsilon", "0.002", "--readings", "2")
    assert planned["cost"] == released["cost"]


def test_a_page_holds_what_json_says() -> None:
    small: dict[str, Any] = {"TIMES": (-1, 0), "SOME": (0, 1), "COSTS": (0,), "COUNTS": (1,)}
    with mock.patch.multiple(designs, error_of=by_law, **small):
        with mock.patch(
            "sfumato.figures.draw_recovery_forecast", wraps=draw_recovery_forecast, create=True
        ) as draw:
            told = answer("plan", *QUICK, "--trials", "2", "--seed", "1", "--out", "plan.html")
            (drawn,) = draw.call_args.args
        done("plan", *QUICK, "--trials", "2", "--seed", "1", "--out", "plan.png", "--quiet")
    page = Path("plan.html").read_text()
    assert Path("plan.png").read_bytes().startswith(PNG)
    assert "data:image/png;base64," in page
    assert "http" not in page.replace("http-equiv", "")
    assert set(told["curves"]) == {"diffusion time", "sensors", "rho", "sources"}
    assert told["curves"]["diffusion time"]["values"] == [0.025, 0.05]
    assert told["best_time"]["said"] in page
    assert "in the unit of positions; the line goes to 1; whiskers 95 %" in page
    assert "diffusion time T (unit of positions, squared)" in [panel.x_label for panel in drawn]
    assert {panel.y_label for panel in drawn} == {"mean error (unit of positions)", "epsilon"}
    for curve in told["curves"].values():
        for one in curve["estimators"]["least mass"]:
            assert f"{one['mean']:.2g} ({one['low']:.2g} to {one['high']:.2g})" in page


def test_what_is_planned_for_shared_readings_is_what_a_release_charges_and_says() -> None:
    """The same options of `sense ledger` and `sense plan`: noise, rho and the stated epsilon are the same."""
    hall()
    done("ledger", "site.json", "shared.ledger", "--epsilon", "2")
    times = [(str(moment), name, value) for moment in range(4) for name, value in VALUES.items()]
    table("many.csv", ["time", "sensor", "value"], times)
    released = answer(
        "release", "many.csv", "--site", "site.json", "--ledger", "shared.ledger", "--share", "4",
        "--out", "many.json",
    )  # fmt: skip
    words = ("plan", "site.json", "--epsilon", "2", "--readings", "4")
    told, text = answer(*words), done(*words).stdout
    assert told["sigma"] == released["sigma"]
    assert [encode(entry.cost) for entry in entries("shared.ledger")] == [
        told["shared"]["each"]
    ] * 4
    said = released["statement"].partition("; ")[2].removeprefix("4 together ")
    assert "at delta 1e-06" in said
    assert f"it states all of them as {said}" in text
    assert told["shared"]["stated"]["delta"] == "1/1000000"


def test_a_page_is_drawn_where_no_trial_was_wrong() -> None:
    def exact(scene: Scene, lot: Trial, estimator: Estimator) -> float:
        return (
            0.0
            if estimator == "bayes median" and scene.sigma < 0.03
            else 1.0 + float(lot.masses[0])
        )

    small: dict[str, Any] = {"TIMES": (0,), "SOME": (0,), "COSTS": (0, 6), "COUNTS": (1,)}
    with mock.patch.multiple(designs, error_of=exact, **small):
        done("plan", *QUICK, "--trials", "2", "--seed", "1", "--out", "plan.html")
    page = Path("plan.html").read_text()
    assert "0 (no trial was wrong)" in page
    assert "Where no trial was wrong a point is at the bottom, without a whisker." in page


SHORT: dict[str, Any] = {"TIMES": (-1, 0), "SOME": (0, 1), "COSTS": (0,), "COUNTS": (1,)}


def test_curves_are_told_without_a_file() -> None:
    words = ("plan", *QUICK, "--trials", "3", "--seed", "1")
    with mock.patch.multiple(designs, error_of=by_law, **SHORT):
        told, text = (
            answer(*words, "--curves"),
            done(*words, "--curves", "--quiet").stdout.splitlines(),
        )
        assert not list(Path().iterdir())
        drawn, short = (
            answer(*words, "--out", "a.html"),
            done(*words, "--out", "b.html", "--quiet").stdout,
        )
    assert {name: told[name] for name in ("curves", "best_time")} == {
        name: drawn[name] for name in ("curves", "best_time")
    }
    assert told["best_time"]["said"] in text
    for name, curve in told["curves"].items():
        head = next(i for i, line in enumerate(text) if line.startswith(f"{name}  "))
        assert text[head].split("  ", 1)[1].split() == ["least", "mass", "(R)", "Bayes", "median"]
        for i, value in enumerate(curve["values"]):
            row = text[head + 1 + i]
            assert row.split()[0] == f"{value:.4g}"
            for one in curve["estimators"].values():
                assert f"{one[i]['mean']:.2g} ({one[i]['low']:.2g} to {one[i]['high']:.2g})" in row
            now = {"diffusion time": 0.05, "sensors": 6, "rho": 8, "sources": 1}[name]
            assert row.endswith("  planned") is (value == now)
        assert text[head - 1] == text[head + 1 + len(curve["values"])] == ""
    assert "3 trials of the least mass (R) and 3 trials of the Bayes median" in "\n".join(text)
    # A page has the tables, so the text need not; and what is shown is not offered.
    assert told["best_time"]["said"] in short
    assert "planned\n" not in short
    assert "--curves" not in "\n".join([*text, short])


def test_a_plan_ends_with_what_curves_would_show() -> None:
    told = done("plan", *QUICK, "--trials", "2", "--seed", "1").stdout.splitlines()[-1]
    assert told.startswith(
        "--curves shows, and --out draws, what another T, more sensors, more rho or more sources would "
        "change: in about "
    )
    assert told.endswith((" a minute", " minutes"))
    Site("own", linear(np.eye(3, 5) + 0.1, Line(5)), SwappedCells(1)).write("site.json")
    told = done(
        "plan", "site.json", "--rho", "8", "--sources", "1", "--trials", "2"
    ).stdout.splitlines()[-1]
    assert "what more rho or more sources would change" in told
    assert "--curves" not in done("plan", "site.json", "--rho", "8").stdout


def test_the_best_time_is_that_of_the_better_estimator() -> None:
    """R is right at the planned time and the Bayes median, which is worse here, at half of it."""

    def law(scene: Scene, lot: Trial, estimator: Estimator) -> float:
        early = scene.operator.time == 0.025
        off = 0.1 + 0.01 * float(lot.masses[0])
        return off * (2 if early else 1) if estimator == "least mass" else off * (4 if early else 8)

    with (
        mock.patch.multiple(designs, error_of=law, **SHORT),
        mock.patch("sfumato.sensing.planning.forecast.error_of", law),
    ):
        told = answer("plan", *QUICK, "--trials", "4", "--seed", "1", "--curves")
    assert told["forecast"]["best"] == told["best_time"]["estimator"] == "least mass"
    assert told["best_time"]["time"] == 0.05
    said = "for the least mass (R), of the times tried, T 0.05, the last, is best to read at; planned is 0.05"
    assert told["best_time"]["said"] == said


def test_what_a_ledger_adds_up_is_told_beside_what_readings_cost() -> None:
    """24 readings of epsilon 1 cost less than 6 together, and a ledger that pays each of them wants 24."""
    words = ("plan", *SMALL[:4], "--epsilon", "1", "--trials", "0")
    told, text = answer(*words), done(*words).stdout
    _, day, *_ = told["after_readings"]
    assert day["epsilon"] < 6
    assert day["charged"] == encode(ApproxDP(24, "24e-6"))
    assert (
        "a ledger that pays each reading like this one adds up epsilon and delta: after 24 epsilon 24, delta "
        "2.4e-05; after 100 epsilon 100, delta 0.0001; after 1,440 epsilon 1,440, delta 0.00144\n"
        "readings that share a budget take less of it: --readings 24 plans 24 of them\n"
    ) in text
    assert (
        "after 24 a delta of 1 or more, which no budget has\n"
        in done("plan", *SMALL, "--trials", "0").stdout
    )
    by_rho = done("plan", *QUICK, "--trials", "0").stdout
    assert "adds up rho 8, 192, 800 and 11,520, which is that epsilon\n" in by_rho
    # Shared readings say it already, as what all of them may cost.
    shared = (*words, "--readings", "24")
    assert "a ledger that pays each" not in done(*shared).stdout
    assert answer(*shared)["after_readings"][1]["charged"] == answer(*shared)["shared"]["together"]


def test_the_papers_come_last() -> None:
    small: dict[str, Any] = {"TIMES": (0,), "SOME": (0,), "COSTS": (0,), "COUNTS": (1,)}
    with mock.patch.multiple(designs, error_of=by_law, **small):
        text = done(
            "plan", *QUICK, "--trials", "2", "--seed", "1", "--out", "plan.png"
        ).stdout.splitlines()
    assert "tried, T 0.05 to 0.05, " in text[-3]
    assert text[-2].startswith("the papers")
    assert text[-1].startswith("whoever estimates")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--sensors", "4"], "a site says its own --sensors; leave one out; nothing was planned"),
        (["--on", "line"], "a site says its own --on"),
        (["--radius", "1"], "a site says its own --radius"),
        (["--trials", "1"], "a mean with an interval needs two trials, got 1; nothing was planned"),
        (
            ["--trials", "0", "--want", "1"],
            "--want and --curves simulate, --trials 0 does not",
        ),
        (["--trials", "0", "--curves"], "--want and --curves simulate, --trials 0 does not"),
        (["--want", "-1"], "a wanted error is positive and finite, got -1.0; nothing was planned"),
        (
            ["--readings", "2", "--calibration", "papers"],
            "the papers' calibration is of a single reading",
        ),
        (["--out", "plan.pdf"], "this is written as .html or .png, got plan.pdf"),
    ],
)
def test_contradictions_are_refused(words: list[str], sentence: str) -> None:
    hall()
    assert refused(2, "plan", "site.json", "--epsilon", "1", *words).startswith(sentence)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--on", "plane", "--cells", "9"],
            "a plane has 32 by 32 cells, got --cells; nothing was planned",
        ),
        (
            ["--on", "plane", "--length", "9"],
            "--length is of a line, got a plane; nothing was planned",
        ),
        (
            ["--on", "graph", "--cells", "9", "--sensors", "10"],
            "a graph has at most one sensor at each of 9",
        ),
        (["--sources", "101"], "sources must be"),
    ],
)
def test_no_site_is_made_up_from_contradictions(words: list[str], sentence: str) -> None:
    assert refused(2, "plan", "--epsilon", "1", *words).startswith(sentence)
    if "--length" not in words:  # which `sense simulate` does not have
        made = sentence.replace("nothing was planned", "nothing was made")
        assert refused(2, "simulate", "made", *words).startswith(made)


def test_plan_and_simulate_make_up_the_same_site() -> None:
    """As many sensors on a graph as were asked for, too."""
    for on, *more in (("line", "--cells", "30"), ("plane",), ("graph", "--cells", "40")):
        words = ("--on", on, "--sensors", "9", "--seed", "3", *more)
        done("simulate", on, *words)
        told = answer("plan", "--rho", "1", "--trials", "0", "--noise", "one", *words)
        site = read_site(f"{on}/site.json")
        assert len(site.sensors) == told["sensors"] == 9
        assert (site.name, told["site"]) == (f"simulated {on}", f"planned {on}")
        assert told["sigma"] == plan(site, ZCDP(1)).sigma


@pytest.mark.parametrize(
    "words", [["--on", "graph"], ["--diffusion-time", "0"], ["--sensors", "4"]]
)
def test_sources_on_a_site_of_ones_own_take_it_as_it_is(words: list[str]) -> None:
    hall()
    said = refused(2, "simulate", "made", "--site", "site.json", *words)
    assert said == f"a site says its own {words[0]}; leave one out; nothing was made"


# place


def test_a_made_up_radius_is_exactly_a_hundredth() -> None:
    words = (
        "plan",
        "--length",
        "0.1",
        "--rho",
        "1",
        "--cells",
        "20",
        "--sensors",
        "6",
        "--trials",
        "0",
    )
    assert answer(*words)["neighbors"]["radius"] == "1/1000"
    _, first, *_ = done(*words).stdout.splitlines()
    assert first.endswith("an earth mover's distance of at most 0.001 (line)")


@pytest.mark.parametrize("count", ["1", "2", "3", "50"])
def test_a_plane_has_as_many_sensors_as_were_asked_for(count: str) -> None:
    told = answer("plan", "--on", "plane", "--sensors", count, "--rho", "1", "--trials", "0")
    assert told["sensors"] == int(count)


def test_noise_for_each_is_taken_unasked_written_and_released_with() -> None:
    """By the rule on a graph of two communities; --site-out has the gains, and release takes them."""
    done("simulate", "net", "--on", "graph", "--cells", "40", "--seed", "3")
    words = ("plan", "net/site.json", "--epsilon", "2", "--trials", "0")
    told = answer(*words, "--site-out", "each.json")
    assert told["noise_choice"] == {"kind": "each", "asked": "auto", "reason": "gains"}
    site = read_site("each.json")
    assert plan(site, ApproxDP(2, "1e-6")).sigmas.tolist() == told["noise_each"]["sigmas"]
    text = done(*words).stdout
    assert "--noise one plans one sigma" in text
    assert "(--site-out writes it)" in text
    assert "--noise each asks" in done(*words, "--noise", "one").stdout
    beside = answer(*words, "--offset")
    assert beside["noise_each"]["offset"]
    done("ledger", "net/site.json", "net.ledger", "--epsilon", "2")
    released = ("release", "net/readings.csv", "--ledger", "net.ledger", "--epsilon", "2")
    done(*released, "--site", "each.json", "--out", "noisy.json")
    assert read_readings("noisy.json").site.digest == site.digest
    assert "got --noise one" in refused(2, *words, "--noise", "one", "--site-out", "x.json")
    assert "--keep goes with --noise each" in refused(2, *words, "--keep", "0.5")
