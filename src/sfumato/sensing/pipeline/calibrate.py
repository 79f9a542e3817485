"""Fit what a site says of its readings from a volunteer, or an empty room: what `sense calibrate` does."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import Rows, column_of, has_column, numbers_of, read_rows
from sfumato.privacy.accounting import double_above, exact
from sfumato.sensing.column_values import GAPS
from sfumato.sensing.diagnostics.calibration import CalibrationFit, fit_calibration
from sfumato.sensing.model.level import Level
from sfumato.sensing.model.operators.heat import HeatOperator
from sfumato.sensing.model.site import Site
from sfumato.sensing.pipeline.site import site_of
from sfumato.sensing.reading_tables import check_columns
from sfumato.sensing.results.calibration import CalibrationResult
from sfumato.sensing.table_form import Columns

UNDONE = "nothing was fitted"


def calibrate_site(
    site: Site | str | Path,
    readings: str | Path,
    *,
    public: bool,
    columns: Columns | None = None,
    unit: str = "",
    out: str | Path | None = None,
) -> CalibrationResult:
    """Fit the gain, the diffusion time and the levels of a site, from readings whose sources are known.

    The table is one of readings with the place of a volunteer beside each: sensor, value, x (and y), perhaps
    time and mass; or a column for each sensor, with place, time and mass beside them. Where the place is blank
    nobody was there; a table without places is of an empty room, and gives levels only. No ledger pays for
    it: its rows are public because the volunteer agrees to that. Nobody else may be in them.

    Noise is planned for the upper end of the gain's interval, so that a source like the volunteer is not
    protected less than is said because of the luck of a fit; masses come out lower by as much.

    Args:
        site: The site, or its file: heat on a line or in a plane. Its unit, gain and time may be guesses.
        readings: The table: CSV, JSON or Parquet.
        public: Must be True: exact numbers about the rows are returned, and no ledger pays.
        columns: What its columns are called.
        unit: What sensors read in, for a site that does not say it.
        out: A new .json file for the site.

    Returns:
        The site with what was fitted, standard errors, and intervals that hold with 95 %.

    Raises:
        InvalidInput: The table cannot be read, is too small, no diffusion time fits it, or a sensor does
            not read the volunteer where the others say that it should.
        InvalidParameter: The rows were not said to be public, or the site has no diffusion time, or no unit.
    """
    if not public:
        raise InvalidParameter(
            "a calibration writes exact means of its rows into the site: it takes rows that are public, of an "
            "empty room or of a volunteer who agrees, said aloud by `public=True`; nothing was read"
        )
    found, called = site_of(site), columns or Columns()
    if out is not None and Path(out).suffix != ".json":
        raise InvalidParameter(f"a site is written to a .json file, got {out}; {UNDONE}")
    if not isinstance(found.operator, HeatOperator):
        raise InvalidParameter(f"only heat on a line or in a plane has a time to fit; {UNDONE}")
    said = unit or found.unit
    if not said:
        raise InvalidParameter(f"the site does not say what sensors read in: give `unit`; {UNDONE}")
    names, raw, baseline, places, masses, rounds = _labelled(readings, found, called)
    number = {name: place for place, name in enumerate(found.sensors.names)}
    sensors = np.array([number[name] for name in names], dtype=np.int64)
    fit = fit_calibration(raw - baseline, sensors, places, masses, found.sensors.positions, raw=raw)
    if fit.unresponsive:
        who = ", ".join(repr(found.sensors.names[one]) for one in fit.unresponsive)
        named = f"sensor {who} does" if len(fit.unresponsive) == 1 else f"sensors {who} do"
        raise InvalidInput(
            f"{named} not read the volunteer where the others say that one should be read: stuck, dead, behind "
            "a wall, or in another place than the site says; mend that, or describe the site without; "
            f"{UNDONE}"
        )
    if fit.gain is not None and fit.gain.low <= 0:
        raise InvalidInput(
            f"the volunteer cannot be told from the noise (gain {fit.gain.value:.3g}, standard error "
            f"{fit.gain.error:.2g}); stand nearer to sensors, or longer; {UNDONE}"
        )
    made = _site(found, fit, said)
    if out is not None:
        made.write(out)
    offsets = tuple(
        (name, float(level - fit.ambient.value), float(error))
        for name, level, error in zip(
            found.sensors.names, fit.levels.tolist(), fit.level_errors.tolist(), strict=True
        )
    )
    return CalibrationResult(
        made,
        fit.gain,
        fit.time,
        fit.beside,
        fit.ambient,
        offsets,
        fit.deviation,
        len(raw),
        rounds,
        None if out is None else Path(out),
        tuple(found.sensors.names[one] for one in fit.stuck),
    )


def _site(found: Site, fit: CalibrationFit, unit: str) -> Site:
    """The site with what was fitted: numbers to 9 digits, what a source adds rounded up."""
    ambient = exact(f"{fit.ambient.value:.9g}", name="ambient")
    pairs = zip(found.sensors.names, fit.levels.tolist(), strict=True)
    offsets = tuple(
        (name, exact(f"{level - float(ambient):.9g}", name="offset")) for name, level in pairs
    )
    running = "" if found.level is None else found.level.running
    level = Level(ambient, tuple((name, off) for name, off in offsets if off), running)
    operator, adds = found.operator, found.per_source
    if fit.gain is not None and fit.time is not None and isinstance(operator, HeatOperator):
        operator = operator.with_time(fit.time.value)
        adds = Fraction(float(double_above(Fraction(fit.gain.high))))
    if adds is None:
        raise InvalidParameter(
            "an empty room does not say what a source adds: the site must say `per_source`, or a volunteer "
            f"must stand in it; {UNDONE}"
        )
    return replace(found, operator=operator, unit=unit, per_source=adds, level=level)


def _labelled(
    path: str | Path, site: Site, called: Columns
) -> tuple[list[str], FloatArray, FloatArray, FloatArray, FloatArray, int]:
    """Readings that are there: sensors, values, the public baseline, places, masses; and how many times."""
    table = read_rows(path)
    running = "" if site.level is None else site.level.running
    if running and not has_column(table, called.time):
        raise InvalidInput(
            f"there is no column {called.time!r} among the {len(table[0])} of {path}, and the baseline "
            f"{running!r} is taken off at each time; `time` says which it is; {UNDONE}"
        )
    numbers, rows = _one_for_each(table, site, called, path)
    times = [str(row.get(called.time, "")) for row in rows]
    names = [str(name) for name in column_of(rows, called.sensor, path)]
    there = [
        number
        for number, row in enumerate(rows)
        if str(row.get(called.value) if row.get(called.value) is not None else "").strip().lower()
        not in GAPS
    ]
    if not there:
        raise InvalidInput(f"{path} has no reading in column {called.value!r}; {UNDONE}")
    kept = [rows[number] for number in there]
    values = dict(zip(there, numbers_of(kept, called.value, path), strict=True))
    outside = {
        times[number]: values[number] for number in there if running and names[number] == running
    }
    axes = (called.x, called.y)[: site.sensors.positions.shape[1]]
    known = set(site.sensors.names)
    found: list[tuple[str, float, float, list[float], float]] = []
    for number in there:
        if running and names[number] == running:
            continue
        if names[number] not in known:
            raise InvalidInput(
                f"row {numbers[number]} of {path} is of no sensor that site {site.name!r} has; {UNDONE}"
            )
        if running and times[number] not in outside:
            raise InvalidInput(
                f"row {numbers[number]} of {path} has no reading of the baseline {running!r} at its time; "
                f"{UNDONE}"
            )
        place = _place(rows[number], axes, path, numbers[number])
        mass = 0.0 if place is None else _mass(rows[number], numbers[number], path)
        off = outside.get(times[number], 0.0)
        blank = [np.nan] * len(axes)
        found.append((names[number], values[number], off, place or blank, mass))
    if not found:
        raise InvalidInput(f"{path} has readings of the baseline {running!r} only; {UNDONE}")
    who, *numbers_read = zip(*found, strict=True)
    what, below, where, weights = map(np.array, numbers_read)
    return list(who), what, below, where, weights, len(set(times))


def _one_for_each(
    table: Rows, site: Site, called: Columns, path: str | Path
) -> tuple[list[int], Rows]:
    """A row for each reading, and the row of the table that it is from: a wide one has several in each."""
    running = "" if site.level is None else site.level.running
    known = [*site.sensors.names, *([running] if running else [])]
    if has_column(table, called.sensor) or not any(has_column(table, name) for name in known):
        return list(range(1, len(table) + 1)), table
    beside = (called.time, called.x, called.y, "mass")
    header = dict.fromkeys(name for row in table for name in row if name)
    check_columns(header, site, beside, str(path), undone=UNDONE)
    numbers, rows = [], []
    for number, row in enumerate(table, 1):
        shared = {name: row[name] for name in beside if name in row}
        for name in known:
            if name in header:
                numbers.append(number)
                rows.append({**shared, called.sensor: name, called.value: row.get(name)})
    return numbers, rows


def _place(
    row: dict[str, object], axes: tuple[str, ...], path: str | Path, number: int
) -> list[float] | None:
    given = [row.get(axis) for axis in axes]
    if all(value is None or not str(value).strip() for value in given):
        return None
    return [numbers_of([row], axis, f"{path} (row {number})")[0] for axis in axes]


def _mass(row: dict[str, object], number: int, path: str | Path) -> float:
    if "mass" not in row:
        return 1.0
    (mass,) = numbers_of([row], "mass", f"{path} (row {number})")
    if mass < 0:
        raise InvalidInput(f"a mass in row {number} of {path} is below 0; {UNDONE}")
    return mass
