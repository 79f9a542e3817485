"""Maps that were paid for: looked at, downloaded, totalled. All of it is free."""

from __future__ import annotations

import importlib.util
import json
import secrets
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from sfumato.errors import InvalidParameter
from sfumato.web.answers import check_csrf, fields, go_to, in_thread, page
from sfumato.web.desk import OUTLINE, PUBLIC, SAVED
from sfumato.web.map_assets import has_maplibre
from sfumato.web.security import FRAMED

if TYPE_CHECKING:
    from sfumato.web.desk import Desk, Ground

LARGEST_MAP = 2**28
LARGEST_ZONES = 2**24
MOST_HOTSPOTS, MOST_AREAS, MOST_CORNERS = 50, 200, 1000
ZONES, AREAS = "zones.geojson", "areas.json"


async def maps(request: Request) -> Response:
    """Every map in the folder."""
    desk: Desk = request.app.state.desk
    return page(request, "maps.html", {"maps": await in_thread(desk.maps)})


async def one_map(request: Request) -> Response:
    """A release: its maps, what it promises, where its peaks are, and what it can be downloaded as."""
    desk: Desk = request.app.state.desk
    data = await in_thread(_shown, desk, request.path_params["key"], _hotspots(request))
    return page(request, "released.html", data, maplibre=has_maplibre())


def _hotspots(request: Request) -> int:
    k = request.query_params.get("hotspots", "5")
    if not (k.isascii() and k.isdecimal() and len(k) < 4 and 1 <= int(k) <= MOST_HOTSPOTS):
        raise InvalidParameter(
            f"hotspots number 1 to {MOST_HOTSPOTS}, got {k[:20]!r}; nothing was looked for"
        )
    return int(k)


def _shown(desk: Desk, ref: str, k: int) -> dict[str, Any]:
    from sfumato.heatmap import as_text, map_hotspots, read_heatmap

    key, which = desk.split(ref)
    saved = desk.files(key)
    one = read_heatmap(desk.saved(ref) if which else saved[0])
    spots = map_hotspots(one, k)
    about = desk.about(key)
    return {
        "key": key,
        "name": about["name"],
        "statement": one.statement,
        "plainly": one.plainly,
        "rehearsal": one.receipt.rehearsal,
        "empty": one.empty,
        "total": str(one.total()),
        "method": one.method,
        "kind": one.area.kind,
        "area": list(one.area.bounds),
        "unit": one.area.unit,
        "entry": one.receipt.entry.to_json(),
        "maps": about.get("maps") or [{"ref": key, "name": one.name, "group": one.group}],
        "film": about.get("film", False),
        "words": about.get("words", [one.statement]),
        "hotspots": spots.to_json(),
        "hotspots_words": as_text(spots).splitlines(),
        "areas": _areas(desk, key),
        "zones": (desk.place(key) / PUBLIC / ZONES).is_file(),
        "outline": desk.ground(key)["outline"] is not None,
        "view": f"/view.json?maps={ref}",
        "formats": _formats(degrees=one.area.kind == "degrees"),
    }


def _formats(*, degrees: bool) -> list[dict[str, str]]:
    """The formats this machine can write such a map in."""
    from sfumato.heatmap.export import registered_formats

    return [
        {"suffix": one.suffix, "description": one.description}
        for one in registered_formats().values()
        if one.suffix != ".tiff"  # which is .tif again
        and (degrees or not one.degrees_only)
        and all(importlib.util.find_spec(name) for name in one.packages)
    ]


# what a map is shown as


async def view(request: Request) -> Response:
    """What the map's script shows: released and public values alone, of one or several maps on one area."""
    desk: Desk = request.app.state.desk
    refs = [one for one in request.query_params.get("maps", "").split(",") if one]
    text = await in_thread(_view, desk, refs, _hotspots(request))
    return Response(text, media_type="application/json")


def _view(desk: Desk, refs: list[str], k: int) -> bytes:
    if not refs:
        raise InvalidParameter(
            "`maps` names the maps to show, with commas, got none; nothing is shown"
        )
    paths: list[Path] = []
    for ref in refs[:2]:
        key, which = desk.split(ref)
        paths += [desk.saved(ref)] if which else desk.files(key)
    keys = list(dict.fromkeys(desk.split(ref)[0] for ref in refs[:2]))
    ground = desk.ground(keys[0])
    read = [path for key in keys for path in sorted((desk.place(key) / PUBLIC).glob("*"))]
    # What changes when a file does, so that an unchanged view is made once.
    state = tuple((str(one), one.stat().st_mtime_ns, one.stat().st_size) for one in [*paths, *read])
    return _view_text(desk, tuple(paths), tuple(keys), ground["over"], ground["outline"], k, state)


