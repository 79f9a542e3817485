"""`sfumato sense` in careful hands: from a site to a recovery that can be checked, and back with a key."""

from __future__ import annotations

import json
import math
import stat
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from tests.cli.sense_runs import (
    CLEAR,
    HALL,
    ROOMY,
    TOLD,
    VALUES,
    alone,
    answer,
    done,
    entries,
    hall,
    hall_readings,
    refused,
    release,
    rows,
    table,
)

from sfumato.privacy import ZCDP, ApproxDP, Ledger, MovedMass, SwappedCells
from sfumato.privacy.accounting import rho_within
from sfumato.sensing import plan, read_readings, read_recovery, read_site
from sfumato.sensing.model.operators import GraphDiffusion, HeatLine, HeatPlane, Matrix
from sfumato.sensing.pipeline import payer
from sfumato.sensing.release import unit_of
from sfumato.spaces import Graph, Grid, Line, Points

pytestmark = pytest.mark.unit

PNG = b"\x89PNG\r\n\x1a\n"
EDGES = [("ann", "bob"), ("bob", "cid"), ("ann", "cid"), ("cid", "dan"), ("dan", "eve"), ("eve", "fay"),
         ("dan", "fay")]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)


def noisy(path: str = "r.json") -> np.ndarray[Any, Any]:
    return read_readings(path).snapshots[0].numbers()


# the whole way


@pytest.mark.parametrize("kind", ["line", "plane", "graph"])
def test_from_a_made_up_site_to_a_checked_recovery(kind: str, rng: np.random.Generator) -> None:
    seed = str(rng.integers(2**31))
    # On a graph that mixes less than the default one, so that a single node can be told at all.
    slow = ["--diffusion-time", "0.1"] if kind == "graph" else []
    made = done("simulate", "sim", "--on", kind, "--sources", "1", "--seed", seed, *slow)
    files = ["sim/site.json", "sim/readings.csv", "sim/sources.csv"]
    assert made.stdout.splitlines() == files
    site = read_site("sim/site.json")
    assert made.stderr == f"made up 1 source and what {len(site.sensors)} sensors read of them\n"
    done("ledger", "sim/site.json", "sim.ledger", "--rho", CLEAR)
    paid = done(
        "release", "sim/readings.csv", "--site", "sim/site.json", "--ledger", "sim.ledger", "--share", "1",
        "--out", "r.json", "--out", "r.csv", "--note", "the first",
    )  # fmt: skip
    assert paid.stdout == "r.json\nr.csv\n"
    (entry,) = entries("sim.ledger")
    assert entry.note == "the first"
    before = Path("sim.ledger").read_bytes()
    found = answer(
        "recover", "r.json", "--out", "rec.json", "--out", "rec.csv", "--plot", "rec.png",
        "--sources", "sim/sources.csv", *ROOMY,
    )  # fmt: skip
    assert found["status"] == "optimal"
    assert Path("rec.png").read_bytes().startswith(PNG)
    (truth,) = rows("sim/sources.csv")
    axes = {"line": ["x"], "plane": ["x", "y"], "graph": []}[kind]
    assert list(truth) == ["cell", *axes, "mass"]
    best = max(rows("rec.csv"), key=lambda row: float(row["mass"]))
    assert best["cell"] == truth["cell"]
    assert [float(truth[axis]) for axis in axes] == pytest.approx(
        [float(best[axis]) for axis in axes]
    )
    # Over 180 seeds the largest distance was 4e-4; the noise is far below the radius, which makes
    # it.
    assert found["emd"] < 0.01
    assert found["site"] == f"simulated {kind}"
    checked = done("check", "rec.json", "--ledger", "sim.ledger", "--readings", "r.json")
    assert checked.stdout.startswith("rec.json: optimal, no feasible sources have a total below ")
    assert checked.stdout.endswith(
        "; releases of these sensors were paid for in sim.ledger (no receipt vouches for their values)\n"
    )
    assert Path("sim.ledger").read_bytes() == before


