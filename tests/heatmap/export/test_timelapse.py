"""The film is one file that fetches nothing, has one scale for all frames, and plays in a real browser."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.heatmap.export.maps import CITY, HOSTILE, SCENE, heatmap, tile_at
from tests.heatmap.export.test_page import browse, embedded, read
from tests.heatmap.posteriors import Broken, around

from sfumato.errors import ExistsAlready, InvalidParameter
from sfumato.heatmap import HeatmapRelease, write_timelapse
from sfumato.heatmap.export.timelapse import timelapse_html
from sfumato.heatmap.render.error import errors_line
from sfumato.spaces import Area

pytestmark = pytest.mark.unit

WEST, EAST = (-74.0, 40.75), (-73.8, 40.75)


def told(number: int, **changed: Any) -> dict[str, Any]:
    start, end = f"2026-01-05T{number:02}:00", f"2026-01-05T{number + 1:02}:00"
    return {
        "unit": "hour", "start": start, "end": end, "time_zone": "", "mass_per_period": False, **changed,
    }  # fmt: skip


def frames(
    *people: list[tuple[int, int, float]], area: Area = CITY, **changed: Any
) -> list[HeatmapRelease]:
    """Maps of hours of one release."""
    first = heatmap(area, [], **changed)
    return [
        replace(
            heatmap(area, tiles, **changed),
            receipt=first.receipt,
            group=f"2026-01-05T{number:02}",
            counted={"by": "time", "period": told(number)},
        )
        for number, tiles in enumerate(people)
    ]


def two(**changed: Any) -> list[HeatmapRelease]:
    """Many in the west, then few in the east, then nobody."""
    many, few = tile_at(CITY, *WEST, level=5, users=4000), tile_at(CITY, *EAST, level=5, users=1000)
    return frames([many], [few], [], **changed)


def grey(data: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2]))))


def test_nothing_is_fetched_and_only_this_script_runs() -> None:
    data = timelapse_html(two())
    found = read(data)
    policy = next(
        a["content"] for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy
    script, style = found.inside["script"][1], found.inside["style"][0]
    for name, text in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert not [
        a for _, a in found.tags if {"src", "href", "style", "onload", "onclick"} & a.keys()
    ]
    assert not re.search(r"https?:|fetch\(|XMLHttp|import\(|eval\(", data.decode())


def test_hostile_words_stay_words() -> None:
    named = [
        replace(one, group=HOSTILE, counted={})
        for one in two(title=HOSTILE, unit=HOSTILE, method=HOSTILE)
    ]
    data = timelapse_html(named)
    found, plain = read(data), read(timelapse_html(two()))
    kinds = {"script", "img", "style"}
    assert [tag for tag, _ in found.tags if tag in kinds] == [
        tag for tag, _ in plain.tags if tag in kinds
    ]
    assert not [a for _, a in found.tags if "onerror" in a]
    assert embedded(data)["names"] == [HOSTILE] * 3


def test_all_frames_have_one_scale_in_users() -> None:
    held = embedded(timelapse_html(two()))
    assert held["names"] == ["Mon 2026-01-05 00:00", "Mon 2026-01-05 01:00", "Mon 2026-01-05 02:00"]
    assert held["totals"] == [4000, 1000, 0]
    shown = [grey(one) for one in held["frames"]]
    assert {one.shape for one in shown} == {(held["size"][1], held["size"][0])}
    # A quarter of the people has half the shade, which goes by the root; shares would be equally
    # dark.
    strongest = [int(one.max()) for one in shown]
    assert strongest[1] == pytest.approx(strongest[0] / 2, abs=1)
    assert strongest[2] == 0
    middle = shown[0].shape[1] / 2
    assert np.argmax(shown[0].max(axis=0)) < middle < np.argmax(shown[1].max(axis=0))
    # Row 0 of a page is its top: the place is a little above the middle of the city.
    assert abs(int(np.argmax(shown[0].max(axis=1))) / shown[0].shape[0] - 0.5) < 0.1


def test_pixels_grow_downward() -> None:
    held = embedded(timelapse_html(frames([tile_at(SCENE, 10, 5, users=9000)], area=SCENE)))
    assert np.argmax(grey(held["frames"][0]).max(axis=1)) < held["size"][1] / 2


def test_a_week_of_hours_is_a_few_megabytes_at_most(rng: np.random.Generator) -> None:
    crowd = [
        [
            (6, int(code), float(users))
            for code, users in zip(codes, rng.exponential(50, 60), strict=True)
        ]
        for codes in rng.choice(4**6, (24, 60))
    ]
    # Frames are independent of each other, so a week is seven times a day.
    assert 7 * len(timelapse_html(frames(*crowd))) < 6_000_000


def test_a_film_of_nobody_can_be_made_and_a_rehearsal_says_what_it_is() -> None:
    assert embedded(timelapse_html(frames([], [])))["totals"] == [0, 0]
    assert "REHEARSAL" in "".join(read(timelapse_html(two(rehearsal=True))).inside[""])


def test_a_broken_posterior_breaks_no_film() -> None:
    """Where draws fail, the marks are those of the width of the noise."""
    unsure = [replace(one, posterior=Broken()) for one in two()]
    film = timelapse_html(unsure)
    assert embedded(film)["floors"] == embedded(timelapse_html(two()))["floors"]
    assert b"could not be worked out" in film


def test_a_film_says_how_far_off_its_maps_are(rng: np.random.Generator) -> None:
    known = [
        replace(one, posterior=around(one.image(), rng)) if one.tiles.total else one
        for one in two()
    ]
    said = errors_line([one.error() for one in known])
    assert said.startswith("on average mass is ")
    assert said in " ".join("".join(read(timelapse_html(known)).inside[""]).split())
    silent = "".join(read(timelapse_html(two())).inside[""])
    assert "its method does not say" in silent


def test_a_frame_says_its_total_as_a_picture_of_its_map_does(rng: np.random.Generator) -> None:
    """With its interval; where that cannot be worked out, without; and one user is no users."""
    known = [
        replace(one, posterior=around(one.image() * one.tiles.total, rng)) for one in two()[:2]
    ]
    held = embedded(timelapse_html(known))
    assert held["about"] == [f"A{str(one.total())[1:]}" for one in known]
    assert all(
        re.fullmatch(r"About [\d,]+ users \(90%: [\d,]+ to [\d,]+\)", one) for one in held["about"]
    )
    unsure = embedded(timelapse_html([replace(one, posterior=Broken()) for one in two()]))
    assert unsure["about"] == ["About 4,000 users", "About 1,000 users", "About 0 users"]
    (single,) = frames([tile_at(CITY, *WEST, level=5, users=1)])
    alone = embedded(timelapse_html([single]))
    assert (alone["about"], alone["units"], alone["unit"]) == (["About 1 user"], "users", "user")


@pytest.mark.browser
def test_the_total_stands_under_the_frame(tmp_path: Path, rng: np.random.Generator) -> None:
    (one,) = frames([tile_at(CITY, *WEST, level=5, users=1)])
    known = replace(one, posterior=around(one.image(), rng))
    said = f"A{str(known.total())[1:]} in this period"
    assert said.startswith("About 1 user (90%: ")
    assert said in browse(tmp_path, timelapse_html([known]), "--dump-dom", fragment="#frame=0")


def test_maps_of_several_releases_are_no_film(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="maps of one release"):
        timelapse_html([two()[0], heatmap(SCENE, [])])
    with pytest.raises(InvalidParameter, match="at least one map"):
        timelapse_html([])
    with pytest.raises(InvalidParameter, match=r"written to \.html"):
        write_timelapse(two(), tmp_path / "film.gif")
    write_timelapse(two(), tmp_path / "film.html")
    with pytest.raises(ExistsAlready, match="exists already and is kept"):
        write_timelapse(two(), tmp_path / "film.html")


# in a browser


PLAY = """
  const waiting = setInterval(() => {
    if (document.body.dataset.loaded !== "yes") return;  // the frames are not read yet
    clearInterval(waiting);
    const get = (id) => document.getElementById(id), said = [];
    const red = () => {  // the column of the strongest color, as a part of the width
      const view = get("view"), copy = document.createElement("canvas");
      copy.width = view.width; copy.height = view.height;
      const pen = copy.getContext("2d", {willReadFrequently: true});
      pen.drawImage(view, 0, 0);
      const data = pen.getImageData(0, 0, view.width, view.height).data;
      let best = -1, at = -1;
      for (let i = 0; i < data.length; i += 4) {
        const dark = 765 - data[i] - data[i + 1] - data[i + 2];
        const [r, g, b] = data.slice(i, i + 3);  // the scale bar and its words are grey
        if (Math.max(r, g, b) - Math.min(r, g, b) < 20) continue;
        if (dark > best) { best = dark; at = (i / 4) % view.width; }
      }
      return best > 30 ? at / view.width : null;
    };
    const words = () => [get("period").textContent, get("slider").value, get("play").textContent];
    const tell = () => said.push([...words(), red()]);
    const key = (name) => document.dispatchEvent(new KeyboardEvent("keydown", {key: name}));
    tell();
    key("ArrowRight"); tell();
    get("slider").value = "0"; get("slider").dispatchEvent(new Event("input")); tell();
    key("End"); tell();
    key(" "); tell();
    setTimeout(() => { tell(); key(" "); tell(); document.body.dataset.said = JSON.stringify(said); }, 900);
  }, 50);
