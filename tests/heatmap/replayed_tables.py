"""Tables and their neighbors, released in every shape a user may ask for, and held against the bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from tests.records.plain import plain_sums
from tests.records.storages import GROUPS, NAMES, PERSONS, Row
from tests.replay import Run, record, violations

from sfumato.heatmap import release_heatmap, release_sums
from sfumato.heatmap.methods import find_area
from sfumato.heatmap.methods.baselines import FlatMethod
from sfumato.privacy import UNITS, Ledger, PureDP
from sfumato.records import Columns, Groups, Pairs, Periods, Values, open_table, sum_cells
from sfumato.spaces import area_of_plane

AREA = area_of_plane((-1.0, -1.0, 3.0, 3.0), 2)
FLAT = FlatMethod()
DAYS = Periods("t", "day", datetime(2026, 3, 28), datetime(2026, 3, 31), time_zone="Europe/Rome")
EVERY_DAY = replace(DAYS, mass_per_period=True)
WEEKDAYS = replace(DAYS, unit="weekday")
EVERY_HOUR = replace(EVERY_DAY, unit="hour-of-day")
IMAGES = Values("image", GROUPS)
EVERY_IMAGE = replace(IMAGES, mass_per_value=True)
WORDS = Values("comment", ('a "quote"', "é", "two\nlines"))
# How rows are counted: what a user may ask for.
SHAPES: dict[str, Columns] = {
    "plain": Columns("user", "x", "y"),
    "weights": Columns("user", "x", "y", weight="w", step=1, cap=5),
    "groups": Columns("user", "x", "y", by="image"),
    "days": Columns("user", "x", "y", by="t"),
    "mass in every day": Columns("user", "x", "y", by="t"),
    "weekdays": Columns("user", "x", "y", by="t"),
    "mass in every hour of the day": Columns("user", "x", "y", by="t"),
    "private bounds": Columns("user", "x", "y"),
    "rows": Columns("user", "x", "y", rows_per_user=2),
    "mass in every image": Columns("user", "x", "y", by="image"),
    "images by weekday": Columns("user", "x", "y", by=("image", "t")),
    "images of every day": Columns("user", "x", "y", by=("t", "image")),
    "images and words": Columns("user", "x", "y", by=("image", "comment")),
    "words in every image": Columns("user", "x", "y", by=("image", "comment")),
}
GROUPED: dict[str, Groups] = {
    "groups": GROUPS,
    "days": DAYS,
    "mass in every day": EVERY_DAY,
    "weekdays": WEEKDAYS,
    "mass in every hour of the day": EVERY_HOUR,
    "mass in every image": EVERY_IMAGE,
    "images by weekday": Pairs(IMAGES, WEEKDAYS),
    "images of every day": Pairs(EVERY_DAY, IMAGES),
    "images and words": Pairs(IMAGES, WORDS),
    "words in every image": Pairs(EVERY_IMAGE, WORDS),
}


def budget(folder: Path, *, unit: str = "user", **options: Any) -> Ledger:
    path = folder / "budget.ledger"
    path.unlink(missing_ok=True)
    return Ledger.create(path, PureDP(100), unit=unit, source="city", **options)


def run(source: Any, shape: str, ledger: Ledger, **options: Any) -> Run:
    """One release of one shape."""
    columns = SHAPES[shape]

    def released() -> object:
        table = open_table(source, columns=columns, **options)
        common: dict[str, Any] = {"ledger": ledger, "epsilon": 1, "method": FLAT}
        # Numbers as text count too, where that is said.
        asked = common | {"text_coordinates": True}
        if shape == "groups":
            return release_heatmap(table, columns, AREA, groups=GROUPS, **asked).by_group
        if (named := GROUPED.get(shape)) is not None:
            bare = Columns("user", "x", "y")
            return release_heatmap(table, bare, AREA, groups=named, **asked).by_group
        if shape == "private bounds":
            header = ledger.header

            def summed(area: Any) -> Any:
                return sum_cells(table, columns, area, source=header.source, unit=header.unit)

            find_area(summed, AREA, ledger=ledger, epsilon=1)
            # The area that is found may differ, as what is released may; the sums are compared on
            # the same.
            return release_sums(summed(AREA), AREA, **common)
        return release_heatmap(table, columns, AREA, **asked).maps[0]

    return record(released, ledger)


TIMES = [
    None,
    "2026-03-28T23:30",
    "2026-03-29T01:30:00+02:00",
    "2026-03-29",
    "2026-03-30 00:30Z",
    "no",
]
rows_of = st.builds(
    Row,
    who=st.sampled_from([*PERSONS, None]),
    x=st.sampled_from(["0.5", "2.5", "-0.5", None]),
    y=st.sampled_from(["0.5", "2.5"]),
    w=st.integers(0, 9),
    image=st.sampled_from(GROUPS),
    t=st.sampled_from(TIMES),
    comment=st.sampled_from(["", 'a "quote"', "two\nlines", "A,0.5,0.5\r\na,2.5,2.5\r\n", "é"]),
    spelling=st.integers(0, 3),
)  # fmt: skip
Pair = tuple[list[Row], list[Row], int]
# Neighbors that a ledger of user-images makes a promise about: what one has in one image.
IN_EVERY_IMAGE = st.sampled_from(["mass in every image", "words in every image"])


@st.composite
def neighbors(draw: st.DrawFn, allowed: Callable[[Row], bool] = lambda row: True) -> Pair:
    """A table; the same without a person, or with their rows elsewhere, in any order; and how far apart."""
    rows = draw(st.lists(rows_of.filter(allowed), min_size=1, max_size=14))
    who = draw(st.sampled_from([row.who for row in rows if row.who is not None] or ["nobody"]))
    if draw(st.booleans()):
        return rows, draw(st.permutations([row for row in rows if row.who != who])), 1
    moved = [replace(row, x="-0.5", image="b") if row.who == who else row for row in rows]
    return rows, draw(st.permutations(moved)), 2


@st.composite
def image_neighbors(draw: st.DrawFn, allowed: Callable[[Row], bool] = lambda row: True) -> Pair:
    """A table; and the same without what one person has in one image, in any order."""
    rows = draw(st.lists(rows_of.filter(allowed), min_size=1, max_size=14))
    one = draw(st.sampled_from([(row.who, row.image) for row in rows]))
    rest = [row for row in rows if (row.who, row.image) != one]
    return rows, draw(st.permutations(rest)), 1


def hold(
    pair: Pair,
    stored: Callable[[list[Row]], Any],
    shape: str,
    folder: Path,
    unit: str = "user",
    **options: Any,
) -> None:
    """Both runs stay within what was paid for, and count what the plain program counts."""
    one, other, steps = pair
    first = run(stored(one), shape, budget(folder, unit=unit), **options)
    second = run(stored(other), shape, budget(folder, unit=unit), **options)
    if unit == "user-image":
        assert first.opened[-1][0].l1 == UNITS, "all images cost epsilon once"
    assert violations(first, second, steps=steps, removed=steps == 1) == []
    assert not first.message, first.message
    plain = [dict(zip(NAMES, row.texts, strict=True)) | {"w": row.w} for row in one]
    expected = plain_sums(plain, SHAPES[shape], AREA, GROUPED.get(shape))
    assert first.opened[-1][1] == expected


shapes = st.sampled_from(sorted(SHAPES))
