"""The report is one file that fetches nothing and trusts no text."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from sfumato.figures import draw_maps
from sfumato.report import Section, write_report

pytestmark = pytest.mark.unit

HOSTILE = "<script>alert(1)</script>\"'&"


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_text_is_shown_not_run(tmp_path: Path) -> None:
    import numpy as np

    picture = draw_maps([("a", np.eye(4))], top=1, caption="c", unit="u")
    section = Section(HOSTILE, f"{HOSTILE}\n\nsecond", [[HOSTILE], [HOSTILE]], picture, HOSTILE)
    write_report(tmp_path / "r.html", HOSTILE, sections=[section])
    reader = Reader()
    reader.feed((tmp_path / "r.html").read_text())
    assert "script" not in reader.tags
    assert reader.tags.count("p") == 2
    assert reader.text.count(HOSTILE) == 6
    assert ("alt", HOSTILE) in reader.attributes
    sources = [value for name, value in reader.attributes if name in ("src", "href")]
    assert len(sources) == 1
    assert all(value and value.startswith("data:image/png;base64,") for value in sources)
