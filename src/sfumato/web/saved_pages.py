"""Maps that were paid for: looked at, downloaded, totalled, compared. All of it is free."""

from __future__ import annotations

import importlib.util
import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.web.answers import check_csrf, in_thread, page
from sfumato.web.security import FRAMED

if TYPE_CHECKING:
    from sfumato.web.desk import Desk

LARGEST_MAP = 2**28
LARGEST_ZONES = 2**24
MOST_HOTSPOTS = 50


async def maps(request: Request) -> Response:
    """Every map in the folder."""
    desk: Desk = request.app.state.desk
    return page(request, "maps.html", {"maps": await in_thread(desk.maps)})


async def one_map(request: Request) -> Response:
    """A map, what it promises, where its peaks are, and what it can be downloaded as."""
    desk: Desk = request.app.state.desk
    key = request.path_params["key"]
    k = request.query_params.get("hotspots", "5")
    if not k.isdecimal() or len(k) > 2 or not 1 <= int(k) <= MOST_HOTSPOTS:
        raise InvalidParameter(
            f"hotspots number 1 to {MOST_HOTSPOTS}, got {k[:9]!r}; nothing was looked for"
        )
    data = await in_thread(_shown, desk, key, int(k))
    return page(request, "released.html", data)


def _shown(desk: Desk, key: str, k: int) -> dict[str, Any]:
    from sfumato.heatmap import as_text, map_hotspots, read_heatmap

    saved = desk.saved(key)
    one = read_heatmap(saved)
    spots = map_hotspots(one, k)
    return {
        "key": key,
        "name": one.name,
        "statement": one.statement,
        "plainly": one.plainly,
        "rehearsal": one.receipt.rehearsal,
        "empty": one.empty,
        "total": str(one.total()),
        "method": one.method,
        "area": list(one.area.bounds),
        "entry": one.receipt.entry.to_json(),
        "words": desk.about(key).get("words", [one.statement]),
        "hotspots": spots.to_json(),
        "hotspots_words": as_text(spots).splitlines(),
        "formats": _formats(one.area.kind == "degrees"),
    }


def _formats(degrees: bool) -> list[dict[str, str]]:
    """The formats this machine can write such a map in."""
    from sfumato.heatmap.export import registered_formats

    return [
        {"suffix": one.suffix, "description": one.description}
        for one in registered_formats().values()
        if (degrees or not one.degrees_only)
        and all(importlib.util.find_spec(name) for name in one.packages)
    ]


async def download(request: Request) -> Response:
    """A map in one of the formats, written when it is first asked for."""
    desk: Desk = request.app.state.desk
    key, suffix = request.path_params["key"], "." + request.path_params["suffix"]
    path = await in_thread(_written, desk, key, suffix)
    framed = "view" in request.query_params and suffix == ".html"
    headers = {"content-security-policy": FRAMED} if suffix == ".html" else {}
    shown = framed or suffix == ".png"
    return FileResponse(
        path,
        filename=None if shown else f"map-{key}{suffix}",
        headers=headers,
        content_disposition_type="inline" if shown else "attachment",
    )


def _written(desk: Desk, key: str, suffix: str) -> Path:
    from sfumato.heatmap import draw_map
    from sfumato.heatmap.export import registered_formats

    saved = desk.saved(key)
    if suffix not in registered_formats():
        raise InvalidParameter(
            f"formats are {', '.join(registered_formats())}, got {suffix!r}; nothing was written"
        )
    target = saved.with_name(f"map{suffix}")
    with desk.at_work(f"{key}{suffix}"):
        if not target.is_file():
            draw_map(saved, [target])
    return target


async def totals(request: Request) -> Response:
    """How many people are in each zone of a GeoJSON file that is sent."""
    check_csrf(request, request.headers.get("x-csrf-token", ""))
    desk: Desk = request.app.state.desk
    saved = desk.saved(request.path_params["key"])
    file = await desk.take("zones.geojson", request.stream(), largest=LARGEST_ZONES)
    return JSONResponse(await in_thread(_totals, saved, desk.uploaded(file)))


def _totals(saved: Path, zones: Path) -> dict[str, Any]:
    from sfumato.heatmap import as_text, map_totals

    found = map_totals(saved, zones)
    return found.to_json() | {"words": as_text(found).splitlines()}


async def add_map(request: Request) -> Response:
    """Take a saved map.json, to look at it or to compare it."""
    check_csrf(request, request.headers.get("x-csrf-token", ""))
    desk: Desk = request.app.state.desk
    file = await desk.take("map.json", request.stream(), largest=LARGEST_MAP)
    key = secrets.token_hex(8)
    await in_thread(_added, desk, key, desk.uploaded(file))
    return JSONResponse({"key": key, "address": f"/maps/{key}"}, 201)


def _added(desk: Desk, key: str, file: Path) -> None:
    from sfumato.files import write_file
    from sfumato.heatmap import read_heatmap

    one = read_heatmap(file)
    desk.place(key).mkdir(parents=True)
    write_file(desk.place(key) / "map.json", file.read_bytes())
    about = {"key": key, "name": one.name, "statement": one.statement}
    desk.keep(key, about | {"rehearsal": one.receipt.rehearsal, "words": [one.statement]})


async def compare(request: Request) -> Response:
    """Two maps: what changed for sure, how far mass moved, and a picture of the difference."""
    desk: Desk = request.app.state.desk
    a, b = request.query_params.get("a", ""), request.query_params.get("b", "")
    known = await in_thread(desk.maps)
    data: dict[str, Any] = {"a": a, "b": b, "maps": known, "comparison": None, "words": []}
    if a and b:
        data |= await in_thread(_compared, desk, a, b)
    return page(request, "compare.html", data)


def _compared(desk: Desk, a: str, b: str) -> dict[str, Any]:
    from sfumato.files import write_file
    from sfumato.heatmap import as_text, compare_maps

    place = desk.folder / "compared" / f"{a}-{b}"
    first, second = desk.saved(a), desk.saved(b)  # which refuse what is no key
    saved, picture = place / "comparison.json", place / "difference.png"
    with desk.at_work(f"{a}-{b}"):
        if not saved.is_file():
            place.mkdir(parents=True, exist_ok=True)
            result = compare_maps(first, second, outputs=[picture, saved], overwrite=True)
            words = json.dumps(as_text(result).splitlines()).encode()
            write_file(place / "words.json", words, overwrite=True)
    try:
        words = json.loads((place / "words.json").read_text("utf-8"))
        return {"comparison": json.loads(saved.read_text("utf-8")), "words": words}
    except ValueError:
        raise InvalidInput(f"{saved.name} is damaged; nothing was compared") from None


async def difference(request: Request) -> Response:
    """The picture of a comparison that was made."""
    desk: Desk = request.app.state.desk
    a, b = (request.path_params[name] for name in ("a", "b"))
    await in_thread(_compared, desk, a, b)
    return FileResponse(desk.folder / "compared" / f"{a}-{b}" / "difference.png")
