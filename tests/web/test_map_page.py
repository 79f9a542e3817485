"""Maps in pages: views hold what was released, scripts have types, and a real browser draws one offline."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.heatmap.export.maps import HOSTILE, SCENE, town

from sfumato.errors import InvalidParameter
from sfumato.heatmap import map_view
from sfumato.web import map_asset, map_script

pytestmark = pytest.mark.unit
SOURCE = Path(__file__).parents[2] / "src" / "sfumato"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; worker-src blob:; "
    "img-src 'self' data: blob:; connect-src 'self'"
)
PAGE = (
    "<!doctype html><title>map</title><link rel=stylesheet href=maplibre-gl.css>"
    "<link rel=stylesheet href=map.css><link rel=icon href=data:,><script src=maplibre-gl.js></script>"
    "<script type=module src=start.js></script><div id=m></div>"
)
START = (
    'import { showMap } from "./show_map.js";'
    'showMap(document.getElementById("m"), await (await fetch("view.json")).json());'
)


def pixels(uri: str) -> Any:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))))


def test_a_view_has_the_blurs_of_the_pipeline_and_one_scale_for_all_periods() -> None:
    release = town()
    view = map_view([release, release])
    layers = [pixels(one["picture"]) for one in view["maps"][0]["layers"]]
    assert len(layers) == len(view["blurs"]) == 5
    # More blur spreads the darkest cell over more of the picture.
    spread = [int((layer > 127).sum()) for layer in layers[1:]]
    assert spread == sorted(spread)
    assert spread[0] < spread[-1]
    assert view["maps"][0]["layers"] == view["maps"][1]["layers"]
    assert json.loads(json.dumps(view, allow_nan=False)) == view
    assert map_view(town(SCENE))["kind"] == "pixels"


def test_maps_of_two_areas_are_no_view() -> None:
    with pytest.raises(InvalidParameter, match="one area"):
        map_view([town(), town(SCENE)])


def test_only_known_files_are_served() -> None:
    pytest.importorskip("maplibre")
    with pytest.raises(KeyError):
        map_asset("../map_assets.py")
    assert "export const showHere" in map_script()
    assert "import {" not in map_script()[-20_000:]


def checked(tmp_path: Path, scripts: list[Path]) -> str:
    """What TypeScript's checker says of scripts."""
    tsc = SOURCE.parents[1] / ".venv" / "page" / "node_modules" / ".bin" / "tsc"
    if not tsc.exists():
        pytest.fail("TypeScript's checker is missing; run: make system")
    options = "--noEmit --allowJs --checkJs --strict --target es2022 --module es2022 --moduleResolution bundler"
    told = subprocess.run(
        [tsc, *options.split(), *map(str, scripts)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (told.returncode == 0) == (told.stdout == "")
    return told.stdout


def test_scripts_of_pages_and_widgets_keep_their_types(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.js"
    wrong.write_text('/** @type {number} */ export const one = "one";\n')
    ours = sorted([*SOURCE.joinpath("web").rglob("*.js"), *SOURCE.joinpath("widget").rglob("*.js")])
    assert {"plan.js", "show_map.js", "map.js", "recovery.js"} <= {one.name for one in ours}
    # Every complaint is of the one that is wrong, which is complained of.
    told = checked(tmp_path, [*ours, wrong])
    assert [line.partition("(")[0] for line in told.splitlines()] == [wrong.name], told


@pytest.mark.browser
def test_a_browser_draws_the_map_and_asks_nobody_else() -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    pytest.importorskip("maplibre")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    view = map_view(town(group=HOSTILE), zones={HOSTILE.replace("\\", ""): _square()})
    held = {"": PAGE, "start.js": START, "view.json": json.dumps(view)}
    kinds = {
        "js": "text/javascript",
        "css": "text/css",
        "json": "application/json",
        "": "text/html",
    }
    outside: list[str] = []

    def answer(route: Any) -> None:
        base, _, name = route.request.url.rpartition("/")
        if base != "http://page.test":
            outside.append(route.request.url)
            route.abort()
            return
        body = held[name] if name in held else map_asset(name)
        route.fulfill(
            body=body,
            content_type=kinds[name.rpartition(".")[2]],
            headers={"Content-Security-Policy": POLICY},
        )

    with playwright.sync_playwright() as started:
        flags = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader"]
        browser = started.chromium.launch(
            executable_path=chromium, args=[*flags, "--enable-unsafe-swiftshader"]
        )
        page = browser.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda problem: wrong.append(str(problem)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.route("**/*", answer)
        page.goto("http://page.test/")
        page.wait_for_selector("[data-ready]", timeout=120_000)
        ready = page.get_attribute("#m", "data-ready")
        page.focus("input[data-name=Blur]")
        page.keyboard.press("ArrowRight")
        told = page.text_content(".sf-slider output")
        promise, images = page.text_content(".sf-promise"), page.locator("#m img").count()
        browser.close()
    assert ready in {"map", "picture"}
    assert told == "2% of the side"
    assert "epsilon 1" in str(promise)
    assert (outside, wrong, images) == ([], [], 0 if ready == "map" else 1)


def _square() -> list[list[list[float]]]:
    return [[[-74.0, 40.7], [-73.9, 40.7], [-73.9, 40.8], [-74.0, 40.8], [-74.0, 40.7]]]


def test_one_connection_to_a_collector_serves_all_and_keeps_the_rounds() -> None:
    pytest.importorskip("starlette")
    from sfumato.web.sources import Relay

    asked: list[bytes] = []

    async def collector(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\nretry: 2000\n\n")
        for number in range(3):
            state = {"site": "hall", "last": {"time": f"t{number}", "missing": []}}
            writer.write(f"event: state\nid: {number}\ndata: {json.dumps(state)}\n\n".encode())
        await writer.drain()
        await reader.read()  # it stays, silent, until nobody listens
        writer.close()
        await writer.wait_closed()

    async def watch() -> tuple[list[str], str]:
        server = await asyncio.start_server(collector, "127.0.0.1", 0)
        relay = Relay(server.sockets[0].getsockname()[1])
        first = relay.events()
        seen = [await anext(first) for _ in range(4)]
        late = relay.events()
        history = await anext(late)
        await first.aclose()
        await late.aclose()
        server.close()
        await server.wait_closed()
        return seen, history

    seen, history = asyncio.run(asyncio.wait_for(watch(), 60))
    assert [one.split("\n")[0] for one in seen] == ["event: history", *["event: state"] * 3]
    assert [one["time"] for one in json.loads(history.split("data: ")[1])] == ["t0", "t1", "t2"]
    assert len(asked) == 1
