"""Public periods of time, and which of them a row falls into: one integer expression for every engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting import Clock, period_of
from sfumato.records.columns import Columns

Unit = Literal["hour", "day", "week", "month", "weekday", "weekend", "hour-of-day", "whole"]
PERIOD_UNITS: tuple[Unit, ...] = get_args(Unit)
# Those that come again and again between the first day and the last: all Mondays are one period. All
# of the days together are one too, and called after the first and the last.
RECURRING: dict[str, tuple[str, ...]] = {
    "weekday": ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    "weekend": ("weekday", "weekend"),
    "hour-of-day": tuple(f"{hour:02}h" for hour in range(24)),
    "whole": ("whole",),
}

DAY = 24 * 60
MAX_PERIODS = 1000
# All engines hold these in every precision, nanoseconds too, with days to spare; offsets from UTC
# are whole minutes.
FIRST_YEAR, LAST_YEAR = 1973, 2199
MINUTES: dict[Unit, int] = {"hour": 60, "day": 24 * 60, "week": 7 * 24 * 60}


@dataclass(frozen=True, slots=True)
class Periods:
    """The hours, days, weeks or months from `start` (inclusive) to `end` (exclusive), by a column of time.

    Or the seven days of the week ("weekday"), Mondays to Fridays and the other two ("weekend"), or
    the 24 hours of a day ("hour-of-day"), of all days from `start` to `end`, or these days as one
    period ("whole"). Each is a map of its own, also if nobody was there. Times are taken as they
    are written, those that name their zone in UTC. With a `time_zone` all are moved to it, those
    without a zone from UTC: an hour that a clock shows twice is one period, one that it leaves out
    an empty one. A user's mass 1 is shared over all periods, unless `mass_per_period` gives
    everyone mass 1 in each.

    >>> january = Periods("time", "week", datetime(2026, 1, 5), datetime(2026, 2, 2))
    >>> january.count, january.names
    (4, ('2026-W02', '2026-W03', '2026-W04', '2026-W05'))
    """

    column: str
    unit: Unit
    start: datetime
    end: datetime
    time_zone: str = ""
    mass_per_period: bool = False

    def __post_init__(self) -> None:
        if self.unit not in PERIOD_UNITS:
            raise InvalidParameter(
                f"periods are one of {PERIOD_UNITS}, got {self.unit!r}; nothing was read"
            )
        for moment in (self.start, self.end):
            if moment.tzinfo is not None:
                raise InvalidParameter(
                    f"periods begin and end by the clock, without an offset, got {moment.isoformat()}; name "
                    "the zone with `time_zone`; nothing was read"
                )
            if not FIRST_YEAR <= moment.year <= LAST_YEAR:
                raise InvalidParameter(
                    f"periods must lie in the years {FIRST_YEAR} to {LAST_YEAR}, got {moment.isoformat()}; "
                    "nothing was read"
                )
            if moment != _begin(moment, self.unit):
                raise InvalidParameter(
                    f"periods must begin and end with a whole "
                    f"{'day' if self.unit in RECURRING else self.unit}, "
                    f"{_begin(moment, self.unit).isoformat(timespec='minutes')} is one and "
                    f"{moment.isoformat()} is not; nothing was read"
                )
        if self.end <= self.start:
            raise InvalidParameter(
                f"periods end after they begin, got {self.start.isoformat()} to {self.end.isoformat()}; "
                "nothing was read"
            )
        if not 1 <= self.count <= MAX_PERIODS:
            raise InvalidParameter(
                f"periods must number 1 to {MAX_PERIODS}, there are {self.count} {self.unit}s from "
                f"{self.start.isoformat()} to {self.end.isoformat()}; nothing was read"
            )
        if self.time_zone:
            _offsets(self)

    @property
    def count(self) -> int:
        """How many periods there are."""
        if self.unit in RECURRING:
            return len(RECURRING[self.unit])
        if self.unit == "month":
            return _month(self.end) - _month(self.start)
        return (_minute(self.end) - _minute(self.start)) // MINUTES[self.unit]

    @property
    def starts(self) -> tuple[datetime, ...]:
        """When each period begins; one that comes again, with all of them."""
        if self.unit in RECURRING:
            return (self.start,) * self.count
        if self.unit == "month":
            months = range(_month(self.start) - 1, _month(self.end) - 1)
            return tuple(datetime(month // 12, month % 12 + 1, 1) for month in months)
        step = timedelta(minutes=MINUTES[self.unit])
        return tuple(self.start + step * number for number in range(self.count))

    @property
    def names(self) -> tuple[str, ...]:
        """What each period is called, in ISO 8601: 2026-01-31T07 (an hour), 2026-01-31, 2026-W05, 2026-01.

        Those that come again: monday, tuesday, ...; weekday, weekend; 00h, 01h, ... All of the days:
        2026-01-31--2026-02-03, the last one left out.
        """
        if self.unit == "whole":
            return (f"{self.start:%Y-%m-%d}--{self.end:%Y-%m-%d}",)
        if self.unit in RECURRING:
            return RECURRING[self.unit]
        forms = {"hour": "%Y-%m-%dT%H", "day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}
        return tuple(start.strftime(forms[self.unit]) for start in self.starts)

    def masses(self, unit: str) -> int:
        """How many masses of 1 one `unit` of privacy can have over all periods, each charged epsilon.

        A user shares one mass, or has one in each period; a user-day has one in its day. The mass
        of a user-day that shares is refused: taking one day away would move the masses of the
        others.

        >>> week = Periods("time", "day", datetime(2026, 1, 5), datetime(2026, 1, 12), mass_per_period=True)
        >>> week.masses("user"), week.masses("user-day")
        (7, 1)
        """
        within = period_of(unit)
        if within is not None and self.unit in RECURRING:
            raise InvalidParameter(
                f"a ledger that protects each {unit} does not pay for maps by {self.unit}: without one "
                f"{within} of a user, the mass of the others in its map would grow, and move nearly two "
                "masses; nothing was charged"
            )
        if within is not None and not (self.mass_per_period and within == self.unit):
            raise not_of(
                unit, within, f"{_a(self.unit)}{'' if self.mass_per_period else ' without it'}"
            )
        return self.count if self.mass_per_period and within is None else 1

    @property
    def clock(self) -> Clock:
        """What tells which period a row lies in."""
        return Clock(self.column, self.time_zone)

    def in_table(self, columns: Columns) -> Columns:
        """The columns with that of the time among them; refused where a row cannot have a period as asked."""
        if columns.by not in (None, self.column):
            raise InvalidParameter(
                f"maps are by period or by the values of {columns.by!r}, got both; nothing was read"
            )
        if columns.user is None and self.mass_per_period:
            raise InvalidParameter(
                "a row that is a user of its own lies in one period: `one_row_one_user` goes without "
                "`mass_per_period`; nothing was read"
            )
        return replace(columns, by=self.column)

    def about(self, number: int) -> dict[str, Any]:
        """What a map says of its period: unit, beginning, end, and how mass was shared."""
        recurring = self.unit in RECURRING
        ends = (self.end,) * self.count if recurring else (*self.starts[1:], self.end)
        return {
            "unit": self.unit,
            **({"number": number} if recurring else {}),
            "start": self.starts[number].isoformat(timespec="minutes"),
            "end": ends[number].isoformat(timespec="minutes"),
            "time_zone": self.time_zone,
            "mass_per_period": self.mass_per_period,
        }


def _a(period: str) -> str:
    return f"an {period}" if period == "hour" else f"a {period}"


def not_of(unit: str, within: str, got: str) -> InvalidParameter:
    """A refusal of maps that are not of the periods that a unit names."""
    return InvalidParameter(
        f"a ledger that protects each {unit} pays for periods of {_a(within)} with `mass_per_period`, "
        f"got {got}; nothing was charged"
    )


def in_periods(rows: Any, periods: Periods) -> Any:
    """The rows whose time, in their column `group`, lies in the periods; `group` becomes the period's number.

    In steps of one projection each: written as one, the expression would double at every use of a
    part.
    """
    import ibis  # heavy, and only who counts needs it

    from sfumato.records.minutes import with_minutes

    rows = with_minutes(rows, periods.column, periods.start, periods.end)
    if periods.time_zone:
        first, changes = _offsets(periods)
        ahead = ibis.literal(first, "int64")
        for at, by in changes:
            ahead = ahead + (rows.minute >= at).ifelse(by, 0)
        rows = rows.mutate(minute=rows.minute + ahead)
    start = _minute(periods.start)
    rows = rows.filter(
        rows.readable & (rows.minute >= start) & (rows.minute < _minute(periods.end))
    )
    if periods.unit == "month":
        rows = _with_months(rows.mutate(day=rows.minute // DAY))
        number = rows.month - _month(periods.start)
    elif periods.unit == "weekday":
        number = (rows.minute // DAY - 1) % 7  # the first day that Python counts is a Monday
    elif periods.unit == "weekend":
        number = ((rows.minute // DAY - 1) % 7 >= 5).ifelse(1, 0)
    elif periods.unit == "whole":
        number = ibis.literal(0, "int64")
    elif periods.unit == "hour-of-day":
        number = rows.minute % DAY // 60
    else:
        number = (rows.minute - start) // MINUTES[periods.unit]
    return rows.mutate(group=number.cast("int64")).drop("readable", "minute", "day", "month")


def _with_months(rows: Any) -> Any:
    """Rows with month = 12 * year + month of their `day`.

    Years are taken to begin in March, so that a leap day is the last of its year, and eras of 400
    years all have 146,097 days.
    """
    since = rows.day - date(1, 3, 1).toordinal() + 365  # from the first of March of a year 0
    rows = rows.mutate(era=since // 146_097, day=since % 146_097)
    ended = rows.day - rows.day // 1460 + rows.day // 36_524 - rows.day // 146_096
    rows = rows.mutate(year=ended // 365)
    rows = rows.mutate(day=rows.day - (365 * rows.year + rows.year // 4 - rows.year // 100))
    # From March on months have 31, 30, 31, 30, 31 days, 153 together, and again.
    month = 12 * (400 * rows.era + rows.year) + (5 * rows.day + 2) // 153 + 3
    return rows.mutate(month=month).drop("era", "year")


def _month(moment: datetime) -> int:
    return 12 * moment.year + moment.month


def _minute(moment: datetime) -> int:
    return DAY * moment.toordinal() + 60 * moment.hour + moment.minute


def _begin(moment: datetime, unit: Unit) -> datetime:
    """The beginning of the period a moment lies in; those that come again are of whole days."""
    if unit == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if unit == "month" else day


def _offsets(periods: Periods) -> tuple[int, tuple[tuple[int, int], ...]]:
    """What a zone's clock is ahead of UTC two days before, and when (in UTC) that changes and by how much."""
    try:
        zone = ZoneInfo(periods.time_zone)
    except (OSError, ValueError, KeyError):
        raise InvalidParameter(
            f"a time zone is a name like Europe/Rome that this machine knows, got {periods.time_zone!r}; "
            "nothing was read"
        ) from None

    def ahead(at: datetime) -> int:
        offset = at.replace(tzinfo=UTC).astimezone(zone).utcoffset()
        return round((offset or timedelta()).total_seconds() / 60)

    changes, at, last = [], periods.start - timedelta(days=2), periods.end + timedelta(days=2)
    first = ahead(at)
    while at < last:
        later = at + timedelta(days=1)
        if ahead(later) != ahead(at):
            low, high = 0, DAY  # minutes after at: the same before low, another from high on
            while high - low > 1:
                middle = (low + high) // 2
                if ahead(at + timedelta(minutes=middle)) == ahead(at):
                    low = middle
                else:
                    high = middle
            changes.append((_minute(at) + high, ahead(later) - ahead(at)))
        at = later
    return first, tuple(changes)
