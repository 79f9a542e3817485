"""Public knowledge of where people can be at all: roads, a raster, a picture; it sharpens a map for free."""

from __future__ import annotations

import hashlib
import io
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, assert_never

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import MAX_BYTES, Feature, features_of, number_of, read_bytes
from sfumato.heatmap.analysis.overlap import areas, lengths, line_edges, moved, ring_edges, turns
from sfumato.heatmap.tiles import Tiles
from sfumato.records import named_files
from sfumato.spaces import Area, Grid

# Cells of weights: 512 x 512 of them, so that a sharpened map can still be saved and sent.
FINEST_PRIOR = 9
MOST_NUMBERS, LONGEST = 2**25, 2**14
# The part of a tile's mass that stays even, whatever the prior says. A prior that is right gains
# all but -ln(0.9) = 0.11 of what it could in KL; one that is wrong loses at most -ln(0.1) = 2.3,
# and no place that is on the map without it goes below a tenth.
EVEN = 0.1
UNDONE = "nothing was charged"
_NO_EDGES = np.zeros((0, 2, 2))
SUFFIXES = (".geojson", ".json", ".npy", ".png")


@dataclass(frozen=True, slots=True, eq=False)
class Raster:
    """Weights [row, column] over the whole grid, row 0 at the lowest y."""

    values: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """Weights [row, column] over the bounds of an area, row 0 on top."""

    values: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """A file that its user declared public, read once; `sha256` is of the very bytes that were read."""

    file: str
    sha256: str
    layer: tuple[Feature, ...] | Raster | Picture

    def weights(self, area: Area, level: int | None = None) -> FloatArray:
        """Weights [row, column] of the cells of a level, row 0 at the lowest y; only their ratios matter.

        A line weighs its length and a polygon its area, both in cells, a point 1; each times the
        feature's own "weight", if it has a number of that name. A raster is resampled by area.
        """
        chosen = min(area.grid.levels, FINEST_PRIOR) if level is None else level
        return _weights_of(self, area, chosen)

    def check(self, area: Area) -> None:
        """Refuse a prior that says nothing of an area, before anything is charged."""
        level = min(area.grid.levels, FINEST_PRIOR)
        first_column, first_row, last_column, last_row = area.window(level)
        window = self.weights(area, level)[first_row:last_row, first_column:last_column]
        if not window.sum() > 0:
            raise InvalidParameter(
                f"a prior must have some weight inside the area, {self.file} has none; {UNDONE}"
            )


@dataclass(frozen=True, slots=True)
class Declared:
    """What a map says of the prior it follows: file, digest, and how many tiles it had before."""

    file: str
    sha256: str
    tiles: int

    def __str__(self) -> str:
        return f"prior {self.file} (sha256 {self.sha256[:12]}), declared public by the user"

    def to_json(self) -> dict[str, Any]:
        """The record, and the sentence it makes."""
        return {
            "file": self.file,
            "sha256": self.sha256,
            "tiles": self.tiles,
            "statement": str(self),
        }

    @classmethod
    def from_json(cls, data: Any) -> Declared | None:
        """The record of a saved map; none, if it followed no prior. ValueError for anything else."""
        if data is None:
            return None
        file, digest, tiles = data["file"], data["sha256"], data["tiles"]
        if [type(one) for one in (file, digest, tiles)] != [
            str,
            str,
            int,
        ] or not file.isprintable():
            raise ValueError("the record of its prior is not whole")
        found = cls(file, digest, tiles)
        if data["statement"] != str(found):
            raise ValueError("the statement of its prior is not that of its record")
        return found


def read_prior(path: str | Path) -> Prior:
    """A public file to sharpen maps by: .geojson (or .json), .npy or .png.

    GeoJSON holds lines, polygons or points; an array is non-negative and lies over the grid, row 0
    at the lowest y; a picture lies over the bounds, and its luminance is the weight (what is
    transparent weighs 0). Whoever gives it declares it public: nothing in it is protected.

    Args:
        path: The file; its suffix says how it is read.

    Returns:
        The prior, with the digest of the bytes that were read.

    Raises:
        InvalidParameter: The suffix is another.
        InvalidInput: The file cannot be read, or has no weight.

    """
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidParameter(
            f"a prior ends in one of {', '.join(SUFFIXES)}, got {file}; {UNDONE}"
        )
    if not file.name.isprintable():
        raise InvalidParameter(
            f"the name of a prior must be printable, got {file.name!r}; {UNDONE}"
        )
    data = read_bytes(
        file, undone=UNDONE, max_bytes=MAX_BYTES if "json" in suffix else 8 * MOST_NUMBERS + 2**16
    )
    digest = hashlib.sha256(data).hexdigest()
    match suffix:
        case ".npy":
            return Prior(file.name, digest, Raster(_array(data, file)))
        case ".png":
            return Prior(file.name, digest, Picture(_luminance(data, file)))
        case _:
            return Prior(
                file.name, digest, _weighed(features_of(data, str(file), undone=UNDONE), file)
            )


