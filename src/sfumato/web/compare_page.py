"""Two maps that were paid for, side by side: what changed for sure, and how mass moved. It is free."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from sfumato.errors import InvalidInput
from sfumato.web.answers import in_thread, page
from sfumato.web.map_assets import has_maplibre
from sfumato.web.saved_pages import zones_of

if TYPE_CHECKING:
    from sfumato.web.desk import Desk


async def compare(request: Request) -> Response:
    """Two maps: what changed for sure, how far mass moved, totals of zones, and a picture of the difference."""
    desk: Desk = request.app.state.desk
    a, b = request.query_params.get("a", ""), request.query_params.get("b", "")
    known = await in_thread(desk.maps)
    data: dict[str, Any] = {"a": a, "b": b, "maps": known, "comparison": None, "words": []}
    if a and b:
        place = await in_thread(_compared, desk, a, b)
        data |= _told(place)
    return page(request, "compare.html", data, maplibre=has_maplibre())


def _told(place: Path) -> dict[str, Any]:
    try:
        words = json.loads((place / "words.json").read_text("utf-8"))
        return {
            "comparison": json.loads((place / "comparison.json").read_text("utf-8")),
            "words": words,
        }
    except ValueError:
        raise InvalidInput("comparison.json is damaged; nothing was compared") from None


def _compared(desk: Desk, a: str, b: str) -> Path:
    """The folder of a comparison, made when it is first asked for, and again when its zones are others."""
    from sfumato.files import write_file
    from sfumato.heatmap import as_text, compare_maps

    first, second = desk.saved(a), desk.saved(b)  # which refuse what is no key
    keys = tuple(dict.fromkeys(desk.split(ref)[0] for ref in (b, a)))
    common, own = zones_of(desk, keys)
    for key in keys:
        for group in {
            one["group"] for one in desk.about(key).get("maps", ()) if one["ref"] in (a, b)
        }:
            common += [
                one for one in own.get(group, ()) if one.name not in {z.name for z in common}
            ]
    state = repr(
        [(one.name, one.crs, [[r.tolist() for r in p] for p in one.polygons]) for one in common]
    )
    which = hashlib.sha256(state.encode()).hexdigest()[:12] if common else "whole"
    place = desk.folder / "compared" / f"{a}-{b}-{which}"
    saved, picture = place / "comparison.json", place / "difference.png"
    with desk.at_work(f"{a}-{b}"):
        if not (place / "words.json").is_file():
            place.mkdir(parents=True, exist_ok=True)
            result = compare_maps(
                first, second, zones=common or None, outputs=[picture, saved], overwrite=True
            )
            words = json.dumps(as_text(result).splitlines()).encode()
            write_file(place / "words.json", words, overwrite=True)
    return place


async def difference(request: Request) -> Response:
    """The picture of a comparison: more and less, what is sure, and arrows of the flow between them."""
    desk: Desk = request.app.state.desk
    a, b = (request.path_params[name] for name in ("a", "b"))
    return FileResponse(await in_thread(_compared, desk, a, b) / "difference.png")
