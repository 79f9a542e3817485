"""What comparing two maps returns, to and from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from sfumato._types import FloatArray
from sfumato.heatmap.comparison.difference_map import MapDifference
from sfumato.heatmap.comparison.differences import CONFIDENCE, Change, Found
from sfumato.heatmap.comparison.shift import Shift
from sfumato.spaces import Area
from sfumato.transport import GridFlow

if TYPE_CHECKING:
    from sfumato.heatmap.export.ground import Ground

FORMAT = "sfumato-comparison/1"


@dataclass(frozen=True, slots=True)
class Differences:
    """Squares in which two maps differ, how many were tested, and that all of it holds at once.

    Attributes:
        changes: The smallest squares that differ, those of the largest change first.
        tested: How many squares, of all sizes, were tested.
        confidence: How often nothing is found at all when nothing changed, at least.

    """

    changes: tuple[Change, ...]
    tested: int
    confidence: float = CONFIDENCE

    def to_json(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "changes": [asdict(one) for one in self.changes],
            "tested": self.tested,
            "confidence": self.confidence,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Differences | None:
        """What `to_json` gave, or None."""
        if data is None:
            return None
        changes = tuple(Change(**one) for one in data["changes"])
        return cls(changes, data["tested"], data["confidence"])


@dataclass(frozen=True, slots=True)
class ZoneChange:
    """Users of a zone in both maps, and between what the change lies, for this zone by itself.

    `low` and `high` are None if a map does not say how sure it is. `inside` is the part of the zone
    that lies inside the area.
    """

    name: str
    before: float
    after: float
    change: float
    low: float | None
    high: float | None
    inside: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Pictured:
    """What pictures of a comparison are made of; not saved.

    Attributes:
        area: The area of both maps.
        users: The difference in users.
        shares: The difference in shares of the whole.
        users_found: Where they differ for sure, in users; None if a map does not say how sure it is.
        shares_found: The same in shares.
        flow: One of the cheapest ways to move the mass of shares, on cells of some level.
        lines: The borders of the zones, in the units of the maps.
        ground: The public files that lie under both maps; None for none.

    """

    area: Area
    users: MapDifference
    shares: MapDifference
    users_found: Found | None
    shares_found: Found | None
    flow: GridFlow
    lines: tuple[FloatArray, ...] = ()
    ground: Ground | None = None


@dataclass(frozen=True, slots=True)
class CompareResult:
    """What two maps of one area say of what changed between them.

    Attributes:
        names: What the two maps are called.
        statements: What each of them promises.
        methods: Their methods.
        unit: What is counted: the unit of the ledger, e.g. user; or row.
        total: The whole map: users then and now, and between what the change lies.
        shift: How far mass moved on average, and how far noise alone moves it.
        users: Where the number of users differs; None if a map does not say how sure it is.
        shares: Where shares of the whole differ; None as well if a map may be of nobody.
        zones: Totals by zone then and now, if zones were given.
        coverage: The chance that the interval of the total, or of one zone, holds.
        remarks: What a reader has to know besides.
        rehearsal: Whether a map is one of a rehearsal: nobody is protected by it.
        written: The files that were written.
        pictured: Arrays that pictures are made of; None in a result that was read from JSON.

    """

    names: tuple[str, str]
    statements: tuple[str, str]
    methods: tuple[str, str]
    unit: str
    total: ZoneChange
    shift: Shift
    users: Differences | None
    shares: Differences | None
    zones: tuple[ZoneChange, ...] = ()
    coverage: float = 0.9
    remarks: tuple[str, ...] = ()
    rehearsal: bool = False
    written: tuple[str, ...] = ()
    pictured: Pictured | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """What `sfumato heatmap compare --json` prints, and what it saves."""
        return {
            "format": FORMAT,
            "names": list(self.names),
            "statements": list(self.statements),
            "methods": list(self.methods),
            "unit": self.unit,
            "rehearsal": self.rehearsal,
            "total": asdict(self.total),
            "shift": self.shift.to_json(),
            "users": None if self.users is None else self.users.to_json(),
            "shares": None if self.shares is None else self.shares.to_json(),
            "zones": [asdict(one) for one in self.zones],
            "coverage": self.coverage,
            "remarks": list(self.remarks),
            "written": list(self.written),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CompareResult:
        """What `to_json` gave; without what pictures are made of."""
        return cls(
            (data["names"][0], data["names"][1]),
            (data["statements"][0], data["statements"][1]),
            (data["methods"][0], data["methods"][1]),
            data["unit"],
            ZoneChange(**data["total"]),
            Shift.from_json(data["shift"]),
            Differences.from_json(data["users"]),
            Differences.from_json(data["shares"]),
            tuple(ZoneChange(**one) for one in data["zones"]),
            data["coverage"],
            tuple(data["remarks"]),
            data["rehearsal"],
            tuple(data["written"]),
        )

    def _repr_html_(self) -> str:
        from sfumato.heatmap.export.difference import html_figure

        return html_figure(self)
