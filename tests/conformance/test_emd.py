"""`sfumato emd --json`, `compare_masses`, `emd` and a saved result say the same of the same masses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.spaces import Graph, Grid, Line
from sfumato.transport import (
    EmdResult,
    Transport,
    compare_masses,
    draw_emd,
    emd,
    render_emd,
    solve_on,
)
from sfumato.transport.mass_files import read_masses

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def told(*words: str) -> Any:
    result = CliRunner().invoke(app, ["emd", *words, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def save(values: Any, name: str) -> str:
    path = Path(name)
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".csv":
        np.savetxt(path, values, delimiter=",")
    else:
        Image.fromarray(np.flipud(values).astype(np.uint8)).save(path)
    return name


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".png"])
def test_a_grid(suffix: str, rng: np.random.Generator) -> None:
    p, q = rng.integers(0, 256, (2, 8, 8))
    a, b = save(p, f"a{suffix}"), save(q, f"b{suffix}")
    bounds = (0.0, 0.0, 4.0, 4.0)
    said = told(a, b, "--bounds", "0,0,4,4", "--normalize")
    by_file = compare_masses(a, b, bounds=bounds, normalize=True)
    by_array = compare_masses(p, q, space="grid", bounds=bounds, normalize=True)
    assert said == by_file.to_json() == by_array.to_json()
    assert EmdResult.from_json(json.loads(json.dumps(said))) == by_file
    found = emd(p, q, Grid(3, bounds), normalize=True)
    assert (found.value, found.lower, found.upper) == (said["value"], said["lower"], said["upper"])
    assert emd(a, b, Grid(3, bounds), normalize=True) == found
    assert np.array_equal(read_masses(a), p)


def test_the_picture_is_drawn_by_whoever_asks(rng: np.random.Generator) -> None:
    p, q = rng.integers(0, 9, (2, 4, 4))
    a, b = save(p, "a.csv"), save(q, "b.csv")
    told(a, b, "--normalize", "--plot", "flow.png")
    found = compare_masses(a, b, normalize=True, flow=True)
    assert Path("flow.png").read_bytes() == draw_emd(found, names=(a, b), shares=True)
    with pytest.raises(InvalidParameter, match=r"`flow` on a grid; nothing was drawn"):
        draw_emd(compare_masses(a, b, normalize=True))


def test_a_line_and_a_graph(rng: np.random.Generator) -> None:
    p = rng.random(6)
    q = rng.permutation(p)
    a, b = save(p, "a.npy"), save(q, "b.npy")
    assert (
        told(a, b) == compare_masses(p, q).to_json() == compare_masses(Path(a), Path(b)).to_json()
    )
    assert told(a, b)["value"] == emd(p, q).value == emd(p, q, Line(6)).value == emd(a, b).value
    Path("e.csv").write_text("u,v,length\n" + "".join(f"{i},{i + 1},{i + 1}\n" for i in range(5)))
    said = told(a, b, "--edges", "e.csv")
    assert said == compare_masses(p, q, edges="e.csv").to_json()
    graph = Graph([(i, i + 1) for i in range(5)], range(1, 6))
    assert said["value"] == emd(p, q, graph).value


def test_tables_are_taken_where_arrays_are(rng: np.random.Generator) -> None:
    p, q = rng.integers(1, 9, (2, 4, 4))
    frames = pd.DataFrame(p), pd.DataFrame(q)
    assert emd(*frames, normalize=True) == emd(p, q, Grid(2), normalize=True)
    columns = pd.DataFrame({"mass": [1, 0, 0]}), pd.Series([0, 0, 1])
    assert emd(*columns).value == emd([1, 0, 0], [0, 0, 1], Line(3)).value
    assert compare_masses(*columns).space == "line"


def test_the_words_are_those_of_the_result() -> None:
    a, b = save([1.0, 0.0], "a.csv"), save([0.0, 1.0], "b.csv")
    result = CliRunner().invoke(app, ["emd", a, b])
    assert result.stdout == render_emd(compare_masses(a, b)) + "\n"
    steps: list[str] = []
    compare_masses(a, b, watch=steps.append)
    assert steps == ["on a line of 2 cells, 1/2 apart"] == result.stderr.splitlines()


def test_mistakes_name_parameters_and_options() -> None:
    a, b = save([1.0, 0.0], "a.csv"), save([0.0, 1.0], "b.csv")
    with pytest.raises(InvalidParameter, match=r"^`space` graph needs `edges`$"):
        compare_masses(a, b, space="graph")
    result = CliRunner().invoke(app, ["emd", a, b, "--space", "graph"])
    assert (result.exit_code, result.stderr) == (2, "sfumato: --space graph needs --edges\n")
    with pytest.raises(
        InvalidParameter, match=r"^`bounds` is for a grid, and a\.csv is on a line$"
    ):
        compare_masses(a, b, bounds=(0, 0, 1, 1))
    with pytest.raises(InvalidInput, match="a must be numbers"):
        compare_masses(["x"], ["y"])


@pytest.mark.parametrize(
    "data", [{}, {"value": 3}, 7, {"value": 3, "lower": 4, "upper": 5, "mass": 1}]
)
def test_what_is_no_result_is_refused(data: Any) -> None:
    with pytest.raises(InvalidInput, match="not a whole distance"):
        EmdResult.from_json(data)


def test_a_space_from_outside_has_its_own_solver() -> None:
    class Anywhere:
        """A space without distances."""

    solve_on.register(Anywhere, lambda space, p, q, *, normalize, flow: Transport(0.0, 0.0, 0.0))
    assert emd([1], [1], Anywhere()).value == 0.0  # type: ignore[arg-type]
