"""Results as plain text and in notebooks: lines, and a picture."""

from __future__ import annotations

import base64
from html import escape
from io import StringIO
from typing import Any

from rich.console import Console
from rich.markup import escape as plain


def text_of(lines: list[Any]) -> str:
    """Lines and rich tables as plain text."""
    out = StringIO()
    console = Console(file=out, width=200, highlight=False, emoji=False, no_color=True)
    for line in lines:
        console.print(plain(line) if isinstance(line, str) else line, soft_wrap=True)
    return out.getvalue().rstrip("\n")


def page_of(text: str, picture: bytes | None = None) -> str:
    """A fragment of HTML: the text as it is, and a PNG picture below it."""
    shown = f"<pre>{escape(text)}</pre>"
    if picture is None:
        return shown
    data = base64.b64encode(picture).decode("ascii")
    return f'{shown}<img src="data:image/png;base64,{data}" style="max-width:100%">'
