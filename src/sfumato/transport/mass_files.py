"""Masses from arrays, tables and files (.npy, .csv, grey .png), and the space that their shape fits."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.spaces import Graph
from sfumato.transport.masses import as_array

Masses = npt.ArrayLike | str | Path
"""Anything masses are taken from: an array, a table, or the path of a file."""

# What Pillow calls pictures without color, of 1, 8 and 16 bits.
GREY = {"1", "L", "I", "I;16", "I;16B"}


def masses_of(masses: Masses, name: str) -> FloatArray:
    """Masses as doubles, whether they came as an array, a table or a file."""
    if isinstance(masses, str | Path):
        return read_masses(masses)
    given = as_array(masses, name)
    if hasattr(masses, "to_numpy") and given.ndim == 2 and 1 in given.shape:
        given = given.ravel()  # a table with one column is a list, as in a file
    if given.dtype.kind not in "iufb":
        raise InvalidInput(
            f"{name} must be numbers, got type {given.dtype}; no distance was computed"
        )
    return np.asarray(given, dtype=np.float64)


def usual_space(shape: tuple[int, ...], name: str) -> Literal["line", "grid"]:
    """The space that masses of a shape are on, unless another is named."""
    if len(shape) == 1:
        return "line"
    if grid_levels(shape) is not None:
        return "grid"
    way = ": `space` grid takes any rectangle" if len(shape) == 2 else ""
    raise InvalidInput(
        f"{name} must be a list, or a square whose side is a power of two, got shape {shape}{way}; "
        "no distance was computed"
    )


def grid_levels(shape: tuple[int, ...]) -> int | None:
    """The levels of a grid of that shape, if there is one."""
    if len(shape) != 2 or shape[0] != shape[1] or shape[0].bit_count() != 1:
        return None
    return shape[0].bit_length() - 1


def read_masses(path: str | Path) -> FloatArray:
    """Read masses from a file.

    .npy with an array of real numbers, .csv with rows of numbers (the first row may be names), or a grey
    .png, where white is most and the first row is the north. A list [cells], or an image [row, column] with
    row 0 in the south; finite and not negative.
    """
    file = Path(path)
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


def read_graph(path: str | Path, nodes: int) -> Graph:
    """Read a graph whose nodes are numbers.

    CSV: two nodes, counted from 0, and perhaps a length in each row.
    """
    file = Path(path)
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


def _npy(file: Path) -> FloatArray:
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
