"""From a file to a private map: choose, name columns, plan, release. Nothing is spent before Release."""

from __future__ import annotations

import math
import re
import secrets
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sfumato.errors import InvalidParameter, LedgerError
from sfumato.web.answers import check_csrf, fields, go_to, in_thread, page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sfumato.heatmap import ReleaseResult
    from sfumato.web.desk import Desk

EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10)
MOST_SHOWN = 20_000
"""People of the made-up city: more look the same, and take longer."""
EXAMPLE = (11.2, 43.74, 11.32, 43.81)
SIDES = ("west", "south", "east", "north")
USUAL = {
    "user": ("user", "user_id", "userid", "uid", "person", "device", "id"),
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


async def table(request: Request) -> Response:
    """Which columns a file has and of what types, and nothing of its rows; the form of a map of it."""
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
        example=EXAMPLE,
        folder=str(desk.folder),
    )


def _schema(source: str) -> list[dict[str, str]]:
    from sfumato.records import open_table

    schema = open_table(source).schema()
    return [{"name": str(name), "type": str(kind)} for name, kind in schema.items()]


def _usual(names: list[str], words: tuple[str, ...]) -> str:
    lower = {name.lower(): name for name in reversed(names)}
    return next((lower[word] for word in words if word in lower), "")


async def plan(request: Request) -> Response:
    """What a map would be like and cost: the forecast, the odds, what is left. Nothing is read or spent."""
    data = await in_thread(_planned, dict(request.query_params))
    return page(request, "plan.html", data)


def _planned(asked: Mapping[str, str]) -> dict[str, Any]:
    from sfumato.heatmap import plan_heatmap
    from sfumato.heatmap.render import odds_words

    epsilon, users = asked.get("epsilon", "1"), _users(asked)
    bounds = _bounds(asked) if any(asked.get(side, "").strip() for side in SIDES) else None
    planned = plan_heatmap(epsilon=epsilon, users=users, area=bounds)
    data: dict[str, Any] = {
        "plan": planned.to_json(),
        "forecast": str(planned).splitlines(),
        "holds_for": planned.holds_for,
        "odds": odds_words(epsilon),
        "left": None,
        "picture": f"/plan.png?{urlencode(_pictured(asked, bounds))}",
    }
    if ledger := asked.get("ledger", "").strip():
        data["left"] = _left(ledger, epsilon)
    return data


def _left(ledger: str, epsilon: str) -> dict[str, Any]:
    """What a ledger has left, and whether that pays for a map of this epsilon."""
    from sfumato.privacy import Ledger, PureDP
    from sfumato.privacy.accounting import encode
    from sfumato.privacy.ledger import at_most

    book = Ledger(ledger)
    left = book.statement().left
    try:
        book.afford(PureDP(epsilon))
        pays = True
    except LedgerError:  # the reason is told when a release is asked for
        pays = False
    return {"loss": encode(left), "words": at_most(left), "unit": book.header.unit, "pays": pays}


def _pictured(asked: Mapping[str, str], bounds: Any) -> dict[str, str]:
    west, south, east, north = bounds or EXAMPLE
    return {
        "epsilon": asked.get("epsilon", "1"),
        "users": asked.get("users", "1000") or "1000",
        **dict(zip(SIDES, map(str, (west, south, east, north)), strict=True)),
    }


async def plan_picture(request: Request) -> Response:
    """A made-up city of that many people at that epsilon: a rehearsal, stamped as one."""
    asked = dict(request.query_params)
    epsilon, users = asked.get("epsilon", "1"), min(int(_number(asked, "users", 1000)), MOST_SHOWN)
    if users < 1:
        raise InvalidParameter(f"`users` is a number above 0, got {users}; nothing was drawn")
    picture = await in_thread(_city_picture, epsilon, users, _bounds(asked))
    return Response(picture, media_type="image/png")


@lru_cache(64)
def _city_picture(epsilon: str, users: int, bounds: tuple[float, float, float, float]) -> bytes:
    from sfumato._random import generator
    from sfumato.files import scratch_folder
    from sfumato.heatmap import check_ins, draw_map, rehearse_heatmap

    city = check_ins(users, bounds=bounds, rng=generator(0))
    found = rehearse_heatmap(
        city, user="user", bounds=bounds, levels=7, epsilon=epsilon, public=True
    )
    if found.map is None:
        raise InvalidParameter("nobody lives in that city; nothing was drawn")
    folder, remove = scratch_folder()
    try:
        draw_map(found.map, [folder / "city.png"], title=f"Made-up city of {users:,} people")
        return (folder / "city.png").read_bytes()
    finally:
        remove()


async def release(request: Request) -> Response:
    """Charge the ledger and make the map. Pressed twice, it is paid for once; a closed tab loses nothing."""
    desk: Desk = request.app.state.desk
    asked = await fields(request)
    key = asked.get("key") or secrets.token_hex(8)
    desk.place(key)  # refuses what is no key
    result = await in_thread(_released, desk, asked, key)
    return go_to(request, f"/maps/{key}", {"key": key, **result.to_json()})


def _released(desk: Desk, asked: Mapping[str, str], key: str) -> ReleaseResult:
    from sfumato.heatmap import release_heatmap

    source = desk.source(asked.get("file", ""))
    by_row = asked.get("user", "") == ""
    if by_row and not asked.get("one_row_one_user"):
        raise InvalidParameter(
            "name the column of users, or say that each row is another person; nothing was charged"
        )
    with desk.at_work(key):
        place = desk.place(key)
        place.mkdir(parents=True, exist_ok=True)
        saved = place / "map.json"
        result = release_heatmap(
            source,
            ledger=asked.get("ledger", "").strip(),
            epsilon=asked.get("epsilon", ""),
            user=asked.get("user") or None,
            x=asked.get("x", "lon"),
            y=asked.get("y", "lat"),
            one_row_one_user=by_row,
            bounds=_bounds(asked),
            plane=asked.get("plane") == "yes",
            levels=_whole(asked, "levels", 8),
            title=asked.get("title", "").strip(),
            note=asked.get("note", "").strip(),
            other_table=asked.get("other_table") == "yes",
            outputs=[saved],
            once=key,
        )
        desk.keep(
            key,
            {
                "key": key,
                "name": result.maps[0].name if result.maps else key,
                "statement": result.statement,
                "rehearsal": False,
                "ledger": result.ledger,
                "entry": result.entry.number,
                "words": _words(result),
            },
        )
    return result


def _words(result: ReleaseResult) -> list[str]:
    from sfumato.heatmap import as_text

    return as_text(result).splitlines()


def _bounds(asked: Mapping[str, str]) -> tuple[float, float, float, float]:
    west, south, east, north = (_number(asked, side) for side in SIDES)
    return west, south, east, north


def _users(asked: Mapping[str, str]) -> float | None:
    return _number(asked, "users") if asked.get("users", "").strip() else None


def _number(asked: Mapping[str, str], name: str, default: float | None = None) -> float:
    text = asked.get(name, "").strip()
    if not text and default is not None:
        return default
    if not re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?", text):
        raise InvalidParameter(f"`{name}` is a number, got {text!r}; nothing was charged")
    found = float(text)
    if not math.isfinite(found):
        raise InvalidParameter(f"`{name}` is a number below 1e308, got {text}; nothing was charged")
    return found


def _whole(asked: Mapping[str, str], name: str, default: int) -> int:
    found = _number(asked, name, default)
    if not found.is_integer():
        raise InvalidParameter(
            f"`{name}` is a whole number, got {asked[name].strip()}; nothing was charged"
        )
    return int(found)
