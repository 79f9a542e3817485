"""One headless Chromium for the browser tests of a module, and visits in it that note who is asked for what."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

PATIENCE = 600_000  # of a hang, in milliseconds
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")  # fmt: skip
NODE = Path(__file__).parents[1] / ".venv" / "page" / "node_modules"


# Not of a session: while Playwright is started, its thread has a running event loop, and no other test
# could have one.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.fail("the page needs a browser; run: make system")
    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=found, args=FLAGS, timeout=PATIENCE)
        yield started
        started.close()


@dataclass
class Visit:
    """A page with all that it asked of anybody, and what the browser complained of."""

    page: Page
    home: str
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def outside(self) -> list[str]:
        """What was asked of anybody but the server that is visited."""
        return [one for one in self.asked if not one.startswith((self.home, "data:", "blob:"))]


@contextmanager
def visiting(browser: Browser, home: str, **options: Any) -> Iterator[Visit]:
    """A page of its own, with cookies of its own; a screenshot is kept where SFUMATO_SCREENSHOTS says."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    one = Visit(context.new_page(), home)
    one.page.on("request", lambda asked: one.asked.append(asked.url))
    one.page.on("pageerror", lambda problem: one.complaints.append(str(problem)))
    one.page.on(
        "console",
        lambda said: one.complaints.append(said.text) if said.type == "error" else None,
    )
    try:
        yield one
    finally:
        context.close()


def kept(page: Page, name: str) -> None:
    """A screenshot, where SFUMATO_SCREENSHOTS names a folder for them."""
    if folder := os.environ.get("SFUMATO_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def script(name: str) -> str:
    """The text of a package that `make system` took from npm."""
    path = NODE / name
    if not path.is_file():
        pytest.fail(f"{path.name} is missing; run: make system")
    return path.read_text("utf-8")
