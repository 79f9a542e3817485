"""Which of several maps a row belongs to: values of a column, periods of time, or pairs of these."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting import Clock, ValueColumns, period_of
from sfumato.records.columns import Columns
from sfumato.records.periods import Periods, not_of

# Between the names of a pair: no period has it in its name.
BETWEEN = "/"


@dataclass(frozen=True, slots=True)
class Values:
    """The public values of a column, each a map of its own, also if nobody has it.

    A user's mass 1 is shared over all of them, unless `mass_per_value` gives everyone mass 1 in
    each. A ledger whose unit names the column, such as user-image, protects one user in one image:
    there all maps cost epsilon once. Any other pays epsilon for each value.

    >>> Values("image", ("forest", "street")).count
    2
    """

    column: str
    names: tuple[str, ...]
    mass_per_value: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.names, str):
            raise InvalidParameter(
                f"groups are a list of names, got the text {self.names!r}; nothing was read"
            )
        object.__setattr__(self, "names", tuple(map(value_name, self.names)))
        if not self.column:
            raise InvalidParameter("values are of a column, got none; nothing was read")
        if not self.names or "" in self.names or len(set(self.names)) != len(self.names):
            raise InvalidParameter(
                f"groups must be one or more different names, got {self.names}; nothing was counted"
            )

    @property
    def count(self) -> int:
        """How many values there are."""
        return len(self.names)

    def about(self, number: int) -> dict[str, Any]:
        """What a map says of its value."""
        return {
            "column": self.column,
            "value": self.names[number],
            "mass_per_value": self.mass_per_value,
        }


def value_name(value: Any) -> str:
    """A public value of a column as groups name it: text as it is, a whole number as it is written."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidParameter(
            f"groups are names, of text or whole numbers, got {value!r}; nothing was read"
        )
    return str(int(value))


Part = Values | Periods


@dataclass(frozen=True, slots=True)
class Pairs:
    """One map for each pair of two parts: values of two columns, or of a column and periods.

    A user's mass 1 is shared over all pairs, as it is over the values of one column; a part with
    mass per value or per period gives everyone mass 1 in each of its own, shared over the other.

    >>> found = Pairs(Values("image", ("forest", "street")), Values("group", ("novice", "expert")))
    >>> found.count, found.names[1]
    (4, 'forest/expert')
    """

    first: Part
    second: Part

    def __post_init__(self) -> None:
        if any(isinstance(one, Pairs) for one in self.parts):
            raise InvalidParameter("maps are by two columns at most; nothing was read")
        if len({part_name(one) for one in self.parts}) < 2:
            raise InvalidParameter(
                f"maps by two columns are by different ones, got {part_name(self.first)!r} twice; nothing "
                "was read"
            )
        clocks = {one.clock for one in self.parts if isinstance(one, Periods)}
        if len(clocks) > 1:
            told = " and ".join(sorted(map(str, clocks)))
            raise InvalidParameter(
                f"periods of one release go by one clock, got {told}; nothing was read"
            )
        names = self.names
        if len(set(names)) < len(names):
            raise InvalidParameter(
                f"two pairs have one name, {next(one for one in names if names.count(one) > 1)!r}: name "
                f"values without {BETWEEN!r}; nothing was read"
            )

    @property
    def parts(self) -> tuple[Part, Part]:
        """Both."""
        return self.first, self.second

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return self.first.count * self.second.count

    @property
    def names(self) -> tuple[str, ...]:
        """What each pair is called, those of one name of the first part after the other."""
        return tuple(
            f"{one}{BETWEEN}{other}" for one in self.first.names for other in self.second.names
        )

    def about(self, number: int) -> list[dict[str, Any]]:
        """What a map says of both of its names."""
        return [
            about_part(part, at)
            for part, at in zip(self.parts, divmod(number, self.second.count), strict=True)
        ]


Groups = Sequence[str] | Sequence[int] | Values | Periods | Pairs | None


def part_name(part: Part) -> str:
    """What a part is called: its column, or the word for its periods."""
    return part.unit if isinstance(part, Periods) else part.column