@lru_cache(maxsize=8)
def _view_text(
    desk: Desk,
    paths: tuple[Path, ...],
    keys: tuple[str, ...],
    over: Path | None,
    outline: Path | None,
    k: int,
    _state: object,
) -> bytes:
    from sfumato.heatmap import map_view, read_heatmap

    several = [read_heatmap(path) for path in paths]
    common, own = zones_of(desk, keys)
    found = map_view(several, zones=common, zones_of=own, over=over, outline=outline, hotspots=k)
    return json.dumps(found, allow_nan=False).encode()


# zones and areas of interest


def zones_of(desk: Desk, keys: tuple[str, ...]) -> tuple[list[Any], dict[str, list[Any]]]:
    """Zones that were sent or drawn on these releases: of all their maps, and of single ones by group."""
    from sfumato.heatmap import read_zones

    common: dict[str, Any] = {}
    own: dict[str, list[Any]] = {}
    for key in keys:
        file = desk.place(key) / PUBLIC / ZONES
        named = (
            json.loads(file.with_suffix(".name").read_text("utf-8")) if file.is_file() else "name"
        )
        for one in read_zones(file, name=named) if file.is_file() else ():
            common.setdefault(one.name, one)
        for area in _areas(desk, key):
            (zone,) = read_zones({area["name"]: area["corners"]})
            if area["group"]:
                own.setdefault(area["group"], []).append(zone)
            else:
                common.setdefault(zone.name, zone)
    return list(common.values()), own


def _areas(desk: Desk, key: str) -> list[dict[str, Any]]:
    """Areas that were drawn or typed on the maps of a release."""
    try:
        found: list[dict[str, Any]] = json.loads(
            (desk.place(key) / PUBLIC / AREAS).read_text("utf-8")
        )
    except (OSError, ValueError):
        return []
    return found


async def add_area(request: Request) -> Response:
    """Draw an area on a map, by its corners; one of the same name is replaced, or removed if so asked."""
    desk: Desk = request.app.state.desk
    key, asked = request.path_params["key"], await fields(request)
    found = await in_thread(_add_area, desk, key, asked)
    return go_to(request, f"/maps/{key}#areas", {"areas": found})


def _add_area(desk: Desk, ref: str, asked: dict[str, str]) -> list[dict[str, Any]]:
    from sfumato.files import write_file
    from sfumato.heatmap import read_zones

    key, _ = desk.split(ref)
    groups = [one["group"] for one in desk.about(key).get("maps", ())]
    desk.files(key)
    name, group, text = (asked.get(one, "").strip() for one in ("name", "group", "corners"))
    if group and group not in groups:
        raise InvalidParameter(
            f"`group` is one of the release's maps, got {group[:60]!r}; nothing was drawn"
        )
    with desk.at_work(f"{key}areas"):
        kept = [one for one in _areas(desk, key) if (one["name"], one["group"]) != (name, group)]
        if asked.get("remove") != "yes":
            corners = _corners(text)
            read_zones({name: corners})  # refuses what is no area, and a name that is none
            kept.append({"name": name, "group": group, "corners": corners})
        if len(kept) > MOST_AREAS:
            raise InvalidParameter(f"at most {MOST_AREAS} areas are kept; nothing was drawn")
        target = desk.place(key) / PUBLIC / AREAS
        target.parent.mkdir(exist_ok=True)
        write_file(target, json.dumps(kept).encode(), overwrite=True)
    return kept


def _corners(text: str) -> list[list[float]]:
    """Corners as they are typed, `x y, x y, ...`; two are those of a rectangle."""
    try:
        found = [[float(one) for one in pair.split()] for pair in text.replace(";", ",").split(",")]
    except ValueError:
        found = []
    if not 2 <= len(found) <= MOST_CORNERS or any(len(pair) != 2 for pair in found):
        raise InvalidParameter(
            "`corners` are two numbers each, with commas between corners, as in 10 20, 60 80 (a rectangle) or "
            f"10 20, 60 20, 40 80; got {text[:80]!r}; nothing was drawn"
        )
    if len(found) == 2:
        (x0, y0), (x1, y1) = found
        return [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]
    return found


async def totals(request: Request) -> Response:
    """How many people are in each zone of a GeoJSON file that is sent; it is kept and shown on the map."""
    check_csrf(request, request.headers.get("x-csrf-token", ""))
    desk: Desk = request.app.state.desk
    ref = request.path_params["key"]
    key, _ = desk.split(ref)
    desk.files(key)
    file = await desk.take(ZONES, request.stream(), largest=LARGEST_ZONES)
    named = request.query_params.get("name", "").strip() or "name"
    return JSONResponse(await in_thread(_totals, desk, ref, desk.uploaded(file), named))


