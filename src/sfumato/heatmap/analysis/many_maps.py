"""Several maps of the same people: what each of them will be like, and what would make it usable."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sfumato._validate import whole
from sfumato.errors import InvalidParameter
from sfumato.heatmap.analysis.forecasts import (
    Forecast,
    Kind,
    forecast,
    required_epsilon,
    required_users,
)

# Half of the mass in the right place within the blur; below it most of a map is somewhere else.
USABLE = 0.5


@dataclass(frozen=True, slots=True)
class Shares:
    """How maps share each user's mass 1: over frames (periods) and maps (images, groups) alike.

    Attributes:
        frames: How many periods, at least 1.
        maps: How many maps in each period, at least 1.
        mass_per_frame: Whether everybody has mass 1 in each frame, which costs epsilon for each.
        mass_per_map: Whether everybody has mass 1 in each map of a frame.

    """

    frames: int = 1
    maps: int = 1
    mass_per_frame: bool = False
    mass_per_map: bool = False

    def __post_init__(self) -> None:
        for name in ("frames", "maps"):
            whole(name, getattr(self, name), low=1)

    @property
    def count(self) -> int:
        """How many maps there are in all."""
        return self.frames * self.maps

    @property
    def masses(self) -> int:
        """How many masses of 1 a user has in all, each of which a ledger of users pays for."""
        frames = self.frames if self.mass_per_frame else 1
        return frames * (self.maps if self.mass_per_map else 1)

    @property
    def of_a_user(self) -> float:
        """What one map has of a user's mass 1 on average, if everybody is in every map."""
        shared = 1 if self.mass_per_frame else self.frames
        return 1 / (shared if self.mass_per_map else shared * self.maps)


@dataclass(frozen=True, slots=True)
class ManyMaps:
    """What to expect of each of several maps, and what would make all of them usable.

    Usable is similarity 0.5 in nearly all places. A number is None where it was not asked for, or
    nothing that was simulated reaches it.

    Attributes:
        shares: How the maps share each user's mass.
        epsilon: What the release may cost for each mass.
        users: How many users there are, a public guess; None where none was made.
        forecast: What to expect of a map that has its share of them; None without a guess, and
            where so few give nothing but noise.
        maps_needed: The most maps in all (in each frame, where everybody has mass 1 in each) of
            which each is usable, if there are fewer of them.
        epsilon_needed: The epsilon at which each map is usable.
        users_needed: The users in all with whom each map is usable at this epsilon.

    """

    shares: Shares
    epsilon: float
    users: float | None = None
    forecast: Forecast | None = None
    maps_needed: int | None = None
    epsilon_needed: float | None = None
    users_needed: int | None = None

    @property
    def users_a_map(self) -> float | None:
        """How many users with all of their mass have as much as one map on average."""
        return None if self.users is None else self.users * self.shares.of_a_user

    @property
    def usable(self) -> bool | None:
        """Whether each map has similarity 0.5 in nearly all places; None without a guess of users."""
        if self.users is None:
            return None
        return self.forecast is not None and self.forecast.similarity.lowest >= USABLE

    def to_json(self) -> dict[str, Any]:
        """All numbers by name."""
        return asdict(self) | {"users_a_map": self.users_a_map, "usable": self.usable}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ManyMaps:
        """What `to_json` wrote."""
        expected = data["forecast"]
        return cls(
            Shares(**data["shares"]),
            data["epsilon"],
            data["users"],
            None if expected is None else Forecast.from_json(expected),
            data["maps_needed"],
            data["epsilon_needed"],
            data["users_needed"],
        )


@dataclass(frozen=True, slots=True)
class CountedRows:
    """Rows of which each user has at most so many: their map is like one of fewer users.

    Attributes:
        rows: How many rows there are, a public guess.
        rows_per_user: The most that count of one user.
        users: How many users there are, a public guess; None where none was made.

    """

    rows: int
    rows_per_user: int
    users: float | None = None

    def __post_init__(self) -> None:
        for name in ("rows", "rows_per_user"):
            whole(name, getattr(self, name), low=1)

    @property
    def like_users(self) -> float:
        """How many users of mass 1 would have as much: a row has 1 / `rows_per_user` of a mass.

        It is the most that there can be: those with fewer rows than others have less than mass 1.

        >>> round(CountedRows(4833, 40, users=537).like_users)
        121
        """
        share = self.rows / self.rows_per_user
        return share if self.users is None else min(share, self.users)

    @property
    def rows_of_a_user(self) -> float | None:
        """How many rows a user has on average."""
        return None if self.users is None else self.rows / self.users

    @property
    def better_cap(self) -> int | None:
        """What the average user has, where the cap is above it and costs more than it shows."""
        mean = self.rows_of_a_user
        return None if mean is None or self.rows_per_user <= mean else math.ceil(mean)


def forecast_maps(
    shares: Shares, epsilon: float, *, users: float | None = None, kind: Kind = "places"
) -> ManyMaps:
    """What to expect of each of several maps of the same users; it reads nothing and costs nothing.

    A map that has a share of everybody is forecast as one of that share of the users: they are in
    somewhat more places than so few would be, so it will rather be better than worse.

    Args:
        shares: How the maps share each user's mass.
        epsilon: What the release may cost for each mass, within what was simulated.
        users: How many users there are, a public guess above 0; None to be told how many it takes.
        kind: "places" or "gaze".

    Returns:
        The forecast of one map, and the number of maps, epsilon or users that makes each usable.

    Raises:
        InvalidParameter: For an epsilon that was not simulated.

    >>> found = forecast_maps(Shares(frames=24), 1, users=537)
    >>> found.usable, found.maps_needed
    (False, 5)

    """
    enough = required_users("similarity", USABLE, epsilon=epsilon, kind=kind).safe
    needed = None if enough is None else math.ceil(enough / shares.of_a_user)
    if users is None:
        return ManyMaps(shares, epsilon, users_needed=needed)
    found = ManyMaps(
        shares,
        epsilon,
        users,
        _maybe(users * shares.of_a_user, epsilon, kind),
        users_needed=needed,
    )
    if found.usable:
        return found
    return replace(
        found,
        maps_needed=(math.floor(users / enough) or None) if enough else None,
        epsilon_needed=_more_epsilon(users * shares.of_a_user, kind),
    )


def _more_epsilon(users: float, kind: Kind) -> float | None:
    try:
        return required_epsilon("similarity", USABLE, users=users, kind=kind).safe
    except InvalidParameter:  # fewer users than were simulated
        return None


def _maybe(users: float, epsilon: float, kind: Kind) -> Forecast | None:
    try:
        return forecast(users, epsilon, kind=kind)
    except InvalidParameter:  # so little was not simulated: it says next to nothing
        return None
