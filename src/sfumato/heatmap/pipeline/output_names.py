"""The files a release is asked to write, told from their names alone: {by} stands for the group."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sfumato.errors import InvalidParameter

Outputs = str | Path | Iterable[str | Path]


def paths_of(outputs: Outputs) -> list[Path]:
    """The files that are asked for, with {by} in their names."""
    return [Path(outputs)] if isinstance(outputs, str | Path) else [Path(one) for one in outputs]


def files_of(paths: list[Path], group: str) -> list[Path]:
    """The files of one group."""
    if not group:
        return paths
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in group)
    if any("{by}" not in path.name for path in paths):
        raise InvalidParameter(
            "with `by` every one of `outputs` needs {by} in its name, e.g. map-{by}.png (a film, one .html of "
            "all periods, needs none); nothing was charged"
        )
    return [path.with_name(path.name.replace("{by}", safe)) for path in paths]
