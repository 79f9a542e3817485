"""Put style, script, words and data into the template of a page, so that none of them can become another."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any


def page_style(*names: str) -> str:
    """The style that pages share: "page" of all of them, "timelapse" of those that play.

    Args:
        names: Which parts, in order.

    Returns:
        The text of a style element.
    """
    return "".join(_part(f"{name}.css") for name in names)


def filled_page(
    template: str, *, style: str, script: str, words: Mapping[str, str], data: Any
) -> bytes:
    """One HTML file: the template with @NAMES@ replaced by words, and what its policy allows.

    Pages begin with @HEAD@. One with @PLAYER@ plays what it has: its script calls `player`, and its words say
    one of what (@ONE@) and how its slider is called (@SLIDER@). The policy of the head names @STYLE_HASH@ and
    @SCRIPT_HASH@, so that the browser runs exactly this script and this style.

    Args:
        template: The page, with @STYLE@, @SCRIPT@ and @DATA@ in their elements.
        style: The text of its style element.
        script: The text of its script element.
        words: What else is put in, escaped already.
        data: What the script works on; no number in it is infinite.

    Returns:
        The bytes of the file.
    """
    if "@PLAYER@" in template:
        script = _part("player.js") + script
    for name in ("head", "player"):
        template = template.replace(f"@{name.upper()}@", _part(f"{name}.html"))
    held = {
        **words,
        "STYLE_HASH": _digest(style),
        "SCRIPT_HASH": _digest(script),
        "STYLE": style,
        "SCRIPT": script,
        # In a script element only these could end it, or begin a comment in it.
        "DATA": json.dumps(data, allow_nan=False, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026"),
    }
    # In one pass: what is put in is never looked at again, whatever it says.
    return re.sub("@([A-Z_]+)@", lambda found: held[found[1]], template).encode()


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _part(name: str) -> str:
    return (files("sfumato.figures.pages") / name).read_text(encoding="utf-8")
