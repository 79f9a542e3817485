"""What an estimator answers, as it is shown and saved: sources, what it is sure of, how it got there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only
from sfumato.sensing.model.operators.kinds import Operator
from sfumato.sensing.model.site import Site
from sfumato.sensing.recovery.estimate import Estimate, distances_between, places_of
from sfumato.sensing.recovery.estimators.credible import CredibleRegion
from sfumato.spaces import Graph, Grid, Line

_OWN = ("estimator", "sources", "bands")


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Where an estimator puts sources, with the bands it has, if it has any.

    `told` is what else belongs to this estimator, ready for JSON: probabilities of counts, standard
    errors, scores, the field that was fitted. Nothing here has a proof: that is R's alone.
    """

    estimator: str
    estimate: Estimate
    bands: tuple[CredibleRegion, ...] | None = None
    told: Mapping[str, Any] = field(default_factory=dict)

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

    def to_json(self, site: Site) -> dict[str, Any]:
        """Everything, as it is saved and printed."""
        data: dict[str, Any] = {"estimator": self.estimator, "sources": self.sources(site)}
        if self.bands is not None:
            data["bands"] = [
                {
                    **place_of(site, band.place),
                    "radius": band.radius,
                    "probability": band.probability,
                }
                for band in self.bands
            ]
        return {**data, **self.told}

    @staticmethod
    def from_json(data: Any, site: Site) -> Answer:
        """The answer that a JSON object states; nothing is computed again."""
        names = {site.cell(i): i for i in range(site.operator.space.size)} if _named(site) else {}
        rows = data["sources"]
        masses = np.array([_number(row["mass"], low=0.0) for row in rows])
        width = places_of(site.operator.space, np.zeros(1, dtype=np.int64)).shape[1]
        places = np.array([_place(row, names, width) for row in rows]).reshape(-1, width)
        found = data.get("bands")
        bands = None
        if found is not None:
            bands = tuple(
                CredibleRegion(
                    read_only(_place(row, names, width)),
                    _number(row["radius"], low=0.0),
                    _number(row["probability"], low=0.0),
                )
                for row in found
            )
        told = {name: value for name, value in data.items() if name not in _OWN}
        return Answer(str(data["estimator"]), Estimate(site.operator, places, masses), bands, told)


def place_of(site: Site, place: FloatArray) -> dict[str, Any]:
    """A place as a person calls it: the name of a node, or coordinates."""
    if _named(site):
        return {"name": site.cell(int(place[0]))}
    return dict(zip("xyz", place.tolist(), strict=False))


def nearest_cells(operator: Operator, places: FloatArray) -> IntArray:
    """The cell that each place is nearest to."""
    space = operator.space
    match space:
        case Graph():
            return places[:, 0].astype(np.int64)
        case Line():
            right = np.searchsorted(space.positions, places[:, 0]).clip(1, max(1, space.size - 1))
            if space.size == 1:
                return np.zeros(len(places), dtype=np.int64)
            left = space.positions[right - 1]
            nearer = places[:, 0] - left < space.positions[right] - places[:, 0]
            return np.asarray(right - nearer, dtype=np.int64)
        case Grid():
            west, south, east, north = space.bounds
            return space.cells_of(places[:, 0].clip(west, east), places[:, 1].clip(south, north))
        case _:
            apart = distances_between(space, places, places_of(space, np.arange(space.size)))
            return np.asarray(apart.argmin(axis=1), dtype=np.int64)


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