def test_the_same_seed_makes_the_same_site() -> None:
    for kind in ("line", "plane", "graph"):
        for name, seed in (("a", "7"), ("b", "7"), ("c", "8")):
            cells = [] if kind == "plane" else ["--cells", "30"]
            done(
                "simulate", f"{kind}/{name}", "--on", kind, *cells, "--sensors", "9", "--seed", seed
            )
        for file in ("site.json", "readings.csv", "sources.csv"):
            assert Path(kind, "a", file).read_bytes() == Path(kind, "b", file).read_bytes()
        assert (
            Path(kind, "a", "sources.csv").read_bytes()
            != Path(kind, "c", "sources.csv").read_bytes()
        )


def test_a_made_up_line_may_have_a_length() -> None:
    done("simulate", "sim", "--cells", "20", "--length", "40", "--seed", "1")
    space = read_site("sim/site.json").operator.space
    assert isinstance(space, Line)
    assert space.positions[-1] == 40
    assert [float(row["x"]) for row in rows("sim/sources.csv")] == [
        (int(row["cell"]) + 1) * 2 for row in rows("sim/sources.csv")
    ]
    assert "--length is of a line" in refused(
        2, "simulate", "new", "--on", "plane", "--length", "2"
    )


def test_made_up_readings_are_exact() -> None:
    done("simulate", "sim", "--on", "graph", "--cells", "12", "--sources", "3", "--radius", "2")
    site = read_site("sim/site.json")
    truth = np.zeros(12)
    for row in rows("sim/sources.csv"):
        truth[int(row["cell"])] = float(row["mass"])
    assert (truth.sum(), site.neighbors) == (3, MovedMass(2, "graph"))
    written = {row["sensor"]: float(row["value"]) for row in rows("sim/readings.csv")}
    assert list(written.values()) == site.operator.readings(truth).tolist()


# site


def site(*words: str, radius: str = "1/10") -> Any:
    protected = ["--radius", radius] if radius else []
    told = answer("site", "site.json", "--name", "here", *protected, *words)
    found = read_site("site.json")
    assert told == {"site": "site.json", "set": found.sensors.digest}
    Path("site.json").unlink()
    return found


def test_sites_on_a_line() -> None:
    table("sensors.csv", ["sensor", "x"], HALL.items())
    words = [
        "--line",
        "20",
        "--length",
        "2",
        "--sensors",
        "sensors.csv",
        "--diffusion-time",
        "0.02",
    ]
    found = site(*words, "--step", "0.0625")
    assert isinstance(found.operator, HeatLine)
    assert (found.operator.space, found.operator.diffusion_time) == (Line(20, 2.0), 0.02)
    assert (
        dict(zip(found.sensors.names, found.sensors.positions[:, 0].tolist(), strict=True)) == HALL
    )
    assert (found.name, found.step) == ("here", Fraction(1, 16))
    assert found.neighbors == MovedMass("1/10", "line")
    assert site(*words, "--swapped", "3", radius="").neighbors == SwappedCells(3)


def test_sites_in_a_plane() -> None:
    Path("sensors.json").write_text(
        json.dumps([{"sensor": 7, "x": 1, "y": 2.5}, {"sensor": "b", "x": 0, "y": 0}])
    )
    words = ["--sensors", "sensors.json", "--diffusion-time", "0.5"]
    found = site("--grid", "3", "--bounds", "0,0,8,4", *words)
    assert isinstance(found.operator, HeatPlane)
    assert found.operator.space == Grid(3, (0, 0, 8, 4))
    assert found.sensors.names == ("7", "b")
    assert found.sensors.positions.tolist() == [[1, 2.5], [0, 0]]
    assert found.neighbors == MovedMass("1/10", "grid-l1")
    table("places.tsv", ["x\ty"], [["1\t2"], ["3\t4.5"], ["0\t0"]])
    found = site("--places", "places.tsv", *words)
    assert isinstance(found.operator.space, Points)
    assert found.operator.space.positions.tolist() == [[1, 2], [3, 4.5], [0, 0]]


