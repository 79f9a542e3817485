"""How a table of readings or sensors is to be read: what its columns are called, and what its times mean."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from sfumato.errors import InvalidParameter
from sfumato.sensing.rounding import UNDONE


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of a table are called.

    Attributes:
        sensor: Who read; a table without it has a column for each sensor.
        value: What was read.
        time: When; a table may have none.
        x: Where along a line, or east.
        y: Where north.
    """

    sensor: str = "sensor"
    value: str = "value"
    time: str = "time"
    x: str = "x"
    y: str = "y"

    def __post_init__(self) -> None:
        for part in fields(self):
            if not getattr(self, part.name):
                raise InvalidParameter(f"a column needs a name, `{part.name}` has none; {UNDONE}")


@dataclass(frozen=True, slots=True)
class TableForm:
    """How a table of readings is to be read.

    Attributes:
        columns: What its columns are called.
        round_time: How far apart rounds are, 30s, 1m, 1h: readings belong to the nearest one, of their own
            window if windows pay; "0" says that every time is a round of its own, "" that nobody said.
        reference: A table of time and value of the public baseline that the site takes off, where it is not
            in the table of readings itself.
        history: Whether a row is there because a reading changed; Home Assistant's exports are known by
            their columns.
        since: When the rounds of a history begin; "" for when windows do.
        until: And end.
    """

    columns: Columns = field(default_factory=Columns)
    round_time: str = ""
    reference: str | None = None
    history: bool = False
    since: str = ""
    until: str = ""

    def to_json(self) -> dict[str, Any]:
        """What is not as usual."""
        called = {
            part.name: getattr(self.columns, part.name)
            for part in fields(self.columns)
            if getattr(self.columns, part.name) != part.default
        }
        return {
            **({"columns": called} if called else {}),
            **({"round_time": self.round_time} if self.round_time else {}),
            **({"reference": self.reference} if self.reference is not None else {}),
            **({"history": True} if self.history else {}),
            **({"since": self.since} if self.since else {}),
            **({"until": self.until} if self.until else {}),
        }

    @staticmethod
    def from_json(data: Any) -> TableForm:
        """The form that a JSON object states."""
        return TableForm(
            Columns(**data.get("columns", {})),
            str(data.get("round_time", "")),
            data.get("reference"),
            bool(data.get("history", False)),
            str(data.get("since", "")),
            str(data.get("until", "")),
        )
