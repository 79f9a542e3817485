"""A recovery in a file is the recovery, and its check says the same; made-up sites are what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.chance import assert_share

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import MovedMass
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.sensors import Sensors
from sfumato.sensing.model.site import Site
from sfumato.sensing.planning.synthetic import block_graph, synthetic_sources
from sfumato.sensing.recovery.answer import (
    Answer,
    CredibleRegion,
    Estimate,
    SourceBeliefs,
    nearest_cells,
    on_cells,
)
from sfumato.sensing.recovery.distance import emd_of
from sfumato.sensing.recovery.estimators.least_mass import recover
from sfumato.sensing.recovery.verify import check
from sfumato.sensing.results.recovery import FORMAT, RecoveryResult, read_recovery
from sfumato.spaces import Graph, Grid, Line, Points

PLACES = [(0.1, 0.2), (0.8, 0.3), (0.4, 0.9), (0.6, 0.6)]


def operator_of(kind: str) -> Operator:
    match kind:
        case "line":
            return heat_line(sources=Line.at([0.1, 0.25, 0.7, 0.9]), sensors=6, diffusion_time=0.01)
        case "grid":
            return heat_plane(sources=Grid(2), sensors=PLACES, diffusion_time=0.02)
        case "points":
            return heat_plane(sources=Points(PLACES), sensors=PLACES, diffusion_time=0.02)
        case "graph":
            return graph_diffusion(Graph([(0, 1), (1, 2), (2, 3)]), 0.4, weights=[1, 2, 3])
        case _:
            return linear(
                [[1, 0.5, 0, 0], [0, 0.25, 1, 1]], Line(4), sensors=Sensors([0.0, 1.0], ["p", "q"])
            )


KINDS = ["line", "grid", "points", "graph", "matrix"]


def saved_of(kind: str, *, status: str = "optimal") -> RecoveryResult:
    operator = operator_of(kind)
    names = tuple("abcd") if kind == "graph" else None
    site = Site("here", operator, MovedMass(1, operator.space.metric), cells=names)
    masses = np.zeros(operator.space.size)
    masses[1] = 0.7
    exact = operator.readings(masses)
    size = float(np.linalg.norm(exact))
    match status:
        case "optimal":
            found = recover(operator, exact, radius=size / 7)
        case "zero":
            found = recover(operator, exact, radius=2 * size)
        case _:
            found = recover(operator, exact, radius=size / 7, max_mass=0.01)
    assert found.status == status
    return RecoveryResult(site, site.sensors.names, found, 0.1, "promised", True, "noon")


@pytest.mark.unit
@pytest.mark.parametrize("status", ["optimal", "zero", "infeasible"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_recovery_is_the_same_recovery(kind: str, status: str, tmp_path: Path) -> None:
    saved = saved_of(kind, status=status)
    saved.write(tmp_path / "rec.json")
    again = read_recovery(tmp_path / "rec.json")
    assert again.to_json() == saved.to_json()
    for name in ("readings", "estimate", "dual"):
        assert np.array_equal(getattr(again.certificate, name), getattr(saved.certificate, name)), (
            name
        )
    for name in ("radius", "max_mass", "status", "objective", "gap"):
        assert getattr(again.certificate, name) == getattr(saved.certificate, name), name
    assert (again.names, again.sigma, again.statement, again.rehearsal, again.time) == (
        saved.names,
        0.1,
        "promised",
        True,
        "noon",
    )
    assert check(again.certificate) == check(saved.certificate)
    assert check(again.certificate).holds
    json.loads(
        (tmp_path / "rec.json").read_text(), parse_constant=pytest.fail
    )  # no NaN, no Infinity


@pytest.mark.unit
def test_sources_say_where_they_are() -> None:
    keys = {kind: list(saved_of(kind).sources()[0]) for kind in KINDS}
    assert keys == {
        "line": ["cell", "x", "mass", "share"],
        "grid": ["cell", "x", "y", "mass", "share"],
        "points": ["cell", "x", "y", "mass", "share"],
        "graph": ["cell", "name", "mass", "share"],
        "matrix": ["cell", "x", "mass", "share"],
    }
    for kind in KINDS:
        saved = saved_of(kind)
        rows = saved.sources()
        assert sum(row["share"] for row in rows) == pytest.approx(1, abs=1e-12)
        assert [row["mass"] for row in rows] == saved.certificate.estimate[
            saved.certificate.support
        ].tolist()
    line = max(saved_of("line").sources(), key=lambda row: row["mass"])
    assert (line["cell"], line["x"]) == (1, 0.25)
    assert max(saved_of("graph").sources(), key=lambda row: row["mass"])["name"] == "b"
    assert max(saved_of("points").sources(), key=lambda row: row["mass"])["x"] == 0.8


@pytest.mark.unit
def test_tables_have_a_header_even_of_nothing() -> None:
    assert saved_of("graph", status="zero").table() == "cell,name,mass,share\n"
    head, *lines = saved_of("points").table().splitlines()
    assert head == "cell,x,y,mass,share"
    assert len(lines) == len(saved_of("points").certificate.support)


@pytest.mark.unit
def test_a_recovery_from_some_sensors_is_checked_with_those(tmp_path: Path) -> None:
    site = saved_of("line").site
    some = site.operator.take(np.array([4, 1, 2]))
    found = recover(some, some.readings([0, 1, 0, 0]), radius=0.1)
    RecoveryResult(site, ("4", "1", "2"), found, None, "").write(tmp_path / "part.json")
    again = read_recovery(tmp_path / "part.json")
    assert (again.names, again.sigma) == (("4", "1", "2"), None)
    assert np.array_equal(
        again.certificate.operator.columns([0, 1, 2, 3]), some.columns([0, 1, 2, 3])
    )
    assert check(again.certificate).holds


@pytest.mark.unit
def test_files_are_kept_unless_one_says_otherwise(tmp_path: Path) -> None:
    saved = saved_of("line")
    for name in ("rec.json", "rec.csv"):
        (tmp_path / name).write_text("kept")
        with pytest.raises(InvalidInput, match="exists already and is kept"):
            saved.write(tmp_path / name)
        assert (tmp_path / name).read_text() == "kept"
        saved.write(tmp_path / name, overwrite=True)
        assert (tmp_path / name).read_text() != "kept"
    with pytest.raises(
        InvalidParameter, match=r"written as .json or .csv, got '.txt'; nothing was written"
    ):
        saved.write(tmp_path / "rec.txt")
    with pytest.raises(InvalidInput, match=r"cannot write .*: No such file or directory"):
        saved.write(tmp_path / "none" / "rec.json")


def _without(name: str) -> Any:
    return lambda data: data.pop(name)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda data: data.update(format="sfumato-recovery/2"), f"its format is not {FORMAT}"),
        (_without("dual"), "it has no 'dual'"),
        (_without("sigma"), "it has no 'sigma'"),
        (lambda data: data["dual"].pop(), "its dual vector is not one number for each sensor"),
        (lambda data: data.update(status="perfect"), "no status 'perfect'"),
        (
            lambda data: data["sources"].append({"cell": 4, "mass": 1}),
            "in cells 0..3, each given once",
        ),
        (lambda data: data["sources"].append({"mass": 1}), "it has no 'cell'"),
        (lambda data: data["sources"].append("all"), ""),
        (lambda data: data["readings"].update(roof=1.0), "has no sensor 'roof'"),
        (lambda data: data["readings"].update({"0": "warm"}), "could not convert"),
        (lambda data: data.update(readings=[1, 2]), ""),
        (lambda data: data["site"].update(format=""), "not a whole site"),
        (lambda data: data.update(radius=None), ""),
    ],
)
def test_damaged_recoveries_are_refused(change: Any, why: str, tmp_path: Path) -> None:
    data = saved_of("line").to_json()
    change(data)
    (tmp_path / "bad.json").write_text(json.dumps(data))
    with pytest.raises(InvalidInput) as refusal:
        read_recovery(tmp_path / "bad.json")
    assert str(refusal.value).startswith(f"{tmp_path / 'bad.json'} is not a whole recovery: ")
    assert why in str(refusal.value)


@pytest.mark.unit
@pytest.mark.parametrize("text", ["", "[]", "null", "{", "\x00", '"recovery"'])
def test_what_is_no_recovery_is_not_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(InvalidInput, match=r"bad.json is not a whole recovery: "):
        read_recovery(tmp_path / "bad.json")
    with pytest.raises(InvalidInput, match=r"cannot read .*: No such file"):
        read_recovery(tmp_path / "none.json")


@pytest.mark.unit
def test_a_negative_cell_is_no_cell(tmp_path: Path) -> None:
    """NumPy counts cells from the end as well; a file that did would move a source."""
    data = saved_of("line").to_json()
    data["sources"][0]["cell"] -= 4
    (tmp_path / "bad.json").write_text(json.dumps(data))
    with pytest.raises(InvalidInput):
        read_recovery(tmp_path / "bad.json")


# how far off


@pytest.mark.unit
def test_the_error_is_the_mean_distance_mass_must_move() -> None:
    for kind, moved in (("line", 0.6), ("points", np.hypot(0.2, 0.3)), ("graph", 2.0)):
        saved = saved_of(kind)
        estimate = np.zeros(4)
        estimate[1] = 0.5  # of mass 0.5 there, 3 here: only shares count
        off = replace(saved.certificate, estimate=estimate, objective=0.5)
        truth = np.zeros(4)
        truth[3] = 3
        assert emd_of(off, truth) == pytest.approx({"line": 0.65}.get(kind, moved), rel=1e-12)
    for status in ("zero", "infeasible"):
        with pytest.raises(InvalidParameter, match=f"the status is {status}"):
            emd_of(saved_of("line", status=status).certificate, [0, 1, 0, 0])


@pytest.mark.unit
def test_between_points_mass_moves_by_the_metric_of_the_space() -> None:
    operator = heat_plane(sources=Points(PLACES, "l1"), sensors=PLACES, diffusion_time=0.02)
    found = recover(operator, operator.readings([0, 1, 0, 0]), radius=1e-6)
    # From (0.8, 0.3) to (0.6, 0.6) along the axes; straight it would be 0.36.
    assert emd_of(found, [0, 0, 0, 1]) == pytest.approx(0.5, abs=1e-4)


# answers


def answered(kind: str) -> RecoveryResult:
    """With an answer between the cells where there is a between, a band, and something of its own."""
    saved = saved_of(kind)
    space = saved.site.operator.space
    places = space.places(np.array([1, 2]))
    if kind not in ("graph", "points"):
        places = places + 0.01
    answer = Answer(
        "bayes-median",
        Estimate(saved.certificate.operator, places, np.array([0.5, 1.5])),
        (CredibleRegion(places[0], 0.25, 0.93),),
        SourceBeliefs(0.9, {2: 1.0}, (1.0, 2.0), 0.5, 12, "", True, 1.01, "the draws mixed"),
        details={"own": [1, 2]},
    )
    return replace(saved, answer=answer)


@pytest.mark.unit
@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_saved_with_the_recovery(kind: str, tmp_path: Path) -> None:
    saved = answered(kind)
    saved.write(tmp_path / "rec.json")
    again = read_recovery(tmp_path / "rec.json")
    assert again.to_json() == saved.to_json()
    assert again.answer is not None
    assert saved.answer is not None
    assert np.array_equal(again.answer.estimate.places, saved.answer.estimate.places)
    assert again.answer.regions is not None
    assert again.answer.regions[0].radius == 0.25
    assert again.answer.beliefs == saved.answer.beliefs
    assert again.answer.details == {"own": [1, 2]}
    # R and its proof are what they were, and the table is the answer's.
    assert check(again.certificate) == check(saved_of(kind).certificate)
    assert again.least_mass_sources() == saved_of(kind).sources()
    assert again.to_json()["sources"] == again.least_mass_sources()
    assert again.sources() == again.answer.sources(again.site)
    assert [row["share"] for row in again.sources()] == [0.25, 0.75]
    head, *lines = again.table().splitlines()
    assert head == saved_of(kind).table().splitlines()[0]
    assert [line.split(",")[0] for line in lines] == ["1", "2"]
    assert [float(line.split(",")[-1]) for line in lines] == [0.25, 0.75]


@pytest.mark.unit
def test_a_file_from_before_answers_is_read(tmp_path: Path) -> None:
    data = saved_of("line").to_json()
    assert data.pop("answer") is None
    (tmp_path / "old.json").write_text(json.dumps(data))
    again = read_recovery(tmp_path / "old.json")
    assert again.answer is None
    assert check(again.certificate).holds


@pytest.mark.unit
@pytest.mark.parametrize(
    "change",
    [
        _without("estimator"),
        _without("sources"),
        lambda answer: answer["sources"][0].update(mass=-1),
        lambda answer: answer["sources"][0].update(mass=float("nan")),
        lambda answer: answer["sources"][0].pop("x"),
        lambda answer: answer["bands"][0].update(radius="wide"),
        lambda answer: answer.update(sources=3),
    ],
)
def test_damaged_answers_are_refused(change: Any, tmp_path: Path) -> None:
    data = answered("line").to_json()
    change(data["answer"])
    (tmp_path / "bad.json").write_text(json.dumps(data))
    with pytest.raises(InvalidInput, match=r"bad\.json is not a whole recovery"):
        read_recovery(tmp_path / "bad.json")


@pytest.mark.unit
def test_an_answer_of_no_node_is_refused(tmp_path: Path) -> None:
    data = answered("graph").to_json()
    data["answer"]["sources"][0]["name"] = "nobody"
    (tmp_path / "bad.json").write_text(json.dumps(data))
    with pytest.raises(InvalidInput):
        read_recovery(tmp_path / "bad.json")


@pytest.mark.property
@given(st.lists(st.floats(-1, 2), min_size=1, max_size=20), st.integers(1, 9))
def test_the_nearest_cell_of_a_line_is_the_nearest(places: list[float], size: int) -> None:
    operator = heat_line(sources=size, sensors=2, diffusion_time=0.1)
    at = np.array(places)[:, np.newaxis]
    cells = nearest_cells(operator, at)
    apart = np.abs(at - operator.space.positions)
    assert np.array_equal(apart[np.arange(len(at)), cells], apart.min(axis=1))
    held = on_cells(operator, Estimate(operator, at, np.ones(len(at))))
    assert held.sum() == len(at)


@pytest.mark.unit
def test_the_nearest_cell_of_a_grid_holds_the_place() -> None:
    grid = Grid(3)
    operator = heat_plane(sources=grid, sensors=PLACES, diffusion_time=0.02)
    edge = np.array([[0.0, 0.0], [1.0, 1.0], [1.2, -0.1], [0.4, 0.7]])
    cells = nearest_cells(operator, edge)
    assert cells.tolist() == grid.cells_of([0, 1, 1, 0.4], [0, 1, 0, 0.7]).tolist()


# made-up sites


@pytest.mark.property
@given(st.integers(1, 30), st.data())
def test_made_up_sources_are_units_in_different_cells(size: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, size))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    masses = synthetic_sources(Line(size), count, rng=rng)
    assert sorted(set(masses.tolist())) == ([1.0] if count == size else [0.0, 1.0])
    assert masses.sum() == count


@pytest.mark.unit
def test_more_sources_than_cells_are_refused(rng: np.random.Generator) -> None:
    for count in (0, 6):
        with pytest.raises(InvalidParameter, match="sources"):
            synthetic_sources(Line(5), count, rng=rng)


@pytest.mark.statistical
def test_every_cell_is_as_likely(rng: np.random.Generator) -> None:
    trials = 4000
    hits = sum(int(synthetic_sources(Line(10), 3, rng=rng)[7]) for _ in range(trials))
    assert_share(hits, trials, 0.3, rivals=[0.2, 0.4])


@pytest.mark.statistical
def test_block_graphs_have_their_edges_and_hold_together(rng: np.random.Generator) -> None:
    inside = across = 0
    for _ in range(20):
        graph, labels = block_graph([40, 60], inside=0.3, across=0.05, rng=rng)
        assert labels.tolist() == [0] * 40 + [1] * 60
        assert not graph.components().any()
        same = labels[graph.edges[:, 0]] == labels[graph.edges[:, 1]]
        inside, across = inside + int(same.sum()), across + int((~same).sum())
    # At these shares a node without an edge has a chance below 1e-6, so no edge was added to hold
    # it.
    assert_share(inside, 20 * (40 * 39 + 60 * 59) // 2, 0.3, rivals=[0.28, 0.32])
    assert_share(across, 20 * 40 * 60, 0.05, rivals=[0.038, 0.062])


@pytest.mark.property
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.floats(0, 1), st.integers(0, 2**32))
def test_block_graphs_are_connected_with_as_few_edges_as_that_takes(
    sizes: list[int], share: float, seed: int
) -> None:
    graph, labels = block_graph(sizes, inside=share, across=0, rng=np.random.default_rng(seed))
    assert graph.size == labels.size == sum(sizes)
    assert not graph.components().any()
    empty, _ = block_graph(sizes, inside=0, across=0, rng=np.random.default_rng(seed))
    assert len(empty.edges) == labels.size - 1  # a tree: each edge joined two parts


@pytest.mark.unit
@pytest.mark.parametrize(("inside", "across"), [(1.5, 0), (0.5, -0.1), (float("nan"), 0)])
def test_shares_of_edges_are_probabilities(
    inside: float, across: float, rng: np.random.Generator
) -> None:
    with pytest.raises(InvalidParameter, match=r"must be a probability, got .*; no graph was made"):
        block_graph([2, 2], inside=inside, across=across, rng=rng)
