"""What the demo left, as a typed value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from sfumato.heatmap.analysis import Comparison


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What a demo left in its folder, what it promised, and how far its map is off.

    Attributes:
        report: The page to open.
        check_ins: The made-up rows.
        maps: The map's files.
        ledger: The ledger of the map.
        guarantee: What was promised for the map.
        refused: What was said when the same map was asked for again.
        errors: Exact errors of the map, known only because the city is made up.
        sensors: Statement, status and result of the corridor and of the network.
    """

    report: str
    check_ins: str
    maps: tuple[str, ...]
    ledger: str
    guarantee: str
    refused: str
    errors: Comparison
    sensors: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The result as `sfumato demo --json` prints it."""
        return {
            "report": self.report,
            "check_ins": self.check_ins,
            "maps": list(self.maps),
            "ledger": self.ledger,
            "guarantee": self.guarantee,
            "refused": self.refused,
            **asdict(self.errors),
            **self.sensors,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DemoResult:
        """The result that `to_json` wrote."""
        return cls(
            data["report"],
            data["check_ins"],
            tuple(data["maps"]),
            data["ledger"],
            data["guarantee"],
            data["refused"],
            Comparison(**{one.name: data[one.name] for one in fields(Comparison)}),
            {name: data[name] for name in ("corridor", "network")},
        )
