"""Legends are in units people use, the total is on the picture, and nothing is explained that is not there."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.heatmap.export.maps import CITY, PACIFIC, SCENE, heatmap, tile_at, town
from tests.heatmap.export.test_doubts import NARROW, doubting
from tests.heatmap.export.test_page import embedded, read
from tests.heatmap.posteriors import Given

from sfumato.errors import InvalidParameter
from sfumato.figures.style import PALE, RISE, shade_script
from sfumato.heatmap import release_heatmap
from sfumato.heatmap.accuracy.uncertainty import DRAWS
from sfumato.heatmap.areas import public_area
from sfumato.heatmap.export import write
from sfumato.heatmap.export.legend import legend_of
from sfumato.heatmap.export.page import html
from sfumato.heatmap.export.picture import drawn, figure, overlay
from sfumato.heatmap.export.timelapse import timelapse_html
from sfumato.privacy import KeyedNoise, Ledger, PureDP
from sfumato.spaces import Area, area_in_degrees
from sfumato.spaces.area import area_of_plane

pytestmark = pytest.mark.unit

UTM = public_area("580000,4500000,590000,4510000", crs="EPSG:32618", levels=5)
MERCATOR = public_area("-8242000,4938000,-8210000,4990000", crs="EPSG:3857", levels=6)
WIDE_MERCATOR = public_area("-8242000,2938000,-6210000,6990000", crs="EPSG:3857", levels=6)


def words(release: Any, **how: Any) -> str:
    """Everything that is written on a picture."""
    from matplotlib.text import Text

    return "\n".join(one.get_text() for one in figure(release, **how).findobj(Text))


@pytest.mark.parametrize(
    ("area", "said"),
    [
        (CITY, "users per km²"),
        (UTM, "users per km²"),
        (MERCATOR, "users per km²"),
        (SCENE, "users per megapixel"),
        (area_of_plane((0, 0, 10, 5), 5), "users in a cell of 0.312 × 0.312"),
        (area_in_degrees((-10, 0, 60, 60), 5), "users in a cell of"),
        (WIDE_MERCATOR, "users in a cell of"),
    ],
    ids=["degrees", "utm", "mercator", "pixels", "plane", "continent", "wide mercator"],
)
def test_the_unit_is_that_of_the_ground(area: Area, said: str) -> None:
    release = town(area)
    assert legend_of(release, 5).words.startswith(said)
    assert f"smoothed {said}" in words(release)
    assert legend_of(release, 5, "share").words.startswith("share of all users in a cell of ")
    assert legend_of(release, 5, "share").amount is None


def test_a_density_is_users_over_square_kilometres() -> None:
    """A hundred thousand users all over a square of about 10 km stand at 1,000 to a square kilometre."""
    area = area_in_degrees((11.2, 43.74, 11.32, 43.82), 8, square=False)
    release = heatmap(area, [(0, 0, 1e5)])
    found = drawn(release)
    across, up = (size * area.grid.side / 1000 for size in area.cell_size)
    assert found.legend.amount is not None
    inside = found.shares[100:150, 100:150] * found.legend.amount
    np.testing.assert_allclose(inside, 1e5 / (across * up), rtol=1e-3)
    top = found.top * found.legend.amount
    assert f"{top:e}"[:3] in {"1.0", "1.5", "2.0", "3.0", "4.0", "6.0", "8.0"}, "a round number"


def test_a_map_of_rows_says_rows() -> None:
    release = town(counted={"rows_per_user": 40})
    assert legend_of(release, 8).words == "rows per km²"
    assert "about 44,000 rows" in words(release)
    assert legend_of(release, 8).amount == 40 * (legend_of(town(), 8).amount or 0)


def test_nobody_has_shares_only() -> None:
    assert legend_of(heatmap(CITY, []), 8).amount is None
    assert "about 0 users" in words(heatmap(CITY, []))


def test_pages_have_the_same_unit_as_pictures() -> None:
    release = town()
    page, share = embedded(html(release)), embedded(html(release, legend="share"))
    assert page["legend"] == "users per km²"
    assert share["legend"].startswith("share of all users")
    assert share["amount"] is None
    assert page["scales"]["smooth"]["top"] == drawn(release).top
    film = embedded(timelapse_html([release]))
    assert film["legend"] == "smoothed users per km²"
    assert f"{film['top'] * film['amount']:e}"[:3] in {
        "1.0",
        "1.5",
        "2.0",
        "3.0",
        "4.0",
        "6.0",
        "8.0",
    }


def test_another_kind_of_legend_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="`legend` is one of density, share, got 'total'"):
        write(town(), tmp_path / "a.png", legend="total")  # type: ignore[arg-type]


# -- the total


def test_the_total_and_its_interval_are_on_the_picture_and_in_the_page() -> None:
    rng = np.random.default_rng(0)
    draws = np.zeros((DRAWS, 64, 64))
    draws[:, 20, 20] = rng.normal(5000, 100, DRAWS)
    release = replace(
        heatmap(NARROW, [tile_at(NARROW, -73.98, 40.75, users=5000)]), posterior=Given(draws)
    )
    total = release.total()
    assert total.low is not None
    assert total.high is not None
    # Drawn maps are too sure: their tails are taken three tenths as heavy, 1.5 % at either end.
    assert total.low == pytest.approx(5000 - 217, abs=60)
    assert total.high == pytest.approx(5000 + 217, abs=60)
    assert re.search(r"about 5,0?[01]0 users \(90%: 4,[78]\d0 to 5,[12]\d0\)", words(release))
    assert str(total) in "".join(read(html(release)).inside[""]).replace("About", "about")


@pytest.mark.statistical
def test_the_interval_of_the_total_holds_as_often_as_it_says(tmp_path: Path) -> None:
    """Of 40 releases 90 % hold the truth, at least 31 with a chance of 99 %; of half the interval fewer do."""
    import pyarrow as pa

    rng = np.random.default_rng(1)
    people = 300
    rows = pa.table(
        {
            "user": [f"u{k}" for k in range(people)],
            "lon": rng.uniform(0, 1, people),
            "lat": rng.uniform(0, 1, people),
        }
    )
    held = half = 0
    for key in range(40):
        ledger = Ledger.rehearsal(PureDP(1))
        (release,) = release_heatmap(
            rows, user="user", bounds=(0, 0, 1, 1), levels=5, ledger=ledger, epsilon=1, public=True,
            noise=KeyedNoise(key.to_bytes(32, "big")),
        ).maps  # fmt: skip
        total = release.total()
        assert total.low is not None
        assert total.high is not None
        held += total.low <= people <= total.high
        middle, reach = (total.low + total.high) / 2, (total.high - total.low) / 16
        half += middle - reach <= people <= middle + reach
    assert held >= 31
    assert half < 31, "an interval an eighth as wide does not"


# -- titles


def test_a_map_is_called_by_the_source_of_its_ledger(tmp_path: Path) -> None:
    import pyarrow as pa

    rows = pa.table({"user": ["a"], "lon": [0.5], "lat": [0.5], "kind": ["bus"]})
    ledger = Ledger.create(tmp_path / "a.ledger", PureDP(10), unit="user", source="city bikes")
    asked: dict[str, Any] = {
        "user": "user", "bounds": (0, 0, 1, 1), "levels": 3, "ledger": ledger, "epsilon": 1,
        "method": "laplace",
    }  # fmt: skip
    (one,) = release_heatmap(rows, **asked).maps
    assert one.name == "city bikes"
    (one,) = release_heatmap(rows, **asked, by="kind", groups=("bus",)).maps
    assert one.name == "city bikes: kind bus"
    (one,) = release_heatmap(rows, **asked, title="In June").maps
    assert one.name == "In June"
    assert town(rehearsal=True).name == "Rehearsal of a heatmap"


# -- what is not there


def test_what_is_not_there_is_not_explained() -> None:
    sure = heatmap(NARROW, [tile_at(NARROW, -73.98, 40.75, users=900)])
    everywhere = np.repeat(sure.tiles.image()[None] + 100.0, DRAWS, axis=0)
    release = replace(sure, posterior=Given(everywhere))
    found = release.uncertainty()
    assert not found.silent.any()
    assert "hatched" not in words(release)
    if not found.marks:
        assert "ring" not in words(release)
    both = words(doubting())
    assert "hatched: the map says nothing here" in both
    assert "ring: over twice the average" in both
    data = embedded(html(release))["uncertainty"]
    assert data["hatched"] == ""
    blank = replace(town(NARROW), posterior=Given(np.zeros((DRAWS, 64, 64))))
    assert "ring" not in words(blank)


def test_a_place_that_was_not_tested_is_dashed_beside_a_ring_and_nowhere_else() -> None:
    release = doubting()
    found = release.shown_uncertainty()
    (mark, *_), (low_x, _, high_x, _) = found.marks, release.area.grid.bounds
    reach = found.reach * (high_x - low_x)
    near, far = (mark.x + 1.5 * reach, mark.y), (mark.x + 5 * reach, mark.y)
    said = overlay(release, replace(found, untested=(near, far)))
    assert said.dashed == (near,)
    assert said.dashed_say.startswith("dashed:")
    assert said.lines == 3
    alone = overlay(release, replace(found, untested=(near, far), marks=()))
    assert alone.dashed == ()
    assert alone.rings_say == alone.dashed_say == ""


def test_pages_and_films_shade_by_the_rule_of_the_pictures() -> None:
    """One rule, written once: a script that had its own would leave what may be noise dark."""
    for page in (html(town(CITY)), timelapse_html([town(CITY)])):
        assert shade_script() in page.decode()
        assert page.decode().count("const shade =") == 1
    assert str(PALE) in shade_script()
    assert str(RISE) in shade_script()


def test_the_antimeridian_has_a_legend_too() -> None:
    assert legend_of(town(PACIFIC), 5).words.startswith("users ")