def test_sites_on_a_graph() -> None:
    lengths = [1, 2, 3, 1, 1, 1, 1]
    table(
        "edges.csv",
        ["u", "v", "length"],
        [(*edge, size) for edge, size in zip(EDGES, lengths, strict=True)],
    )
    found = site("--graph", "edges.csv", "--rate", "0.5")
    assert isinstance(found.operator, GraphDiffusion)
    assert (found.cells, found.sensors.names) == (("ann", "bob", "cid", "dan", "eve", "fay"),) * 2
    assert found.operator.space == Graph(
        [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)], [1, 3, 2, 1, 1, 1, 1]
    )
    assert found.operator.weights is None
    table("sensors.csv", ["sensor", "x"], [("s1", "eve"), ("s2", "bob")])
    found = site("--graph", "edges.csv", "--rate", "0.5", "--sensors", "sensors.csv")
    assert (found.sensors.names, found.operator.nodes.tolist()) == (("s1", "s2"), [4, 1])
    # Numbers as names come in their order, edges both ways are one edge, and weights conduct.
    table("edges.csv", ["u", "v", "weight"], [("10", "2", "4"), ("2", "10", "4"), ("10", "9", "1")])
    found = site("--graph", "edges.csv", "--rate", "0.5")
    assert found.cells == ("2", "9", "10")
    assert found.operator.space.edges.tolist() == [[0, 2], [1, 2]]
    assert found.operator.weights.tolist() == [4, 1]


def test_the_largest_part_of_a_graph() -> None:
    table(
        "edges.csv",
        ["u", "v", "weight"],
        [("x", "y", "5"), *((*edge, 1 + i) for i, edge in enumerate(EDGES))],
    )
    words = [
        "site",
        "site.json",
        "--name",
        "n",
        *TOLD,
        "--graph",
        "edges.csv",
        "--rate",
        "1",
        "--radius",
        "1",
    ]
    assert "must be connected" in refused(2, *words)
    done(*words, "--largest-part")
    found = read_site("site.json")
    assert found.cells == ("ann", "bob", "cid", "dan", "eve", "fay")
    assert isinstance(found.operator, GraphDiffusion)
    assert found.operator.weights is not None
    assert found.operator.weights.tolist() == [1, 3, 2, 4, 5, 7, 6]


def test_sites_of_a_matrix() -> None:
    matrix = [[1, 0.5, 0], [0, 0.25, -3]]
    np.save("m.npy", np.array(matrix))
    Path("m.csv").write_text("1,0.5,0\n0,0.25,-3\n\n")
    for name in ("m.npy", "m.csv"):
        found = site("--line", "3", "--matrix", name)
        assert isinstance(found.operator, Matrix)
        assert found.operator.columns(np.arange(3)).tolist() == matrix
        assert found.sensors.names == ("0", "1")
    table("sensors.csv", ["sensor", "x"], [("a", 0), ("b", 1)])
    assert site("--line", "3", "--matrix", "m.csv", "--sensors", "sensors.csv").sensors.names == (
        "a",
        "b",
    )


# plan and ledger


