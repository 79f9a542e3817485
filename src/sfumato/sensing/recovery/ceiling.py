"""Whether the largest mass of a source holds R down, and what a larger one would give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import SolverFailed
from sfumato.sensing.recovery.certificate import Recovery
from sfumato.sensing.recovery.estimators.least_mass import recover

DOUBLINGS = 4  # of the ceiling, until no cell is at it
TOUCHES = 1e-6  # of the ceiling: a mass so close to it is at it


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A ceiling that holds R down: no cell may have more mass, and some would.

    Attributes:
        max_mass: The ceiling.
        cells: How many cells of R are at it; 0 where R has no answer under it.
        of: How many cells R has.
        total: The total mass of R; None where it has no answer.
        price: By how much less the total would be for a ceiling higher by one unit, at first.
        larger: The least ceiling tried, of 2, 4, 8 and 16 times this one, under which R has an
            answer with no cell at it; the last that was tried where none has; None where R has no
            answer under any of them.
        larger_cells: How many cells R has under it.
        larger_total: Its total mass.
    """

    max_mass: float
    cells: int
    of: int
    total: float | None
    price: float | None
    larger: float | None = None
    larger_cells: int | None = None
    larger_total: float | None = None

    @property
    def message(self) -> str:
        """What that means, as a sentence."""
        if self.total is None:
            head = f"no sources of mass {self.max_mass:g} or less explain the readings"
        else:
            at = "1 cell is" if self.cells == 1 else f"{self.cells} cells are"
            head = (
                f"the largest mass allowed, {self.max_mass:g}, holds R down: {at} at it, of {self.of} with a "
                f"total of {self.total:.3g}"
            )
        if self.larger is None or self.larger_cells is None or self.larger_total is None:
            return f"{head}; no larger one that was tried was solved"
        cells = "1 cell" if self.larger_cells == 1 else f"{self.larger_cells} cells"
        return (
            f"{head}; with `max_mass` {self.larger:g} R has {cells} with a total of "
            f"{self.larger_total:.3g}: give it if one source may be so large"
        )

    def to_json(self) -> dict[str, Any]:
        """As it is saved and printed."""
        larger = None
        if self.larger is not None:
            larger = {"upper": self.larger, "cells": self.larger_cells, "total": self.larger_total}
        return {
            "upper": self.max_mass,
            "at_it": self.cells,
            "cells": self.of,
            "total": self.total,
            "price": self.price,
            "larger": larger,
            "said": self.message,
        }

    @staticmethod
    def from_json(data: Any) -> Ceiling:
        """What a JSON object states."""
        larger = data["larger"]
        more = () if larger is None else (larger["upper"], larger["cells"], larger["total"])
        return Ceiling(
            data["upper"], data["at_it"], data["cells"], data["total"], data["price"], *more
        )


def ceiling_of(found: Recovery) -> Ceiling | None:
    """Whether the ceiling of a recovery is active: some cell is at it, or no sources under it fit.

    Larger ones are tried at the same radius, so that only the ceiling changes. None where no cell
    is at it, and where no ceiling tried makes a difference to readings that nothing explains.

    >>> from sfumato.sensing import heat_line
    >>> line = heat_line(sources=50, sensors=25, diffusion_time=0.01)
    >>> two = recover(line, 2 * line.columns([20])[:, 0], radius=0.05)
    >>> found = ceiling_of(two)
    >>> found.cells > 0, found.larger, found.larger_cells < len(two.support)
    (True, 2.0, True)
    """
    at = _touching(found)
    if found.status == "zero" or (found.status == "optimal" and not at):
        return None
    best: Recovery | None = None
    for times in range(1, DOUBLINGS + 1):
        larger = found.max_mass * 2.0**times
        try:
            tried = recover(found.operator, found.readings, radius=found.radius, max_mass=larger)
        except SolverFailed:
            break
        if tried.status == "optimal":
            best = tried
            if not _touching(tried):
                break
    solved = found.status == "optimal"
    if best is None and not solved:
        return None
    # The total is at least y'z - radius |z| - max_mass sum (M'z - 1)_+: its slope in max_mass.
    price = float(np.maximum(found.operator.adjoint(found.dual) - 1, 0).sum()) if solved else None
    return Ceiling(
        found.max_mass,
        at,
        len(found.support),
        found.objective if solved else None,
        price,
        *(() if best is None else (best.max_mass, len(best.support), best.objective)),
    )


def _touching(found: Recovery) -> int:
    return int(np.sum(found.estimate >= found.max_mass * (1 - TOUCHES)))
