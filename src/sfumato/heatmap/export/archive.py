"""Arrays and the whole report: what a program reads, and what a map can be drawn from again."""

from __future__ import annotations

import io
import json
import math
from dataclasses import asdict, astuple, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.files import indented
from sfumato.heatmap.accuracy.map_error import MapError
from sfumato.heatmap.accuracy.noise_mark import NoiseMark
from sfumato.heatmap.accuracy.uncertainty import FINEST_DRAWS, Mark, ShownUncertainty
from sfumato.heatmap.analysis.map_total import COVERAGE, total_ends
from sfumato.heatmap.export.geojson import report
from sfumato.heatmap.inference.counts import NoisyCounts
from sfumato.heatmap.inference.map_posterior import MapPosterior
from sfumato.heatmap.inference.partial_pooling import PooledPosterior, Pooling
from sfumato.heatmap.inference.posterior import CountsPosterior
from sfumato.heatmap.inference.prior import Declared
from sfumato.heatmap.tiles import FINEST_IMAGE, Tiles
from sfumato.privacy import UNITS, PureDP, Release
from sfumato.privacy.accounting import decode_guarantee, decode_loss
from sfumato.privacy.ledger import Entry
from sfumato.spaces import Area, Grid

if TYPE_CHECKING:
    from sfumato.heatmap.results import HeatmapRelease


def npz(release: HeatmapRelease, level: int | None = None) -> bytes:
    """NumPy arrays, none of them pickled: the image of the whole grid, its bounds and the report as text.

    `image` [row, column] holds shares that add up to 1, row 0 at the lowest y. Where the method
    knows how sure its map is: the band of the blurred map, `silent` cells, and `marks` (x, y,
    share, low, high).
    """
    chosen = min(release.area.grid.levels, FINEST_IMAGE) if level is None else level
    out = io.BytesIO()
    np.savez_compressed(
        out,
        image=release.image(chosen),
        level=np.int64(chosen),
        levels=np.int64(release.area.grid.levels),
        bounds=np.array(release.area.bounds),
        grid_bounds=np.array(release.area.grid.bounds),
        report=np.array(json.dumps(report(release), allow_nan=False)),
        **_arrays(release, chosen),
    )
    return out.getvalue()


def _arrays(release: HeatmapRelease, level: int) -> dict[str, Any]:
    if release.posterior is None:
        return {}
    found = release.uncertainty(min(level, FINEST_DRAWS))
    return {
        "band_low": found.band.low,
        "band_middle": found.band.middle,
        "band_high": found.band.high,
        "band_level": np.int64(found.band.level),
        "band_sigma": np.float64(found.band.sigma),
        "band_coverage": np.float64(found.band.coverage),
        "silent": found.silent,
        "marks": np.array([astuple(mark) for mark in found.marks], dtype=np.float64).reshape(-1, 5),
    }


def report_json(release: HeatmapRelease) -> bytes:
    """The whole report with its tiles: `read_heatmap` takes it back."""
    whole = {
        **release.to_json(),
        "uncertainty": _said(release),
        "silent": _silent(release),
        "error": _error(release),
        "total": _total(release),
    }
    return f"{indented(whole)}\n".encode()


def _said(release: HeatmapRelease) -> dict[str, Any] | None:
    """What is known of the map's uncertainty, without arrays; nothing where it cannot be worked out.

    This file is the last resort of a map that is paid for: it is written whatever else goes wrong.
    """
    if release.posterior is None:
        kept = release.known_marks
        return None if kept is None else {"marks": [asdict(mark) for mark in kept]}
    try:
        return release.uncertainty().to_json()
    except Exception:
        return None


def _silent(release: HeatmapRelease) -> dict[str, Any] | None:
    """Where the map says nothing; nothing where it cannot be worked out, as above."""
    if release.posterior is None:
        return None
    try:
        return release.shown_uncertainty().to_json()
    except Exception:
        return None


def _error(release: HeatmapRelease) -> dict[str, Any] | None:
    """How far off the map is; nothing where it cannot be worked out, as above."""
    try:
        return release.error().to_json()
    except Exception:
        return None


