"""From a file to private maps: choose, name columns, release. Nothing is spent before Release."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sfumato.errors import InvalidParameter
from sfumato.web.answers import check_csrf, fields, go_to, in_thread, page
from sfumato.web.asked import Asked, images, release_options, said, uploaded
from sfumato.web.desk import MANY, OUTLINE, PUBLIC, SAVED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sfumato.heatmap import ReleaseResult
    from sfumato.web.desk import Desk

EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10)
LARGEST_GROUND = 2**28
USUAL = {
    "user": (
        "user",
        "user_id",
        "userid",
        "uid",
        "person",
        "observer",
        "participant",
        "device",
        "id",
    ),
    "x": ("lon", "longitude", "lng", "x"),
    "y": ("lat", "latitude", "y"),
}


async def start(request: Request) -> Response:
    """Choose a file; maps that were released before."""
    desk: Desk = request.app.state.desk
    data = {"maps": await in_thread(desk.maps), "ledgers": desk.ledgers()}
    return page(request, "start.html", data, largest=desk.largest)


async def upload(request: Request) -> Response:
    """Take a file as it comes, into the private folder."""
    check_csrf(request, request.headers.get("x-csrf-token", ""))
    desk: Desk = request.app.state.desk
    name = unquote(request.headers.get("x-file-name", "table.csv"))
    key = await desk.take(name, request.stream())
    return JSONResponse({"file": f"upload:{key}"}, 201)


async def ground(request: Request) -> Response:
    """Take a public file to draw the area on: an outline (GeoJSON), a GeoTIFF, or a stimulus."""
    check_csrf(request, request.headers.get("x-csrf-token", ""))
    desk: Desk = request.app.state.desk
    name = unquote(request.headers.get("x-file-name", OUTLINE))
    key = await desk.take(name, request.stream(), largest=LARGEST_GROUND)
    stimulus = request.query_params.get("kind") == "image"
    found = await in_thread(_ground, desk.uploaded(key), stimulus)
    return JSONResponse({"file": f"upload:{key}", "name": Path(name).name, "ground": found}, 201)


def _ground(file: Path, stimulus: bool) -> dict[str, Any]:
    from sfumato.heatmap import ground_view

    return ground_view(file, pixels=stimulus)


async def table(request: Request) -> Response:
    """Which columns a file has and of what types, and nothing of its rows; the form of maps of it."""
    from sfumato.records import PERIOD_UNITS

    desk: Desk = request.app.state.desk
    file = request.query_params.get("file", "")
    columns = await in_thread(_schema, desk.source(file))
    names = [one["name"] for one in columns]
    usual = {what: _usual(names, words) for what, words in USUAL.items()}
    shown = desk.source(file).rpartition("/")[2] if file.startswith("upload:") else file
    data = {"file": file, "name": shown, "columns": columns}
    return page(
        request,
        "map.html",
        data,
        usual=usual,
        key=secrets.token_hex(8),
        ledgers=desk.ledgers(),
        epsilons=EPSILONS,
        periods=PERIOD_UNITS,
        methods=await in_thread(_methods),
        folder=str(desk.folder),
    )


def _schema(source: str) -> list[dict[str, str]]:
    from sfumato.records import open_table

    schema = open_table(source).schema()
    return [{"name": str(name), "type": str(kind)} for name, kind in schema.items()]


def _methods() -> list[dict[str, Any]]:
    """The methods by name, and which numbers each of them is given."""
    from sfumato.heatmap.methods import registered_methods

    return [{"name": one.name, "options": list(one.flags)} for one in registered_methods().values()]


def _usual(names: list[str], words: tuple[str, ...]) -> str:
    lower = {name.lower(): name for name in reversed(names)}
    return next((lower[word] for word in words if word in lower), "")


async def release(request: Request) -> Response:
    """Charge the ledger and make the maps. Pressed twice, it is paid for once; a closed tab loses nothing."""
    desk: Desk = request.app.state.desk
    asked = await fields(request)
    key = asked.get("key") or secrets.token_hex(8)
    desk.place(key)  # refuses what is no key
    result = await in_thread(_released, desk, asked, key)
    return go_to(request, f"/maps/{key}", {"key": key, **result.to_json()})


def _released(desk: Desk, asked: Mapping[str, str], key: str) -> ReleaseResult:
    from sfumato.heatmap import release_heatmap
    from sfumato.records import Periods

    options = release_options(desk, asked)
    source = desk.source(said(asked, "file"))
    several = options["groups"] is not None
    with desk.at_work(key):
        place = desk.place(key)
        place.mkdir(parents=True, exist_ok=True)
        over = _over(desk, asked, key, options["groups"])
        drawn = uploaded(desk, asked, "outline")
        result = release_heatmap(
            source,
            **options,
            over=over,
            outline=None if drawn is None else desk.public_copy(key, drawn, OUTLINE),
            outputs=[place / (MANY if several else SAVED)],
            once=key,
        )
        _noted(
            desk,
            key,
            result,
            film=isinstance(options["groups"], Periods),
            over=None if over is None else over.name,
        )
    return result


def _over(desk: Desk, asked: Asked, key: str, groups: Any) -> Path | None:
    """The public image under the maps, kept beside them: one for all, or one called as each value."""
    from sfumato.heatmap.export import of_group
    from sfumato.records import Values

    stimuli = images(desk, asked)
    if not stimuli:
        georeferenced = uploaded(desk, asked, "ground")
        if georeferenced is None:
            return None
        return desk.public_copy(key, georeferenced, f"ground{georeferenced.suffix}")
    if len(stimuli) == 1:
        return desk.public_copy(key, stimuli[0], f"image{stimuli[0].suffix}")
    if not isinstance(groups, Values):
        raise InvalidParameter(
            "several images are those of one column, without periods: name it in `by` and its values in "
            "`values`; nothing was charged"
        )
    suffixes = {one.suffix for one in stimuli}
    named = {one.stem: one for one in stimuli}
    pattern = f"image-{{by}}{stimuli[0].suffix}"
    wanted = {value: of_group(f"{{by}}{stimuli[0].suffix}", value).stem for value in groups.names}
    missing = [value for value, stem in wanted.items() if stem not in named]
    if missing or len(suffixes) > 1:
        why = (
            f"there is none for {', '.join(missing[:5])}"
            if missing
            else "they have several suffixes"
        )
        raise InvalidParameter(
            "each value has an image that is called as it is, as forest.png for forest, all of one kind; "
            f"{why}; nothing was charged"
        )
    for value, stem in wanted.items():
        desk.public_copy(key, named[stem], of_group(pattern, value).name)
    return desk.place(key) / PUBLIC / pattern


def _noted(desk: Desk, key: str, result: ReleaseResult, *, film: bool, over: str | None) -> None:
    """What the list and the page of a release say without reading its maps."""
    from sfumato.heatmap import as_text
    from sfumato.heatmap.export import of_group

    if not result.maps:
        return
    several = len(result.maps) > 1
    files = [
        of_group(MANY if result.maps[0].group else SAVED, one.group_words).name
        for one in result.maps
    ]
    first = result.maps[0]
    name = f"{first.title or 'Private heatmap'}: {len(files)} maps" if several else first.name
    about = {
        "key": key,
        "name": name,
        "statement": result.statement,
        "rehearsal": False,
        "ledger": result.ledger,
        "entry": result.entry.number,
        "words": as_text(result).splitlines(),
        "files": files,
        "film": film and several,
        "over": over,
        "maps": [
            {"ref": f"{key}_{n}" if several else key, "name": one.name, "group": one.group}
            for n, one in enumerate(result.maps, 1)
        ],
    }
    desk.keep(key, about)
