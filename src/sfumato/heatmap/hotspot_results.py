"""The places that best stand for a map, as a result: for the command, notebooks and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sfumato.heatmap.accuracy.nearby import Nearby
from sfumato.heatmap.accuracy.uncertainty import Mark
from sfumato.heatmap.analysis.places import Hotspot


@dataclass(frozen=True, slots=True)
class HotspotsResult:
    """The places that best stand for a map, with a bound that proves how near to the best they are.

    Attributes:
        statement: What the map promises.
        hotspots: The places, each with the share of all mass that is nearer to it than to the
            others; those with the largest first.
        distance: How far mass is from the nearest place on average, in sides of the map.
        lower: What no choice of as many places can bring that below.
        real: For each place, whether it lies in a ring of the map; None if the map has no rings.
        marks: The rings; None if the method does not say how sure its map is.
        k: How many places were asked for.
        tested: For each place, False if it is too near another to be tested; None without rings.
        empty: Whether the map cannot be told from one of nobody.
        side: The side of the map on the ground and its unit, "m" or "px"; None where it has none.
        degrees: Whether x and y are longitudes and latitudes.
        near: For each place, the share of all mass within a distance of it, with its interval.
        within: That distance on the ground, and its unit.
        written: The files that were written.

    """

    statement: str
    hotspots: tuple[Hotspot, ...]
    distance: float
    lower: float
    real: tuple[bool, ...] | None = None
    marks: tuple[Mark, ...] | None = None
    k: int = 0
    tested: tuple[bool, ...] | None = None
    empty: bool = False
    side: tuple[float, str] | None = None
    degrees: bool = False
    near: tuple[Nearby, ...] = ()
    within: tuple[float, str] | None = None
    written: tuple[str, ...] = ()

    @property
    def remark(self) -> str:
        """How near to the best choice of k places they are, in one sentence."""
        from sfumato.heatmap.render.release import hotspots_remark

        return hotspots_remark(self)

    @property
    def gap(self) -> float:
        """The share of the distance that is not proved to be needed."""
        return 1 - self.lower / self.distance if self.distance > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        """What `sfumato heatmap hotspots --json` prints."""
        rows = self.rows()
        return {
            "statement": self.statement,
            "hotspots": rows,
            "distance": self.distance,
            "lower": self.lower,
            "gap": self.gap,
            **({} if self.marks is None else {"marks": [asdict(mark) for mark in self.marks]}),
            "k": self.k,
            "empty": self.empty,
            "side": None
            if self.side is None
            else dict(zip(("length", "unit"), self.side, strict=True)),
            "degrees": self.degrees,
            "within": None
            if self.within is None
            else dict(zip(("length", "unit"), self.within, strict=True)),
            "written": list(self.written),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Each place with all that is known of it: x, y, shares, and whether it is real."""
        found = [asdict(spot) for spot in self.hotspots]
        for row, one in zip(found, self.near, strict=False):
            row |= {"within": one.share, "within_low": one.low, "within_high": one.high}
        for row, sure in zip(found, self.real or (), strict=False):
            row["real"] = sure
        for row, known in zip(found, self.tested or (), strict=False):
            row["tested"] = known
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> HotspotsResult:
        """What `to_json` gave."""
        rows = data["hotspots"]
        marks = data.get("marks")
        return cls(
            data["statement"],
            tuple(Hotspot(row["x"], row["y"], row["share"]) for row in rows),
            data["distance"],
            data["lower"],
            None if marks is None else tuple(row["real"] for row in rows),
            None if marks is None else tuple(Mark(**mark) for mark in marks),
            data["k"],
            tuple(row["tested"] for row in rows) if rows and "tested" in rows[0] else None,
            bool(data.get("empty", False)),
            None if data.get("side") is None else (data["side"]["length"], data["side"]["unit"]),
            bool(data.get("degrees", False)),
            tuple(
                Nearby(row["within"], row["within_low"], row["within_high"])
                for row in rows
                if "within" in row
            ),
            None
            if data.get("within") is None
            else (data["within"]["length"], data["within"]["unit"]),
            tuple(data.get("written", ())),
        )

    def _repr_html_(self) -> str:
        from sfumato.heatmap.render.release import hotspots_html

        return hotspots_html(self)
