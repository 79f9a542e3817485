"""Whether the largest mass of a source holds R down, and what a larger one would give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc

from sfumato.errors import SolverFailed
from sfumato.sensing.diagnostics.misfit import least_square
from sfumato.sensing.recovery.certificate import Recovery
from sfumato.sensing.recovery.estimators.least_mass import recover
from sfumato.sensing.recovery.solver.compress import range_of

DOUBLINGS = 4  # of the ceiling, until no cell is at it
TOUCHES = 1e-6  # of the ceiling: a mass so close to it is at it
UNLIKELY = 1e-3  # the chance that a larger ceiling fits the readings so much better by noise alone
SPREAD = 3  # times the cells that R has under a larger ceiling, and as many more: it is spread out
LARGE = 1 << 20  # sensors times cells up to which fits under both ceilings are compared
CLOSE = 1e-3  # of a square of sigma: how well these fits are known


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
        p_value: The chance that readings of sources under this ceiling are fitted so much better under 16
            times it, whatever `larger` is; None where that was not compared: without the noise, or
            where sensors times cells are too many.
    """

    max_mass: float
    cells: int
    of: int
    total: float | None
    price: float | None
    larger: float | None = None
    larger_cells: int | None = None
    larger_total: float | None = None
    p_value: float | None = None

    @property
    def matters(self) -> bool:
        """Whether the readings speak against the ceiling, so that an answer under it is in doubt.

        That a cell of R is at it says nothing: so it is where a source has just that mass, or where two
        such are close together. The ceiling is in doubt where a larger one fits the readings better than by
        chance, where R is spread over many cells for it, and where nothing of this was compared.
        """
        if self.larger_cells is not None and self.of >= max(
            SPREAD * self.larger_cells, self.larger_cells + 2 * SPREAD
        ):
            return True
        return self.p_value is None or self.p_value < UNLIKELY

    @property
    def message(self) -> str:
        """What that means, as a sentence."""
        if self.total is None:
            head = f"no sources of mass {self.max_mass:g} or less explain the readings"
        else:
            at = "1 cell is" if self.cells == 1 else f"{self.cells} cells are"
            holds = "holds R down" if self.matters else "is reached by R, and the readings allow it"
            head = (
                f"the largest mass allowed, {self.max_mass:g}, {holds}: {at} at it, of {self.of} with a "
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
            "p_value": self.p_value,
            "said": self.message,
        }

    @staticmethod
    def from_json(data: Any) -> Ceiling:
        """What a JSON object states."""
        larger = data["larger"] or {}
        return Ceiling(
            data["upper"],
            data["at_it"],
            data["cells"],
            data["total"],
            data["price"],
            larger.get("upper"),
            larger.get("cells"),
            larger.get("total"),
            data.get("p_value"),
        )


def ceiling_of(found: Recovery, sigma: float | None = None) -> Ceiling | None:
    """Whether the ceiling of a recovery is active: some cell is at it, or no sources under it fit.

    Larger ones are tried at the same radius, so that only the ceiling changes. None where no cell
    is at it, and where no ceiling tried makes a difference to readings that nothing explains. With the
    noise `sigma`, the least squares that sources leave under this and under the larger ceiling are
    compared: their difference is at most chi-square, about, a degree for each cell at the ceiling
    [wilks38], if the true masses are under it.

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
        None if best is None else best.max_mass,
        None if best is None else len(best.support),
        None if best is None else best.objective,
        _gain(found, at, sigma),
    )


def _gain(found: Recovery, at: int, sigma: float | None) -> float | None:
    """The chance that the largest ceiling tried fits readings so much better if masses are under this one."""
    operator = found.operator
    if not sigma or operator.shape[0] * operator.shape[1] > LARGE:
        return None
    inside = range_of(operator)
    inner = inside.into(found.readings[:, np.newaxis])[0]
    under, over = (
        least_square(
            operator, inside, inner, max_mass=times * found.max_mass, close=CLOSE * sigma**2
        )
        for times in (1.0, 2.0**DOUBLINGS)
    )
    return float(chdtrc(max(at, 1), max(under - over, 0.0) / sigma**2))


def _touching(found: Recovery) -> int:
    return int(np.sum(found.estimate >= found.max_mass * (1 - TOUCHES)))
