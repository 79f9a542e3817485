"""`sfumato emd`: the earth mover's distance between two files, between proven bounds."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.cli.graph import Overwrite
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import check_writable, write_file

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sfumato.spaces import Graph, Grid, Line
    from sfumato.transport import Transport

    FloatArray = npt.NDArray[np.float64]

GREY = {
    "1",
    "L",
    "I",
    "I;16",
    "I;16B",
}  # what Pillow calls pictures without color, of 1, 8 and 16 bits


class Kind(StrEnum):
    """Names of spaces on the command line."""

    line = "line"
    grid = "grid"
    graph = "graph"


@sentences
def emd(
    a: Annotated[
        Path,
        typer.Argument(
            help="Masses: .npy, .csv, or a grey .png, where white is most.", show_default=False
        ),
    ],
    b: Annotated[Path, typer.Argument(help="Masses of the same shape.", show_default=False)],
    space: Annotated[
        Kind | None,
        typer.Option(help="Where the mass lives; by itself, a list is a line and a square a grid."),
    ] = None,
    edges: Annotated[
        Path | None,
        typer.Option(help="Edges of the graph, CSV: two nodes, counted from 0, and a length."),
    ] = None,
    bounds: Annotated[
        str,
        typer.Option(help="West,south,east,north of the grid, for its units; else a unit square."),
    ] = "",
    normalize: Annotated[bool, typer.Option("--normalize", help="Scale both masses to 1.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw where mass moves on a grid, as PNG.")
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how far mass must move to turn A into B, between a lower and an upper bound that were proved.

    The first row of a picture is its north, the first row of numbers the south. On a line of n
    cells they are 1/n apart, on a grid the metric is l1, on a graph it is shortest paths.
    """
    from sfumato.transport import emd as distance

    _check_options(space, edges=edges, bounds=bounds, plot=plot, inputs=(a, b))
    if plot is not None:
        check_writable(plot, overwrite=overwrite, lost="no distance was computed")
    p, q = _masses(a), _masses(b)
    if p.shape != q.shape:
        raise InvalidInput(f"{a} and {b} must have one shape, got {p.shape} and {q.shape}")
    kind = (Kind.graph if edges else _usual(p.shape, a)) if space is None else space
    if kind is not Kind.grid and (bounds or plot):
        raise InvalidParameter(
            f"{'--bounds' if bounds else '--plot'} is for a grid, and {a} is on a {kind}"
        )
    place = _place(kind, p.shape, file=a, edges=edges, bounds=bounds)
    say(_described(place), quiet=quiet or json)
    try:
        found = distance(p, q, place, normalize=normalize, flow=plot is not None)
    except InvalidInput as problem:
        raise InvalidInput(str(problem).replace("normalize=True", "--normalize")) from None
    mass = 1.0 if normalize else float(p.sum())
    if plot is not None:
        picture = _picture(found, p, q, names=(a.name, b.name), normalize=normalize)
        write_file(plot, picture, overwrite=overwrite)
        say(f"drawn in {plot}", quiet=quiet or json)
    result = {
        "value": found.value,
        "lower": found.lower,
        "upper": found.upper,
        "space": kind.value,
        "mass": mass,
    }
    show(result, f"{found.value} (at least {found.lower}, at most {found.upper})", json=json)


def _check_options(
    space: Kind | None,
    *,
    edges: Path | None,
    bounds: str,
    plot: Path | None,
    inputs: tuple[Path, Path],
) -> None:
    """What can be known to be wrong before any file is read."""
    if space is Kind.graph and edges is None:
        raise InvalidParameter("--space graph needs --edges FILE")
    if edges and space not in (None, Kind.graph):
        raise InvalidParameter(f"--edges goes with --space graph, got --space {space}")
    on_grid = space in (None, Kind.grid) and not edges
    for name, asked in (("--bounds", bounds), ("--plot", plot)):
        if asked and not on_grid:
            raise InvalidParameter(f"{name} is for a grid, got --space {space or Kind.graph}")
    if plot and plot.suffix.lower() != ".png":
        raise InvalidParameter(f"--plot writes PNG, so its name must end in .png, got {plot}")
    if plot and plot.resolve() in [path.resolve() for path in inputs]:
        raise InvalidParameter(
            f"--plot {plot} would write over what is measured; nothing was written"
        )


