"""A person with a browser: from a file to a forecast, a private map, a download and a comparison."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Page, expect, sync_playwright

from sfumato.web import make_app

pytestmark = pytest.mark.browser

AXE = Path(__file__).parents[2] / ".venv" / "page" / "node_modules" / "axe-core" / "axe.min.js"
PATIENCE = 600_000  # of a hang, in milliseconds
TABLE, RELEASED = re.compile(r"/table\?file="), re.compile(r"/maps/[0-9a-f]{16}$")
AREA = {"west": "0", "south": "0", "east": "8", "north": "8"}


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The page, served on a free port by a thread of the test."""
    config = uvicorn.Config(make_app(tmp_path / "desk"), port=0, log_level="warning", lifespan="on")
    server, ready = uvicorn.Server(config), threading.Event()
    started = server.startup

    async def startup(sockets: Any = None) -> None:
        await started(sockets)
        ready.set()

    server.startup = startup  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run)
    thread.start()
    assert ready.wait(600)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


@pytest.fixture
def page() -> Iterator[Page]:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.fail("the page needs a browser; run: make system")
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu"], timeout=PATIENCE
        )
        made = browser.new_page(viewport={"width": 1280, "height": 900}, accept_downloads=True)
        made.set_default_timeout(PATIENCE)
        yield made
        browser.close()


def looked_at(page: Page, folder: Path, name: str) -> None:
    """A screenshot, kept where SFUMATO_SCREENSHOTS says; no fault of access; no sideways scroll on a phone."""
    kept = Path(os.environ.get("SFUMATO_SCREENSHOTS", folder))
    for width, scheme in ((1280, "light"), (360, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.screenshot(path=kept / f"{name}-{scheme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        if not AXE.exists():
            pytest.fail("axe-core is missing; run: make system")
        # As an expression: the page's policy lets no script in that is not ours.
        page.evaluate(AXE.read_text("utf-8"))
        faults = page.evaluate(
            "axe.run(document, {iframes: false, runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})"
            ".then(r => r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.html).join(' | ')))"
        )
        assert faults == [], f"{name} {scheme}"
    page.set_viewport_size({"width": 1280, "height": 900})


def pictured(page: Page) -> None:
    """Wait for the picture of the last forecast: every new forecast replaces the one before."""
    for _ in range(PATIENCE // 100):
        if page.locator("#picture").evaluate("(one) => one.complete && one.naturalWidth > 0"):
            return
        page.wait_for_timeout(100)
    pytest.fail("no picture of a made-up city came")


def test_from_a_file_to_a_map_a_download_and_a_comparison(
    address: str, page: Page, tmp_path: Path
) -> None:
    rows = tmp_path / "people.csv"
    people = (f"u{n},{1 + n % 5}.5,{1 + n % 3}.25" for n in range(60))
    rows.write_text("\n".join(["user,x,y", *people]))
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    page.on("console", lambda one: complaints.append(one.text) if one.type == "error" else None)
    page.on("pageerror", lambda one: complaints.append(str(one)))

    page.goto(address)
    looked_at(page, tmp_path, "start")
    page.get_by_label("Table (CSV, Parquet or JSON lines)").set_input_files(rows)
    page.wait_for_url(TABLE)
    page.get_by_label("What the map is called").fill("kept")
    page.get_by_role("button", name="Make the ledger").click()
    expect(page.get_by_text("Made: ")).to_be_visible()
    # What was filled in is there still.
    expect(page.get_by_label("What the map is called")).to_have_value("kept")
    maps = []
    for number in (1, 2):
        page.get_by_label("These are units of a plane").check()
        for side, value in AREA.items():
            page.get_by_label(side.capitalize(), exact=True).fill(value)
        page.get_by_label("Cells to a side").select_option("6")
        page.get_by_label("What the map is called").fill(f"Town {number}")
        if number == 1:
            page.get_by_label("More privacy").press("ArrowRight")
            assert page.get_by_label("Epsilon", exact=True).input_value() == "1.5"
            page.get_by_label("More privacy").press("ArrowLeft")
            page.get_by_text("odds of 1 to 1 become at most 2.72 to 1").wait_for()
            page.get_by_text("Left in the ledger: epsilon 2 for each user.").wait_for()
            pictured(page)
            looked_at(page, tmp_path, "plan")
        page.get_by_role("button", name="Release and pay").click()
        page.wait_for_url(RELEASED)
        maps.append(page.url.rpartition("/")[2])
        if number == 1:
            page.get_by_text("2.72 times as likely").wait_for()
            page.locator("#map[data-ready]").wait_for()
            looked_at(page, tmp_path, "released")
            with page.expect_download() as download:
                page.get_by_role("link", name=".csv", exact=True).click()
            assert "x" in Path(download.value.path()).read_text("utf-8").splitlines()[0]
            page.goto(address)
            page.get_by_label("Table (CSV, Parquet or JSON lines)").set_input_files(rows)
            page.wait_for_url(TABLE)
    page.get_by_role("link", name="Compare with another map").click()
    page.get_by_label("After").select_option(maps[0])
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("heading", name="What changed").wait_for()
    looked_at(page, tmp_path, "compare")
    page.goto(f"{address}/ledger")
    page.get_by_role("listitem").get_by_role("link").click()
    page.get_by_text("epsilon 0 of epsilon 2").wait_for()
    looked_at(page, tmp_path, "ledger")
    assert complaints == []
    outside = [one for one in asked if not one.startswith((address, "data:", "blob:"))]
    assert outside == []
    assert len(asked) > 10