def about_part(part: Part, number: int) -> dict[str, Any]:
    """What a map says of its name in one part of a pair."""
    told = part.about(number) if isinstance(part, Periods) else {}
    return {
        "column": part.column,
        "by": part_name(part),
        "name": part.names[number],
        **(told or {"mass_per_value": getattr(part, "mass_per_value", False)}),
    }


def parts_of(groups: Groups, columns: Columns) -> tuple[Part, ...]:
    """The parts of groups: none, one, or two; refused where the columns name others."""
    match groups:
        case None:
            if columns.by is not None:
                raise _not_together()
            return ()
        case Pairs():
            found: tuple[Part, ...] = groups.parts
        case Values() | Periods():
            found = (groups,)
        case _:
            if isinstance(groups, str) or not isinstance(columns.by, str):
                raise _not_together()
            return (Values(columns.by, names_of(groups)),)
    if columns != in_table(groups, columns):
        whose = "that of the periods" if isinstance(groups, Periods) else "those of the groups"
        raise InvalidParameter(
            f"the columns must name {whose}, by={_by(groups)!r}, got {columns.by!r}; nothing was counted"
        )
    return found


def in_table(groups: Groups, columns: Columns) -> Columns:
    """The columns with those of the groups among them; refused where a row cannot have a group as asked.

    Args:
        groups: Public names, values, periods or pairs.
        columns: Which columns hold users and places.

    Returns:
        The same columns, `by` those of the groups where these name their own.

    Raises:
        InvalidParameter: The columns name others, or a row of nobody is to have mass in each group.

    """
    if isinstance(groups, Periods):
        return groups.in_table(columns)
    if not isinstance(groups, Values | Pairs):
        return columns
    by = _by(groups)
    if columns.by not in (None, by):
        raise InvalidParameter(
            f"the columns must name those of the groups, by={by!r}, got {columns.by!r}; nothing was read"
        )
    for part in whole_parts(groups) if columns.user is None else ():
        word, one = (
            ("mass_per_period", "period")
            if isinstance(part, Periods)
            else ("mass_per_value", "value")
        )
        raise InvalidParameter(
            f"a row that is a user of its own lies in one {one}: `one_row_one_user` goes without "
            f"`{word}`; nothing was read"
        )
    return replace(columns, by=by)


def whole_parts(groups: Groups) -> tuple[Part, ...]:
    """The parts in each of whose names everybody has mass 1.

    Args:
        groups: Public names, values, periods or pairs; None for one map.

    Returns:
        Those of its values and periods that were asked to have a mass of their own.

    """
    parts: tuple[Any, ...] = groups.parts if isinstance(groups, Pairs) else (groups,)
    return tuple(
        one
        for one in parts
        if (isinstance(one, Periods) and one.mass_per_period)
        or (isinstance(one, Values) and one.mass_per_value)
    )


def count_of(groups: Groups) -> int:
    """How many maps there are.

    Args:
        groups: Public names, values, periods or pairs; None for one map.

    Returns:
        The number of maps, at least 1.

    """
    if isinstance(groups, Values | Periods | Pairs):
        return groups.count
    return len(groups or ("",))


def names_of(groups: Groups) -> tuple[str, ...]:
    """What each map of a release is called; one without a name if there are no groups.

    Args:
        groups: Public names, values, periods or pairs; None for one map.

    Returns:
        The names, in the order of the maps.

    Raises:
        InvalidParameter: The groups are one text.

    """
    if groups is None:
        return ("",)
    if isinstance(groups, str):
        raise InvalidParameter(
            f"groups are a list of names, got the text {groups!r}; nothing was charged"
        )
    if isinstance(groups, Values | Periods | Pairs):
        return groups.names
    return tuple(map(value_name, groups))


def about_group(groups: Groups, number: int) -> dict[str, Any]:
    """What a map says of which of several it is, besides the columns.

    Args:
        groups: Public names, values, periods or pairs; None for one map.
        number: Which of the maps.

    Returns:
        Its period, its value where everybody has mass 1 in each, or both parts of its pair.

    """
    match groups:
        case Periods():
            return {"period": groups.about(number)}
        case Values(mass_per_value=True):
            return {"value": groups.about(number)}
        case Pairs():
            return {"pair": groups.about(number)}
        case _:
            return {}