def _total(release: HeatmapRelease) -> dict[str, float] | None:
    """Between what the total lies; nothing where the map cannot say, or it cannot be worked out."""
    try:
        ends = total_ends(release)
    except Exception:
        return None
    return None if ends is None else {"low": ends[0], "high": ends[1], "coverage": COVERAGE}


def read_heatmap(path: str | Path) -> HeatmapRelease:
    """A map saved as .json, to draw or write it again; nothing is paid twice.

    Its receipt holds no value: the noisy counts of zoom and pyramid are in the file, for the
    posterior.

    Args:
        path: A file that `write` made with the suffix .json, of this or an earlier version.

    Returns:
        The map, with its posterior where the file has its counts.

    Raises:
        InvalidInput: The file cannot be read, or is not a whole map.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> from sfumato.heatmap import rehearse_heatmap
        >>> rows = pa.table({"user": ["ann", "bob"], "lon": [11.25, 11.3], "lat": [43.77, 43.78]})
        >>> file = f"{tempfile.mkdtemp()}/map.json"
        >>> box = (11.2, 43.74, 11.32, 43.81)
        >>> _ = rehearse_heatmap(
        ...     rows, user="user", bounds=box, levels=4, public=True, epsilon=1, outputs=file
        ... )
        >>> read_heatmap(file).method
        'zoom'

    """
    from sfumato.heatmap.results import FORMAT, HeatmapRelease

    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        area = data["area"]
        grid = Grid(area["levels"], tuple(area["grid"]))
        low_x, low_y, high_x, high_y = (float(bound) for bound in area["bounds"])
        bounds = (low_x, low_y, high_x, high_y)
        # Maps from before reference systems have none.
        where = Area(
            grid, bounds, area["kind"], str(area.get("crs", "")), float(area.get("metre", 0))
        )
        found = HeatmapRelease(
            tiles=_tiles(grid, data["tiles"]),
            area=where,
            method=str(data["method"]),
            parameters=dict(data["parameters"]),
            receipt=_receipt(data),
            group=str(data["group"]),
            area_cost=_area_cost(area["cost"]),
            counted=dict(data["counted"]),
            title=str(data["title"]),
            prior=Declared.from_json(data.get("prior")),  # maps from before priors have none
            known_marks=_marks(data.get("uncertainty")),
            known_untested=_untested(data.get("uncertainty")),
            # Maps from before it was kept draw their posterior again.
            known_silent=None
            if data.get("silent") is None
            else ShownUncertainty.silent_cells(data["silent"]),
            posterior=_posterior(data, where),
            noise_scale=_noise_scale(data),
            # Maps from before they said so work it out when they are asked.
            known_error=None if data.get("error") is None else MapError.from_json(data["error"]),
            known_noise=_noise(data),
            known_total=_known_total(data.get("total")),
        )
        if found.known_silent is not None and len(found.known_silent) > grid.side:
            raise ValueError("its silent cells are finer than its own")
        if found.guarantee.loss != decode_loss(data["guarantee"]["loss"]):
            raise ValueError("its guarantee is not what was paid")
        if data["statement"] != found.statement:
            raise ValueError("its statement is not that of its guarantee")
        return found
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror}; nothing was drawn") from None
    except KeyError as problem:
        raise InvalidInput(
            f"{path} is not a whole map: it has no {problem}; nothing was drawn"
        ) from problem
    except (UnicodeDecodeError, json.JSONDecodeError) as problem:
        # Neither's own words: they are about bytes and columns, and could show some of a private file.
        what = "text" if isinstance(problem, UnicodeDecodeError) else "JSON"
        raise InvalidInput(
            f"{path} is no map saved as .json: it is no {what}; nothing was drawn"
        ) from problem
    except (TypeError, ValueError, ArithmeticError, RecursionError) as problem:
        raise InvalidInput(f"{path} is not a whole map: {problem}; nothing was drawn") from problem


