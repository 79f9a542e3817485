"""Sections of a page, and the same as HTML for a notebook."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class PageSection:
    """A heading with text, and maybe a table (first row the heads) and a PNG picture with its description.

    Attributes:
        heading: Of the section.
        text: Paragraphs, with empty lines between them.
        table: Rows of cells, the first row the heads.
        picture: PNG bytes.
        description: The picture in words.
    """

    heading: str
    text: str
    table: Sequence[Sequence[str]] = ()
    picture: bytes | None = None
    description: str = ""


def sections_html(sections: Sequence[PageSection]) -> str:
    """Sections as HTML that fetches nothing."""
    return "\n".join(_html(section) for section in sections)


def _html(section: PageSection) -> str:
    parts = [f"<h4>{escape(section.heading)}</h4>"]
    parts += [f"<p>{escape(text)}</p>" for text in section.text.split("\n\n") if text]
    if section.picture is not None:
        data = base64.b64encode(section.picture).decode()
        words = escape(section.description, quote=True)
        parts.append(f'<img alt="{words}" src="data:image/png;base64,{data}">')
    if section.table:
        head, *rows = section.table
        body = "".join(_row(row, "td") for row in rows)
        parts.append(f"<table>{_row(head, 'th')}{body}</table>")
    return "\n".join(parts)


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
