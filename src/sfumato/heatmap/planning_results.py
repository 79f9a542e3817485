"""What a plan says: of a map, forecasts and what a target takes; of a release, its cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from sfumato._types import FloatArray
from sfumato.heatmap.analysis.forecasts import Expected, Forecast, Kind, Requirement
from sfumato.heatmap.analysis.many_maps import CountedRows, ManyMaps, Shares
from sfumato.heatmap.analysis.quality import Metric
from sfumato.heatmap.measure import Measure
from sfumato.privacy import Loss
from sfumato.privacy.accounting import decode_loss, encode
from sfumato.privacy.runs import Undelivered
from sfumato.spaces import Area, Grid

ONE_MAP, USERS = Shares(), Measure()
HOLDS_FOR = (
    "simulated with zoom on other places, real and made up: means over noise and users, of maps blurred by "
    "0.02 sides. Nothing was read or charged."
)


@dataclass(frozen=True, slots=True)
class Target:
    """A metric, and the value that a map should reach in it."""

    metric: Metric
    value: float


@dataclass(frozen=True, slots=True)
class PlanPoint:
    """One row of a table of forecasts; no forecast where so few users at this epsilon have none."""

    users: float
    epsilon: float
    forecast: Forecast | None


@dataclass(frozen=True, slots=True)
class UsersRequirement:
    """The epsilon that the target takes with so many users."""

    users: int
    epsilon: Requirement


@dataclass(frozen=True, slots=True, eq=False)
class PlanCurves:
    """Forecasts of each metric along `x`, which is epsilon or users; `fixed` is the value of the other."""

    x_name: str
    fixed: float
    x: FloatArray
    expected: Mapping[Metric, tuple[Expected, ...]]


@dataclass(frozen=True, slots=True)
class HeatmapPlan:
    """What `plan_heatmap` says; a field is None or empty where it was not asked for.

    Attributes:
        kind: What the data is of, "places" or "gaze".
        users: The number of users that was given.
        epsilon: The epsilon that was given.
        target: The metric and value to reach.
        forecast: What to expect, when both epsilon and users were given.
        points: Forecasts along what was not given.
        epsilon_required: The epsilon that the target takes with these users.
        users_required: The users that the target takes at this epsilon.
        epsilon_by_users: The epsilon that the target takes, by number of users.
        side: The side of the map on the ground, in `side_unit`.
        side_unit: "m", or "units" on a plane.
        shares: How several maps share each user's mass; forecasts are of each of them.
        many: What would make each of several maps usable, where epsilon was given.
        counted: The rows that are counted instead of users, and their cap.
        pooled: Whether the maps are to share strength; forecasts are of each map by itself.
    """

    kind: Kind
    users: float | None = None
    epsilon: float | None = None
    target: Target | None = None
    forecast: Forecast | None = None
    points: tuple[PlanPoint, ...] = ()
    epsilon_required: Requirement | None = None
    users_required: Requirement | None = None
    epsilon_by_users: tuple[UsersRequirement, ...] = ()
    side: float | None = None
    side_unit: str = "m"
    shares: Shares = ONE_MAP
    many: ManyMaps | None = None
    counted: CountedRows | None = None
    pooled: bool = False
    holds_for: ClassVar[str] = HOLDS_FOR

    @property
    def users_a_map(self) -> float | None:
        """How many users with mass 1 would have as much as one map; None without a guess of users."""
        users = self.users if self.counted is None else self.counted.like_users
        return None if users is None else users * self.shares.of_a_user

    def to_json(self) -> dict[str, Any]:
        """The plan as `sfumato heatmap plan --json` prints it; `table` is `points` in words."""
        from sfumato.heatmap.render.plan import point_table

        out: dict[str, Any] = {"kind": self.kind, "users": self.users, "epsilon": self.epsilon}
        if self.forecast is not None:
            out["forecast"] = self.forecast.to_json()
        if self.points:
            out["table"] = point_table(self)
            out["points"] = [asdict(point) for point in self.points]
        if self.target is not None:
            out["want"] = asdict(self.target)
        if self.epsilon_by_users:
            out["epsilon_needed"] = {
                str(one.users): one.epsilon.to_json() for one in self.epsilon_by_users
            }
        if self.epsilon_required is not None:
            out["epsilon_needed"] = self.epsilon_required.to_json()
        if self.users_required is not None:
            out["users_needed"] = self.users_required.to_json()
        if self.side is not None:
            out["side"] = {"length": self.side, "unit": self.side_unit}
        if self.shares != ONE_MAP:
            out["shares"] = asdict(self.shares)
        if self.many is not None:
            out["many"] = self.many.to_json()
        if self.counted is not None:
            out["counted"] = asdict(self.counted) | {"like_users": self.counted.like_users}
        if self.pooled:
            out["pooled"] = True
        return out | {"holds_for": HOLDS_FOR}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> HeatmapPlan:
        """The plan that `to_json` wrote."""
        needed: Mapping[str, Any] = data.get("epsilon_needed") or {}
        by_users = needed if needed and "usual" not in needed else {}
        side, many, counted = (data.get(name) for name in ("side", "many", "counted"))
        return cls(
            kind=data["kind"],
            users=data["users"],
            epsilon=data["epsilon"],
            target=Target(**data["want"]) if "want" in data else None,
            forecast=Forecast.from_json(data["forecast"]) if "forecast" in data else None,
            points=tuple(
                PlanPoint(
                    one["users"],
                    one["epsilon"],
                    None if one["forecast"] is None else Forecast.from_json(one["forecast"]),
                )
                for one in data.get("points", ())
            ),
            epsilon_required=Requirement.from_json(needed) if needed and not by_users else None,
            users_required=Requirement.from_json(data["users_needed"])
            if "users_needed" in data
            else None,
            epsilon_by_users=tuple(
                UsersRequirement(int(users), Requirement.from_json(one))
                for users, one in by_users.items()
            ),
            side=None if side is None else side["length"],
            side_unit="m" if side is None else side["unit"],
            shares=Shares(**data.get("shares", {})),
            many=None if many is None else ManyMaps.from_json(many),
            counted=None
            if counted is None
            else CountedRows(counted["rows"], counted["rows_per_user"], counted["users"]),
            pooled=data.get("pooled", False),
        )

    @property
    def caption(self) -> str:
        """What the picture shows, in a sentence."""
        from sfumato.heatmap.render.plan import plan_caption

        return plan_caption(self)

    def picture(self) -> bytes:
        """A PNG of all metrics along epsilon, or along users where only epsilon was given."""
        from sfumato.heatmap.render.plan import plan_picture

        return plan_picture(self)

    def __str__(self) -> str:
        from sfumato.heatmap.render.plan import plan_words

        return "\n".join(plan_words(self))

    def _repr_html_(self) -> str:
        from sfumato.heatmap.render.plan import plan_html

        return plan_html(self)


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """What a release would cost, known before a row is read.

    Attributes:
        cost: The whole price: of the maps, and of finding the area if it is private.
        left: What the ledger has left now.
        area: The public area; where bounds are private, the outer one.
        ledger: The path of the ledger.
        frames: How many periods there would be maps of; None for a release without periods.
        many: What each map would be like, where several share everybody's mass or `users` was
            given, if that was simulated.
        measure: What would be counted: users, or rows.
        maps: How many maps there would be, of values or pairs; None for one, or for periods.
        pays_once: The unit of a ledger that would pay once for mass 1 in each value; empty if this
            one does, or nobody has it.
        pooled: Whether the maps would share strength; `many` is of each map by itself.
        undelivered: What the ledger has paid for and nobody got, which is finished at no cost.
        periods: The periods that `left` is the least of, where the ledger's unit names one.

    """

    cost: Loss
    left: Loss
    area: Area
    ledger: str
    frames: int | None = None
    many: ManyMaps | None = None
    measure: Measure = USERS
    maps: int | None = None
    pays_once: str = ""
    pooled: bool = False
    undelivered: tuple[Undelivered, ...] = ()
    periods: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What `--dry-run --json` prints."""
        return {
            "cost": encode(self.cost),
            "left": encode(self.left),
            "area": list(self.area.bounds),
            "kind": self.area.kind,
            "crs": self.area.crs,
            "metre": self.area.metre,
            "grid": list(self.area.grid.bounds),
            "levels": self.area.grid.levels,
            "ledger": self.ledger,
            **({} if self.frames is None else {"frames": self.frames}),
            **({} if self.maps is None else {"maps": self.maps}),
            **({"pays_once": self.pays_once} if self.pays_once else {}),
            **({} if self.many is None else {"many": self.many.to_json()}),
            **({} if self.measure == USERS else {"measure": asdict(self.measure)}),
            **({"pooled": True} if self.pooled else {}),
            **(
                {"undelivered": [one.to_json() for one in self.undelivered]}
                if self.undelivered
                else {}
            ),
            **({"left_for": list(self.periods)} if self.periods else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PlannedRelease:
        """What `to_json` gave."""
        grid = Grid(data["levels"], four_bounds(data["grid"]))
        return cls(
            decode_loss(data["cost"]),
            decode_loss(data["left"]),
            Area(
                grid,
                four_bounds(data["area"]),
                data["kind"],
                data.get("crs", ""),
                data.get("metre", 0.0),
            ),
            data["ledger"],
            data.get("frames"),
            ManyMaps.from_json(data["many"]) if "many" in data else None,
            Measure(**data.get("measure", {})),
            data.get("maps"),
            data.get("pays_once", ""),
            data.get("pooled", False),
            tuple(map(Undelivered.from_json, data.get("undelivered", ()))),
            tuple(data.get("left_for", ())),
        )


def four_bounds(numbers: Any) -> tuple[float, float, float, float]:
    """The bounds of an area, read from JSON."""
    west, south, east, north = (float(number) for number in numbers)
    return west, south, east, north
