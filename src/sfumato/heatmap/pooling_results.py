"""What pooling saved maps returns, to and from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sfumato.heatmap.private_map import HeatmapRelease


@dataclass(frozen=True, slots=True)
class PooledMap:
    """One of several maps that share strength.

    Attributes:
        group: Which it is.
        users: Its total, in what the map counts, as its own counts have it: pooling does not change it.
        strength: How far it follows the others, from 0 (it keeps to itself) to 1.
        empty: Whether it cannot be told from a map of nobody, pooled with the same others.

    """

    group: str
    users: float
    strength: float
    empty: bool = False


@dataclass(frozen=True, slots=True)
class PoolResult:
    """Maps of one release after partial pooling: nothing was charged.

    Attributes:
        statement: What the maps promise, and that they are pooled.
        pooled: Each map, with how far it follows the others.
        written: The files.
        maps: The maps themselves, in order; not in JSON.
        unit: What is counted: the unit of the ledger, e.g. user; or row.

    """

    statement: str
    pooled: tuple[PooledMap, ...]
    written: tuple[str, ...] = ()
    maps: tuple[HeatmapRelease, ...] = field(default=(), compare=False, repr=False)
    unit: str = "user"

    def to_json(self) -> dict[str, Any]:
        """What `sfumato heatmap pool --json` prints."""
        return {
            "statement": self.statement,
            "unit": self.unit,
            "pooled": [asdict(one) for one in self.pooled],
            "written": list(self.written),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PoolResult:
        """What `to_json` gave."""
        pooled = tuple(
            PooledMap(
                str(one["group"]),
                float(one["users"]),
                float(one["strength"]),
                bool(one.get("empty", False)),
            )
            for one in data["pooled"]
        )
        return cls(data["statement"], pooled, tuple(data["written"]), unit=data.get("unit", "user"))
