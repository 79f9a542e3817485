"""What each verb of heatmaps returns, to and from JSON: the fields that `--json` prints are here.

The map itself, and what a saved map.json holds, is in `private_map`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.heatmap.accuracy.map_error import MapError
from sfumato.heatmap.accuracy.noise_mark import NoiseMark
from sfumato.heatmap.analysis.metrics import Comparison
from sfumato.heatmap.analysis.zones import ZoneTotal
from sfumato.heatmap.planning_results import PlannedRelease, four_bounds
from sfumato.heatmap.pooling_results import PooledMap, PoolResult
from sfumato.heatmap.private_map import FORMAT, HeatmapRelease
from sfumato.privacy import Bound, Ledger, Loss
from sfumato.privacy.accounting import decode_loss, encode
from sfumato.privacy.ledger import Entry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfumato.heatmap.export.formats import WriteOptions

__all__ = [
    "FORMAT",
    "DrawResult",
    "HeatmapRelease",
    "PlannedRelease",
    "PoolResult",
    "PooledMap",
    "RehearsalResult",
    "ReleaseResult",
    "TotalsResult",
]


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """What a release gave: its maps, what it cost, what is left, and which files were written.

    Attributes:
        statement: What is promised, in one sentence.
        method: The name of the method.
        parameters: The public parameters of the method.
        entry: The ledger entry that paid for the maps.
        cost: What the maps cost, with finding their area if that was private.
        left: What the ledger has left after it.
        area: The bounds of the maps.
        ledger: The path of the ledger.
        written: The files that were written.
        maps: One map for each group, in order; none in a result that was read from JSON.
        made_before: Whether all of it was paid for before, so that nothing was charged now.
        known_errors: What a saved result said of how far off its maps are, by group.
        known_noise: What it said of their noise, by group.
        periods: The periods that `left` is the least of, where the ledger's unit names one.
        drawn_with: How its files were drawn, so that a notebook shows the same ground under its maps.

    """

    statement: str
    method: str
    parameters: dict[str, Any]
    entry: Entry
    cost: Loss
    left: Loss
    area: tuple[float, float, float, float]
    ledger: str
    written: tuple[str, ...] = ()
    maps: tuple[HeatmapRelease, ...] = field(default=(), repr=False, compare=False)
    made_before: bool = False
    known_errors: Mapping[str, MapError] | None = field(default=None, repr=False, compare=False)
    known_noise: Mapping[str, NoiseMark] | None = field(default=None, repr=False, compare=False)
    periods: tuple[str, ...] = ()
    drawn_with: WriteOptions | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        maps: tuple[HeatmapRelease, ...],
        ledger: Ledger,
        *,
        bound: Bound,
        team: str,
        written: tuple[str, ...],
        made_before: bool = False,
        drawn_with: WriteOptions | None = None,
    ) -> ReleaseResult:
        """What a release gave that a ledger paid for and whose files are written."""
        first = maps[0]
        return cls(
            first.statement,
            first.method,
            first.parameters,
            first.receipt.entry,
            first.guarantee.loss,
            ledger.left(bound=bound, team=team),
            first.area.bounds,
            str(ledger.path),
            written,
            maps,
            made_before=made_before,
            periods=bound.periods or (),
            drawn_with=drawn_with,
        )

    @property
    def errors(self) -> Mapping[str, MapError]:
        """How far off each map is, by group, or of many maps some; worked out when it is asked for.

        Empty, after a warning, where it could not be, and in results of before maps said so.
        """
        if self.known_errors is not None:
            return self.known_errors
        from sfumato.heatmap.pipeline.outputs import stated_errors

        return stated_errors(self.maps)

    @property
    def noise(self) -> Mapping[str, NoiseMark]:
        """For each map, by its group, up to where it may be noise and whether it is empty."""
        if self.known_noise is not None:
            return self.known_noise
        return {one.group: one.noise for one in self.maps}

    @property
    def by_group(self) -> dict[str, HeatmapRelease]:
        """Each map by the name of its group or period."""
        return {one.group: one for one in self.maps}

    def to_json(self) -> dict[str, Any]:
        """What `sfumato heatmap release --json` prints; maps are in the files it wrote."""
        errors = self.errors
        return {
            "statement": self.statement,
            "method": self.method,
            "parameters": self.parameters,
            "entry": self.entry.to_json(),
            "left": encode(self.left),
            "area": list(self.area),
            "written": list(self.written),
            "ledger": self.ledger,
            "cost": encode(self.cost),
            "made_before": self.made_before,
            "errors": [one.to_json() for one in errors.values()],
            "errors_of": list(errors),
            "noise": {group: one.to_json() for group, one in self.noise.items()},
            **({"left_for": list(self.periods)} if self.periods else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ReleaseResult:
        """What `to_json` gave; without maps. Before the whole cost was saved, it is that of the entry."""
        entry = Entry.from_json(data["entry"])
        return cls(
            data["statement"],
            data["method"],
            dict(data["parameters"]),
            entry,
            decode_loss(data["cost"]) if "cost" in data else entry.cost,
            decode_loss(data["left"]),
            four_bounds(data["area"]),
            data["ledger"],
            tuple(data["written"]),
            made_before=bool(data.get("made_before", False)),
            known_errors={
                group: MapError.from_json(one)
                # Before some of many were looked at, errors were of all groups or of none.
                for group, one in zip(
                    data.get("errors_of", data.get("noise", ())),
                    data.get("errors", ()),
                    strict=False,
                )
            },
            known_noise={
                group: NoiseMark.from_json(one) for group, one in data.get("noise", {}).items()
            },
            periods=tuple(data.get("left_for", ())),
        )

    def plot(self, **ground: Any) -> Figure:
        """The picture of the one map, as `HeatmapRelease.plot` has it; of several, each has its own.

        Raises:
            InvalidParameter: There are several maps, or none.

        """
        if len(self.maps) != 1:
            raise InvalidParameter(
                f"a picture is of one map, there are {len(self.maps)}: take one of `by_group`, "
                f"{', '.join(map(repr, list(self.by_group)[:5])) or 'which is empty'}, and plot it; "
                "nothing was drawn"
            )
        return self.maps[0].plot(**ground)

    def to_dataframe(self, level: int | None = None) -> Any:
        """The cells of all maps as one pandas DataFrame, with a column `group` where there are several.

        Raises:
            InvalidParameter: There are no maps, as in a result that was read from JSON.
            MissingPackage: pandas is not installed.

        """
        if not self.maps:
            raise InvalidParameter(
                "a result that was read from JSON has no maps: read one from its file with "
                "`read_heatmap`; nothing was made"
            )
        tables = [one.to_dataframe(level) for one in self.maps]
        if len(tables) == 1:
            return tables[0]
        import pandas as pd

        cells = pd.concat(tables, keys=list(self.by_group), names=["group"])
        return cells.reset_index(level="group").reset_index(drop=True)

    def _repr_html_(self) -> str:
        from sfumato.heatmap.export.picture import html_of_maps

        return html_of_maps(self.maps, self.drawn_with)


@dataclass(frozen=True, slots=True)
class RehearsalResult:
    """What a rehearsal on public rows gave: a stamped map, and its exact errors.

    Attributes:
        statement: What a release would promise; a rehearsal promises nothing.
        blur: The blur through which `errors` are measured, in sides of the map.
        errors: The blurred map against the blurred truth.
        without_blur: The map against the truth, cell by cell.
        written: The files that were written.
        stated: What the map itself says of how far off it is: what a release would have said.
        map: The map; None in a result that was read from JSON.
        truth: The exact shares [row, column], row 0 at the lowest y; None if read from JSON.
        noise: Up to where the map may be noise, and whether it is empty; None in old results, and
            with groups.
        by_group: With groups, the errors of each map, blurred, and None where nobody was: `errors`
            and `without_blur` are means over the others, `map` and `truth` those of the first.
        maps: All maps; empty in a result that was read from JSON.
        truths: The exact shares of each, None where nobody was.

    """

    statement: str
    blur: float
    errors: Comparison
    without_blur: Comparison
    written: tuple[str, ...] = ()
    stated: MapError | None = None
    map: HeatmapRelease | None = field(default=None, repr=False, compare=False)
    truth: FloatArray | None = field(default=None, repr=False, compare=False)
    noise: NoiseMark | None = None
    by_group: Mapping[str, Comparison | None] = field(default_factory=dict)
    maps: tuple[HeatmapRelease, ...] = field(default=(), repr=False, compare=False)
    truths: tuple[FloatArray | None, ...] = field(default=(), repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """What `sfumato heatmap rehearse --json` prints."""
        return {
            "rehearsal": True,
            "statement": self.statement,
            "written": list(self.written),
            "blur": self.blur,
            **asdict(self.errors),
            "without_blur": asdict(self.without_blur),
            "stated": None if self.stated is None else self.stated.to_json(),
            "noise": None if self.noise is None else self.noise.to_json(),
            **({} if not self.by_group else {"by_group": self._by_group_json()}),
        }

    def _by_group_json(self) -> dict[str, Any]:
        return {group: None if one is None else asdict(one) for group, one in self.by_group.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RehearsalResult:
        """What `to_json` gave; without the map."""
        blurred = {name: data[name] for name in data["without_blur"]}
        return cls(
            data["statement"],
            data["blur"],
            Comparison(**blurred),
            Comparison(**data["without_blur"]),
            tuple(data["written"]),
            None if data.get("stated") is None else MapError.from_json(data["stated"]),
            noise=NoiseMark.from_json(data["noise"]) if data.get("noise") else None,
            by_group={
                group: None if one is None else Comparison(**one)
                for group, one in data.get("by_group", {}).items()
            },
        )

    def _repr_html_(self) -> str:
        return "" if self.map is None else self.map._repr_html_()


@dataclass(frozen=True, slots=True)
class DrawResult:
    """Files written of maps that were paid for already.

    Attributes:
        statement: What the maps promise.
        written: The files.

    """

    statement: str
    written: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """What `sfumato heatmap draw --json` and `film --json` print."""
        return {"statement": self.statement, "written": list(self.written)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DrawResult:
        """What `to_json` gave."""
        return cls(data["statement"], tuple(data["written"]))


@dataclass(frozen=True, slots=True)
class TotalsResult:
    """How many people a map has in each of several zones.

    Attributes:
        statement: What the map promises.
        coverage: The chance that the interval of a zone holds.
        zones: A total for each zone.
        unit: What is counted: the unit of the ledger, e.g. user; or row.
        method: The name of the map's method.
        written: The files that were written.
        empty: Whether the map cannot be told from a map of nobody.

    """

    statement: str
    coverage: float
    zones: tuple[ZoneTotal, ...]
    unit: str = "user"
    method: str = ""
    written: tuple[str, ...] = ()
    empty: bool = False

    @property
    def has_intervals(self) -> bool:
        """Whether the map says how sure its totals are."""
        return any(one.low is not None for one in self.zones)

    def to_json(self) -> dict[str, Any]:
        """What `sfumato heatmap totals --json` prints."""
        return {
            "statement": self.statement,
            "coverage": self.coverage,
            "zones": [one.to_json() for one in self.zones],
            "unit": self.unit,
            "method": self.method,
            "written": list(self.written),
            "empty": self.empty,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TotalsResult:
        """What `to_json` gave."""
        return cls(
            data["statement"],
            data["coverage"],
            tuple(ZoneTotal.from_json(row) for row in data["zones"]),
            data["unit"],
            data["method"],
            tuple(data["written"]),
            data.get("empty", False),
        )

    def _repr_html_(self) -> str:
        from sfumato.heatmap.render.release import totals_html

        return totals_html(self)
