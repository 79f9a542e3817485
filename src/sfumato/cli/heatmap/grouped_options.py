"""What options of the heatmap commands stand for together: rows, area, method, maps and files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.cli.heatmap.options import (
    ENGINE,
    H3,
    Alone,
    Bounds,
    BoundsFile,
    By,
    Cells,
    Connection,
    Crs,
    Delimiter,
    Delta,
    EngineOption,
    EveryCell,
    From,
    Image,
    LegendOption,
    Levels,
    MethodOption,
    MethodSettings,
    Numbers,
    OutlineFile,
    Over,
    Overwrite,
    PerPeriod,
    PerValue,
    Plane,
    PoolingOption,
    RowsPerUser,
    Shape,
    Shared,
    TextCoordinates,
    Time,
    To,
    Top,
    User,
    Users,
    Values,
    Weight,
    WeightCap,
    WeightStep,
    Width,
    X,
    Y,
    Zone,
)
from sfumato.cli.option_groups import OptionGroup
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    from datetime import datetime

    from sfumato.heatmap import MapMethod
    from sfumato.records import Groups, Periods


@dataclass(frozen=True)
class ColumnOptions(OptionGroup):
    """What the columns of a table mean, and who counts its rows."""

    user: User = ""
    x: X = "lon"
    y: Y = "lat"
    weight: Weight = ""
    weight_step: WeightStep = ""
    weight_cap: WeightCap = 2**20
    rows_per_user: RowsPerUser = None
    engine: EngineOption = ENGINE
    delimiter: Delimiter = ","
    text_coordinates: TextCoordinates = False


@dataclass(frozen=True)
class RowOptions(ColumnOptions):
    """The rows of a release: columns, and where and how they lie."""

    one_row_one_user: Alone = False
    connection: Connection = ""


@dataclass(frozen=True)
class AreaOptions(OptionGroup):
    """The public area and its cells."""

    bounds: Bounds = ""
    bounds_file: BoundsFile = None
    image: Image = None
    plane: Plane = False
    crs: Crs = ""
    cells: Cells = Shape.square
    levels: Levels = 8


@dataclass(frozen=True)
class MethodOptions(OptionGroup):
    """How a map is made."""

    method: MethodOption = "zoom"
    method_option: MethodSettings = None
    width: Width = 20
    delta: Delta = "1e-6"
    users: Users = None
    top: Top = "0.01"

    def named(self) -> MapMethod[Any]:
        """The method of --method, with the flags that are its own and each --method-option."""
        from sfumato.heatmap.methods import method_named

        flags = {name: flag for name, flag in self.keywords().items() if flag is not None}
        flags = {name: flag for name, flag in flags.items() if not name.startswith("method")}
        return method_named(self.method, flags=flags, options=self._options())

    def check(self) -> None:
        """Refuse a name that no method has, and options that are none, before a method is loaded."""
        from sfumato.heatmap.methods import check_method_name

        check_method_name(self.method)
        self._options()

    def _options(self) -> dict[str, str]:
        options = {}
        for one in self.method_option or ():
            key, equals, value = one.partition("=")
            if not equals:
                raise InvalidParameter(
                    f"--method-option is name=value, got {one!r}; nothing was charged"
                )
            options[key.strip().replace("-", "_")] = value.strip()
        return options


@dataclass(frozen=True)
class GroupOptions(OptionGroup):
    """Which maps are made of one table: one for each value of a column, or for each period."""

    by: By = None
    values: Values = None
    mass_per_value: PerValue = False
    time: Time = ""
    start: From = ""
    end: To = ""
    time_zone: Zone = ""
    mass_per_period: PerPeriod = False
    pooling: PoolingOption = Shared.none

    @property
    def column(self) -> str:
        """The column of the groups, if they are bare values of one."""
        one = len(self.by or ()) == 1 and not (self.time or self.mass_per_value)
        return self.by[0] if one and self.by else ""

    def named(self) -> Groups:
        """The groups the options name: none, values of a column, periods, or pairs of these."""
        if not self.time and (self.start or self.end or self.time_zone or self.mass_per_period):
            raise InvalidParameter(
                "--from, --to, --time-zone and --mass-per-period are about a column of times: name it "
                "with --time; nothing was charged"
            )
        from sfumato.records import PERIOD_UNITS

        by = self.by or []
        columns = [one for one in by if not (self.time and one in PERIOD_UNITS)]
        if len(by) > 2:
            raise InvalidParameter(
                f"maps are by two columns at most, got {', '.join(by)}; nothing was charged"
            )
        if self.time and (not (self.start and self.end) or len(columns) == len(by)):
            words = [*(f"--by {one}" for one in by)]
            words += [f"--from {self.start}"] if self.start else []
            words += [f"--to {self.end}"] if self.end else []
            raise InvalidParameter(
                f"--time needs --by {', '.join(PERIOD_UNITS[:-1])} or {PERIOD_UNITS[-1]}, --from and --to, and "
                f"--values of a second --by only, got {' '.join(words) or 'none of them'}; nothing was charged"
            )
        if len(columns) != len(self.values or ()):
            raise InvalidParameter(
                "--by needs its public values in --values, and --values a column in --by, one list for "
                "each column; nothing was charged"
            )
        if self.mass_per_value and not columns:
            raise InvalidParameter(
                "--mass-per-value is about the values of a column: name it with --by; nothing was charged"
            )
        if not by:
            return None
        lists = dict(zip(columns, map(_split, self.values or ()), strict=True))
        if len(by) == 1 and self.column:
            return lists[self.column]
        from sfumato.records import Pairs, Values

        parts = [
            Values(one, lists[one], self.mass_per_value) if one in lists else self._periods(one)
            for one in by
        ]
        return parts[0] if len(parts) == 1 else Pairs(*parts)

    def _periods(self, unit: str) -> Periods:
        from sfumato.records import Periods

        return Periods(
            self.time,
            unit,  # type: ignore[arg-type]  # one of PERIOD_UNITS, as was asked before
            _moment(self.start, "--from"),
            _moment(self.end, "--to"),
            time_zone=self.time_zone,
            mass_per_period=self.mass_per_period,
        )


@dataclass(frozen=True)
class FileOptions(OptionGroup):
    """How files are written."""

    over: Over = None
    outline: OutlineFile = None
    legend: LegendOption = Numbers.density
    h3_resolution: H3 = None
    every_cell: EveryCell = False
    overwrite: Overwrite = False


def _moment(text: str, option: str) -> datetime:
    from datetime import datetime

    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidParameter(
            f"{option} must be a date or a time like 2026-01-31 or 2026-01-31T06:00, got {text!r}; "
            "nothing was charged"
        ) from None


def _split(values: str) -> tuple[str, ...]:
    """The names in a list with commas."""
    groups = tuple(value.strip() for value in values.split(","))
    if len(set(groups)) < len(groups) or "" in groups:
        raise InvalidParameter(
            f"--values must differ and not be empty, got {values!r}; nothing was charged"
        )
    return groups
