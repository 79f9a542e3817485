"""What a map would be like and cost before anything is spent: forecast, odds, price, what is left."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from sfumato.errors import InvalidParameter, LedgerError, SfumatoError
from sfumato.web.answers import in_thread, page
from sfumato.web.asked import (
    SIDES,
    Asked,
    bounds,
    groups,
    has_bounds,
    images,
    number,
    release_options,
    said,
    ticked,
    uploaded,
    users,
    whole,
)

if TYPE_CHECKING:
    from sfumato.heatmap import HeatmapPlan
    from sfumato.web.desk import Desk

MOST_SHOWN = 20_000
"""People of the made-up city: more look the same, and take longer."""
EXAMPLE = (11.2, 43.74, 11.32, 43.81)
FORM = ("file", "x", "y", "ledger")
"""What a form has said once a release could be priced."""


async def plan(request: Request) -> Response:
    """What a map would be like and cost: forecast, odds, price, what is left. Nothing is read or spent."""
    desk: Desk = request.app.state.desk
    data = await in_thread(_planned, desk, dict(request.query_params))
    return page(request, "plan.html", data)


def _planned(desk: Desk, asked: Asked) -> dict[str, Any]:
    from sfumato.heatmap.render import odds_words

    epsilon = said(asked, "epsilon") or "1"
    found, problem = None, ""
    odds = odds_words(epsilon)  # which refuses what is no epsilon
    try:
        found = _forecast(desk, asked, epsilon)
    except InvalidParameter as refused:
        problem = str(refused)
    data: dict[str, Any] = {
        "plan": None if found is None else found.to_json(),
        "forecast": [problem] if found is None else str(found).splitlines(),
        "holds_for": "" if found is None else found.holds_for,
        "odds": odds,
        "left": None,
        "price": None,
        "problem": "",
        "picture": None if found is None else _picture(asked, epsilon, found),
    }
    if ledger := said(asked, "ledger"):
        data["left"] = _left(ledger, epsilon)
    if all(said(asked, name) for name in FORM) and (has_bounds(asked) or said(asked, "images")):
        data |= _priced(desk, asked, data["left"])
    return data


def _forecast(desk: Desk, asked: Asked, epsilon: str) -> HeatmapPlan:
    from sfumato.heatmap import plan_heatmap, public_area
    from sfumato.records import Pairs, Periods, Values

    made = groups(asked)
    parts = made.parts if isinstance(made, Pairs) else (made,)
    frames = [one for one in parts if isinstance(one, Periods)]
    listed = [one for one in parts if isinstance(one, Values)]
    stimuli = images(desk, asked)
    levels = whole(asked, "levels", 8)
    area = None
    if stimuli:
        area = public_area(image=stimuli[0], levels=levels)
    elif any(said(asked, side) for side in SIDES):
        area = public_area(bounds(asked), plane=ticked(asked, "plane"), levels=levels)
    return plan_heatmap(
        epsilon=epsilon,
        users=users(asked),
        kind="gaze" if stimuli else "places",
        levels=levels,
        method=said(asked, "method") or "zoom",
        area=area,
        frames=frames[0].count if frames else 1,
        maps=listed[0].count if listed else 1,
        mass_per_period=bool(frames) and frames[0].mass_per_period,
        mass_per_value=bool(listed) and listed[0].mass_per_value,
        pooling="partial" if ticked(asked, "pooling") else "none",
    )


def _left(ledger: str, epsilon: str) -> dict[str, Any]:
    """What a ledger has left, and whether that pays for one map of this epsilon."""
    from sfumato.privacy import Ledger, PureDP
    from sfumato.privacy.accounting import encode
    from sfumato.privacy.ledger import at_most

    book = Ledger(ledger)
    left = book.statement().left
    try:
        book.afford(PureDP(epsilon))
        pays = True
    except LedgerError:  # the reason is told where a release is priced
        pays = False
    return {"loss": encode(left), "words": at_most(left), "unit": book.header.unit, "pays": pays}


def _priced(desk: Desk, asked: Asked, left: dict[str, Any] | None) -> dict[str, Any]:
    """The price of this very release, or why it would be refused; schemas are looked at, rows are not."""
    from sfumato.heatmap import as_text, plan_release

    try:
        options = release_options(desk, asked)
        source = desk.source(said(asked, "file"))
        planned = plan_release(source, **options).result
        _ground_fits(desk, asked)
    except SfumatoError as refused:
        return {
            "problem": str(refused),
            "left": None if left is None else left | {"pays": False},
        }
    maps = planned.frames or planned.maps or 1
    return {
        "price": planned.to_json() | {"words": f"{planned.cost}", "count": maps},
        "priced": as_text(planned).splitlines(),
        "left": None if left is None else left | {"pays": True},
    }


def _ground_fits(desk: Desk, asked: Asked) -> None:
    """Refuse, before a release is pressed, the public files that do not lie on the area."""
    from sfumato.heatmap import public_area
    from sfumato.heatmap.export import WriteOptions, check_outputs

    over, outline = uploaded(desk, asked, "ground"), uploaded(desk, asked, "outline")
    if said(asked, "images") or (over is None and outline is None):
        return
    area = public_area(
        bounds(asked),
        plane=ticked(asked, "plane"),
        crs=said(asked, "crs") or None,
        levels=whole(asked, "levels", 8),
    )
    check_outputs([], area, options=WriteOptions(over=over, outline=outline))


def _picture(asked: Asked, epsilon: str, found: HeatmapPlan) -> str | None:
    """Where a made-up city of that many people is drawn; none for gazes, which are no city."""
    if found.kind == "gaze":
        return None
    on_earth = has_bounds(asked) and not ticked(asked, "plane")
    west, south, east, north = bounds(asked) if on_earth else EXAMPLE
    query = {
        "epsilon": epsilon,
        "users": f"{max(1, round(found.users_a_map or 1000))}",
        **dict(zip(SIDES, map(str, (west, south, east, north)), strict=True)),
    }
    return f"/plan.png?{urlencode(query)}"


async def plan_picture(request: Request) -> Response:
    """A made-up city of that many people at that epsilon: a rehearsal, stamped as one."""
    asked = dict(request.query_params)
    epsilon, people = said(asked, "epsilon") or "1", number(asked, "users", 1000)
    if not people >= 1:
        raise InvalidParameter(f"`users` is at least 1, got {people:g}; nothing was drawn")
    box = bounds(asked) if has_bounds(asked) else EXAMPLE
    picture = await in_thread(_city_picture, epsilon, int(min(people, MOST_SHOWN)), box)
    return Response(picture, media_type="image/png")


@lru_cache(64)
def _city_picture(epsilon: str, people: int, box: tuple[float, float, float, float]) -> bytes:
    from sfumato._random import generator
    from sfumato.files import scratch_folder
    from sfumato.heatmap import check_ins, draw_map, rehearse_heatmap

    city = check_ins(people, bounds=box, rng=generator(0))
    found = rehearse_heatmap(city, user="user", bounds=box, levels=7, epsilon=epsilon, public=True)
    if found.map is None:
        raise InvalidParameter("nobody lives in that city; nothing was drawn")
    folder, remove = scratch_folder()
    try:
        draw_map(found.map, [folder / "city.png"], title=f"Made-up city of {people:,} people")
        return (folder / "city.png").read_bytes()
    finally:
        remove()
