"""`sfumato emd`: every kind of file, every mistake in one sentence, and numbers that are right."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from sfumato.cli.main import app
from sfumato.spaces import Grid
from sfumato.transport import emd

pytestmark = pytest.mark.unit

NO_EDGES = (
    "e.csv must have two nodes, whole numbers, in each row and perhaps a length; no graph was built"
)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative names, no config file and no variables from outside."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SFUMATO_")]:
        monkeypatch.delenv(name)


def run(*words: str) -> Result:
    result = CliRunner().invoke(app, ["emd", *words])
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def found(*words: str) -> dict[str, Any]:
    """The result as JSON; nothing else is printed."""
    result = run(*words, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    value: dict[str, Any] = json.loads(result.stdout)
    assert list(value) == ["value", "lower", "upper", "space", "mass"]
    assert 0 <= value["lower"] <= value["value"] <= value["upper"]
    assert value["upper"] - value["lower"] <= 1e-9 * max(1, value["mass"])
    return value


def error(code: int, *words: str) -> str:
    """The one sentence of a mistake, on stderr alone, and nothing written."""
    before = sorted(Path().iterdir())
    result = run(*words, "--quiet")
    assert result.exit_code == code, result.stderr
    assert result.stdout == ""
    sentence: str = result.stderr.removesuffix("\n")
    assert "\n" not in sentence
    assert sentence.startswith("sfumato: ")
    assert sorted(Path().iterdir()) == before
    return sentence.removeprefix("sfumato: ")


def csv(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def npy(name: str, values: Any) -> str:
    np.save(name, np.asarray(values))
    return name


def png(name: str, values: Any, mode: str | None = None) -> str:
    picture = Image.fromarray(np.asarray(values))
    (picture.convert(mode) if mode else picture).save(name)
    return name


def ends() -> tuple[str, str]:
    """All mass at the first of three cells, all at the last."""
    return csv("a.csv", "1\n0\n0\n"), csv("b.csv", "0\n0\n1\n")


# what is measured


def test_a_line_of_n_cells_is_1_long() -> None:
    result = found(*ends())
    assert result["value"] == pytest.approx(2 / 3, rel=1e-15)
    assert (result["space"], result["mass"]) == ("line", 1.0)


def test_the_text_has_the_value_and_its_bounds() -> None:
    a, b = ends()
    result, numbers = run(a, b), found(a, b)
    assert (
        result.stdout
        == f"{numbers['value']} (at least {numbers['lower']}, at most {numbers['upper']})\n"
    )
    assert result.stderr == "on a line of 3 cells, 1/3 apart\n"
    assert run(a, b, "--quiet").stderr == ""


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ("1,0,0\n", "0,0,1"),
        ("mass\n1\n0\n0\n", "mass\r\n0\r\n0\r\n1\r\n"),
        ("west,mid,east\n1,0,0\n", "\n0 , 0 , 1\n\n"),
        ('"1"\n"0"\n"0"\n', "\ufeff0\n0\n1e0\n"),
    ],
    ids=["row", "header", "names", "quotes"],
)
def test_one_row_or_one_column_is_a_line(p: str, q: str) -> None:
    Path("p.csv").write_text(p)
    Path("q.csv").write_text(q, newline="")
    assert found("p.csv", "q.csv")["value"] == pytest.approx(2 / 3, rel=1e-15)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.uint8, bool])
def test_numpy_files_of_every_real_type(kind: type) -> None:
    a, b = npy("a.npy", np.array([1, 0, 0, 0], kind)), npy("b.npy", np.array([0, 0, 0, 1], kind))
    assert found(a, b)["value"] == 0.75


def test_a_square_is_a_grid_with_the_first_row_in_the_south() -> None:
    a, b = csv("a.csv", "5,0\n0,0\n"), npy("b.npy", [[0, 0], [0, 5.0]])
    result = found(a, b)
    assert (result["value"], result["space"], result["mass"]) == (5.0, "grid", 5.0)
    assert "on a grid of 2 x 2 cells, 1 wide and 1 high, l1 metric\n" in run(a, b).stderr


def test_bounds_give_the_units() -> None:
    a, b = csv("a.csv", "5,0\n0,0\n"), csv("b.csv", "0,5\n0,0\n")
    assert found(a, b, "--bounds", "-8,40,-4,44")["value"] == 10.0
    oblong = found(a, b, "--space", "grid", "--bounds", "0,0,8,2")
    assert oblong["value"] == pytest.approx(20, rel=1e-12)


def test_the_first_row_of_a_picture_is_its_north() -> None:
    top = np.zeros((2, 2), np.uint8)
    top[0, 0] = 200
    south_west = csv("south-west.csv", "200,0\n0,0\n")
    north_west = csv("north-west.csv", "0,0\n200,0\n")
    assert found(png("top.png", top), north_west)["value"] == 0
    assert found("top.png", south_west)["value"] == 100
    assert found("top.png", south_west)["mass"] == 200


def test_grey_pictures_of_8_and_16_bits(rng: np.random.Generator) -> None:
    for kind, largest in ((np.uint8, 255), (np.uint16, 65535)):
        image = rng.integers(0, largest, (8, 8), endpoint=True).astype(kind)
        image[0, 0] = largest
        a, b = png("a.png", image), npy("b.npy", image[::-1])
        result = found(a, b)
        assert (result["value"], result["mass"]) == (0, int(image.sum()))
        other = found(a, png("c.png", image.T))
        expected = emd(image[::-1].astype(float), image.T[::-1].astype(float), Grid(3)).value
        assert other["value"] == pytest.approx(expected, rel=1e-12)


def test_black_and_white_counts_pixels() -> None:
    white = np.zeros((4, 4), bool)
    white[1, 1] = True
    assert (
        found(png("a.png", white), csv("b.csv", "0,0,0,0\n0,0,0,0\n0,1,0,0\n0,0,0,0"))["value"] == 0
    )


def test_a_graph_has_its_shortest_paths() -> None:
    a, b = ends()
    result = found(a, b, "--space", "graph", "--edges", csv("e.csv", "0,1\n1,2\n"))
    assert (result["value"], result["space"]) == (2.0, "graph")
    assert found(a, b, "--edges", csv("e.csv", "from,to,km\n0,1,1\n1,2,1\n0,2,5\n"))["value"] == 2.0
    long = found(a, b, "--edges", csv("e.csv", "from,to,km\n0,1,1.5\n1,2,4\n0,2,5\n"))
    assert long["value"] == pytest.approx(5, rel=1e-12)
    assert (
        "on a graph of 3 nodes and 3 edges, shortest paths\n"
        in run(a, b, "--edges", "e.csv").stderr
    )


def test_normalize_scales_both_to_1() -> None:
    a, b = csv("a.csv", "5\n0\n"), csv("b.csv", "0\n3\n")
    result = found(a, b, "--normalize")
    assert (result["value"], result["mass"]) == (0.5, 1.0)


# the picture


def test_a_picture_is_drawn_on_a_grid() -> None:
    a, b = csv("a.csv", "5,0\n0,0\n"), csv("b.csv", "0,0\n0,5\n")
    result = run(a, b, "--plot", "flow.png")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("5.0 (")
    assert result.stderr.splitlines()[-1] == "drawn in flow.png"
    first = Path("flow.png").read_bytes()
    assert first.startswith(b"\x89PNG\r\n\x1a\n")
    assert found(a, b, "--plot", "again.png")["value"] == 5
    assert Path("again.png").read_bytes() == first


@pytest.mark.parametrize(
    "words",
    [("--normalize",), ("--bounds", "0,0,8,2"), ("--space", "grid")],
    ids=["normalized", "oblong", "named"],
)
def test_pictures_of_every_grid(words: tuple[str, ...]) -> None:
    a, b = csv("a.csv", "5,0\n1,0\n"), csv("$x$ 北.csv", "0,0\n0,6\n")
    assert found(a, b, "--plot", "flow.png", *words)["space"] == "grid"
    assert Path("flow.png").stat().st_size > 1000


def test_a_picture_of_nothing_moved() -> None:
    a, b = csv("a.csv", "0,0\n0,0\n"), csv(f"{'b' * 60}.csv", "0,0\n0,0\n")
    assert found(a, b, "--plot", "flow.png")["value"] == 0
    assert Path("flow.png").exists()


# mistakes in the files: exit 4


def test_unequal_masses_are_named() -> None:
    a, b = csv("a.csv", "5\n0\n"), csv("b.csv", "0\n3\n")
    sentence = error(4, a, b)
    assert (
        sentence
        == "masses must be equal, got 5 and 3; scale them, or let --normalize scale both to 1"
    )
    assert "0 cannot be scaled" in error(4, a, csv("c.csv", "0\n0\n"), "--normalize")


def test_an_error_in_json_is_json() -> None:
    result = run("a.npy", "b.npy", "--json")
    assert (result.exit_code, result.stdout) == (4, "")
    assert json.loads(result.stderr) == {
        "error": {
            "message": "cannot read a.npy: No such file or directory; no distance was computed",
            "exit": 4,
        }
    }


@pytest.mark.parametrize("name", ["no.npy", "no.csv", "no.png"])
def test_a_missing_file(name: str) -> None:
    a, _ = ends()
    assert (
        error(4, a, name)
        == f"cannot read {name}: No such file or directory; no distance was computed"
    )


@pytest.mark.parametrize("name", ["dir.npy", "dir.csv", "dir.png"])
def test_a_folder_is_no_file(name: str) -> None:
    Path(name).mkdir()
    assert error(4, name, name) == f"cannot read {name}: Is a directory; no distance was computed"


@pytest.mark.parametrize("name", ["a.txt", "a", "a.npz", "a.jpg"])
def test_another_kind_of_file(name: str) -> None:
    csv(name, "1\n")
    assert error(4, name, name) == f"cannot read {name}: its name must end in .npy, .csv or .png"


@pytest.mark.parametrize(
    "content", [b"", b"my thesis\n" * 100, b"\x93NUMPY", b"\x93NUMPY\x01\x00\x08\x00{1:2,,}\n"]
)
def test_a_damaged_numpy_file(content: bytes) -> None:
    Path("a.npy").write_bytes(content)
    assert error(4, "a.npy", "a.npy") == "a.npy is not a whole .npy file of numbers"


def test_a_cut_numpy_file() -> None:
    whole = Path(npy("a.npy", np.ones(100))).read_bytes()
    Path("a.npy").write_bytes(whole[:-8])
    assert error(4, "a.npy", "a.npy") == "a.npy is not a whole .npy file of numbers"


def test_a_numpy_file_that_would_run_code_is_not_opened() -> None:
    np.save("a.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert error(4, "a.npy", "a.npy") == "a.npy is not a whole .npy file of numbers"


@pytest.mark.parametrize(("values", "kind"), [([1j], "complex128"), (["x"], "<U1")])
def test_a_numpy_file_of_something_else(values: list[Any], kind: str) -> None:
    assert (
        error(4, npy("a.npy", values), "a.npy") == f"a.npy must hold real numbers, got type {kind}"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "a.csv must hold at least one row of numbers, got none"),
        ("mass\n", "a.csv must hold at least one row of numbers, got none"),
        ("1,x\n", "line 1 of a.csv must hold numbers, got 'x'"),
        ("a\nb\n1\n", "line 2 of a.csv must hold numbers, got 'b'"),
        ("1\n\nx\n", "line 3 of a.csv must hold numbers, got 'x'"),
        ("1,2\n1,\n", "line 2 of a.csv must hold numbers, got ''"),
        ("1\n1_000\n", "line 2 of a.csv must hold numbers, got '1_000'"),
        ("1,2\n1\n", "line 2 of a.csv must hold 2 numbers like those above, got 1"),
        (
            "1\nnan\n",
            "a.csv must hold finite masses, got NaN or infinity; no distance was computed",
        ),
        (
            "1\ninf\n",
            "a.csv must hold finite masses, got NaN or infinity; no distance was computed",
        ),
        ("1\n-2\n", "a.csv must not hold negative masses, got -2; no distance was computed"),
        (
            "1e308\n1e308\n",
            "a.csv must hold a finite mass in all, got more; no distance was computed",
        ),
        (
            "1,2\n3,4\n5,6\n",
            "a.csv must be a list, or a square whose side is a power of two, got shape (3, 2): --space grid "
            "takes any rectangle; no distance was computed",
        ),
        (
            "1,2,3\n3,4,5\n5,6,7\n",
            "a.csv must be a list, or a square whose side is a power of two, got shape (3, 3): --space grid "
            "takes any rectangle; no distance was computed",
        ),
    ],
)
def test_a_csv_file_that_is_no_mass(text: str, sentence: str) -> None:
    assert error(4, csv("a.csv", text), "a.csv") == sentence


def test_a_csv_file_that_is_no_text() -> None:
    Path("a.csv").write_bytes(b"\xff\xfe\x00\x01" * 9)
    assert error(4, "a.csv", "a.csv") == "a.csv is not a CSV file of numbers"
    csv("a.csv", "9" * 200_000)
    assert error(4, "a.csv", "a.csv") == "a.csv is not a CSV file of numbers"


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        (np.ones(()), "();"),
        (np.ones((2, 2, 2)), "(2, 2, 2);"),
        (np.ones((1, 4)), "(1, 4): --space grid"),
    ],
)
def test_an_array_of_another_shape(values: np.ndarray, shape: str) -> None:
    assert f"got shape {shape}" in error(4, npy("a.npy", values), "a.npy")


@pytest.mark.parametrize("shape", [(0,), (0, 0)])
def test_an_empty_array(shape: tuple[int, ...]) -> None:
    sentence = error(4, npy("a.npy", np.ones(shape)), "a.npy")
    assert sentence == f"a.npy must hold at least one mass, got shape {shape}"


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "LA"])
def test_a_color_picture(mode: str) -> None:
    name = png("a.png", np.eye(4, dtype=np.uint8) * 255, mode)
    sentence = error(4, name, name)
    assert sentence == f"a.png must be a grey picture, got colors ({mode}); save it in grey first"


@pytest.mark.parametrize("cut", [0, 20, 40, -20])
def test_a_damaged_picture(cut: int) -> None:
    whole = Path(png("a.png", np.eye(64, dtype=np.uint8) * 255)).read_bytes()
    Path("a.png").write_bytes(whole[:cut])
    assert "a.png" in error(4, "a.png", "a.png")


def test_a_picture_by_name_only() -> None:
    assert error(4, csv("a.png", "1\n"), "a.png") == "a.png is not a PNG picture"


def test_shapes_must_agree() -> None:
    a, b = csv("a.csv", "1\n0\n"), csv("b.csv", "1\n0\n0\n")
    assert error(4, a, b) == "a.csv and b.csv must have one shape, got (2,) and (3,)"


def test_the_space_asked_for_must_fit_the_file() -> None:
    a, _ = ends()
    square = csv("square.csv", "1,0\n0,1\n")
    edges = csv("e.csv", "0,1\n")
    assert error(4, a, a, "--space", "grid") == (
        "a grid needs rows and columns of masses, got shape (3,) in a.csv; no distance was computed"
    )
    assert error(4, square, square, "--space", "line") == (
        "a line needs one list of masses, got shape (2, 2) in square.csv; no distance was computed"
    )
    assert error(4, square, square, "--edges", edges) == (
        "a graph needs one list of masses, got shape (2, 2) in square.csv; no distance was computed"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0,1\n1,3\n", "e.csv must join nodes from 0 to 2, one for each mass; no graph was built"),
        ("0,1\n-1,2\n", "e.csv must join nodes from 0 to 2, one for each mass; no graph was built"),
        ("0,1\n1,1\n", "e.csv: an edge must join two different nodes, got (1, 1); no graph was built"),
        ("0,1\n1,0\n", "e.csv: an edge must be given once, got (0, 1) again; no graph was built"),
        ("0,1,0\n", "e.csv: lengths must be positive and finite, got 0.0 at 0; no graph was built"),
        ("0,1,2,3\n", NO_EDGES),
        ("0\n", NO_EDGES),
        ("0,1.5\n", NO_EDGES),
        ("0,nan\n", NO_EDGES),
        ("0,x\n", "line 1 of e.csv must hold numbers, got 'x'"),
    ],
)  # fmt: skip
def test_bad_edges(text: str, sentence: str) -> None:
    assert error(4, *ends(), "--edges", csv("e.csv", text)) == sentence


def test_missing_edges_and_parts_without_a_path() -> None:
    assert error(4, *ends(), "--edges", "no.csv") == (
        "cannot read no.csv: No such file or directory; no distance was computed"
    )
    assert error(4, *ends(), "--edges", csv("e.csv", "0,1\n")).startswith(
        "no path joins the 2 parts"
    )


def test_a_picture_that_cannot_be_written() -> None:
    square = csv("square.csv", "1,0\n0,1\n")
    assert error(4, square, square, "--plot", "no/flow.png") == (
        "cannot write no/flow.png: No such file or directory; no distance was computed"
    )


@pytest.mark.parametrize("linked", [False, True], ids=["file", "link"])
def test_a_picture_replaces_nothing_unless_told_to(linked: bool) -> None:
    square, other, plot = csv("square.csv", "1,0\n0,1\n"), Path("mine.txt"), Path("flow.png")
    other.write_text("mine")
    if linked:
        plot.symlink_to(other)
    else:
        plot.write_text("mine")
    assert error(8, square, square, "--plot", "flow.png") == (
        "flow.png exists already and is kept; no distance was computed"
    )
    assert plot.read_text() == "mine"
    assert found(square, square, "--plot", "flow.png", "--overwrite")["value"] == 0
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert other.read_text() == "mine"
    assert not plot.is_symlink()


# mistakes on the command line: exit 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--space", "graph"], "--space graph needs --edges"),
        (
            ["--space", "line", "--edges", "e.csv"],
            "--edges goes with --space graph, got --space line",
        ),
        (
            ["--space", "grid", "--edges", "e.csv"],
            "--edges goes with --space graph, got --space grid",
        ),
        (["--space", "line", "--plot", "x.png"], "--plot is for a grid, got --space line"),
        (["--edges", "e.csv", "--plot", "x.png"], "--plot is for a grid, got --space graph"),
        (["--space", "line", "--bounds", "0,0,1,1"], "--bounds is for a grid, got --space line"),
        (["--plot", "x.png"], "--plot is for a grid, and a.csv is on a line"),
        (["--bounds", "0,0,1,1"], "--bounds is for a grid, and a.csv is on a line"),
        (["--plot", "x.svg"], "--plot writes PNG, so its name must end in .png, got x.svg"),
    ],
)
def test_options_that_do_not_go_together(words: list[str], sentence: str) -> None:
    csv("e.csv", "0,1\n1,2\n")
    assert error(2, *ends(), *words) == sentence


def test_a_picture_never_covers_what_is_measured() -> None:
    name = png("a.png", np.eye(4, dtype=np.uint8))
    content = Path(name).read_bytes()
    assert error(2, name, name, "--plot", "./a.png") == (
        "--plot a.png would write over what is measured; nothing was written"
    )
    assert Path(name).read_bytes() == content


@pytest.mark.parametrize("bounds", ["1,2,3", "a,b,c,d", "0,0,1,1,1"])
def test_bounds_are_four_numbers(bounds: str) -> None:
    square = csv("square.csv", "1,0\n0,1\n")
    assert error(2, square, square, "--bounds", bounds) == (
        f"bounds are four numbers west,south,east,north, got {bounds!r}; nothing was read"
    )
    assert "west" in error(2, square, square, "--bounds", "1,0,0,1")