def test_a_plan_says_what_the_library_plans() -> None:
    hall()
    found = read_site("site.json")
    wanted = plan(found, ApproxDP(1, "1e-6"))
    told = answer("plan", "site.json", "--epsilon", "1")
    assert told["sigma"] == wanted.sigma
    assert (told["sensitivity"], told["sensitivity_exact"]) == (wanted.sensitivity.l2, True)
    assert told["cost"] == {"kind": "ApproxDP", "epsilon": "1", "delta": "1/1000000"}
    assert told["lattice"] == 2.0**wanted.exponent
    assert (told["site"], told["sensors"], told["set"]) == ("hall", 4, found.sensors.digest)
    assert told["epsilon_of_one_sensor"]["delta"] == 1e-6
    # One sensor tells less than all together, and more than nothing.
    assert 0 < told["epsilon_of_one_sensor"]["largest"] <= 1
    assert (
        answer("plan", "site.json", "--epsilon", "1", "--calibration", "papers")["sigma"]
        > told["sigma"]
    )
    assert answer("plan", "site.json", "--rho", "1/2")["sigma"] == plan(found, ZCDP("1/2")).sigma
    text = done("plan", "site.json", "--epsilon", "1", "--quiet")
    assert text.stderr == ""
    assert text.stdout.splitlines()[2] == (
        f"readings move by {wanted.sensitivity.l2:.4g} mass together, so each sensor adds noise of sigma "
        f"{wanted.sigma:.4g} mass for epsilon 1, delta 1e-06"
    )
    lines = text.stdout.splitlines()[1:]
    # Two Gaussians a distance d apart: the best guess is right with probability Phi(d / (2 sigma)).
    best = NormalDist().cdf(float(wanted.moved / wanted.width) / 2)
    assert told["best_guess"] == pytest.approx(best)
    guess = "who must guess between two equally likely places the radius apart, from one reading,"
    assert lines[2] == f"{guess} is right at most {best:.0%} of the time"
    assert lines[5] == "where mass is, is hidden up to the radius; how much there is in all is not"
    assert lines[6] == "--details says what physics hides already"
    more = done("plan", "site.json", "--epsilon", "1", "--quiet", "--details")
    assert more.stdout.splitlines()[7 : 7 + len(told["physics"])] == told["physics"]


def test_a_plan_can_be_drawn() -> None:
    hall()
    words = ["plan", "site.json", "--rho", "1"]
    done(*words, "--plot", "plan.png")
    assert Path("plan.png").read_bytes().startswith(PNG)
    assert refused(8, *words, "--plot", "plan.png").startswith(
        "plan.png exists already and is kept"
    )


def test_a_ledger_is_for_one_set_of_sensors() -> None:
    hall()
    told = answer("ledger", "site.json", "more.ledger", "--epsilon", "1", "--delta", "1e-5")
    header = Ledger("more.ledger").header
    assert (header.budget, header.model, header.source) == (ApproxDP(1, "1e-5"), "local", "hall")
    assert (header.unit, header.neighbors) == (
        unit_of(read_site("site.json").sensors),
        MovedMass("1/10", "line"),
    )
    assert told == {"ledger": "more.ledger", **header.to_json()}
    said = done("ledger", "site.json", "other.ledger", "--rho", "2")
    assert said.stdout == "other.ledger\n"
    assert said.stderr == f"made other.ledger with rho 2 for each {header.unit}\n"


# release


def test_a_release_is_paid_for_and_written_twice() -> None:
    hall()
    told = answer(*release(out=["r.json", "r.csv"]))
    (entry,) = entries()
    assert isinstance(entry.cost, ZCDP)
    assert Fraction(99, 100) < entry.cost.rho <= 1
    found = read_readings("r.json")
    (snapshot,) = found.snapshots
    assert (snapshot.release.entry, snapshot.names, snapshot.seal) == (entry, tuple(HALL), None)
    assert found.site.to_json() == read_site("site.json").to_json()
    assert told == {
        "written": ["r.json", "r.csv"],
        "readings": 1,
        "sigma": pytest.approx(snapshot.sigma, rel=1e-3),
        "statement": str(snapshot.guarantee),
        "sealed": False,
        "ledgers": ["hall.ledger"],
        "made_before": False,
    }
    assert "read jointly by 4 sensors (set " in told["statement"]
    assert "computational" not in told["statement"]
    assert [(row["sensor"], float(row["x"])) for row in rows("r.csv")] == list(HALL.items())
    assert [float(row["value"]) for row in rows("r.csv")] == snapshot.numbers().tolist()
    assert {float(row["sigma"]) for row in rows("r.csv")} == {snapshot.sigma}


