"""The page is for everybody: by keyboard, on a phone, in the dark; and a live network is watched in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, expect
from tests.browsers import PATIENCE, Visit, kept, script, visiting
from tests.web.served import KEY, a_book, a_form, a_head, a_table, asking, crawled, serving
from tests.widget.rounds import two_rounds

from sfumato.network.collector import CollectorState, serve_state
from sfumato.sensing.results import RecoveredRound
from sfumato.web import make_app

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
BY_NIGHT = ("color-contrast",)
"""What may differ in the dark."""
FOCUS = """() => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  return {
    name: one.id || one.name || one.textContent.trim(),
    seen: parseFloat(style.outlineWidth) >= 2 && style.outlineStyle !== "none",
    inside: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight,
  };
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a map, whose ledger has as much again, and a table beside it."""
    found = tmp_path_factory.mktemp("desk")
    ledger, rows = a_book(found, 2), a_table(found / "people.csv")
    with asking(found) as client:
        made = client.post("/release", json=a_form(rows, ledger), headers=a_head(client))
        assert made.status_code == 201, made.text
    return found


@pytest.fixture(scope="module")
def home(folder: Path) -> Iterator[str]:
    with serving(make_app(folder)) as address:
        yield address


def table_of(folder: Path) -> str:
    return f"/table?{urlencode({'file': str(folder / 'people.csv')})}"


def faults(visit: Visit, rules: tuple[str, ...] = RULES) -> list[str]:
    """What axe-core finds, and what sticks out at the side."""
    # As an expression: the page's policy lets no script in that is not ours.
    if not visit.page.evaluate("'axe' in window"):
        visit.page.evaluate(script("axe-core/axe.min.js"))
    found: list[str] = visit.page.evaluate(
        "rules => axe.run(document, {iframes: false, runOnly: rules, resultTypes: ['violations']})"
        ".then(r => r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.html).join(' | ')))",
        list(rules),
    )
    wide = visit.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return found + ([f"{wide} pixels too wide"] if wide > 0 else [])


def test_every_page_is_for_everybody_on_a_phone_by_day_and_by_night(
    browser: Browser, home: str, folder: Path
) -> None:
    plan = urlencode({"epsilon": "1", "users": "500"})
    ledger = urlencode({"path": str(folder / "people.ledger")})
    with asking(folder) as client:
        table = table_of(folder)
        asked = [f"/maps/{KEY}", f"/plan?{plan}", f"/ledger?{ledger}", f"/compare?a={KEY}", table]
        every = crawled(client, *asked, but=f"/maps/{KEY}/")
    pages = [one for one, said in every.items() if b"\ncontent-type: text/html" in said]
    pages = ["/nothing", *(one for one in pages if b">That was refused<" not in every[one])]
    assert len(pages) >= 10
    found, outside, complaints = dict[str, list[str]](), list[str](), list[str]()
    with visiting(browser, home, viewport=PHONE) as visit:
        for number, address in enumerate(sorted(pages)):
            visit.page.goto(home + address)
            for scheme, rules in (("light", RULES), ("dark", BY_NIGHT)):
                visit.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                if wrong := faults(visit, rules):
                    found[f"{address} {scheme}"] = wrong
                kept(visit.page, f"phone-{number}-{scheme}")
        outside, complaints = visit.outside, visit.complaints
    assert found == {}
    assert outside == []
    # A page that is not there is not one of ours to mend.
    assert [one for one in complaints if "404" not in one] == []


def test_the_keyboard_alone_comes_to_release_and_always_sees_where_it_is(
    browser: Browser, home: str, folder: Path
) -> None:
    with visiting(browser, home, viewport={"width": 1000, "height": 700}) as visit:
        page = visit.page
        page.goto(home + table_of(folder))
        walked = list[dict[str, Any]]()
        while not walked or walked[-1]["name"] != "go":
            page.keyboard.press("Tab")
            walked.append(page.evaluate(FOCUS))
            assert len(walked) < 100, [one["name"] for one in walked]
        names = [one["name"] for one in walked]
        assert names[0] == "Skip to the content"
        assert [one["name"] for one in walked if not (one["seen"] and one["inside"])] == []
        needed = ["user", "x", "y", "west", "south", "east", "north", "slider", "epsilon", "ledger"]
        assert [one for one in names if one in needed] == needed
        page.get_by_role("link", name="Skip to the content").press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"


@contextmanager
def a_network() -> Iterator[tuple[int, Any]]:
    """A collector's own server of a state that goes on by a round whenever it is told to."""
    recoveries, number = two_rounds(), itertools.count()
    site = recoveries[0].site

    def later() -> CollectorState:
        at = next(number)
        last = RecoveredRound(f"2026-11-18T12:00:{at:02d}Z", recoveries[at % 2])
        return CollectorState(
            site="corridor <b>", sensors=8, connected=True, accepted=8 * at, refused={},
            rounds={"recovered": at}, waiting=0, queue=(0, 100), store_problem="", last=last,
            track=None, devices=(), promise=None,
        )  # fmt: skip

    state = [later()]

    def go_on(**changed: Any) -> None:
        state[0] = replace(later(), **changed)

    with serve_state(lambda: state[0], 0, site=site) as port:
        yield port, go_on


def test_a_live_network_is_watched_by_two_and_its_end_is_said(browser: Browser, home: str) -> None:
    with visiting(browser, home, viewport=PHONE) as one, visiting(browser, home) as other:
        with a_network() as (port, go_on):
            for visit in (one, other):
                visit.page.goto(f"{home}/sources?port={port}")
                expect(visit.page.locator("#status")).to_have_text("Live.", timeout=PATIENCE)
            for _ in range(3):
                known = one.page.locator("#when").text_content() or ""
                go_on()
                for visit in (one, other):
                    told = visit.page.locator("#when")
                    expect(told).not_to_contain_text(known.partition(",")[0], timeout=PATIENCE)
            expect(one.page.locator("#found tr")).to_have_count(1)
            expect(one.page.locator("#certificate")).to_contain_text("optimal")
            expect(one.page.locator("#site")).to_have_text("corridor <b>")
            one.page.get_by_role("slider", name="Round").press("Home")
            expect(one.page.locator("#when")).to_contain_text("1 of ")
            assert faults(one) == []
            kept(one.page, "live")
            go_on(connected=False)
            lost = "The collector has lost its broker."
            expect(one.page.locator("#status")).to_have_text(lost, timeout=PATIENCE)
        gone = f"No collector answers at port {port} of this machine; trying again."
        expect(other.page.locator("#status")).to_have_text(gone, timeout=PATIENCE)
        assert (one.outside, other.outside) == ([], [])