# -- the space


def _usual(shape: tuple[int, ...], file: Path) -> Kind:
    if len(shape) == 1:
        return Kind.line
    if _levels(shape) is not None:
        return Kind.grid
    raise InvalidInput(
        f"{file} must be a list, or a square whose side is a power of two, got shape {shape}; "
        "no distance was computed"
    )


def _levels(shape: tuple[int, ...]) -> int | None:
    """The levels of a grid of that shape, if there is one."""
    if len(shape) != 2 or shape[0] != shape[1] or shape[0].bit_count() != 1:
        return None
    return shape[0].bit_length() - 1


def _place(
    kind: Kind, shape: tuple[int, ...], *, file: Path, edges: Path | None, bounds: str
) -> Line | Grid | Graph:
    from sfumato.spaces import Grid, Line

    if kind is Kind.grid:
        levels = _levels(shape)
        if levels is None:
            raise InvalidInput(
                f"a grid needs a square whose side is a power of two, got shape {shape} in {file}; "
                "no distance was computed"
            )
        return Grid(levels, _corners(bounds)) if bounds else Grid(levels)
    if len(shape) != 1:
        raise InvalidInput(
            f"a {kind} needs one list of masses, got shape {shape} in {file}; no distance was computed"
        )
    return _graph(edges, shape[0]) if edges else Line(shape[0])


def _corners(bounds: str) -> tuple[float, float, float, float]:
    try:
        west, south, east, north = (float(part) for part in bounds.split(","))
    except ValueError:
        raise InvalidParameter(
            f"--bounds must be four numbers, west,south,east,north, got {bounds!r}"
        ) from None
    return west, south, east, north


def _graph(file: Path, nodes: int) -> Graph:
    import numpy as np

    from sfumato.spaces import Graph

    table = _table(file)
    ends = table[:, :2]
    if table.shape[1] not in (2, 3) or not (
        np.isfinite(ends).all() and (ends == np.rint(ends)).all()
    ):
        raise InvalidInput(
            f"{file} must have two nodes, whole numbers, in each row and perhaps a length; no graph was built"
        )
    if not ((ends >= 0) & (ends < nodes)).all():
        raise InvalidInput(
            f"{file} must join nodes from 0 to {nodes - 1}, one for each mass; no graph was built"
        )
    lengths = table[:, 2] if table.shape[1] == 3 else None
    try:
        return Graph(ends.astype(np.int64), lengths, nodes=nodes)
    except InvalidParameter as problem:
        raise InvalidInput(f"{file}: {problem}") from None


def _described(place: Line | Grid | Graph) -> str:
    from sfumato.spaces import Grid, Line

    if isinstance(place, Line):
        return f"on a line of {place.size} cells, 1/{place.size} apart"
    if isinstance(place, Grid):
        west, south, east, north = place.bounds
        across = f"{east - west:g} wide and {north - south:g} high"
        return f"on a grid of {place.side} x {place.side} cells, {across}, l1 metric"
    return f"on a graph of {place.size} nodes and {len(place.edges)} edges, shortest paths"


# -- the files


def _masses(file: Path) -> FloatArray:
    """What a file holds, [row, column] with row 0 in the south or a list: finite numbers, none negative."""
    import numpy as np

    read = {".npy": _npy, ".csv": _csv, ".png": _png}.get(file.suffix.lower())
    if read is None:
        raise InvalidInput(f"cannot read {file}: its name must end in .npy, .csv or .png")
    values = read(file)
    if not values.size:
        raise InvalidInput(f"{file} must hold at least one mass, got shape {values.shape}")
    if not np.isfinite(values).all():
        raise InvalidInput(
            f"{file} must hold finite masses, got NaN or infinity; no distance was computed"
        )
    if values.min() < 0:
        raise InvalidInput(
            f"{file} must not hold negative masses, got {values.min():g}; no distance was computed"
        )
    with np.errstate(over="ignore"):
        if not np.isfinite(values.sum()):
            raise InvalidInput(
                f"{file} must hold a finite mass in all, got more; no distance was computed"
            )
    return values