def bounded_for(
    unit: str, groups: Groups, by: str | tuple[str, ...] | None = None
) -> tuple[int, Clock | ValueColumns | None]:
    """How many masses of 1 one `unit` of privacy can have, and what tells its part of a user, if it names one.

    Maps that share a mass with what lies outside the unit are refused: without one user-day, or one
    user-image, the mass of the others would grow, and move nearly two masses.
    """
    parts: tuple[Part, ...]
    match groups:
        case Pairs():
            parts = groups.parts
        case Values() | Periods():
            parts = (groups,)
        case _:
            parts = ()
    periods = [one for one in parts if isinstance(one, Periods)]
    within = period_of(unit)
    if within is not None:
        if not periods:
            raise not_of(unit, within, "none")
        for one in periods:
            one.masses(unit)  # refuses those that are not of the unit
        others = [one for one in whole_parts(groups) if one not in periods]
        check_whole(unit, groups, [one.column for one in parts if isinstance(one, Values)])
        return math.prod(one.count for one in others), periods[0].clock
    whole = whole_parts(groups)
    values = tuple(one.column for one in whole if isinstance(one, Values))
    for some in _choices(values):
        if (columns := ValueColumns(some)).named_by(unit):
            others = [one for one in whole if isinstance(one, Periods) or one.column not in some]
            return _masses(others, unit), columns
    by = by or tuple(one.column for one in parts)
    if unit.casefold().startswith("user-"):
        raise _shared(unit)
    check_whole(unit, None, (by,) if isinstance(by, str) else by)
    return _masses(whole, unit), None


def check_whole(unit: str, groups: Groups, columns: Iterable[str], user: str | None = None) -> None:
    """Refuse a unit called after a column in each of whose values nobody has a mass of their own.

    Without one observer-image, the mass of the observer's other images would grow. Units have free
    names, so this goes by the words after the first, however they are joined, but for a period's:
    rather one refusal too many than too few.
    """
    words = _words(unit)
    after = [one for one in words[1:] if period_of(one) is None]
    whole = {one.column for one in whole_parts(groups)}
    for column in columns:
        name = "-".join(_words(column))
        called = bool(name) and f"-{name}-" in f"-{'-'.join(after)}-"
        if called and column not in whole and column != user:
            raise _shared(unit)


def _words(name: str) -> list[str]:
    return [one for one in re.split(r"[-_\s/]+", name.casefold()) if one]


def _shared(unit: str) -> InvalidParameter:
    return InvalidParameter(
        f"a ledger that protects each {unit} pays for maps by the columns it is called after, in each "
        "of whose values everybody has mass 1 (`mass_per_value`): without one of a user's, the mass of "
        "the others would grow, and move nearly two masses; nothing was charged"
    )


def _masses(whole: Sequence[Part], unit: str) -> int:
    """In how many names of these parts together a user can have mass 1."""
    return math.prod(one.masses(unit) if isinstance(one, Periods) else one.count for one in whole)


def periods_of(unit: str, groups: Groups) -> tuple[str, ...] | None:
    """The names of the periods that rows are counted of, if they are those of the unit."""
    within = period_of(unit)
    parts: tuple[Any, ...] = groups.parts if isinstance(groups, Pairs) else (groups,)
    return next(
        (one.names for one in parts if isinstance(one, Periods) and within is not None), None
    )


def _choices(columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    """All of them together, in any order, and each by itself."""
    return [*permutations(columns), *((one,) for one in columns)] if columns else []


def _by(groups: Values | Periods | Pairs) -> str | tuple[str, ...]:
    if isinstance(groups, Pairs):
        return tuple(one.column for one in groups.parts)
    return groups.column


def _not_together() -> InvalidParameter:
    return InvalidParameter(
        "a column to group by and the public list of groups go together, got only one of them; "
        "nothing was counted"
    )