def test_noise_is_there_and_as_wide_as_said() -> None:
    """At rho 1e10 the readings are as good as they were; at rho 1 they are not."""
    hall()
    exact = np.array(list(VALUES.values()))
    done(*release("--ledger", "clear.ledger", out=["c.json"], rho=CLEAR))
    sigma = read_readings("c.json").snapshots[0].sigma
    # 7 sigma is a chance of 3e-12 for each of four readings, and half a lattice step is below one
    # sigma.
    assert np.abs(noisy("c.json") - exact).max() < 8 * sigma < 1e-4
    done(*release())
    # A density of at most 0.4 / sigma each: all four so near have a chance below (0.8e-4 / 0.4)**4
    # < 2e-15.
    assert np.abs(noisy() - exact).max() > 1e-4
    assert read_readings("r.json").snapshots[0].sigma > 0.4


@pytest.mark.parametrize("budget", [["--rho", "3"], ["--epsilon", "5", "--delta", "1e-6"]])
def test_equal_shares_use_the_whole_budget(budget: list[str]) -> None:
    hall()
    done("ledger", "site.json", "b.ledger", *budget)
    for number in range(3):
        done(*release("--ledger", "b.ledger", "--share", "3", out=[f"{number}.json"], rho=""))
    sentence = refused(3, *release("--ledger", "b.ledger", "--share", "3", out=["4.json"], rho=""))
    assert sentence.endswith("in b.ledger; nothing was released")
    whole = Fraction(3) if budget[0] == "--rho" else rho_within(5, "1e-6")
    spent = sum(entry.cost.rho for entry in entries("b.ledger") if isinstance(entry.cost, ZCDP))
    # Each sigma is rounded up to a fraction of 2**-40 or so: nothing that is worth a hundredth of
    # the budget.
    assert whole * Fraction(99, 100) < spent <= whole


def test_windows_renew_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    hall()

    def at(hour: int) -> None:
        now = datetime(2026, 11, 16, hour, 30, tzinfo=UTC)
        monkeypatch.setattr(payer, "_now", lambda: now)

    def words(out: str) -> list[str]:
        return [
            "release", "readings.csv", "--site", "site.json", "--windows", "w", "--window", "6h",
            "--budget-epsilon", "2", "--share", "1", "--out", out,
        ]  # fmt: skip

    at(1)
    done(*words("a.json"))
    at(5)
    assert "20261116T0000Z-6h.ledger; nothing was released" in refused(3, *words("b.json"))
    at(6)
    done(*words("b.json"))
    assert sorted(path.name for path in Path("w").glob("*.ledger")) == [
        "20261116T0000Z-6h.ledger",
        "20261116T0600Z-6h.ledger",
    ]
    statement = str(read_readings("b.json").snapshots[0].guarantee)
    assert "source within 6h from 2026-11-16T06:00Z, read jointly by 4 sensors" in statement
    done("recover", "b.json", "--out", "rec.json")
    done("check", "rec.json", "--ledger", "w/20261116T0600Z-6h.ledger", "--readings", "b.json")
    assert refused(2, *words("c.json"), "--budget-epsilon", "3").endswith("nothing was charged")
    assert refused(2, *words("c.json"), "--window", "6 weeks").startswith(
        "a window is a number of m, h or d"
    )


