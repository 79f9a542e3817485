"""An operator from outside the package goes through site, release, plan, place, recovery, check and report."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar, cast
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from tests.cli.sense_runs import ROOMY, alone, answer, done, entries, refused, table

from sfumato import sensing
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import ZCDP, MovedMass, SwappedCells
from sfumato.sensing import (
    Sensors,
    Site,
    check,
    graph_diffusion,
    heat_line,
    heat_plane,
    linear,
    read_site,
    recover,
    register_operator,
    sensitivity,
)
from sfumato.sensing.diagnostics.conditioning import conditioning
from sfumato.sensing.model import Largest
from sfumato.sensing.model.operators import Operator, operator_kinds, registry
from sfumato.sensing.pipeline import describe_site, open_ledger, recover_sources, release_readings
from sfumato.sensing.release import NoisePlan, plan, plan_noise, read_noise_plan, release_snapshot
from sfumato.sensing.release.noise_plan import check_noise_plan
from sfumato.spaces import Graph, Grid, Line, Points

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class Decay(Operator):
    """A reading falls off exponentially with the distance to a source, which is at a cell."""

    space: Line
    sensors: Sensors
    reach: float
    kind: ClassVar[str] = "test-decay"
    sources_at: ClassVar[str] = "cells"

    def columns(self, cells: npt.ArrayLike) -> npt.NDArray[np.float64]:
        at = self.space.positions[np.asarray(cells, dtype=np.int64)]
        return np.asarray(np.exp(-np.abs(self.sensors.positions - at) / self.reach))

    def to_json(self) -> dict[str, Any]:
        return {"reach": self.reach}

    @classmethod
    def from_json(cls, data: dict[str, Any], space: Any, sensors: Sensors) -> Decay:
        return cls(cast(Line, space), sensors, float(data["reach"]))


@dataclass(frozen=True)
class Foreign(Operator):
    """The columns of one of our operators, and nothing that it knows beside them."""

    inner: Operator
    kind: ClassVar[str] = "test-foreign"

    @property
    def space(self) -> Any:  # type: ignore[override]
        return self.inner.space

    @property
    def sensors(self) -> Sensors:  # type: ignore[override]
        return self.inner.sensors

    def columns(self, cells: npt.ArrayLike) -> npt.NDArray[np.float64]:
        return self.inner.columns(cells)

    def to_json(self) -> dict[str, Any]:
        return {"diffusion_time": self.inner.time}

    @classmethod
    def from_json(cls, data: dict[str, Any], space: Any, sensors: Sensors) -> Foreign:
        return cls(heat_line(sources=space, sensors=sensors, diffusion_time=data["diffusion_time"]))


class Bounded(Foreign):
    """The same, which says how readings change between cells."""

    kind: ClassVar[str] = "test-bounded"

    def changes(self, *, over_distance: bool) -> Largest:
        found = self.inner.changes(over_distance=over_distance)
        return Largest(found.l2, found.per_sensor, None, found.error)


class Told(Foreign):
    """The same, which says all that the solver, the check and diagnostics go by; it counts its columns."""

    kind: ClassVar[str] = "test-told"
    asked: ClassVar[list[int]] = []

    def columns(self, cells: npt.ArrayLike) -> npt.NDArray[np.float64]:
        self.asked.append(np.size(cells))
        return self.inner.columns(cells)

    def readings(self, sources: npt.ArrayLike) -> npt.NDArray[np.float64]:
        return self.inner.readings(sources)

    def adjoint(self, dual: npt.ArrayLike) -> npt.NDArray[np.float64]:
        return self.inner.adjoint(dual)

    def adjoint_rounding(self, dual: Any, level: float) -> Any:
        return self.inner.adjoint_rounding(dual, level)

    def changes(self, *, over_distance: bool) -> Largest:
        return self.inner.changes(over_distance=over_distance)


def _said(name: str) -> property:
    return property(lambda told: getattr(told.inner, name))


for _name in (
    "time", "kernel_width", "factors", "diffusion", "nodes", "nonnegative", "symmetric",
    "costly_columns", "column_entries",
):  # fmt: skip
    setattr(Told, _name, _said(_name))


SENSORS = Sensors([0.1, 0.3, 0.5, 0.7, 0.9], ["a", "b", "c", "d", "e"])
DECAY = Decay(Line(20), SENSORS, 0.1)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    alone(tmp_path, monkeypatch)
    with mock.patch.dict(registry.OPERATORS.added, clear=True):
        yield


def decay_site() -> Site:
    return Site("decay", DECAY, MovedMass("1/20", "line"), unit="mass", per_source=1)  # type: ignore[arg-type]


def test_an_operator_from_outside_is_sent_the_whole_way() -> None:
    register_operator(Decay)
    decay_site().write("site.json")
    assert read_site("site.json") == decay_site()
    truth = np.zeros(20)
    truth[[4, 13]] = 1.0
    table("r.csv", ["sensor", "value"], zip(SENSORS.names, DECAY.readings(truth), strict=True))
    done("ledger", "site.json", "l.ledger", "--rho", "1e11")
    done(
        "release", "r.csv", "--site", "site.json", "--ledger", "l.ledger", "--rho", "1e10", "--out", "n.json"
    )  # fmt: skip
    planned = answer(
        "plan", "site.json", "--rho", "8", "--sources", "1", "--trials", "2", "--seed", "1"
    )
    assert planned["sensitivity"] == sensitivity(DECAY, MovedMass("1/20", "line")).l2
    assert planned["forecast"]["estimators"]["bayes median"]["trials"] == 2
    needed = answer(
        "plan", "site.json", "--rho", "8", "--want", "0.05", "--trials", "2", "--seed", "1"
    )
    assert set(needed["needed"]) == {"rho"}  # it has its own sensors
    placed = answer("place", "--site", "site.json", "--count", "3", "--rho", "8")
    assert len(placed["chosen"]) == 3
    for name in ("least", "bayes-median"):
        done(
            "recover",
            "n.json",
            "--estimator",
            name,
            *ROOMY,
            "--out",
            f"{name}.json",
            "--plot",
            f"{name}.png",
        )
        assert done("check", f"{name}.json").exit_code == 0
        assert Path(f"{name}.png").read_bytes().startswith(b"\x89PNG")
    result = recover_sources("n.json", seed=1)
    assert "decay" in result._repr_html_()
    # Nothing is known of it but its columns: it is recovered as their matrix is.
    matrix = linear(DECAY.dense(), DECAY.space, sensors=SENSORS)
    read = DECAY.readings(truth)
    ours, theirs = recover(DECAY, read, radius=1e-3), recover(matrix, read, radius=1e-3)
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-9)
    assert check(ours).holds


def test_it_is_worked_with_as_its_matrix_is() -> None:
    matrix = linear(DECAY.dense(), DECAY.space, sensors=SENSORS)
    masses, dual = np.linspace(0, 1, 20), np.linspace(-1, 1, 5)
    assert DECAY.readings(masses) == pytest.approx(matrix.readings(masses), rel=1e-12)
    assert DECAY.adjoint(dual) == pytest.approx(matrix.adjoint(dual), rel=1e-12)
    assert DECAY.apply(np.eye(20)) == pytest.approx(matrix.apply(np.eye(20)), rel=1e-12)
    assert DECAY.apply_adjoint(np.eye(5)) == pytest.approx(
        matrix.apply_adjoint(np.eye(5)), rel=1e-12
    )
    assert DECAY.gram(np.arange(4)) == pytest.approx(matrix.gram(np.arange(4)), rel=1e-12)
    for relation in (MovedMass("1/20", "line"), MovedMass(1, "line")):
        assert sensitivity(DECAY, relation).l2 == sensitivity(matrix, relation).l2
    part = DECAY.take(np.array([3, 1]))
    assert part.sensors.names == ("d", "b")
    assert np.array_equal(part.columns(np.arange(20)), DECAY.dense()[[3, 1]])
    with pytest.raises(InvalidParameter, match="a site by a test-decay has no diffusion time"):
        DECAY.with_time(1.0)


COARSE = heat_line(sources=10, sensors=10, diffusion_time=0.001)
TENTH = MovedMass("0.1", "line")
UNTOLD = "columns do not tell how readings change between cells: the operator 'test-foreign' must"


@pytest.mark.parametrize(
    "inner",
    [
        COARSE,
        heat_line(sources=1, sensors=3, diffusion_time=0.05),
        heat_plane(sources=Grid(2), sensors=[[0.5, 0.5]], diffusion_time=0.01),
        heat_plane(
            sources=Points([[0.0, 0.0], [1.0, 1.0]]), sensors=[[0.5, 0.5]], diffusion_time=0.01
        ),
    ],
)
def test_columns_are_not_enough_where_sources_stand_between_cells(inner: Operator) -> None:
    for relation in (MovedMass("0.1", inner.space.metric), SwappedCells(1)):
        with pytest.raises(InvalidParameter, match=UNTOLD):
            sensitivity(Foreign(inner), relation)
    assert not Largest(1.0, np.ones(1), None, 0.0).exact  # unless somebody says so


def test_nothing_is_charged_for_an_operator_that_says_too_little() -> None:
    register_operator(Foreign)
    site = Site("f", Foreign(COARSE), TENTH, unit="mass", per_source=1)  # type: ignore[arg-type]
    site.write("site.json")
    done("ledger", "site.json", "l.ledger", "--rho", "10")
    table("r.csv", ["sensor", "value"], [(name, 1.0) for name in site.sensors.names])
    spent = ("--site", "site.json", "--ledger", "l.ledger", "--rho", "1", "--out", "n.json")
    assert refused(2, "release", "r.csv", *spent).startswith(UNTOLD)
    assert refused(2, "release", "r.csv", *spent, "--dry-run").endswith(
        "; no sensitivity was computed, nothing was charged"
    )
    assert refused(2, "plan", "site.json", "--rho", "8").startswith(UNTOLD)
    assert refused(2, "place", "--site", "site.json", "--count", "3", "--rho", "8").startswith(
        UNTOLD
    )
    assert entries("l.ledger") == ()
    # What was read may still be recovered: that costs nothing.
    assert check(recover(site.operator, COARSE.readings(np.ones(10)), radius=1e-3)).holds


def test_noise_planned_before_operators_said_where_sources_stand_is_refused() -> None:
    # As version 0.1 saved it: by the columns alone, which say less than the readings move.
    register_operator(Foreign)
    site = Site("f", Foreign(COARSE), TENTH, unit="mass", per_source=1)  # type: ignore[arg-type]
    few = sensitivity(linear(COARSE.dense(), COARSE.space), TENTH)
    made = replace(plan_noise(site.sensors, few, ZCDP(1)), site=site.digest)
    old = made.to_json()
    del old["every_place"]
    Path("old.json").write_text(json.dumps(old))
    book = open_ledger(site, "f.ledger", ZCDP(10)).ledger
    readings = dict(zip(site.sensors.names, COARSE.readings(np.ones(10)), strict=True))
    words = "saved before an operator like 'test-foreign' had to say .*; plan it again; nothing was"
    with pytest.raises(InvalidParameter, match=words):
        release_readings(readings, site, ledger=book, noise_plan=read_noise_plan("old.json"))
    with pytest.raises(InvalidParameter, match=words):
        release_snapshot(readings, site, read_noise_plan("old.json"), ledger=book)
    assert entries("f.ledger") == ()
    # One of ours was right then too, and a new one of theirs says that it is.
    ours = Site("o", COARSE, TENTH, unit="mass", per_source=1)  # type: ignore[arg-type]
    kept = plan(ours, ZCDP(1)).to_json()
    del kept["every_place"]
    check_noise_plan(NoisePlan.from_json(kept), ours)
    theirs = Site("b", Bounded(COARSE), TENTH, unit="mass", per_source=1)  # type: ignore[arg-type]
    check_noise_plan(NoisePlan.from_json(plan(theirs, ZCDP(1)).to_json()), theirs)


def test_on_a_graph_the_nodes_are_all_places() -> None:
    ring = graph_diffusion(Graph([(0, 1), (1, 2), (2, 3), (3, 0)]), 0.5)
    ours, theirs = (sensitivity(one, MovedMass(1, "graph")) for one in (ring, Foreign(ring)))
    assert theirs.exact
    assert theirs.l2 == pytest.approx(ours.l2, rel=1e-9)


def test_an_operator_that_knows_places_between_cells_is_believed() -> None:
    register_operator(Bounded)
    for relation in (TENTH, SwappedCells(1)):
        ours, theirs = sensitivity(COARSE, relation), sensitivity(Bounded(COARSE), relation)
        assert (theirs.l2, theirs.exact) == (ours.l2, False)
        # By its columns alone it would get too little noise.
        assert ours.l2 > 1.4 * sensitivity(linear(COARSE.dense(), COARSE.space), relation).l2
        # Some of its sensors move no less than they do in truth, and no more than all.
        for rows in (np.array([4]), np.array([0, 4]), np.array([7, 2, 3, 9]), np.arange(9)):
            part = sensitivity(Bounded(COARSE).take(rows), relation)
            assert sensitivity(COARSE.take(rows), relation).l2 <= part.l2 * (1 + 1e-5)
            assert part.l2 <= ours.l2 * (1 + 1e-9)
            assert not part.exact
            assert part.per_sensor == pytest.approx(theirs.per_sensor[rows], rel=1e-9)
    part_of_part = Bounded(COARSE).take(np.array([7, 2, 3])).take(np.array([1]))
    assert part_of_part.sensors.names == ("2",)
    assert sensitivity(part_of_part, TENTH).l2 == pytest.approx(
        sensitivity(Bounded(COARSE), TENTH).per_sensor[2], rel=1e-9
    )
    # In a site file a part would be a matrix, whose sources are at cells alone.
    with pytest.raises(
        InvalidParameter, match="some sensors of an operator 'test-bounded' make no"
    ):
        Site("part", part_of_part, TENTH).write("part.json")
    site = Site("b", Bounded(COARSE), TENTH, unit="mass", per_source=1)  # type: ignore[arg-type]
    site.write("site.json")
    placed = answer("place", "--site", "site.json", "--count", "3", "--rho", "8")
    assert len(placed["chosen"]) == 3
    assert "readings move by at most" in done("plan", "site.json", "--rho", "8").stdout


RING = Graph([(i, (i + 1) % 50) for i in range(50)])


@pytest.mark.parametrize(
    "inner",
    [
        heat_line(sources=20_000, sensors=9, diffusion_time=0.001),
        heat_plane(sources=Grid(5), sensors=[[0.2, 0.3], [0.7, 0.6]], diffusion_time=0.01),
        heat_plane(
            sources=Points([[0.1, 0.1], [0.5, 0.9], [0.9, 0.2]]),
            sensors=[[0.2, 0.3], [0.7, 0.6]],
            diffusion_time=0.01,
        ),
        graph_diffusion(RING, 0.5),
        graph_diffusion(RING, 0.5, sensors=np.arange(0, 50, 2)),
    ],
    ids=["line", "grid", "points", "graph", "some nodes"],
)
def test_an_operator_that_says_as_much_as_ours_is_treated_as_ours(inner: Any) -> None:
    n = inner.space.size
    y = inner.readings(np.eye(n)[n // 3]) + 0.01
    Told.asked.clear()
    ours, theirs = (recover(one, y, radius=0.05) for one in (inner, Told(inner)))
    assert theirs.status == ours.status
    assert np.array_equal(theirs.estimate, ours.estimate)
    assert np.array_equal(theirs.dual, ours.dual)
    if n > 1000:  # a series tells which of them matter
        assert sum(Told.asked) < n
    assert check(theirs).bound == check(ours).bound
    if n < 5000:
        assert conditioning(Told(inner)).sentences == conditioning(inner).sentences


def test_nobody_asks_which_operator_it_is() -> None:
    """What varies between operators is asked of them; only constructors of sites choose one."""
    room = Path(sensing.__file__).parent
    asked = [
        f"{file.relative_to(room)}: {ast.unparse(kind)}"
        for file in sorted(room.rglob("*.py"))
        if file.parent.name != "operators"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for kind in (
            [node.args[1]]
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"
            else [node.cls]
            if isinstance(node, ast.MatchClass)
            else []
        )
        if re.search(
            r"\b(HeatLine|HeatPlane|GraphDiffusion|Matrix|MatrixPart)\b", ast.unparse(kind)
        )
    ]
    assert asked == []


def test_an_installed_package_names_its_operator_by_an_entry_point() -> None:
    decay_site().write("site.json")
    with pytest.raises(InvalidInput, match="no operator 'test-decay' on Line"):
        read_site("site.json")
    point = EntryPoint("test-decay", f"{__name__}:Decay", registry.OPERATORS.group)
    with mock.patch("importlib.metadata.entry_points", return_value=[point]):
        assert operator_kinds() == ("graph-diffusion", "heat", "matrix", "test-decay", "weighted")
        assert read_site("site.json") == decay_site()
    assert read_site("site.json") == decay_site()  # it is known from now on


def test_the_command_makes_a_site_of_an_operator_by_its_name() -> None:
    register_operator(Decay)
    names = [(name, place) for name, place in zip("abcde", (0.1, 0.3, 0.5, 0.7, 0.9), strict=True)]
    table("sensors.csv", ["sensor", "x"], names)
    words = (
        "site", "site.json", "--name", "decay", "--line", "20", "--sensors", "sensors.csv", "--radius",
        "1/20", "--unit", "mass", "--per-source", "1", "--operator",
    )  # fmt: skip
    done(*words, "test-decay", "--operator-option", "reach=0.1")
    assert read_site("site.json") == decay_site()
    given: dict[str, Any] = {"line": 20, "sensors": SENSORS, "radius": "1/20"}
    made = describe_site("decay", operator="test-decay", operator_options={"reach": 0.1}, **given)
    assert made.site.operator == DECAY
    for more, code in (
        (["test-decay"], "the operator 'test-decay' needs 'reach' in --operator-option; nothing"),
        (
            ["test-decay", "--operator-option", "reach"],
            "--operator-option is name=value, got 'reach'",
        ),
        (
            ["test-decay", "--operator-option", "reach=far"],
            "could not convert string to float: 'far'",
        ),
        (["test-decay", "--rate", "1"], "takes its parameters from --operator-option, got --rate"),
        (
            ["decay"],
            "--operator is one of graph-diffusion, heat, matrix, test-decay, weighted, got 'decay'",
        ),
        (
            ["graph-diffusion"],
            "the operator 'graph-diffusion': no operator 'graph-diffusion' on Line",
        ),
    ):
        again = ["site", "other.json", *words[2:], *more]
        assert code in refused(2, *again)
    assert not Path("other.json").exists()
    done(*("site", "heat.json", *words[2:]), "heat", "--operator-option", "diffusion_time=0.05")
    assert read_site("heat.json").operator.time == 0.05
    with pytest.raises(InvalidParameter, match="`operator_options` are of an `operator` given by"):
        describe_site("decay", operator_options={"reach": 0.1}, diffusion_time=1, **given)


def test_a_kind_on_a_graph_is_read_at_its_nodes() -> None:
    table("edges.csv", ["u", "v"], [("ann", "bob"), ("bob", "cid")])
    done(
        "site", "g.json", "--name", "g", "--graph", "edges.csv", "--radius", "1", "--operator",
        "graph-diffusion", "--operator-option", "rate=0.5", "--operator-option", "weights=[1, 2]",
    )  # fmt: skip
    site = read_site("g.json")
    assert (site.sensors.names, site.operator.time) == (("ann", "bob", "cid"), 0.5)


def test_kinds_are_not_taken_twice() -> None:
    register_operator(Decay)
    assert register_operator(Decay) is Decay

    @dataclass(frozen=True)
    class Other(Decay):
        pass

    with pytest.raises(InvalidParameter, match="there is an operator 'test-decay' already"):
        register_operator(Other)
    for kind in ("heat", "matrix", "graph-diffusion"):
        with (
            mock.patch.object(Other, "kind", kind),
            pytest.raises(
                InvalidParameter, match="already; choose another name; nothing was registered"
            ),
        ):
            register_operator(Other)
    with (
        mock.patch.object(Other, "kind", ""),
        pytest.raises(InvalidParameter, match="a printable kind"),
    ):
        register_operator(Other)
