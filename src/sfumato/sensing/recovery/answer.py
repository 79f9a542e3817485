"""What an estimator answers: sources, credible regions, and what it knows of its own quality."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.site import Site
from sfumato.spaces import Graph


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Where an estimator puts sources: a row of coordinates and a mass for each; on a graph, its node."""

    operator: Operator
    places: FloatArray
    masses: FloatArray

    def __post_init__(self) -> None:
        if self.places.ndim != 2 or self.masses.shape != (len(self.places),):
            raise InvalidParameter(
                f"an estimate is a place and a mass for each source, got shapes {self.places.shape} and "
                f"{self.masses.shape}"
            )
        object.__setattr__(self, "places", read_only(self.places + 0.0))
        object.__setattr__(self, "masses", read_only(self.masses + 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class CredibleRegion:
    """A source lies within `radius` of `place` with at least this probability; on a graph, of a node."""

    place: FloatArray
    radius: float
    probability: float


@dataclass(frozen=True, slots=True)
class SourceBeliefs:
    """What a posterior says of all sources together.

    Attributes:
        level: Probability of the interval `total` and of each credible region.
        counts: Probability of each number of sources, without the rarest.
        total: Interval of the total mass.
        known: Probability that every source has the largest mass allowed.
        max_sources: The most sources that were considered.
        doubt: Why the answer may be wrong, or "".
        mixed: Whether independent draws agree.
        rhat: Their scale reduction, near 1 where they agree.
        mixing_message: The same in a sentence.
        communities: On a graph: the probability that each community holds most of the mass.
        fits: P-value of the draw that explains the readings best; None in files of before.
    """

    level: float
    counts: Mapping[int, float]
    total: tuple[float, float]
    known: float
    max_sources: int
    doubt: str
    mixed: bool
    rhat: float
    mixing_message: str
    communities: tuple[float, ...] | None = None
    fits: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The keys of a saved answer."""
        data: dict[str, Any] = {
            "level": self.level,
            "counts": {str(count): chance for count, chance in self.counts.items()},
            "total": list(self.total),
            "known": self.known,
            "most": self.max_sources,
            "doubt": self.doubt,
            "mixing": {"said": self.mixing_message, "rhat": self.rhat, "mixed": self.mixed},
        }
        if self.communities is not None:
            data["communities"] = list(self.communities)
        if self.fits is not None:
            data["fits"] = self.fits
        return data

    @staticmethod
    def from_json(data: Any) -> SourceBeliefs:
        """The beliefs that a saved answer states."""
        low, high = data["total"]
        shares = data.get("communities")
        return SourceBeliefs(
            float(data["level"]),
            {int(count): float(chance) for count, chance in data["counts"].items()},
            (float(low), float(high)),
            float(data["known"]),
            int(data["most"]),
            str(data.get("doubt") or ""),
            bool(data["mixing"]["mixed"]),
            float(data["mixing"]["rhat"]),
            str(data["mixing"]["said"]),
            None if shares is None else tuple(map(float, shares)),
            None if data.get("fits") is None else float(data["fits"]),
        )


@dataclass(frozen=True, slots=True)
class SharedOffset:
    """What a posterior says of an offset that all readings share, sources being unknown too.

    Attributes:
        value: Its mean.
        error: Its standard deviation.
        interval: Where it is, with the probability that `SourceBeliefs.level` is.
    """

    value: float
    error: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class SourceFit:
    """How a fit of a few sources was chosen, and how sure its numbers are.

    Attributes:
        scores: The score of each number of sources that was tried; the least wins.
        criterion: The formula of the score.
        converged: Whether the fit came to rest.
        at_max_mass: How many masses are held by the largest mass allowed.
        place_errors: Standard errors of the coordinates, a row for each source; None if unknown.
        mass_errors: Standard errors of the masses; None if unknown.
        distinguishes: False where errors are too wide to tell the sources apart.
    """

    scores: Mapping[int, float]
    criterion: str
    converged: bool
    at_max_mass: int
    place_errors: tuple[tuple[float, ...], ...] | None = None
    mass_errors: tuple[float, ...] | None = None
    distinguishes: bool = True

    def to_json(self) -> dict[str, Any]:
        """The keys of a saved answer."""
        return {
            "scores": {str(count): score for count, score in self.scores.items()},
            "criterion": self.criterion,
            "place_errors": None
            if self.place_errors is None
            else [list(p) for p in self.place_errors],
            "mass_errors": None if self.mass_errors is None else list(self.mass_errors),
            "tells": self.distinguishes,
            "converged": self.converged,
            "at_upper": self.at_max_mass,
        }

    @staticmethod
    def from_json(data: Any) -> SourceFit:
        """The fit that a saved answer states."""
        places, masses = data.get("place_errors"), data.get("mass_errors")
        return SourceFit(
            {int(count): float(score) for count, score in data["scores"].items()},
            str(data.get("criterion", "")),
            bool(data["converged"]),
            int(data.get("at_upper", 0)),
            None if places is None else tuple(tuple(map(float, row)) for row in places),
            None if masses is None else tuple(map(float, masses)),
            bool(data.get("tells", True)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Where an estimator puts sources. It has no proof: only the certificate of R has one.

    Attributes:
        estimator: The name of the estimator.
        estimate: Places and masses of the sources.
        regions: Places that are sure to have a source near them; None if the estimator has none.
        beliefs: What a posterior says of all sources; None for other estimators.
        fit: How a fit was chosen; None for other estimators.
        details: Anything else, ready for JSON, of estimators that others register.
        expected: What the sensors would read of this answer without noise, with `offset`; not saved.
        offset: What readings may share still, where the answer counts it; None where it does not. Not
            saved: the field of a result has it.
    """

    estimator: str
    estimate: Estimate
    regions: tuple[CredibleRegion, ...] | None = None
    beliefs: SourceBeliefs | None = None
    fit: SourceFit | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    expected: FloatArray | None = None
    offset: SharedOffset | None = None

    def sources(self, site: Site) -> list[dict[str, Any]]:
        """The sources: nearest cell, name or coordinates, mass, and share of all mass."""
        found = self.estimate
        total = float(found.masses.sum())
        cells = nearest_cells(found.operator, found.places).tolist()
        return [
            {
                "cell": cell,
                **place_of(site, place),
                "mass": float(mass),
                "share": float(mass) / total if total else 0.0,
            }
            for cell, place, mass in zip(cells, found.places, found.masses, strict=True)
        ]

    def region_rows(self, site: Site) -> list[dict[str, Any]]:
        """The credible regions: name or coordinates of the center, radius, probability."""
        return [
            {**place_of(site, one.place), "radius": one.radius, "probability": one.probability}
            for one in self.regions or ()
        ]

    def to_json(self, site: Site) -> dict[str, Any]:
        """Everything, as it is saved and printed."""
        data: dict[str, Any] = {"estimator": self.estimator, "sources": self.sources(site)}
        if self.regions is not None:
            data["bands"] = self.region_rows(site)
        for part in (self.beliefs, self.fit):
            if part is not None:
                data |= part.to_json()
        return {**data, **self.details}

    @staticmethod
    def from_json(data: Any, site: Site) -> Answer:
        """The answer that a JSON object states; nothing is computed again."""
        names = {site.cell(i): i for i in range(site.operator.space.size)} if _named(site) else {}
        rows = data["sources"]
        masses = np.array([_number(row["mass"], low=0.0) for row in rows])
        width = site.operator.space.places(np.zeros(1, dtype=np.int64)).shape[1]
        places = np.array([_place(row, names, width) for row in rows]).reshape(-1, width)
        found = data.get("bands")
        regions = None
        if found is not None:
            regions = tuple(
                CredibleRegion(
                    read_only(_place(row, names, width)),
                    _number(row["radius"], low=0.0),
                    _number(row["probability"], low=0.0),
                )
                for row in found
            )
        beliefs = SourceBeliefs.from_json(data) if "mixing" in data else None
        fit = SourceFit.from_json(data) if "scores" in data else None
        known = {"estimator", "sources", "bands", "field", "emd"}
        for part in (beliefs, fit):
            known |= set() if part is None else set(part.to_json())
        return Answer(
            str(data["estimator"]),
            Estimate(site.operator, places, masses),
            regions,
            beliefs,
            fit,
            {name: value for name, value in data.items() if name not in known},
        )


def place_of(site: Site, place: FloatArray) -> dict[str, Any]:
    """A place as a person calls it: the name of a node, or coordinates.

    `name`, or `x`, `y`, `z` as far as there are.
    """
    if _named(site):
        return {"name": site.cell(int(place[0]))}
    return dict(zip("xyz", place.tolist(), strict=False))


def nearest_cells(operator: Operator, places: FloatArray) -> IntArray:
    """The cell that each place is nearest to."""
    return operator.space.nearest_cells(places)


def on_cells(operator: Operator, estimate: Estimate) -> FloatArray:
    """The masses of an estimate, each in the cell it is nearest to: for pictures and communities."""
    cells = nearest_cells(operator, estimate.places)
    return np.asarray(
        np.bincount(cells, weights=estimate.masses, minlength=operator.space.size), dtype=np.float64
    )


def _named(site: Site) -> bool:
    return isinstance(site.operator.space, Graph)


def _place(row: Any, names: dict[str, int], width: int) -> FloatArray:
    if names:
        return np.array([float(names[str(row["name"])])])
    return np.array([_number(row[axis]) for axis in "xyz"[:width]])


def _number(value: Any, low: float = -math.inf) -> float:
    number = float(value)
    if not (math.isfinite(number) and number >= low):
        raise ValueError(
            "its answer has a number that is not finite, or negative where it may not be"
        )
    return number