def _npy(file: Path) -> FloatArray:
    import numpy as np

    try:
        with file.open("rb") as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
    except OSError as problem:
        raise _unreadable(file, problem) from None
    except Exception:  # a damaged header ends in any error of Python's own parser
        raise InvalidInput(f"{file} is not a whole .npy file of numbers") from None
    if array.dtype.kind not in "biuf":
        raise InvalidInput(f"{file} must hold real numbers, got type {array.dtype}")
    return np.asarray(array, dtype=np.float64)


def _csv(file: Path) -> FloatArray:
    table = _table(file)
    return table.ravel() if 1 in table.shape else table


def _table(file: Path) -> FloatArray:
    """The rows of a CSV file; the first may be names instead of numbers."""
    import csv

    import numpy as np

    rows: list[list[float]] = []
    named = False
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream)
            for row in filter(None, reader):
                values = [_number(word) for word in row]
                if not rows and not named and all(value is None for value in values):
                    named = True
                    continue
                if None in values:
                    raise InvalidInput(
                        f"line {reader.line_num} of {file} must hold numbers, got {row[values.index(None)]!r}"
                    )
                if rows and len(values) != len(rows[0]):
                    raise InvalidInput(
                        f"line {reader.line_num} of {file} must hold {len(rows[0])} numbers like those "
                        f"above, got {len(values)}"
                    )
                rows.append([value for value in values if value is not None])
    except OSError as problem:
        raise _unreadable(file, problem) from None
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput(f"{file} is not a CSV file of numbers") from None
    if not rows:
        raise InvalidInput(f"{file} must hold at least one row of numbers, got none")
    return np.array(rows)


def _number(word: str) -> float | None:
    try:
        return None if "_" in word else float(word)
    except ValueError:
        return None


def _png(file: Path) -> FloatArray:
    import warnings

    import numpy as np
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(file, formats=["PNG"]) as picture:
                mode, values = picture.mode, np.asarray(picture)
    except UnidentifiedImageError:
        raise InvalidInput(f"{file} is not a PNG picture") from None
    except OSError as problem:
        raise _unreadable(file, problem) from None
    except (SyntaxError, ValueError, Image.DecompressionBombError):
        raise InvalidInput(f"{file} is not a whole PNG picture of a readable size") from None
    if mode not in GREY:
        raise InvalidInput(
            f"{file} must be a grey picture, got colors ({mode}); save it in grey first"
        )
    return np.flipud(values).astype(np.float64)


def _unreadable(file: Path, problem: OSError) -> InvalidInput:
    return InvalidInput(
        f"cannot read {file}: {problem.strerror or problem}; no distance was computed"
    )


# -- the picture


def _picture(
    found: Transport, p: FloatArray, q: FloatArray, *, names: tuple[str, str], normalize: bool
) -> bytes:
    """Scales follow the two files here: whoever measures them can read them."""
    import warnings

    from sfumato.figures import arrows, flow_field
    from sfumato.transport import GridFlow

    if not isinstance(found.flow, GridFlow):
        raise InvalidParameter("--plot is for a grid")
    if normalize:
        p, q = p / p.sum(), q / q.sum()
    field = arrows(found.flow.east, found.flow.north, p.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a letter of a file's name that no font has
        return flow_field(
            p,
            q,
            found.flow.east,
            found.flow.north,
            caption=f"earth mover's distance {found.value:.6g} on {len(p)} x {len(p)} cells, l1; "
            "one of the cheapest ways to move the mass",
            unit="share of the mass" if normalize else "mass",
            top=max(float(p.max()), float(q.max())) or 1.0,
            longest=float(field.mass.max()) or None,
            names=(_short(names[0]), _short(names[1])),
        )


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:24]}...{name[-13:]}"