def _tiles(grid: Grid, data: Any) -> Tiles:
    levels, codes = (np.array(data[name]).reshape(-1) for name in ("levels", "codes"))
    if any(array.size and array.dtype != np.int64 for array in (levels, codes)):
        raise ValueError("its levels or codes are no integers")
    if levels.size and not (levels.min() >= 0 and levels.max() <= grid.levels):
        raise ValueError(f"its levels are not all in 0..{grid.levels}")
    levels, codes = levels.astype(np.int64), codes.astype(np.int64)
    if levels.shape == codes.shape and np.any((codes < 0) | (codes >> 2 * levels > 0)):
        raise ValueError("it has codes of cells that are not in its grid")
    return Tiles(grid, levels, codes, np.array(data["masses"], dtype=np.float64).reshape(-1))


def _posterior(data: Any, area: Area) -> MapPosterior | None:
    """What the counts of a saved map say; nothing for methods, and files, that have none."""
    counts = data.get("counts")
    if counts is None:
        return None
    # Files of before the key was there: zoom alone showed the mean of its posterior.
    mean_is_map = data.get("mean_is_map", data["method"] == "zoom")
    found = NoisyCounts.from_json(counts)
    # Maps from before they could be pooled say nothing of it.
    if data.get("pooling") is not None:
        return PooledPosterior(found, Pooling.from_json(data["pooling"]), area)
    return CountsPosterior(found, mean_is_map=bool(mean_is_map), area=area)


def _noise(data: Any) -> NoiseMark | None:
    """Up to where a saved map may be noise; nothing in files of before it was kept."""
    return None if data.get("noise") is None else NoiseMark.from_json(data["noise"])


def _known_total(data: Any) -> tuple[float, float] | None:
    """What a saved map said; nothing in files of before it was kept, or where another chance was meant."""
    if data is None or float(data["coverage"]) != COVERAGE:
        return None
    low, high = float(data["low"]), float(data["high"])
    if not 0 <= low <= high < math.inf:
        raise ValueError("the ends of its total are no interval from 0 on")
    return low, high


def _noise_scale(data: Any) -> float:
    """The scale of the noise of a saved map, in users."""
    scale = float(data["noise_scale"]) if "noise_scale" in data else _old_noise_scale(data)
    if not (math.isfinite(scale) and scale >= 0):
        raise ValueError("its noise scale is no number of at least 0")
    return scale


def _old_noise_scale(data: Any) -> float:
    """That of a file of before the key was there: from the parameters of its ledger entry."""
    parameters = data["entry"]["parameters"]
    names = ("scale", "scales", "leaf_scale", "second_scale", "sigma")
    named = [parameters.get(name, "0") for name in names]
    every = [one for value in named for one in (value if isinstance(value, list) else [value])]
    return max(float(Fraction(str(one))) / UNITS for one in every)


def _marks(data: Any) -> tuple[Mark, ...] | None:
    """The marks of a saved map; nothing in files of before there were any."""
    if data is None:
        return None
    names = [field.name for field in fields(Mark)]
    found = tuple(Mark(*(float(one[name]) for name in names)) for one in data["marks"])
    if not all(math.isfinite(number) for mark in found for number in astuple(mark)):
        raise ValueError("its marks are not all finite")
    return found


def _untested(data: Any) -> tuple[tuple[float, float], ...] | None:
    """The peaks of a saved map that were not tested; nothing in files of before they were kept."""
    if data is None or "untested" not in data:
        return None
    found = tuple((float(x), float(y)) for x, y in data["untested"])
    if not all(math.isfinite(number) for place in found for number in place):
        raise ValueError("its untested places are not all finite")
    return found


def _area_cost(data: Any) -> PureDP | None:
    cost = None if data is None else decode_loss(data)
    if not isinstance(cost, PureDP | None):
        raise ValueError("the cost of its area is no epsilon")
    return cost


def _receipt(data: Any) -> Release[None]:
    if type(data["rehearsal"]) is not bool:
        raise ValueError("its rehearsal is neither true nor false")
    guarantee = replace(decode_guarantee(data["guarantee"]), loss=decode_loss(data["map_cost"]))
    entry = Entry.from_json(data["entry"])
    return Release(None, 0, guarantee, str(data["ledger"]), entry, data["rehearsal"])
