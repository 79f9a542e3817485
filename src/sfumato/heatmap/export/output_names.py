"""The files a release is asked to write, told from their names alone: {by} stands for the group."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from sfumato.errors import ExistsAlready, InvalidParameter

COMPARISONS = (".png", ".html", ".json", ".csv")
Outputs = str | Path | Iterable[str | Path]
# The name of a group; or of a pair, with the name of each of its parts.
Group = str | Mapping[str, str]


def paths_of(outputs: Outputs) -> list[Path]:
    """The files that are asked for, with {by} in their names."""
    return [Path(outputs)] if isinstance(outputs, str | Path) else [Path(one) for one in outputs]


def files_of(paths: list[Path], group: Group) -> list[Path]:
    """The files of one group."""
    words = words_of(group)
    if not words["by"]:
        return paths
    parts = [one for one in words if one != "by"]
    for path in paths:
        both = parts and all(f"{{{one}}}" in path.name for one in parts)
        if "{by}" not in path.name and not both:
            or_both = f" (or {' and '.join(f'{{{one}}}' for one in parts)})" if parts else ""
            raise InvalidParameter(
                f"with `by` every one of `outputs` needs {{by}}{or_both} in its name, e.g. map-{{by}}.png (a "
                "film, one .html of all periods, needs none); nothing was charged"
            )
    return [of_group(path, group) for path in paths]


def of_group(path: str | Path, group: Group) -> Path:
    """A name with the group in place of {by}, in letters that a file name can have.

    Args:
        path: The name, with {by}, or the name of a column of a pair in braces.
        group: The value of a group, or what stands for each word.

    Returns:
        The path with the group's name in it; as it was where there is no group, or no word for it.

    >>> str(of_group("stim-{image}.png", {"by": "monday/forest", "weekday": "monday", "image": "forest"}))
    'stim-forest.png'
    """
    target, words = Path(path), words_of(group)
    if not words["by"]:
        return target
    name = target.name
    for word, value in words.items():
        safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in value)
        name = name.replace(f"{{{word}}}", safe)
    return target if name == target.name else target.with_name(name)


def words_of(group: Group) -> Mapping[str, str]:
    """What stands for a group in the names of files: {by}, and of a pair the names of its columns."""
    return {"by": group} if isinstance(group, str) else group


def check_output(
    path: Path, suffixes: Sequence[str], read: Iterable[str | Path], *, what: str, overwrite: bool
) -> None:
    """Refuse one file of a table that could not be written, or that would replace what is read."""
    if path.suffix.lower() not in suffixes:
        raise InvalidParameter(
            f"{what} end in one of {', '.join(suffixes)}, got {path}; nothing was written"
        )
    if path.resolve() in {Path(one).resolve() for one in read}:
        raise InvalidParameter(f"{path} must not replace the map or its zones; nothing was written")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidParameter(
            f"the folder of {path} must be there to write to; nothing was written"
        )
    if path.is_dir() or (os.path.lexists(path) and not overwrite):
        raise ExistsAlready(f"{path} exists already and is kept; nothing was written")
