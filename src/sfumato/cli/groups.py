"""Several maps of one release: by the values of a column, or by periods of time, and the files of each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from datetime import datetime

    from sfumato.privacy import Bound
    from sfumato.records import Columns, Periods

By = Annotated[
    str,
    typer.Option(
        help="Column of maps, e.g. image: one map for each value. With --time: hour, day, week or month.",
        rich_help_panel="Rows",
        show_envvar=False,
    ),
]
Values = Annotated[
    str,
    typer.Option(
        help="The public values of --by, with commas; {by} in --out names the file.",
        rich_help_panel="Rows",
        show_envvar=False,
    ),
]
Time = Annotated[
    str,
    typer.Option(
        help="Column of times: one map for each period of --by, also if nobody was there.",
        rich_help_panel="Time",
        show_envvar=False,
    ),
]
From = Annotated[
    str,
    typer.Option(
        "--from",
        help="When the first period begins, e.g. 2026-01-01 or 2026-01-01T06:00.",
        rich_help_panel="Time",
        show_envvar=False,
    ),
]
To = Annotated[
    str,
    typer.Option(
        "--to",
        help="When the last period ends; not in it any more.",
        rich_help_panel="Time",
        show_envvar=False,
    ),
]
Zone = Annotated[
    str,
    typer.Option(
        help="Whose clock the periods follow, e.g. Europe/Rome. Else times as written, or in UTC.",
        rich_help_panel="Time",
        show_envvar=False,
    ),
]
PerPeriod = Annotated[
    bool,
    typer.Option(
        "--mass-per-period",
        help="Everyone has mass 1 in each period. Costs epsilon for each, unless the ledger protects "
        "user-days (for days, and so on).",
        rich_help_panel="Time",
        show_envvar=False,
    ),
]

PERIODS = ("hour", "day", "week", "month")


def named_groups(
    by: str, values: str, *, time: str, start: str, end: str, zone: str, per_period: bool
) -> tuple[str, ...] | Periods:
    """The groups the options name: one without a name, values of a column, or periods."""
    if not time:
        if start or end or zone or per_period:
            raise InvalidParameter(
                "--from, --to, --time-zone and --mass-per-period are about a column of times: name it with "
                "--time; nothing was charged"
            )
        return _values(by, values)
    from sfumato.records import Periods

    if values or not (start and end) or by not in PERIODS:
        raise InvalidParameter(
            "--time needs --by hour, day, week or month, --from and --to, and no --values; "
            "nothing was charged"
        )
    return Periods(
        time,
        by,  # type: ignore[arg-type]  # one of PERIODS, as was asked above
        _moment(start, "--from"),
        _moment(end, "--to"),
        time_zone=zone,
        mass_per_period=per_period,
    )


def _moment(text: str, option: str) -> datetime:
    from datetime import datetime

    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidParameter(
            f"{option} must be a date or a time like 2026-01-31 or 2026-01-31T06:00, got {text!r}; "
            "nothing was charged"
        ) from None


def _values(by: str, values: str) -> tuple[str, ...]:
    if bool(by) != bool(values):
        raise InvalidParameter(
            "--by needs its public values in --values, and --values a column in --by; nothing was charged"
        )
    if not by:
        return ("",)
    groups = tuple(value.strip() for value in values.split(","))
    if len(set(groups)) < len(groups) or "" in groups:
        raise InvalidParameter(
            f"--values must differ and not be empty, got {values!r}; nothing was charged"
        )
    return groups


def names_of(groups: tuple[str, ...] | Periods) -> tuple[str, ...]:
    """What each map is called."""
    return groups if isinstance(groups, tuple) else groups.names


def masses_in(bound: Bound) -> int:
    """How many masses of 1 one unit of the ledger can have: each of them is charged."""
    from sfumato.privacy import UNITS

    return int(bound.required("l1", by="a map") / UNITS)


def with_time(
    columns: Columns, groups: tuple[str, ...] | Periods, *, private_area: bool
) -> Columns:
    """The columns that are read, that of the time among them."""
    if isinstance(groups, tuple):
        return columns
    if groups.mass_per_period and private_area:
        raise InvalidParameter(
            "an area is found with one mass for each user: --mass-per-period does not go with --bounds "
            "private; nothing was charged"
        )
    return groups.in_table(columns)


def films_among(out: list[Path], groups: tuple[str, ...] | Periods) -> list[Path]:
    """The outputs that show all periods in one page: .html without {by} in its name."""
    if isinstance(groups, tuple):
        return []
    return [path for path in out if path.suffix.lower() == ".html" and "{by}" not in path.name]


def files_of(out: list[Path], group: str) -> list[Path]:
    """Where a group's files go: {by} stands for its name."""
    if not group:
        return out
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in group)
    if any("{by}" not in path.name for path in out):
        raise InvalidParameter(
            "with --by every --out needs {by} in its name, e.g. map-{by}.png (a film, one .html of all "
            "periods, needs none); nothing was charged"
        )
    return [path.with_name(path.name.replace("{by}", safe)) for path in out]