"""


def played(folder: Path, fragment: str, *more: str) -> list[tuple[str, str, str, float | None]]:
    """What the page says while a script of the test plays the user."""
    digest = base64.b64encode(hashlib.sha256(PLAY.encode()).digest()).decode()
    text = (
        timelapse_html(two()).decode().replace("script-src '", f"script-src 'sha256-{digest}' '", 1)
    )
    text = text.replace("</body>", f"<script>{PLAY}</script></body>")
    dom = browse(folder, text.encode(), "--dump-dom", *more, fragment=fragment)
    found = re.search(r'data-said="([^"]*)"', dom)
    assert found is not None
    return [tuple(one) for one in json.loads(found[1].replace("&quot;", '"'))]


@pytest.mark.browser
def test_a_browser_plays_the_film(tmp_path: Path) -> None:
    hours = [f"Mon 2026-01-05 {hour:02}:00" for hour in range(3)]
    asked, right, slid, end, playing, later, paused = played(tmp_path, "#frame=0")
    assert asked[:3] == (hours[0], "0", "Play")
    assert right[:3] == (hours[1], "1", "Play")
    assert slid[:3] == (hours[0], "0", "Play")
    assert end[:3] == (hours[2], "2", "Play")
    assert (asked[3] or 1) < 0.5 < (right[3] or 0)
    assert end[3] is None
    assert playing[2] == later[2] == "Pause"
    assert later[0] == hours[0]  # 800 ms a frame: after the last comes the first
    assert paused[2] == "Play"


@pytest.mark.browser
@pytest.mark.parametrize(
    ("wish", "button"), [("--force-prefers-reduced-motion", "Play"), ("", "Pause")]
)
def test_a_film_starts_by_itself_only_for_those_who_let_it(
    wish: str, button: str, tmp_path: Path
) -> None:
    dom = browse(tmp_path, timelapse_html(two()), "--dump-dom", *([wish] if wish else []))
    assert f">{button}</button>" in dom


def test_a_film_has_the_frame_of_other_pictures() -> None:
    """Longitudes, latitudes and a scale bar as parts of the bounds; none of them on an image."""
    found = embedded(timelapse_html(two()))
    across, up = found["places"]
    west, south, east, north = CITY.bounds
    assert {said for _, said in across} >= {"74.0°W", "73.8°W"}
    for part, said in across:
        assert west + part * (east - west) == pytest.approx(-float(said[:-2]), abs=1e-5)
    for part, said in up:
        assert north - part * (north - south) == pytest.approx(float(said[:-2]), abs=1e-5)
    share, said = found["scale"]
    length = float(said.removesuffix(" km")) * 1000
    width = math.radians(east - west) * math.cos(math.radians((south + north) / 2)) * 6_371_000
    assert share == pytest.approx(length / width, rel=0.01)
    on_image = embedded(timelapse_html(frames([], area=SCENE)))
    assert (on_image["places"], on_image["scale"]) == ([[], []], None)
