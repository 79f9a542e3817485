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
    place = files("sfumato.figures.pages")
    return "".join((place / f"{name}.css").read_text(encoding="utf-8") for name in names)


def player_script() -> str:
    """What pages that play have in common: buttons, slider, bars and keys.

    Returns:
        The text of a script that goes before the page's own.
    """
    return (files("sfumato.figures.pages") / "player.js").read_text(encoding="utf-8")


def filled_page(
    template: str, *, style: str, script: str, words: Mapping[str, str], data: Any
) -> bytes:
    """One HTML file: the template with @NAMES@ replaced by words, and what its policy allows.

    The policy of the template names @STYLE_HASH@ and @SCRIPT_HASH@, so that the browser runs exactly
    this script and this style.

    Args:
        template: The page, with @STYLE@, @SCRIPT@ and @DATA@ in their elements.
        style: The text of its style element.
        script: The text of its script element.
        words: What else is put in, escaped already.
        data: What the script works on; no number in it is infinite.

    Returns:
        The bytes of the file.
    """
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
