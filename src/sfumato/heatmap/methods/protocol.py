"""What a map method is: a mechanism that pays for noisy counts, and an estimate made of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np

from sfumato._types import IntArray
from sfumato.errors import InvalidParameter
from sfumato.heatmap.inference.map_posterior import MapPosterior
from sfumato.heatmap.tiles import Tiles, inside
from sfumato.privacy import UNITS, Bound, Mechanism
from sfumato.records import CellSums
from sfumato.spaces import Area, Grid

U = TypeVar("U")


@dataclass(frozen=True, slots=True, eq=False)
class MapEstimate:
    """One map made of what was released, and what is known of its noise.

    Attributes:
        tiles: Mass in users, none of it outside the bounds of the area.
        posterior: Draws maps that could have led to what was released, for methods that can.
        noise_scale: The usual scale of the noise on a count, in users; 0 where it is not known, or
            where the posterior says it.

    """

    tiles: Tiles
    posterior: MapPosterior | None = None
    noise_scale: float = 0.0


class MapMethod(Protocol[U]):
    """A frozen dataclass with the public parameters of a method; `name` is its word on the command line.

    Its fields are saved with the map: JSON must hold them. This is all a method of one's own needs;
    `register_method` makes it known by name. One that inherits from `NoiseAwareMethod` can say more
    of its maps.
    """

    @property
    def name(self) -> str:
        """The word by which it is chosen."""

    def mechanism(self, epsilon: Fraction, bound: Bound, grid: Grid) -> Mechanism[CellSums, U]:
        """The mechanism that costs at most epsilon, with any delta, on sums with this bound.

        Of the grid it may use the number of levels only: where the bounds are found privately, they
        are not known yet when the map is priced.
        """

    def estimate(self, released: U, grid: Grid) -> tuple[Tiles, ...]:
        """One map for each group, from what was released alone: post-processing costs nothing."""


class NoiseAwareMethod(MapMethod[U], Protocol[U]):
    """A map method that also says how much noise is on its counts, and may give maps a posterior.

    Pictures, bands and zone totals follow them. Both have defaults: nothing is known.
    """

    def noise_scale(self, mechanism: Any) -> Fraction:
        """The usual scale of the noise on one count, in units of mass; 0 where it is not known."""
        del mechanism
        return Fraction(0)

    def maps(self, released: U, mechanism: Any, area: Area) -> tuple[MapEstimate, ...]:
        """The estimate of each group inside the bounds, and what else is known of it."""
        return plain_maps(self, released, area, noise_scale=self.noise_scale(mechanism))

    def outlines(self, released: U, mechanism: Any, area: Area) -> tuple[Tiles, ...]:
        """The same maps without detail that no picture shows, for simulations of many of them."""
        return tuple(one.tiles for one in self.maps(released, mechanism, area))

    def batches(self, released: Iterable[U]) -> Iterable[U]:
        """What was released of simulated maps, in batches that are estimated at once: as it comes."""
        return released

    def sketches(self, released: U, mechanism: Any, area: Area) -> tuple[Tiles, ...]:
        """The same maps, perhaps estimated more quickly: to compare them with each other alone."""
        return self.outlines(released, mechanism, area)


def plain_maps(
    method: MapMethod[Any], released: Any, area: Area, *, noise_scale: Fraction
) -> tuple[MapEstimate, ...]:
    """What a method estimates, inside the bounds; the scale of its noise is in units."""
    return tuple(
        MapEstimate(inside(tiles, area), noise_scale=float(noise_scale / UNITS))
        for tiles in method.estimate(released, area.grid)
    )


Method = MapMethod


def maps_of(
    method: MapMethod[Any], released: Any, mechanism: Any, area: Area
) -> tuple[MapEstimate, ...]:
    """What a method makes of what was released: all it knows, or its plain estimate."""
    make = getattr(method, "maps", None)
    if make is None:
        return plain_maps(method, released, area, noise_scale=Fraction(0))
    found: tuple[MapEstimate, ...] = make(released, mechanism, area)
    return found


def batches_of(method: MapMethod[Any], released: Iterable[Any]) -> Iterable[Any]:
    """Batches of simulated maps that a method estimates at once."""
    join = getattr(method, "batches", None)
    return released if join is None else join(released)


def outlines_of(
    method: MapMethod[Any], released: Any, mechanism: Any, area: Area
) -> tuple[Tiles, ...]:
    """The maps of `maps_of` without detail that no picture shows."""
    make = getattr(method, "outlines", None)
    if make is None:
        return tuple(one.tiles for one in maps_of(method, released, mechanism, area))
    found: tuple[Tiles, ...] = make(released, mechanism, area)
    return found


def sketches_of(
    method: MapMethod[Any], released: Any, mechanism: Any, area: Area
) -> tuple[Tiles, ...]:
    """The maps of `outlines_of`, more quickly where the method knows a way."""
    make = getattr(method, "sketches", None)
    if make is None:
        return outlines_of(method, released, mechanism, area)
    found: tuple[Tiles, ...] = make(released, mechanism, area)
    return found


def check_level(level: int, bound: Bound, *, by: str) -> None:
    """Refuse to count cells of a level finer than any the data can have; asked when the cost is."""
    if bound.size >> 2 * level == 0:
        raise InvalidParameter(
            f"{by} down to level {level} counts {4**level} cells, the data has {bound.size}; "
            "nothing was charged"
        )


def whole_numbers(data: Any) -> IntArray:
    """A list of integers of JSON as an array."""
    return np.array(data, dtype=np.int64).reshape(-1)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyLevel:
    """Released counts, in units, of some cells of one level (codes increase; group * 4**level + code)."""

    level: int
    codes: IntArray
    values: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTree:
    """Released counts level by level from the top; `groups` maps one after another.

    `shape` is that of the noise: 1 for Laplace noise, more for noise in shares.
    """

    groups: int
    levels: tuple[NoisyLevel, ...]
    shape: Fraction = Fraction(1)

    @staticmethod
    def from_json(data: Any) -> NoisyTree:
        """The tree that `to_json` gave."""
        return NoisyTree(
            int(data["groups"]),
            tuple(
                NoisyLevel(
                    int(one["level"]), whole_numbers(one["codes"]), whole_numbers(one["values"])
                )
                for one in data["levels"]
            ),
            Fraction(data.get("shape", 1)),
        )

    def to_json(self) -> dict[str, Any]:
        """Integers only."""
        return {
            "groups": self.groups,
            **({} if self.shape == 1 else {"shape": str(self.shape)}),
            "levels": [
                {"level": one.level, "codes": one.codes.tolist(), "values": one.values.tolist()}
                for one in self.levels
            ],
        }
