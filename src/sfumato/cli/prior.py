"""`--prior`: a file that whoever gives it declares public, by which heatmap commands sharpen a map."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import say
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from sfumato.heatmap import HeatmapRelease, Prior
    from sfumato.spaces import Area

PriorFile = Annotated[
    Path | None,
    typer.Option(
        "--prior",
        help="PUBLIC roads.geojson, prior.npy or saliency.png, which the map follows within its tiles, free. "
        "You declare it public, and the map says so.",
        show_default=False,
        rich_help_panel="Method",
        show_envvar=False,
    ),
]


def declared_prior(path: Path | None, area: Area, *, rows: str = "") -> Prior | None:
    """The prior of the option, refused before anything is charged if it is private or of no use.

    That is one of the files of `rows`, one that cannot be read, or one without weight inside the
    area.
    """
    from sfumato.heatmap import read_prior

    if path is None:
        return None
    private = (
        [Path(rows.partition("::")[0]), *map(Path, glob.glob(rows, recursive=True))] if rows else []
    )
    if any(_is_among(path, one) for one in private):
        raise InvalidParameter(
            f"a prior is public, {path} is the private table itself; nothing was charged"
        )
    prior = read_prior(path)
    prior.check(area)
    return prior


def keep_prior(path: Path | None, outputs: list[Path]) -> None:
    """Refuse outputs that would replace the prior."""
    if path is not None and path.resolve() in {one.resolve() for one in outputs}:
        raise InvalidParameter(
            f"{path} must not replace the prior it is drawn by; nothing was written"
        )


def sharpened_maps(
    maps: tuple[HeatmapRelease, ...], prior: Prior | None
) -> tuple[HeatmapRelease, ...]:
    """The maps, following the prior; whatever goes wrong, they are there as they were paid for."""
    if prior is None:
        return maps
    try:
        return tuple(one.sharpened(prior) for one in maps)
    except (Exception, KeyboardInterrupt) as problem:
        why = str(problem) or type(problem).__name__
        say(
            f"could not follow {prior.file} ({why}): the map is paid for, and written without it",
            quiet=False,
        )
        return maps


def _is_among(path: Path, rows: Path) -> bool:
    """Whether a file is the table, under any name, or one of a folder of it."""
    try:
        return path.samefile(rows) or (rows.is_dir() and rows.resolve() in path.resolve().parents)
    except OSError:  # one of them does not exist: reading it will say so
        return False