def _totals(desk: Desk, ref: str, zones: Path, named: str) -> dict[str, Any]:
    from sfumato.files import write_file
    from sfumato.heatmap import as_text, map_totals

    key, which = desk.split(ref)
    found = map_totals(desk.saved(ref) if which else desk.files(key)[0], zones, name=named)
    target = desk.public_copy(key, zones, ZONES)
    write_file(target.with_suffix(".name"), json.dumps(named).encode(), overwrite=True)
    return found.to_json() | {"words": as_text(found).splitlines(), "address": f"/maps/{key}#areas"}


async def outline(request: Request) -> Response:
    """Public lines, GeoJSON, that are drawn on the maps of a release and on what is downloaded of it."""
    check_csrf(request, request.headers.get("x-csrf-token", ""))
    desk: Desk = request.app.state.desk
    key, _ = desk.split(request.path_params["key"])
    file = await desk.take(OUTLINE, request.stream(), largest=LARGEST_ZONES)
    await in_thread(_outlined, desk, key, desk.uploaded(file))
    return JSONResponse({"address": f"/maps/{key}"}, 201)


def _outlined(desk: Desk, key: str, file: Path) -> None:
    from sfumato.heatmap import map_view, read_heatmap

    map_view(
        read_heatmap(desk.files(key)[0]), outline=file, hotspots=0
    )  # refuses what is no outline
    desk.public_copy(key, file, OUTLINE)


# files


async def download(request: Request) -> Response:
    """A map in one of the formats, written when it is first asked for."""
    desk: Desk = request.app.state.desk
    ref, suffix = request.path_params["key"], "." + request.path_params["suffix"]
    path = await in_thread(_written, desk, ref, suffix)
    return _sent(request, path, f"map-{ref}{suffix}")


async def film(request: Request) -> Response:
    """All periods of a release as one page that plays them."""
    desk: Desk = request.app.state.desk
    key = request.path_params["key"]
    return _sent(request, await in_thread(_filmed, desk, key), f"film-{key}.html")


def _sent(request: Request, path: Path, name: str) -> Response:
    framed = "view" in request.query_params and path.suffix == ".html"
    shown = framed or path.suffix == ".png"
    return FileResponse(
        path,
        filename=None if shown else name,
        headers={"content-security-policy": FRAMED} if path.suffix == ".html" else {},
        content_disposition_type="inline" if shown else "attachment",
    )


def _written(desk: Desk, ref: str, suffix: str) -> Path:
    from sfumato.heatmap import draw_map
    from sfumato.heatmap.export import registered_formats

    saved = desk.saved(ref)
    key, _ = desk.split(ref)
    if suffix not in registered_formats():
        raise InvalidParameter(
            f"formats are {', '.join(registered_formats())}, got {suffix[:20]!r}; nothing was written"
        )
    if suffix == ".json":
        return saved
    ground = desk.ground(key)
    target = _target(saved.with_suffix(suffix), ground, suffix)
    with desk.at_work(f"{ref}{suffix}"):
        if not target.is_file():
            draw_map(saved, [target], **ground)
    return target


def _target(path: Path, ground: Ground, suffix: str) -> Path:
    """Another file once there is another outline, which was sent later; its suffix may have two dots."""
    drawn = ground["outline"]
    if drawn is None:
        return path
    stem = path.name.removesuffix(suffix)
    return path.with_name(f"{stem}-{drawn.stat().st_mtime_ns}{suffix}")


def _filmed(desk: Desk, ref: str) -> Path:
    from sfumato.heatmap import map_timelapse

    key, _ = desk.split(ref)
    if not desk.about(key).get("film"):
        raise InvalidParameter("a film is of the periods of one release; nothing was written")
    ground = desk.ground(key)
    target = _target(desk.place(key) / "film.html", ground, ".html")
    with desk.at_work(f"{key}film"):
        if not target.is_file():
            map_timelapse(desk.files(key), target, **ground)
    return target


async def add_map(request: Request) -> Response:
    """Take a saved map.json, to look at it or to compare it."""
    check_csrf(request, request.headers.get("x-csrf-token", ""))
    desk: Desk = request.app.state.desk
    file = await desk.take(SAVED, request.stream(), largest=LARGEST_MAP)
    key = secrets.token_hex(8)
    await in_thread(_added, desk, key, desk.uploaded(file))
    return JSONResponse({"key": key, "address": f"/maps/{key}"}, 201)


def _added(desk: Desk, key: str, file: Path) -> None:
    from sfumato.files import write_file
    from sfumato.heatmap import read_heatmap

    one = read_heatmap(file)
    desk.place(key).mkdir(parents=True)
    write_file(desk.place(key) / SAVED, file.read_bytes())
    desk.keep(
        key,
        {
            "key": key,
            "name": one.name,
            "statement": one.statement,
            "rehearsal": one.receipt.rehearsal,
            "words": [one.statement],
            "files": [SAVED],
            "maps": [{"ref": key, "name": one.name, "group": one.group}],
        },
    )