def test_a_reading_is_paid_by_the_window_it_was_taken_in() -> None:
    hall()
    table = "".join(
        f"{time},{name},{value}\n"
        for time in ("2020-11-15T23:00Z", "2020-11-16 01:00", "2020-11-16T03:00+02:00")
        for name, value in VALUES.items()
    )
    Path("late.csv").write_text("time,sensor,value\n" + table)
    words = [
        "release", "late.csv", "--site", "site.json", "--windows", "w", "--since", "2020-11-15",
        "--budget-epsilon", "2", "--share", "2",
    ]  # fmt: skip
    told = answer(*words, "--out", "late.json")
    assert told["ledgers"] == ["w/20201115T0000Z-1d.ledger", "w/20201116T0000Z-1d.ledger"]
    snapshots = read_readings("late.json").snapshots
    days = [str(s.guarantee).split(" from ")[1][:10] for s in snapshots]
    assert days == ["2020-11-15", "2020-11-16", "2020-11-16"]
    assert [len(entries(file)) for file in told["ledgers"]] == [1, 2]
    # The second day has no third share: nothing of the table is released, the first day's neither.
    assert refused(3, *words, "--out", "again.json").endswith("nothing was released")
    assert [len(entries(file)) for file in told["ledgers"]] == [1, 2]
    Path("late.csv").write_text(
        "time,sensor,value\n" + table.replace("2020-11-15T23:00Z", "yesterday")
    )
    assert "is written like 2026-11-16T09:30Z, got another" in refused(
        4, *words, "--out", "again.json"
    )
    for far in ("9999-01-01T00:00Z", "9999-12-31T23:59-14:00"):
        Path("late.csv").write_text("time,sensor,value\n" + table.replace("2020-11-15T23:00Z", far))
        assert "nothing was charged" in refused(4, *words, "--out", "again.json")


def test_a_dry_run_makes_no_window() -> None:
    hall()
    words = [
        "--windows",
        "w",
        "--budget-epsilon",
        "2",
        "--share",
        "2",
        "--out",
        "x.json",
        "--dry-run",
    ]
    told = answer("release", "readings.csv", "--site", "site.json", *words)
    assert told["unit"].startswith("source within each 1d, read jointly by 4 sensors")
    assert not Path("w").exists()


def test_a_dry_run_reads_nothing() -> None:
    hall()
    Path("readings.csv").unlink()
    before = Path("hall.ledger").read_bytes()
    said = done(*release("--dry-run"))
    sigma = plan(read_site("site.json"), ZCDP(1)).sigma
    assert said.stdout == (
        f"would cost rho 1 for one reading of 4 sensors: sigma {sigma:.4g}; nothing was read or charged\n"
    )
    told = answer(*release("--dry-run"))
    assert (told["sigma"], told["unit"]) == (sigma, Ledger("hall.ledger").header.unit)
    assert (Path("hall.ledger").read_bytes(), Path("r.json").exists()) == (before, False)
    assert refused(3, *release("--dry-run", rho="101")).endswith(
        "left in hall.ledger; nothing was released"
    )


# keys


def keys() -> None:
    made = done("key", "new", "master.key")
    (name,) = {
        answer("key", "device", "master.key", f"{n}.key", "--name", n)["id"]
        for n in ("east", "west")
    }
    assert made.stderr == f"made master key {name}; who holds master.key can take noise off\n"


def test_keys_are_for_their_owner_alone() -> None:
    keys()
    for name in ("master.key", "east.key", "west.key"):
        assert stat.S_IMODE(Path(name).stat().st_mode) == 0o600
    assert "exists already and is kept" in refused(8, "key", "new", "master.key")
    assert "exists already and is kept" in refused(
        8, "key", "device", "master.key", "east.key", "--name", "x"
    )
    assert "name must be printable" in refused(
        2, "key", "device", "master.key", "x.key", "--name", ""
    )
    assert "is not a master key" in refused(4, "key", "device", "east.key", "x.key", "--name", "x")
    for words in (["new", "b.key"], ["device", "b.key", "c.key", "--name", "c"]):
        said = done("key", *words)
        secret = json.loads(Path(words[-3] if "--name" in words else words[-1]).read_text())["key"]
        assert len(secret) == 64
        assert secret not in said.output + said.stderr


