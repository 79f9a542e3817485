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
    if any("{by}" not in path.name for path in paths):
        raise InvalidParameter(
            "with `by` every one of `outputs` needs {by} in its name, e.g. map-{by}.png (a film, one .html of "
            "all periods, needs none); nothing was charged"
        )
    return [of_group(path, group) for path in paths]


def of_group(path: str | Path, group: str) -> Path:
    """A name with the group in place of {by}, in letters that a file name can have."""
    target = Path(path)
    if "{by}" not in target.name or not group:
        return target
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in group)
    return target.with_name(target.name.replace("{by}", safe))
