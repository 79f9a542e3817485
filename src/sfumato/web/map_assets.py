"""The scripts and styles of maps in pages and widgets: MapLibre of the installed package, and our modules.

Of the package `maplibre` two files alone are taken, and it is not imported: its templates load from outside.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from sfumato.errors import MissingPackage

OURS = ("land.js", "show_map.js", "map.css")
MAPLIBRE = ("maplibre-gl.js", "maplibre-gl.css")
# What the policy of a page needs beside 'self': pictures are in the view, and MapLibre starts its worker
# from a blob.
POLICY = {"worker-src": "blob:", "img-src": "'self' data: blob:"}


def map_asset(name: str) -> bytes:
    """One of the files that a page with a map needs.

    Args:
        name: One of OURS or of MAPLIBRE.

    Returns:
        Its bytes.

    Raises:
        KeyError: There is no such file; nothing else is ever read.
        MissingPackage: MapLibre is not installed.
    """
    if name in OURS:
        return (files("sfumato.web") / "static" / "map" / name).read_bytes()
    if name in MAPLIBRE:
        return (_maplibre() / name).read_bytes()
    raise KeyError(name)


def has_maplibre() -> bool:
    """Whether MapLibre is installed: without it, maps are pictures."""
    try:
        _maplibre()
    except MissingPackage:
        return False
    return True


def map_script() -> str:
    """MapLibre and our modules as one ES module that exports `showMap`: for widgets, which load one text.

    Returns:
        The text of the module.

    Raises:
        MissingPackage: MapLibre is not installed.
    """
    library = map_asset("maplibre-gl.js").decode()
    land, show = (_joined(map_asset(name).decode()) for name in OURS[:2])
    return (
        # As if it were a CommonJS module: notebooks may have a `define` of their own.
        "const maplibregl = ((module) => { const exports = module.exports, define = undefined;\n"
        f"{library}\nreturn module.exports; }})({{ exports: {{}} }});\n"
        f"{land}\n{show}\n"
        "export const showHere = (element, view, options = {}) => "
        "showMap(element, view, { maplibregl, ...options });\n"
    )


def map_style() -> str:
    """The styles of MapLibre and ours as one text.

    Returns:
        The text of a style sheet.

    Raises:
        MissingPackage: MapLibre is not installed.
    """
    return map_asset("maplibre-gl.css").decode() + map_asset("map.css").decode()


def _joined(module: str) -> str:
    """A module of ours in one scope with the others."""
    return re.sub(r"(?m)^import .*$", "", module).replace("\nexport ", "\n")


@cache
def _maplibre() -> Path:
    spec = find_spec("maplibre")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place) / "srcjs"
        if all((folder / name).is_file() for name in MAPLIBRE):
            return folder
    raise MissingPackage("pip install 'sfumato[notebook]'")
