"""What users hand over, as the typed values that pipelines work on: paths, tables, arrays, DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato._validate import real_array
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.sensing.model.site import Site, read_site
from sfumato.sensing.reading_tables import read_snapshots
from sfumato.sensing.recovery.merging import (
    MergedReadings,
    merge,
    merge_each,
    times_of,
    unpromised,
)
from sfumato.sensing.recovery.round_times import matching_times
from sfumato.sensing.release.readings import Readings, Snapshot, read_readings
from sfumato.sensing.tables import read_sigma, read_sources

Released = str | Path | Readings | Snapshot
ReadingsInput = Released | Sequence[Released] | Mapping[str, float] | npt.ArrayLike
"""A file, readings, a snapshot with its site, several of these, a mapping by sensor, an array, a DataFrame."""
SourcesInput = str | Path | Mapping[str, float] | npt.ArrayLike
"""True masses: a table of cell and mass, a mapping by cell, or one mass for each cell."""


def site_from(site: Site | str | Path | None) -> Site | None:
    """A site, or the one in a file."""
    return read_site(site) if isinstance(site, str | Path) else site


def all_readings(readings: Any, *, site: Site | str | Path | None = None) -> list[Readings]:
    """Released readings of devices: files, readings, or snapshots with their site."""
    given = [readings] if isinstance(readings, str | Path | Readings | Snapshot) else list(readings)
    ground = site_from(site)
    found = []
    for one in given:
        if isinstance(one, str | Path):
            found.append(read_readings(one))
        elif isinstance(one, Readings):
            found.append(one)
        elif isinstance(one, Snapshot):
            if ground is None:
                raise InvalidParameter("a snapshot goes with its `site`; nothing was recovered")
            found.append(Readings(ground, (one,)))
        else:
            raise InvalidParameter(
                f"readings are files, Readings or Snapshots, got {type(one).__name__}; nothing was recovered"
            )
    if not found:
        raise InvalidParameter("there must be at least one file of readings; nothing was recovered")
    return found


def merged(
    readings: ReadingsInput,
    *,
    site: Site | str | Path | None,
    noise: float | None,
    time: str,
    average: bool,
    weigh: bool = False,
) -> MergedReadings:
    """The readings of one time, or the average of all, from whatever they are in."""
    paths = _paths(readings)
    if paths is not None:
        return _from_files(paths, site=site, noise=noise, time=time, average=average, weigh=weigh)
    if isinstance(readings, Readings | Snapshot) or _released(readings):
        if noise is not None:
            raise InvalidParameter(
                "`noise` goes with readings that do not say their own; nothing was recovered"
            )
        return merge(all_readings(readings, site=site), time=time, average=average, weigh=weigh)
    ground = site_from(site)
    if ground is None:
        raise InvalidParameter("readings in an array or a table need `site`; nothing was recovered")
    values, sigma, when = _numbers(readings, ground, time)
    return unpromised(values, ground, noise=sigma if noise is None else noise, time=when)


def merged_each(
    readings: ReadingsInput,
    *,
    site: Site | str | Path | None,
    noise: float | None,
    time: str,
) -> tuple[list[MergedReadings], list[Readings]]:
    """The readings of each time, in order, and where they were released the releases themselves."""
    paths = _paths(readings)
    tables = paths is not None and any(path.suffix != ".json" for path in paths)
    if not tables and (paths or isinstance(readings, Readings | Snapshot) or _released(readings)):
        if noise is not None or (paths and site is not None):
            what = "`noise` goes with" if noise is not None else "`site` goes with"
            raise InvalidParameter(
                f"{what} readings that do not say their own; nothing was recovered"
            )
        read = all_readings(readings, site=site)
        return merge_each(read, time=time), read
    ground = site_from(site)
    if ground is None or (paths is not None and len(paths) != 1):
        raise InvalidParameter(
            "readings in a table come as one, with `site`; nothing was recovered"
        )
    if paths is not None:
        groups, where = read_snapshots(paths[0], ground), str(paths[0])
        sigma = read_sigma(paths[0])
    elif hasattr(readings, "columns"):
        groups, sigma = _groups(readings, ground)
        where = "the table"
    else:
        return [merged(readings, site=ground, noise=noise, time=time, average=False)], []
    return [
        unpromised(values, ground, noise=sigma if noise is None else noise, time=when)
        for when, values in _of_times(groups, time, where=where)
    ], []


def _paths(readings: Any) -> list[Path] | None:
    if isinstance(readings, str | Path):
        return [Path(readings)]
    if isinstance(readings, list | tuple) and readings:
        return (
            [Path(p) for p in readings]
            if all(isinstance(p, str | Path) for p in readings)
            else None
        )
    return None


def _released(readings: Any) -> bool:
    return isinstance(readings, list | tuple) and any(
        isinstance(one, str | Path | Readings | Snapshot) for one in readings
    )


def _from_files(
    paths: list[Path],
    *,
    site: Site | str | Path | None,
    noise: float | None,
    time: str,
    average: bool,
    weigh: bool = False,
) -> MergedReadings:
    if site is not None and all(path.suffix == ".json" for path in paths):
        raise InvalidParameter(
            "`site` goes with .csv readings; a .json holds its own site; nothing was recovered"
        )
    if all(path.suffix == ".json" for path in paths):
        if noise is not None:
            raise InvalidParameter(
                "`noise` goes with .csv readings; a .json says its own; nothing was recovered"
            )
        return merge(
            [read_readings(path) for path in paths], time=time, average=average, weigh=weigh
        )
    ground = site_from(site)
    if len(paths) != 1 or ground is None:
        raise InvalidParameter(
            "readings in a .csv come as one file, with `site`; nothing was recovered"
        )
    (file,) = paths
    values, when = _at_time(read_snapshots(file, ground), time, where=str(file))
    sigma = read_sigma(file) if noise is None else noise
    return unpromised(values, ground, noise=sigma, time=when)


def _at_time(
    groups: list[tuple[str, dict[str, float]]], time: str, *, where: str
) -> tuple[dict[str, float], str]:
    """The readings of one time among those of a table."""
    groups = _of_times(groups, time, where=where)
    if len(groups) > 1:
        raise InvalidParameter(
            f"{where} has {len(groups)} times; choose one with `time`, or recover each of them with "
            "`recover_rounds`; nothing was recovered"
        )
    ((when, values),) = groups
    return values, when


def _of_times(
    groups: list[tuple[str, dict[str, float]]], time: str, *, where: str
) -> list[tuple[str, dict[str, float]]]:
    """The readings of the times that are asked for, all if none is, in their order."""
    if time and not matching_times([when for when, _ in groups], time):
        raise InvalidParameter(f"there is no reading at {time!r} in {where}; nothing was recovered")
    by_time = dict(groups)
    return [(when, by_time[when]) for when in times_of(by_time, time)]


def _numbers(readings: Any, site: Site, time: str) -> tuple[Mapping[str, float], float | None, str]:
    """Readings by sensor, the noise they state, and their time: of a DataFrame, a mapping or an array."""
    if hasattr(readings, "columns"):  # a DataFrame of pandas, polars, pyarrow
        return _frame(readings, site, time)
    if hasattr(readings, "items"):  # a mapping, or a Series by sensor
        values = {str(name): float(value) for name, value in readings.items()}
        unknown = [name for name in values if name not in set(site.sensors.names)]
        if unknown:
            raise InvalidInput(
                f"site {site.name!r} has no sensor {unknown[0]!r}; nothing was recovered"
            )
        return values, None, time
    numbers = real_array("readings", readings)
    if numbers.shape != (len(site.sensors),):
        raise InvalidParameter(
            f"readings must be one number for each of {len(site.sensors)} sensors, got shape "
            f"{numbers.shape}; nothing was recovered"
        )
    return dict(zip(site.sensors.names, numbers.tolist(), strict=True)), None, time


def _frame(table: Any, site: Site, time: str) -> tuple[dict[str, float], float | None, str]:
    groups, sigma = _groups(table, site)
    found, when = _at_time(groups, time, where="the table")
    return found, sigma, when


def _groups(table: Any, site: Site) -> tuple[list[tuple[str, dict[str, float]]], float | None]:
    """Readings by time and sensor of a DataFrame, and the noise it states."""
    columns = {str(name) for name in getattr(table, "column_names", table.columns)}
    if not {"sensor", "value"} <= columns:
        raise InvalidInput(
            "a table of readings has columns sensor and value, perhaps time and sigma; nothing was recovered"
        )
    names = [str(name) for name in _column(table, "sensor")]
    values = [float(value) for value in _column(table, "value")]
    times = [str(t) for t in _column(table, "time")] if "time" in columns else [""] * len(names)
    groups: dict[str, dict[str, float]] = {}
    known = set(site.sensors.names)
    for when, name, value in zip(times, names, values, strict=True):
        if name not in known:
            raise InvalidInput(f"site {site.name!r} has no sensor {name!r}; nothing was recovered")
        if name in groups.setdefault(when, {}):
            raise InvalidInput(f"sensor {name!r} is there twice at one time; nothing was recovered")
        groups[when][name] = value
    sigma = max(map(float, _column(table, "sigma"))) if "sigma" in columns else None
    return list(groups.items()), sigma


def _column(table: Any, name: str) -> Iterable[Any]:
    column: Any = table[name]
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column)


def true_sources(sources: SourcesInput, site: Site) -> FloatArray:
    """The true masses of a simulation, one for each cell of the site.

    Args:
        sources: A table of cell and mass, a mapping by cell, or one mass for each cell.
        site: The site of the cells.

    Returns:
        One mass for each cell.

    Raises:
        InvalidInput: If there is no such file or cell.
    """
    if isinstance(sources, str | Path):
        return read_sources(Path(sources), site)
    size = site.operator.space.size
    if isinstance(sources, Mapping):
        number = {site.cell(i): i for i in range(size)}
        masses = np.zeros(size)
        for cell, mass in sources.items():
            if str(cell) not in number:
                raise InvalidInput(
                    f"site {site.name!r} has no cell {str(cell)!r}; nothing was recovered"
                )
            masses[number[str(cell)]] += float(mass)
        return masses
    masses = real_array("sources", sources)
    if masses.shape != (size,):
        raise InvalidParameter(
            f"sources must be one mass for each of {size} cells, got shape {masses.shape}; "
            "nothing was recovered"
        )
    return masses


def complete(readings: Any, *, site: object, known: bool) -> None:
    """Ask for all that a table of readings lacks at once, not for one thing after the other."""
    paths = [readings] if isinstance(readings, str | Path) else readings
    if site is not None or known or not isinstance(paths, list | tuple) or len(paths) != 1:
        return
    (path,) = paths
    if not isinstance(path, str | Path) or Path(path).suffix == ".json":
        return
    if read_sigma(Path(path)) is None:
        raise InvalidParameter("readings in a .csv need `site` and `noise`; nothing was recovered")


def not_a_site(readings: Any) -> None:
    """Say so where a file that is not of readings is a site."""
    paths = [readings] if isinstance(readings, str | Path) else readings
    for path in paths if isinstance(paths, list | tuple) else ():
        try:
            read_site(path)
        except (InvalidInput, TypeError):
            continue
        raise InvalidInput(
            f"{path} is a site, not readings of one: give noisy readings, as `sense release` writes them, or "
            f"a .csv with `site` {path} and `noise`; nothing was recovered"
        )