def sharpened(tiles: Tiles, weights: FloatArray, *, even: float = EVEN) -> Tiles:
    """The same map, each tile's mass following public weights within it; what it holds stays what it was.

    A share `even` of every tile's mass stays evenly spread, so that nothing public makes a place
    vanish; a tile without weight, or no larger than a cell of the weights, stays as it is. Weights
    are [row, column] of a whole level, row 0 at the lowest y.

    Privacy: post-processing of what was released with what is public; it costs nothing.

    Args:
        tiles: The map.
        weights: Public weights of a whole level [row, column], at least 0.
        even: The share of every tile's mass that stays even, in (0, 1].

    Returns:
        The map with the same mass in every tile.

    Raises:
        InvalidParameter: The weights are not those of a level, or a number is out of range.

    Example:
        >>> tiles = Tiles(Grid(1), np.array([0]), np.array([0]), np.array([40.0]))
        >>> sharpened(tiles, np.array([[0.0, 3.0], [0.0, 1.0]])).image()
        array([[ 1., 28.],
               [ 1., 10.]])

    """
    if not 0 < even <= 1:
        raise InvalidParameter(
            f"the even share must lie in (0, 1], got {even}; nothing was sharpened"
        )
    side = weights.shape[0] if weights.ndim == 2 else 0
    level = side.bit_length() - 1
    if weights.shape != (1 << max(level, 0),) * 2 or level > tiles.grid.levels:
        raise InvalidParameter(
            f"weights are those of a whole level, at most {tiles.grid.levels}, got shape {weights.shape}; "
            "nothing was sharpened"
        )
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise InvalidParameter("weights must be finite and at least 0; nothing was sharpened")
    peak = float(weights.max())
    by_code = tiles.grid.at_level(level).values_of_image(weights / peak if peak > 0 else weights)
    some = np.flatnonzero(by_code)
    added, masses = np.zeros(some.size), tiles.masses.copy()
    for above in np.unique(tiles.levels[tiles.levels < level]).tolist():
        here = np.flatnonzero(tiles.levels == above)
        parent = some >> 2 * (level - above)
        sums = np.bincount(parent, by_code[some], minlength=4**above)
        follows = here[sums[tiles.codes[here]] > 0]
        given = np.bincount(tiles.codes[follows], (1 - even) * masses[follows], minlength=4**above)
        added += given[parent] * (by_code[some] / sums[parent])
        masses[follows] *= even
    filled = added > 0
    return Tiles(
        tiles.grid,
        np.concatenate([tiles.levels, np.full(int(filled.sum()), level, dtype=np.int64)]),
        np.concatenate([tiles.codes, some[filled].astype(np.int64)]),
        np.concatenate([masses, added[filled]]),
    )


def declared_prior(
    prior: Prior | str | Path | None, area: Area, *, rows: Any = None
) -> Prior | None:
    """The prior, refused before anything is charged if it is private or of no use.

    That is one of the files of `rows`, one that cannot be read, or one without weight inside the
    area.
    """
    if prior is None:
        return None
    if isinstance(prior, Prior):
        prior.check(area)
        return prior
    path = Path(prior)
    if any(_is_among(path, one) for one in named_files(rows)):
        raise InvalidParameter(
            f"a prior is public, {path} is the private table itself; nothing was charged"
        )
    found = read_prior(path)
    found.check(area)
    return found


def _is_among(path: Path, rows: Path) -> bool:
    """Whether a file is the table, under any name, or one of a folder of it."""
    try:
        return path.samefile(rows) or (rows.is_dir() and rows.resolve() in path.resolve().parents)
    except OSError:  # one of them does not exist: reading it will say so
        return False


# -- reading


def _array(data: bytes, file: Path) -> FloatArray:
    try:
        stream = io.BytesIO(data)
        version = np.lib.format.read_magic(stream)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else _second_header
        shape, _, kind = header(stream)
    except Exception:  # a damaged header ends in any error of Python's own parser
        raise InvalidInput(f"{file} is not a whole .npy file of numbers; {UNDONE}") from None
    if kind.kind not in "biuf" or len(shape) != 2 or 0 in shape:
        raise InvalidInput(
            f"a prior in .npy has rows and columns of real numbers, {file} has shape {shape} of {kind}; "
            f"{UNDONE}"
        )
    _small(shape, file)
    try:
        values = np.load(io.BytesIO(data), allow_pickle=False)
    except Exception:
        raise InvalidInput(f"{file} is not a whole .npy file of numbers; {UNDONE}") from None
    with np.errstate(over="ignore"):  # what a double cannot hold is refused below
        return _weights(values.astype(np.float64), file)


