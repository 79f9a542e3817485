"""The files of a release: which map goes where, and what was written before is left."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.errors import ExistsAlready, InvalidInput
from sfumato.files import holds
from sfumato.heatmap.accuracy.map_error import MapError, some_of
from sfumato.heatmap.export.formats import (
    PLAIN,
    STYLE,
    WriteOptions,
    check_outputs,
    format_of,
    keep_apart,
)
from sfumato.heatmap.export.output_names import Group, Outputs, files_of, of_group, paths_of
from sfumato.heatmap.export.timelapse import write_timelapse
from sfumato.heatmap.inference.prior import Prior
from sfumato.heatmap.private_map import HeatmapRelease
from sfumato.records import Groups, Pairs, Periods, names_of
from sfumato.spaces import Area

Watch = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class OutputPlan:
    """Where each map of a release goes.

    Attributes:
        files: The files of each map, by the name of its group.
        words: What stands for each group in names of files.
        timelapses: Pages that show all periods one after the other.
        options: How files are written.
        overwrite: Whether files that exist are replaced.
        again: Whether they may have been written before: those that are the same are left.

    """

    files: dict[str, list[Path]] = field(default_factory=dict)
    words: dict[str, Group] = field(default_factory=dict)
    timelapses: tuple[Path, ...] = ()
    options: WriteOptions = PLAIN
    overwrite: bool = False
    again: bool = False

    @property
    def every(self) -> list[Path]:
        """All files."""
        return [*self.timelapses, *(path for paths in self.files.values() for path in paths)]

    def check(self, area: Area, *, others: Iterable[str | Path | None], rows: Any) -> None:
        """Refuse what could not be written, and what would replace a file that is read."""
        # A film has one image under all frames.
        named = [self.words.get(one, one) for one in self.files]
        groups: tuple[Group, ...] = (
            *named,
            *([""] if self.timelapses or not self.files else []),
        )
        check_outputs(
            self.every,
            area,
            options=self.options,
            groups=groups,
            overwrite=self.overwrite or self.again,
        )
        over = self.options.over
        images = [] if over is None else [of_group(over, one) for one in groups]
        keep_apart(self.every, [*others, *images, self.options.outline], rows)


def plan_outputs(
    outputs: Outputs,
    groups: Groups,
    *,
    options: WriteOptions = PLAIN,
    overwrite: bool = False,
    film: bool | None = None,
) -> OutputPlan:
    """Where the maps of some groups go: {by} in a name stands for the group.

    With periods, or where it is said to be a `film`, an .html without {by} in its name is a timelapse
    of all of them.
    """
    paths = with_styles(paths_of(outputs))
    names = names_of(groups)
    timelapses = [
        path
        for path in paths
        if (isinstance(groups, Periods) if film is None else film)
        and path.suffix.lower() == ".html"
        and "{by}" not in path.name
    ]
    rest = [path for path in paths if path not in timelapses]
    words = dict(zip(names, words_of_groups(groups), strict=True))
    files = {name: files_of(rest, words[name]) for name in names}
    return OutputPlan(files, words, tuple(timelapses), options, overwrite)


def words_of_groups(groups: Groups) -> list[Group]:
    """What stands for each group in names of files: of a pair, each of its columns too."""
    names = names_of(groups)
    if not isinstance(groups, Pairs):
        return list(names)
    return [
        {"by": name} | {one["by"]: one["name"] for one in groups.about(number)}
        for number, name in enumerate(names)
    ]


def with_styles(paths: list[Path]) -> list[Path]:
    """The files, and beside each .geojson the style that QGIS looks for there."""
    styles = [path.with_suffix(STYLE) for path in paths if path.suffix.lower() == ".geojson"]
    return paths + [one for one in dict.fromkeys(styles) if one not in paths]


def write_maps(
    maps: Sequence[HeatmapRelease],
    plan: OutputPlan,
    *,
    watch: Watch | None = None,
) -> tuple[str, ...]:
    """Write each map to its files, and all to each timelapse."""
    written: list[str] = []
    work: list[tuple[Path, Callable[[Path, bool], None]]] = [
        (path, partial(_write, one, plan.options))
        for one in maps
        for path in plan.files.get(one.group, ())
    ]
    work += [(path, partial(_write_timelapse, maps, plan.options)) for path in plan.timelapses]
    if work and any(one.posterior is not None for one in maps):
        tell(watch, "drawing, and working out how sure the map is")
    for path, write in work:
        try:
            if plan.again and os.path.lexists(path):
                said = _written_again(path, write, overwrite=plan.overwrite)
            else:
                write(path, plan.overwrite)
                said = "wrote"
        except ExistsAlready:
            raise
        except Exception as problem:
            why = str(problem) or type(problem).__name__
            raise InvalidInput(f"could not write {path} ({why})") from problem
        tell(watch, f"{said} {path}")
        written.append(str(path))
    return tuple(written)


def stated_errors(
    maps: Sequence[HeatmapRelease], *, warn: Watch | None = None
) -> dict[str, MapError]:
    """How far off maps are, by group; none of them where one cannot be worked out: they are paid for.

    Of many maps, such as the hours of a week, some are looked at: each says it in its own file.
    """
    try:
        return {one.group: one.error() for one in some_of(maps)}
    except Exception as problem:
        why = str(problem) or type(problem).__name__
        tell_of_trouble(
            warn,
            f"could not work out how far off the map is ({why}): it is paid for and says nothing "
            "of it",
        )
        return {}


def _written_again(path: Path, write: Callable[[Path, bool], None], *, overwrite: bool) -> str:
    """Leave a file that is what would be written; what was done with it."""
    if holds(partial(_new, write), path):
        return "found"
    if not overwrite:
        raise ExistsAlready(
            f"{path} exists already and is not what was released; it is kept: say `overwrite` to "
            "replace it"
        )
    write(path, True)
    return "wrote"


def _new(write: Callable[[Path, bool], None], path: Path) -> None:
    write(path, False)


def _write_timelapse(
    maps: Sequence[HeatmapRelease], how: WriteOptions, path: Path, overwrite: bool
) -> None:
    write_timelapse(maps, path, over=how.over, outline=how.outline, overwrite=overwrite)


def _write(one: HeatmapRelease, how: WriteOptions, path: Path, overwrite: bool) -> None:
    if one.posterior is not None and format_of(path).uncertainty:
        # Worked out here, once for all files of the map: writers only show it. Where it cannot be,
        # the writer says so, or does without it.
        with contextlib.suppress(Exception):
            one.shown_uncertainty()
    one.write(
        path,
        over=how.over,
        level=how.level,
        h3_resolution=how.h3_resolution,
        outline=how.outline,
        legend=how.legend,
        every_cell=how.every_cell,
        overwrite=overwrite,
    )


def sharpened_maps(
    maps: tuple[HeatmapRelease, ...], prior: Prior | None, *, warn: Watch | None
) -> tuple[HeatmapRelease, ...]:
    """The maps, following the prior; whatever goes wrong, they are there as they were paid for."""
    if prior is None:
        return maps
    try:
        return tuple(one.sharpened(prior) for one in maps)
    except Exception as problem:
        why = str(problem) or type(problem).__name__
        tell_of_trouble(
            warn,
            f"could not follow {prior.file} ({why}): the map is paid for, and written without it",
        )
        return maps


def tell(watch: Watch | None, message: str) -> None:
    """Say what is done once something is paid for: an error of who is told does not stop it."""
    if watch is not None:
        with contextlib.suppress(Exception):
            watch(message)


def tell_of_trouble(warn: Watch | None, message: str) -> None:
    """Say what must be seen, on standard error if nobody takes it; what is paid for goes on."""
    try:
        (warn or warned)(message)
    except Exception:  # a warning that is an error, a closed pipe
        with contextlib.suppress(Exception):
            sys.stderr.write(f"{message}\n")


def warned(message: str) -> None:
    """A message that must be seen, as a warning of Python."""
    warnings.warn(message, stacklevel=4)
