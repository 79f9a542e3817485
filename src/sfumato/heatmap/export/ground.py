"""What lies under a map: lines of its user's own, and an image: a stimulus, or a georeferenced picture.

Both are public files, like a prior: nothing in them is protected, and the map names them by their
digest. They are drawn and never counted: the map is the same without them.
"""

from __future__ import annotations

import base64
import hashlib
import io
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import (
    Feature,
    features_of,
    flat_raster,
    named_system,
    raster_size,
    read_bytes,
)
from sfumato.heatmap.analysis.overlap import moved, turns
from sfumato.heatmap.export.georeferenced import georeferenced
from sfumato.heatmap.export.output_names import Group, of_group
from sfumato.heatmap.reference_systems import DEGREES, ReferenceSystem
from sfumato.spaces import Area

Pixels = npt.NDArray[np.uint8]

UNDONE = "nothing was written"
SMALLEST, LARGEST = 600, 4096  # pixels along the longer side of an image under the heat
LARGEST_SENT = 1600  # of one inside a page
QUALITY = 85  # of a JPEG inside a page
# Positions in a page are whole parts of the bounds: a line of a map 8 inches wide is thicker.
PARTS = 2**14


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """Lines [position, x and y] in map units, cut to the bounds, and the file they are from."""

    file: str
    sha256: str
    lines: tuple[FloatArray, ...]

    def __str__(self) -> str:
        return f"{self.file} (sha256 {self.sha256[:12]}), public"

    def to_json(self, area: Area) -> dict[str, str]:
        """For pages: all positions as parts of the bounds, and how many each line has, as base64."""
        low_x, low_y, high_x, high_y = area.bounds
        low, size = np.array([low_x, low_y]), np.array([high_x - low_x, high_y - low_y])
        lines = []
        for line in self.lines:
            whole = np.round((line - low) / size * PARTS).astype("<u2")
            new = np.concatenate([[True], np.any(whole[1:] != whole[:-1], axis=1)])
            if new.sum() > 1:
                lines.append(whole[new])
        positions = np.concatenate(lines) if lines else np.zeros((0, 2), dtype="<u2")
        return {
            "parts": str(PARTS),
            "positions": _text(positions),
            "counts": _text(np.array([len(line) for line in lines], dtype="<u4")),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Under:
    """RGB pixels that fill the bounds, row 0 on top, and the file they are from."""

    file: str
    sha256: str
    pixels: Pixels

    def __str__(self) -> str:
        return f"{self.file} (sha256 {self.sha256[:12]}), public"

    def uri(self) -> str:
        """The image as the text of a data URI, no larger than a page can hold."""
        from PIL import Image

        image = Image.fromarray(self.pixels)
        image.thumbnail((LARGEST_SENT, LARGEST_SENT))
        out = io.BytesIO()
        image.save(out, format="JPEG", quality=QUALITY)
        return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """Lines and an image under one map, if there are any."""

    outline: Outline | None = None
    under: Under | None = None

    @property
    def lines(self) -> tuple[FloatArray, ...]:
        """The lines; none without an outline."""
        return () if self.outline is None else self.outline.lines

    @property
    def pixels(self) -> Pixels | None:
        """The image, if there is one."""
        return None if self.under is None else self.under.pixels

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Which files it is from, as names and values."""
        told = (("outline", self.outline), ("image under it", self.under))
        return [(name, str(one)) for name, one in told if one is not None]

    @property
    def sentence(self) -> str:
        """The same as words under a picture."""
        told = (("Outline", self.outline), ("Over", self.under))
        return "".join(f"{name} {one}. " for name, one in told if one is not None)


def ground_of(
    area: Area, *, over: str | Path | None, outline: str | Path | None, group: Group = ""
) -> Ground:
    """What lies under the map of a group: {by} in the name of the image stands for it."""
    return Ground(
        None if outline is None else _outline(*_version(outline), area),
        None if over is None else _under(*_version(of_group(over, group)), area),
    )


def check_ground(
    area: Area,
    *,
    over: str | Path | None,
    outline: str | Path | None,
    groups: tuple[Group, ...] = ("",),
) -> None:
    """Refuse files that cannot lie under the maps of an area, before anything is charged or written."""
    if outline is not None and not _outline(*_version(outline), area).lines:
        raise InvalidParameter(
            f"an outline has lines or areas inside the bounds, {outline} has none there (GeoJSON is in "
            f"longitude, latitude; for pixels and planes, in their units); {UNDONE}"
        )
    for image in () if over is None else sorted({str(of_group(over, one)) for one in groups}):
        if area.kind == "pixels":
            check_image(image, area)
        else:
            _under(*_version(image), area)


def _version(path: str | Path) -> tuple[str, int, int]:
    """A file and what changes when it does, so that one is read once for all files of a release."""
    try:
        found = os.stat(path)
    except OSError:
        raise InvalidInput(f"there is no file at {path}; {UNDONE}") from None
    return str(path), found.st_mtime_ns, found.st_size


# -- lines


@lru_cache(maxsize=4)
def _outline(path: str, _time: int, _size: int, area: Area) -> Outline:
    data = read_bytes(path, undone=UNDONE)
    found = features_of(data, path, undone=UNDONE)
    system = _system(data, path, area)
    lines = [_in_units(line, area, system) for one in found for line in _lines(one)]
    return Outline(
        Path(path).name, hashlib.sha256(data).hexdigest(), tuple(lines_inside(lines, area))
    )


def lines_inside(lines: Iterable[FloatArray], area: Area) -> Iterator[FloatArray]:
    """The pieces of lines in the units of a map that lie inside its bounds, also after a turn of the Earth."""
    for line in lines:
        for turn in turns(area):
            yield from inside_bounds(moved(line, turn), area.bounds)


def _lines(one: Feature) -> Iterator[FloatArray]:
    yield from one.lines
    for polygon in one.polygons:
        yield from polygon


def _system(data: bytes, path: str, area: Area) -> ReferenceSystem | None:
    """The system into which degrees are to be transformed; None where positions are the map's already.

    A file is in longitudes and latitudes (RFC 7946), or in the system that its member "crs" names,
    as files of before that have it: as zones are read.
    """
    said = named_system(data)
    own = ReferenceSystem.named(area.crs) if area.crs else None
    theirs = None if said is None or said == DEGREES else ReferenceSystem.named(said)
    if theirs is None:
        return own
    if own is None or theirs.name != own.name:
        raise InvalidInput(
            f"{path} is in {theirs.name}, the map in {area.crs or area.kind}: an outline is in longitudes and "
            f"latitudes, or in the system of the map; {UNDONE}"
        )
    return None


def _in_units(line: FloatArray, area: Area, system: ReferenceSystem | None) -> FloatArray:
    """Positions of a GeoJSON file in the units of a map; edges that are bent there get positions in between."""
    if system is None:
        return line
    low_x, low_y, high_x, high_y = area.bounds
    return system.line_from_degrees(line, max(high_x - low_x, high_y - low_y) / PARTS)


def inside_bounds(
    line: FloatArray, bounds: tuple[float, float, float, float]
) -> Iterator[FloatArray]:
    """The pieces of a line that lie in a box, each cut where it leaves it, as Liang and Barsky do.

    >>> [piece.tolist() for piece in inside_bounds(np.array([[-1.0, 1], [3, 1]]), (0, 0, 2, 2))]
    [[[0.0, 1.0], [2.0, 1.0]]]
    """
    reached = np.asarray(np.isfinite(line).all(axis=1))
    if not reached.all():
        # What lies nowhere ends a line: its neighbors are not joined.
        for part in np.split(np.arange(len(line)), np.flatnonzero(np.diff(reached)) + 1):
            if reached[part[0]]:
                yield from inside_bounds(line[part], bounds)
        return
    if len(line) < 2:
        return
    start, step = line[:-1], line[1:] - line[:-1]
    enter, leave = np.zeros(len(start)), np.ones(len(start))
    for axis in (0, 1):
        for sign, edge in ((-1, bounds[axis]), (1, bounds[axis + 2])):
            run, room = sign * step[:, axis], sign * (edge - start[:, axis])
            with np.errstate(divide="ignore", invalid="ignore"):
                at = room / run
            enter = np.where(run < 0, np.maximum(enter, at), enter)
            leave = np.where(run > 0, np.minimum(leave, at), leave)
            leave = np.where((run == 0) & (room < 0), -1.0, leave)
    kept = np.flatnonzero(leave > enter)
    if not kept.size:
        return
    begins = start[kept] + enter[kept, None] * step[kept]
    ends = start[kept] + leave[kept, None] * step[kept]
    # A piece goes on where the segment before it ended inside and this one begins there.
    on = (np.diff(kept) == 1) & (leave[kept][:-1] == 1) & (enter[kept][1:] == 0)
    for run_of in np.split(np.arange(kept.size), np.flatnonzero(~on) + 1):
        yield np.concatenate([begins[run_of[:1]], ends[run_of]])


# -- images


def image_size(path: str | Path) -> tuple[int, int]:
    """Width and height of an image file; InvalidInput when it is none.

    Args:
        path: An image file.

    Returns:
        Width and height in pixels.

    Raises:
        InvalidInput: It is no image that can be read.

    """
    return raster_size(path, called=path, undone=UNDONE)


def check_image(path: str | Path, area: Area) -> None:
    """Refuse an image that is not as large as a map in pixels."""
    size = image_size(path)
    asked = (area.bounds[2] - area.bounds[0], area.bounds[3] - area.bounds[1])
    if size != asked:
        raise InvalidParameter(
            f"the image under a map must have its size, {asked[0]:g} x {asked[1]:g}, {path} has "
            f"{size[0]} x {size[1]}; nothing was written"
        )


@lru_cache(maxsize=4)
def _under(path: str, _time: int, _size: int, area: Area) -> Under:
    pixels = stimulus(path, area) if area.kind == "pixels" else georeferenced(path, area)
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Under(Path(path).name, digest, pixels)


def stimulus(path: str | Path, area: Area) -> Pixels:
    """The image under a map in pixels, as RGB; tiny ones are blown up whole times, huge ones shrunk."""
    from PIL import Image

    check_image(path, area)
    flat = flat_raster(path, longest=LARGEST, called=path, undone=UNDONE)
    if max(flat.size) < SMALLEST:
        times = math.ceil(SMALLEST / max(flat.size))
        flat = flat.resize((flat.width * times, flat.height * times), Image.Resampling.NEAREST)
    return np.asarray(flat, dtype=np.uint8)


def _text(values: npt.NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()
