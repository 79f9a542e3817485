"""What forms say, as the arguments of pipelines; nothing is computed and no row is read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from datetime import datetime

    from sfumato.records import Groups
    from sfumato.web.desk import Desk

SIDES = ("west", "south", "east", "north")
MOST_IMAGES = 100
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?")

Asked = Mapping[str, str]


def said(asked: Asked, name: str) -> str:
    """What a field says, without the spaces around it."""
    return asked.get(name, "").strip()


def ticked(asked: Asked, name: str) -> bool:
    """Whether a box is ticked."""
    return said(asked, name) == "yes"


def number(asked: Asked, name: str, default: float | None = None) -> float:
    """The number in a field."""
    text = said(asked, name)
    if not text and default is not None:
        return float(default)
    if not NUMBER.fullmatch(text):
        raise InvalidParameter(f"`{name}` is a number, got {text[:60]!r}; nothing was charged")
    found = float(text)
    if not math.isfinite(found):
        raise InvalidParameter(f"`{name}` is a number below 1e308, got {text}; nothing was charged")
    return found


def whole(asked: Asked, name: str, default: int | None = None) -> int:
    """The whole number in a field."""
    found = number(asked, name, default)
    if not found.is_integer():
        raise InvalidParameter(f"`{name}` is a whole number, got {found:g}; nothing was charged")
    return int(found)


def users(asked: Asked) -> float | None:
    """About how many people there are, if it is said."""
    return number(asked, "users") if said(asked, "users") else None


def bounds(asked: Asked) -> tuple[float, float, float, float]:
    """The four sides of the area."""
    if not any(said(asked, side) for side in SIDES):
        raise InvalidParameter(
            "the public area is missing: draw it, or type `west`, `south`, `east` and `north`; "
            "nothing was charged"
        )
    west, south, east, north = (number(asked, side) for side in SIDES)
    return west, south, east, north


def has_bounds(asked: Asked) -> bool:
    """Whether all four sides are given."""
    return all(said(asked, side) for side in SIDES)


def images(desk: Desk, asked: Asked) -> list[Path]:
    """The uploaded images of a gaze map, by the keys in the field."""
    keys = [one.strip() for one in said(asked, "images").split(",") if one.strip()]
    if len(keys) > MOST_IMAGES:
        raise InvalidParameter(
            f"at most {MOST_IMAGES} images make one release, got {len(keys)}; nothing was charged"
        )
    return [desk.uploaded(one.removeprefix("upload:")) for one in keys]


def uploaded(desk: Desk, asked: Asked, name: str) -> Path | None:
    """The uploaded public file whose key a field holds, if it holds one."""
    key = said(asked, name)
    return desk.uploaded(key.removeprefix("upload:")) if key else None


def groups(asked: Asked) -> Groups:
    """Which maps are made: one, one for each period, for each value of a column, or for each pair."""
    from sfumato.records import Pairs, Periods, Values

    parts: list[Values | Periods] = []
    if time := said(asked, "time"):
        parts.append(
            Periods(
                time,
                said(asked, "period") or "day",  # type: ignore[arg-type]  # it refuses another word
                _moment(asked, "from"),
                _moment(asked, "to"),
                time_zone=said(asked, "time_zone"),
                mass_per_period=ticked(asked, "mass_per_period"),
            )
        )
    if by := said(asked, "by"):
        listed = tuple(one.strip() for one in said(asked, "values").split(","))
        if len(set(listed)) < len(listed) or "" in listed:
            raise InvalidParameter(
                "`values` names each map of the column, with commas, and each once, got "
                f"{said(asked, 'values')[:100]!r}; nothing was charged"
            )
        parts.append(Values(by, listed, ticked(asked, "mass_per_value")))
    if len(parts) == 2:
        return Pairs(*parts)
    return parts[0] if parts else None


def _moment(asked: Asked, name: str) -> datetime:
    from datetime import datetime

    text = said(asked, name)
    if not text:
        raise InvalidParameter(
            "periods go `from` a public date `to` another, which is not in them any more: "
            f"`{name}` is missing; nothing was charged"
        )
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidParameter(
            f"`{name}` is a date or a time like 2026-01-31 or 2026-01-31T06:00, got {text[:40]!r}; "
            "nothing was charged"
        ) from None


def method(asked: Asked) -> Any:
    """The method, with what it alone asks for."""
    from sfumato.heatmap.methods import registered_methods

    name = said(asked, "method") or "zoom"
    known = registered_methods()
    if name not in known:
        raise InvalidParameter(
            f"`method` is one of {', '.join(known)}, got {name!r}; nothing was charged"
        )
    entry = known[name]
    flags = {flag: said(asked, flag) for flag in entry.flags if said(asked, flag)}
    return entry.make(flags)


def release_options(desk: Desk, asked: Asked) -> dict[str, Any]:
    """What `release_heatmap` and `plan_release` are called with, but for the files they write."""
    by_row = said(asked, "user") == ""
    if by_row and not ticked(asked, "one_row_one_user"):
        raise InvalidParameter(
            "name the column of users, or say that each row is another person; nothing was charged"
        )
    found: dict[str, Any] = {
        "ledger": said(asked, "ledger"),
        "epsilon": said(asked, "epsilon"),
        "method": method(asked),
        "groups": groups(asked),
        "user": said(asked, "user") or None,
        "x": said(asked, "x") or "lon",
        "y": said(asked, "y") or "lat",
        "one_row_one_user": by_row,
        "levels": whole(asked, "levels", 8),
        "title": said(asked, "title"),
        "note": said(asked, "note"),
        "team": said(asked, "team"),
        "other_table": ticked(asked, "other_table"),
        "pooling": "partial" if ticked(asked, "pooling") else "none",
        "users": users(asked),
    }
    if said(asked, "weight"):
        found["weight"] = said(asked, "weight")
        found["weight_step"] = said(asked, "weight_step") or None
        if said(asked, "weight_cap"):
            found["weight_cap"] = whole(asked, "weight_cap")
    if said(asked, "rows_per_user"):
        found["rows_per_user"] = whole(asked, "rows_per_user")
    if stimuli := images(desk, asked):
        found["image"] = stimuli[0]
    else:
        found |= {"bounds": bounds(asked), "plane": ticked(asked, "plane")}
        if said(asked, "crs"):
            found["crs"] = said(asked, "crs")
    return found
