"""Write a report: sections of text, tables and pictures in one self-contained HTML file."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from sfumato.files import write_file

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"> <meta http-equiv="Content-Security-Policy" content="default-src
'none'; img-src data:; style-src 'unsafe-inline'"> <meta name="viewport" content="width=device-width,
initial-scale=1"><title>{title}</title> <style> body {{ font: 16px/1.5 system-ui, sans-serif; max-width:
62rem; margin: 2rem auto; padding: 0 1rem; color: #222 }} h1 {{ font-weight: 600 }} h2 {{ margin-top: 2.2rem;
font-weight: 600 }} img {{ max-width: 100% }} table {{ border-collapse: collapse }} th, td {{ text-align:
left; padding: .25rem .9rem .25rem 0 }} th {{ border-bottom: 2px solid #999 }} td {{ border-bottom: 1px solid
#ddd; font-variant-numeric: tabular-nums }} </style></head><body><h1>{title}</h1> {body} </body></html>
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with text, and maybe a table (first row the heads) and a PNG picture with its description."""

    heading: str
    text: str
    table: Sequence[Sequence[str]] = ()
    picture: bytes | None = None
    description: str = ""


def write_report(
    path: str | Path, title: str, *, sections: Sequence[Section], overwrite: bool = True
) -> None:
    """Save sections as one HTML file that opens anywhere, offline.

    Args:
        path: The page, .html.
        title: What it is called.
        sections: Its parts, in their order.
        overwrite: Whether a file of that name gives way.

    Raises:
        InvalidInput: For a file that exists and stays.
    """
    body = "\n".join(_html(section) for section in sections)
    write_file(path, PAGE.format(title=escape(title), body=body), overwrite=overwrite)


def _html(section: Section) -> str:
    parts = [f"<h2>{escape(section.heading)}</h2>"]
    parts += [
        f"<p>{escape(paragraph)}</p>" for paragraph in section.text.split("\n\n") if paragraph
    ]
    if section.picture is not None:
        data = base64.b64encode(section.picture).decode()
        parts.append(
            f'<img alt="{escape(section.description, quote=True)}" src="data:image/png;base64,{data}">'
        )
    if section.table:
        head, *rows = section.table
        parts.append(
            "<table>" + _row(head, "th") + "".join(_row(row, "td") for row in rows) + "</table>"
        )
    return "\n".join(parts)


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