def test_the_holder_of_the_key_gets_the_readings_back_exactly() -> None:
    hall()
    keys()
    told = answer(*release("--device", "east.key"))
    assert told["sealed"]
    assert "computational" in told["statement"]
    exponent = read_readings("r.json").snapshots[0].release.exponent
    exact = {
        name: math.ldexp(round(math.ldexp(value, -exponent)), exponent)
        for name, value in VALUES.items()
    }
    assert noisy().tolist() != list(exact.values())
    shown = done("unseal", "r.json", "--key", "master.key")
    assert shown.stdout.splitlines() == [f"{name} {value!r}" for name, value in exact.items()]
    told = answer("unseal", "r.json", "--key", "master.key")
    assert told["private"]
    assert {row["sensor"]: row["value"] for row in told["readings"]} == exact
    said = done("unseal", "r.json", "--key", "master.key", "--out", "exact.csv")
    assert said.stdout == "exact.csv (private)\n"
    assert stat.S_IMODE(Path("exact.csv").stat().st_mode) == 0o600
    assert {row["sensor"]: float(row["value"]) for row in rows("exact.csv")} == exact
    hushed = done("unseal", "r.json", "--key", "master.key", "--out", "again.csv", "--quiet")
    assert (hushed.stdout, hushed.stderr) == ("again.csv\n", "")
    assert done("unseal", "r.json", "--key", "master.key", "-q").stdout == shown.stdout


def test_only_what_was_sealed_with_the_key_is_unsealed() -> None:
    hall()
    keys()
    done("key", "new", "stranger.key")
    done(*release("--device", "west.key"))
    done(*release(out=["plain.json"]))
    assert "sealed under key" in refused(4, "unseal", "r.json", "--key", "stranger.key")
    assert "were not sealed" in refused(4, "unseal", "plain.json", "--key", "master.key")
    Path("there.csv").write_text("kept")
    assert "exists already" in refused(
        8, "unseal", "r.json", "--key", "master.key", "--out", "there.csv"
    )
    assert "none/x.csv: No such file" in refused(
        4, "unseal", "r.json", "--key", "master.key", "--out", "none/x.csv"
    )
    data = json.loads(Path("r.json").read_text())
    data["snapshots"][0]["time"] = "later"
    data["snapshots"][0]["names"].reverse()
    Path("changed.json").write_text(json.dumps(data))
    assert "were changed since" in refused(4, "unseal", "changed.json", "--key", "master.key")


def test_devices_release_their_parts_and_are_joined() -> None:
    hall()
    keys()
    parts = {"east": ["door", "right"], "west": ["left", "wall"]}
    table("readings.csv", ["sensor", "value"], zip(HALL, hall_readings(11), strict=True))
    whole = {row["sensor"]: row["value"] for row in rows("readings.csv")}
    for name, part in parts.items():
        table("readings.csv", ["sensor", "value"], [(sensor, whole[sensor]) for sensor in part])
        words = release(
            "--ledger", "clear.ledger", "--device", f"{name}.key", out=[f"{name}.json"], rho=CLEAR
        )
        assert refused(4, *words).endswith("--some releases a part; nothing was charged")
        done(*words, "--some")
        assert [
            row["sensor"]
            for row in answer("unseal", f"{name}.json", "--key", "master.key")["readings"]
        ] == part
    # Each pays what all together cost, and the joined readings are one reading of all.
    assert len(entries("clear.ledger")) == 2
    found = answer("recover", "west.json", "east.json", "--out", "rec.json", *ROOMY)
    assert read_recovery("rec.json").names == tuple(HALL)
    best = max(found["sources"], key=lambda source: source["mass"])
    assert (best["cell"], round(best["mass"], 2)) == (11, 1)
    assert found["statement"].count("for each source") == 1
    both = ["--readings", "east.json", "--readings", "west.json"]
    done("check", "rec.json", "--ledger", "clear.ledger", *both)
    sentence = refused(1, "check", "rec.json", "--ledger", "clear.ledger", *both[:2])
    assert sentence == "rec.json was not made from these readings"
    assert "with the same receipt" in refused(4, "recover", "east.json", "east.json")
    # One device's part is enough to recover from, though not as well.
    done("recover", "east.json", "--out", "part.json", *ROOMY)
    assert read_recovery("part.json").names == ("door", "right")
    done("check", "part.json", "--ledger", "clear.ledger", "--readings", "east.json")