def _second_header(stream: io.BytesIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    return np.lib.format.read_array_header_2_0(stream)


def _luminance(data: bytes, file: Path) -> FloatArray:
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
                _small(picture.size, file)
                if picture.mode.startswith("I"):  # 16 bits of grey, which a conversion would cut
                    return _weights(np.asarray(picture, dtype=np.float64), file)
                both = np.asarray(picture.convert("LA"), dtype=np.float64)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as problem:
        if isinstance(problem, InvalidInput):
            raise
        raise InvalidInput(f"{file} is not a whole PNG picture; {UNDONE}") from None
    return _weights(both[..., 0] * both[..., 1], file)


def _small(shape: tuple[int, ...], file: Path) -> None:
    if shape[0] * shape[1] > MOST_NUMBERS or max(shape) > LONGEST:
        raise InvalidInput(
            f"a prior may have at most {MOST_NUMBERS} numbers and {LONGEST} a side, {file} has {shape[0]} x "
            f"{shape[1]}; {UNDONE}"
        )


def _weights(values: FloatArray, file: Path) -> FloatArray:
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise InvalidInput(
            f"the weights of a prior must be finite and at least 0, in {file} some are not; {UNDONE}"
        )
    peak = float(values.max())
    if not peak > 0:
        raise InvalidInput(f"a prior must have some weight, {file} has none; {UNDONE}")
    return values / peak  # sums of huge ones stay finite


def _weighed(found: tuple[Feature, ...], file: Path) -> tuple[Feature, ...]:
    """The features with weights that are no numbers left aside; a negative or infinite one is refused."""
    for one in found:
        said = one.properties.get("weight", 1)
        if isinstance(said, int | float) and not isinstance(said, bool):
            weight = number_of(said)
            if weight is None or not 0 <= weight <= 1e100:
                raise InvalidInput(
                    f"the weight of a feature must be finite and at least 0, {file} has {str(said)[:40]}; "
                    f"{UNDONE}"
                )
    return found


# -- weights on cells


@lru_cache(maxsize=1)
def _weights_of(prior: Prior, area: Area, level: int) -> FloatArray:
    """Worked out once for all maps of a release, and for the check before it."""
    grid = area.grid.at_level(level)
    match prior.layer:
        case Raster(values):
            found = _resampled(values, grid.bounds, grid)
        case Picture(values):
            # y grows downward in pixels: there the top row is the lowest y.
            upward = values if area.kind == "pixels" else values[::-1]
            found = _resampled(upward, area.bounds, grid)
        case tuple():
            found = _drawn(prior.layer, area, grid)
        case _:
            assert_never(prior.layer)
    found.setflags(write=False)
    return found


def _drawn(shapes: tuple[Feature, ...], area: Area, grid: Grid) -> FloatArray:
    found = [number_of(one.properties.get("weight")) for one in shapes]
    own = [1.0 if weight is None else weight for weight in found]
    rings = _joined(
        [np.concatenate([_NO_EDGES, *map(ring_edges, one.polygons)]) for one in shapes], own
    )
    lines = _joined([line_edges(one.lines) if one.lines else _NO_EDGES for one in shapes], own)
    points, weights = _joined([one.points for one in shapes], own)
    x, y = grid.edges()
    cell = grid.cell_width * grid.cell_height
    out = np.zeros((grid.side, grid.side))
    for across in turns(area):
        # Rings that cross themselves may come out below zero: they weigh nothing there.
        out += np.maximum(areas(moved(rings[0], across), x, y, factors=rings[1]) / cell, 0)
        out += lengths(moved(lines[0], across), x, y, factors=lines[1])
        places = grid.cells_of(points[:, 0] + across, points[:, 1])
        inside = places >= 0
        sums = np.bincount(places[inside], weights[inside], minlength=grid.size)
        out += grid.image(sums.astype(np.float64))
    return np.where(out > 1e-9 * out.max(initial=0.0), out, 0)  # rounding is no weight


def _joined(parts: list[FloatArray], weights: list[float]) -> tuple[FloatArray, FloatArray]:
    """Parts one after another, and the weight of the feature that each row comes from."""
    return np.concatenate(parts), np.repeat(np.array(weights), [len(part) for part in parts])


def _resampled(
    values: FloatArray, bounds: tuple[float, float, float, float], grid: Grid
) -> FloatArray:
    """Values over bounds as weights of cells: each value is shared by area over the cells it lies on."""
    west, south, east, north = bounds
    x, y = grid.edges()
    across = _shares(np.linspace(west, east, values.shape[1] + 1), x)
    up = _shares(np.linspace(south, north, values.shape[0] + 1), y)
    return np.asarray(up.T @ values @ across)


def _shares(lines: FloatArray, edges: FloatArray) -> FloatArray:
    """The part of each interval between lines that lies in each cell between edges [interval, cell]."""
    low = np.maximum(lines[:-1, None], edges[None, :-1])
    high = np.minimum(lines[1:, None], edges[None, 1:])
    shared: FloatArray = np.maximum(high - low, 0) / np.diff(lines)[:, None]
    return shared
