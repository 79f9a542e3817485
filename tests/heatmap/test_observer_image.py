"""Mass 1 for everybody in each image: a ledger of user-images pays once, any other for each image."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.records.plain import opened

from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerMismatch
from sfumato.heatmap import plan_release
from sfumato.privacy import UNITS, Ledger, PureDP
from sfumato.privacy.accounting import ValueColumns
from sfumato.records import Columns, Pairs, Periods, Values, in_table, open_table, sum_cells
from sfumato.records.groups import bounded_for, check_whole
from sfumato.spaces import area_of_plane

pytestmark = pytest.mark.unit

ROWS: dict[str, list[Any]] = {
    "observer": ["1", "1", "1", "2"],
    "image": ["a", "a", "b", "a"],
    "group": ["x", "y", "x", "x"],
    "x": [0.2, 0.7, 0.7, 0.2],
    "y": [0.2, 0.7, 0.7, 0.2],
}
IMAGES = Values("image", ("a", "b"))
EACH = Values("image", ("a", "b"), mass_per_value=True)
GROUPS = Values("group", ("x", "y"))


def summed(groups: Any, *, without: tuple[str, str] | None = None) -> tuple[dict[int, int], int]:
    pairs = list(zip(ROWS["observer"], ROWS["image"], strict=True))
    kept = [number for number, pair in enumerate(pairs) if pair != without]
    table = pa.table({name: [values[at] for at in kept] for name, values in ROWS.items()})
    columns = in_table(groups, Columns("observer", "x", "y"))
    area = area_of_plane((0, 0, 1, 1), 1)
    unit = "observer-image" if groups is EACH or isinstance(groups, Pairs) else "observer"
    found = sum_cells(open_table(table), columns, area, source="gaze", groups=groups, unit=unit)
    return opened(found), int(found.bound.l1 or 0)


def moved(groups: Any) -> tuple[int, int]:
    (whole, bound), (rest, _) = summed(groups), summed(groups, without=("1", "a"))
    codes = whole.keys() | rest.keys()
    return sum(abs(whole.get(cell, 0) - rest.get(cell, 0)) for cell in codes), bound


def test_what_one_observer_has_in_one_image_moves_one_mass_and_shared_it_would_move_more() -> None:
    assert sum(summed(EACH)[0].values()) == 3 * UNITS, "observer 1 has mass 1 in both images"
    assert moved(EACH) == (UNITS, UNITS)
    assert moved(Pairs(EACH, GROUPS)) == (UNITS, UNITS), "shared over groups, not over images"
    assert moved(IMAGES)[0] > UNITS, "why a ledger of user-images must not pay for a shared mass"


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, Any]:
    pq.write_table(pa.table(ROWS), tmp_path / "gaze.parquet")
    return {
        "source": tmp_path / "gaze.parquet", "user": "observer", "x": "x", "y": "y",
        "bounds": (0, 0, 1, 1), "plane": True, "levels": 2, "epsilon": 1,
    }  # fmt: skip


def ledger(folder: Path, unit: str, budget: int = 4) -> Ledger:
    return Ledger.create(folder / f"{unit}.ledger", PureDP(budget), unit=unit, source="gaze")


def test_a_ledger_of_observer_images_pays_once_and_says_so(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    of_pairs = ledger(tmp_path, "observer-image")
    paid = plan_release(**asked, ledger=of_pairs, groups=EACH).run()
    assert paid.statement.startswith(
        "epsilon 1 for each observer-image (one observer-image added or removed)"
    )
    assert str(paid.left) == "epsilon 3"
    assert str(of_pairs.statement().clock) == "values of 'image'"
    # The first charge binds the columns: nobody pays for another part of an observer from it.
    named = Values("group", ("x", "y"), mass_per_value=True)
    groups: Any
    for groups, by in ((None, None), (("x", "y"), "group"), (named, None)):
        with pytest.raises(LedgerMismatch, match=r"by values of 'image'.*nothing was charged"):
            plan_release(**asked, ledger=of_pairs, groups=groups, by=by)
    for groups, by in ((("a", "b"), "image"), (Pairs(IMAGES, GROUPS), None)):
        with pytest.raises(InvalidParameter, match="nearly two masses; nothing was charged"):
            plan_release(**asked, ledger=of_pairs, groups=groups, by=by)


def test_any_other_ledger_pays_for_each_image(tmp_path: Path, asked: dict[str, Any]) -> None:
    of_people = ledger(tmp_path, "observer")
    paid = plan_release(**asked, ledger=of_people, groups=EACH).run()
    assert paid.statement.startswith("epsilon 2 for each observer")
    # What was paid for observers is no promise about their images.
    with pytest.raises(BudgetExceeded, match=r"epsilon 1\.5 in each of 2 maps: asked epsilon 3, 2"):
        plan_release(**{**asked, "epsilon": 1.5}, ledger=of_people, groups=EACH)


def test_a_ledger_called_after_users_pays_for_their_parts_only(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    with pytest.raises(InvalidParameter, match="called after"):
        plan_release(**asked, ledger=ledger(tmp_path, "user-image"))


GROUPS_EACH = Values("group", ("x", "y"), mass_per_value=True)
DAY = datetime(2026, 1, 5)


@pytest.mark.parametrize(
    ("unit", "groups"),
    [
        ("observer-image", None),
        ("Person_Image", None),
        ("observer-image-group", GROUPS_EACH),
        ("user-image-group", GROUPS_EACH),
        ("observer-group-image", Pairs(EACH, GROUPS)),
    ],
)
def test_a_unit_that_is_a_smaller_part_of_a_user_is_not_paid_for(
    tmp_path: Path, asked: dict[str, Any], unit: str, groups: Any
) -> None:
    """Mass shared over a column that the unit names: without one of them nearly two masses would move."""
    of_parts = ledger(tmp_path, unit)
    with pytest.raises(InvalidParameter, match=r"nearly two masses; nothing was charged"):
        plan_release(**asked, ledger=of_parts, groups=groups).run()
    assert not of_parts.statement().entries


def test_a_part_of_a_day_is_no_day() -> None:
    days = Periods("time", "day", DAY, DAY + timedelta(2), mass_per_period=True)
    assert bounded_for("user-day", Pairs(IMAGES, days))[0] == 1
    with pytest.raises(InvalidParameter, match="nearly two masses"):
        bounded_for("user-image-day", Pairs(IMAGES, days))
    with pytest.raises(InvalidParameter, match="nearly two masses"):
        check_whole("user-image-day", days, ["image", "time", "day"], "user")
    check_whole("user-day", days, ["image", "time", "day", "-"], "user")


def test_columns_of_a_unit_may_be_given_in_any_order() -> None:
    told = (1, ValueColumns(("image", "group")))
    assert bounded_for("user-image-group", Pairs(EACH, GROUPS_EACH)) == told
    assert bounded_for("user-image-group", Pairs(GROUPS_EACH, EACH)) == told


def test_pairs_of_columns_are_maps_that_share_the_mass(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    names = [tmp_path / "map-{image}-{group}.json", tmp_path / "map-{by}.csv"]
    plan = plan_release(
        **asked, ledger=ledger(tmp_path, "person"), groups=Pairs(IMAGES, GROUPS), outputs=names
    )
    paid = plan.run()
    assert str(paid.cost) == "epsilon 1"
    assert tuple(paid.by_group) == ("a/x", "a/y", "b/x", "b/y")
    assert {Path(one).name for one in paid.written} >= {"map-b-y.json", "map-b_y.csv"}
    assert paid.maps[3].name.endswith("image b, group y")


@pytest.mark.parametrize(
    ("made", "rule"),
    [
        (lambda: Pairs(IMAGES, Values("image", ("c",))), "different ones, got 'image' twice"),
        (
            lambda: Pairs(Values("p", ("a/b", "a")), Values("q", ("c", "b/c"))),
            "two pairs have one name, 'a/b/c'",
        ),
        (lambda: Pairs(Pairs(IMAGES, GROUPS), GROUPS), "two columns at most"),  # type: ignore[arg-type]
        (lambda: Values("", ("a",)), "of a column"),
        (lambda: Values("image", "ab"), "got the text 'ab'"),  # type: ignore[arg-type]
        (lambda: Values("image", ("a", "a")), "different names"),
        (
            lambda: in_table(EACH, Columns(None, "x", "y", one_row_one_user=True)),
            "lies in one value",
        ),
    ],
)
def test_groups_that_are_none_are_refused(made: Any, rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        made()


def test_python_says_it_by_a_keyword_and_numbers_name_images_too(tmp_path: Path) -> None:
    rows = pa.table(
        {**{name: ROWS[name] for name in ("observer", "x", "y")}, "image": [1, 1, 2, 1]}
    )
    ledger = Ledger.create(tmp_path / "g.ledger", PureDP(2), unit="observer-image", source="gaze")
    asked: dict[str, Any] = {
        "user": "observer", "x": "x", "y": "y", "bounds": (0, 0, 1, 1), "plane": True, "levels": 2,
        "ledger": ledger, "epsilon": 1,
    }  # fmt: skip
    whole = plan_release(rows, by="image", groups=[1, 2], mass_per_value=True, **asked)
    assert str(whole.result.cost) == "epsilon 1"
    assert whole.asked.groups == Values("image", ("1", "2"), mass_per_value=True)
    for refused in ({}, {"by": "image", "groups": EACH}, {"groups": [1, 2]}):
        with pytest.raises(InvalidParameter, match="`mass_per_value` goes with a list of `groups`"):
            plan_release(rows, mass_per_value=True, **refused, **asked)
    wrong: tuple[Any, ...] = (1.5, True, None)
    for name in wrong:
        with pytest.raises(InvalidParameter, match="groups are names, of text or whole numbers"):
            plan_release(rows, by="image", groups=[name], **asked)
