"""A site: where sources may be, where sensors are, how the one spreads to the other, and what is protected.

All of it is public. It is one JSON file, whole in itself, that everybody who releases, recovers or
checks works from.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sfumato import spaces
from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter, SfumatoError
from sfumato.files import read_json, write_file
from sfumato.privacy import MovedMass, SwappedCells
from sfumato.privacy.accounting import (
    canonical,
    decode_neighbors,
    encode,
    exact,
    nonnegative,
    positive,
)
from sfumato.sensing.model.level import Level
from sfumato.sensing.model.operators.protocol import Operator, part_of
from sfumato.sensing.model.operators.registry import operator_from_json
from sfumato.sensing.model.operators.weighted import gains_of
from sfumato.sensing.model.reading_unit import AS_READ, SOURCES, ReadingUnit
from sfumato.sensing.model.sensors import Sensors

if TYPE_CHECKING:
    from sfumato.sensing.model.operators.protocol import SourceSpace

FORMAT = "sfumato-site/1"
LARGEST_STEP = 10**100

_PROMISED = ("operator", "sources", "sensors", "neighbors", "step")
_TOLD = ("unit", "per_source", "largest", "level")  # of sites that say what they read


@dataclass(frozen=True, slots=True)
class Site:
    """Sources, sensors, and the operator between them; with whom the promise is made, and a name.

    `unit` is what the sensors read in (any name of it), and `per_source` how much of it a source of
    mass 1 adds to a reading where the operator has the value 1. Nobody can tell from readings, and
    noise for another unit hides nothing: without these two nothing is released, only planned.

    `step` is how far apart rounding alone may put two readings of one value, in their unit: the
    sensors' own resolution and that of the type of numbers they are handed on in; 0 if it is
    negligible beside the lattice. `level` is what sensors read where nobody is, which is taken off;
    `largest` is how far from it readings go, in their unit; those that are further are cut. `cells`
    are names of the places of sources, where they have any (the nodes of a graph). `origin` is the
    latitude and longitude of the place 0, 0, where metres were made of such.
    """

    name: str
    operator: Operator
    neighbors: MovedMass | SwappedCells
    step: Fraction = Fraction(0)
    cells: tuple[str, ...] | None = None
    unit: str = ""
    per_source: Fraction | None = None
    largest: Fraction | None = None
    level: Level | None = None
    origin: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable():
            raise InvalidParameter(
                f"a site needs a printable name, got {self.name!r}; nothing was built"
            )
        object.__setattr__(self, "step", nonnegative(self.step, "step"))
        if self.step > LARGEST_STEP:
            raise InvalidParameter("step must be at most 1e100, got more; nothing was built")
        if not self.unit.isprintable() or bool(self.unit) != (self.per_source is not None):
            raise InvalidParameter(
                "a site says both a printable unit of its readings and what a source of mass 1 adds to one "
                f"(per_source), got {self.unit!r} and {self.per_source}; nothing was built"
            )
        for name in ("per_source", "largest"):
            value = getattr(self, name)
            if value is not None:
                number = positive(value, name)
                if not Fraction(1, LARGEST_STEP) <= number <= LARGEST_STEP:
                    raise InvalidParameter(
                        f"{name} must lie between 1e-100 and 1e100; nothing was built"
                    )
                object.__setattr__(self, name, number)
        if self.level is not None:
            if not self.unit:
                raise InvalidParameter(
                    "a level that is taken off readings needs their `unit` and `per_source`; nothing was built"
                )
            self.level.check(self.sensors.names)
        metric = self.operator.space.metric
        if isinstance(self.neighbors, MovedMass) and self.neighbors.metric != metric:
            raise InvalidParameter(
                f"sources of this site move in the metric {metric!r}, the relation is of "
                f"{self.neighbors.metric!r}; nothing was built"
            )
        if self.cells is not None and len(self.cells) != self.operator.space.size:
            raise InvalidParameter(
                f"every cell needs one name, got {len(self.cells)} for {self.operator.space.size}; "
                "nothing was built"
            )

    @property
    def digest(self) -> str:
        """SHA-256 over all that a plan rests on: sources, sensors, operator, relation, step and unit."""
        parts = self.to_json()
        told = [[name, parts[name]] for name in _TOLD if name in parts]
        return hashlib.sha256(
            canonical([*(parts[name] for name in _PROMISED), *told]).encode()
        ).hexdigest()

    @property
    def step_in_sources(self) -> Fraction:
        """The step in the unit of the operator: of what a source of mass 1 adds where it has the value 1."""
        return self.step / (self.per_source or 1)

    @property
    def gains(self) -> FloatArray:
        """What each reading is multiplied by before it gets noise: 1, but where each sensor has its own."""
        return gains_of(self.operator)

    @property
    def off(self) -> tuple[str, ...]:
        """The sensors that are switched off: their readings are not sent."""
        gains = self.gains.tolist()
        return tuple(name for name, gain in zip(self.sensors.names, gains, strict=True) if not gain)

    @property
    def reading_unit(self) -> ReadingUnit:
        """How readings are told in words: in the site's unit, plainly where it has none of its own."""
        if self.per_source is None or self.unit == SOURCES:
            return AS_READ
        return ReadingUnit(self.unit, float(self.per_source))

    @property
    def sensors(self) -> Sensors:
        """The named set of sensors."""
        return self.operator.sensors

    @property
    def box(self) -> tuple[list[float], list[float]] | None:
        """The lowest and highest coordinates of sources on a line or a grid; None elsewhere."""
        space = self.operator.space
        match space:
            case spaces.Line():
                return [min(0.0, float(space.positions[0]))], [float(space.positions[-1])]
            case spaces.Grid():
                return list(space.bounds[:2]), list(space.bounds[2:])
            case _:
                return None

    def cell(self, number: int) -> str:
        """The name of a cell, or its number."""
        return str(number) if self.cells is None else self.cells[number]

    def to_json(self) -> dict[str, Any]:
        """The site, whole."""
        return {
            "format": FORMAT,
            "name": self.name,
            "operator": {"kind": self.operator.kind, **self.operator.to_json()},
            "sources": self.operator.space.to_json(),
            "sensors": {
                "names": list(self.sensors.names),
                "positions": self.sensors.positions.tolist(),
                "set": self.sensors.digest,
            },
            "neighbors": encode(self.neighbors),
            "step": str(self.step),
            **({"unit": self.unit, "per_source": str(self.per_source)} if self.unit else {}),
            **({} if self.largest is None else {"largest": str(self.largest)}),
            **({} if self.level is None else {"level": self.level.to_json()}),
            **({} if self.cells is None else {"cells": list(self.cells)}),
            **({} if self.origin is None else {"origin": list(self.origin)}),
        }

    @staticmethod
    def from_json(data: Any) -> Site:
        """The site that a JSON object states."""
        try:
            if not isinstance(data, dict) or data.get("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            neighbors = decode_neighbors(data["neighbors"])
            if not isinstance(neighbors, MovedMass | SwappedCells):
                raise ValueError(f"its relation is not of sources: {neighbors}")
            sensors = Sensors(data["sensors"]["positions"], data["sensors"]["names"])
            if data["sensors"]["set"] != sensors.digest:
                raise ValueError("its sensors are not those of its hash")
            space = cast("SourceSpace", spaces.space_from_json(data["sources"]))
            cells = data.get("cells")
            return Site(
                name=str(data["name"]),
                operator=operator_from_json(data["operator"], space, sensors),
                neighbors=neighbors,
                step=exact(data["step"], name="step"),
                cells=None if cells is None else tuple(map(str, cells)),
                unit=str(data.get("unit", "")),
                per_source=_optional_fraction(data, "per_source"),
                largest=_optional_fraction(data, "largest"),
                level=Level.from_json(data["level"]) if "level" in data else None,
                origin=_origin(data.get("origin")),
            )
        except KeyError as problem:
            raise InvalidInput(f"not a whole site: it has no {problem}") from None
        except (
            SfumatoError,
            AttributeError,
            IndexError,
            TypeError,
            ValueError,
            ArithmeticError,
        ) as problem:
            raise InvalidInput(f"not a whole site: {problem}") from None

    def write(self, path: str | Path) -> None:
        """Save in a new file; a site is never written over another."""
        write_file(path, json.dumps(self.to_json(), indent=1) + "\n")


def _optional_fraction(data: dict[str, Any], name: str) -> Fraction | None:
    return exact(data[name], name=name) if name in data else None


def _origin(data: Any) -> tuple[float, float] | None:
    return None if data is None else (float(data[0]), float(data[1]))


def read_site(path: str | Path) -> Site:
    """A site from its file.

    Args:
        path: A .json file that `Site.write` or `sfumato sense site` made.

    Returns:
        The site.

    Raises:
        InvalidInput: The file cannot be read, is not a whole site, or names an operator that nobody has
            registered.
    """
    data = read_json(path, "a whole site")
    try:
        return Site.from_json(data)
    except InvalidInput as problem:
        raise InvalidInput(f"{path} is {problem}") from None


def part_of_site(site: Site, names: tuple[str, ...]) -> Operator:
    """The operator to the sensors of these names only, in their order: to recover from a part."""
    return part_of(site.operator, np.array(rows_of(site, names)))


def rows_of(site: Site, names: tuple[str, ...]) -> tuple[int, ...]:
    """The numbers of the sensors of these names, in their order."""
    number = {name: i for i, name in enumerate(site.sensors.names)}
    unknown = [name for name in names if name not in number]
    if unknown:
        raise InvalidParameter(
            f"site {site.name!r} has no sensor {unknown[0]!r}; nothing was recovered"
        )
    return tuple(number[name] for name in names)
