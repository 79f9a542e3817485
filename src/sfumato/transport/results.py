"""What a distance comes with: bounds that anyone can check, and the flow if asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class GridFlow:
    """Mass that crosses each border of a grid: eastward [row, column], northward [row, column]; signed."""

    east: FloatArray
    north: FloatArray


@dataclass(frozen=True, slots=True)
class Plan:
    """Mass moved from one point to another, one entry per pair that moves any."""

    origin: Any
    target: Any
    mass: FloatArray


@dataclass(frozen=True, slots=True)
class Transport:
    """An earth mover's distance between proven bounds: lower <= true value <= upper, and value between them.

    `lower` comes from potentials that were checked to be 1-Lipschitz, `upper` from a flow that was
    checked to turn one mass into the other; both allow for the rounding of masses to the lattice.
    `flow`, on request, is signed mass across the gaps of a line, along the edges of a graph (in
    their order), a GridFlow, or a Plan between points.
    """

    value: float
    lower: float
    upper: float
    flow: FloatArray | GridFlow | Plan | None = None


@dataclass(frozen=True, slots=True)
class EmdResult:
    """How far two masses are apart, as `sfumato emd` says it.

    Attributes:
        value: The distance, in mass times the unit of the space.
        lower: A proven lower bound of it.
        upper: A proven upper bound of it.
        space: "line", "grid" or "graph".
        mass: The mass of either; 1 if both were scaled to it.
        unit: What distances are in, where that is known: "m" or "px".
        masses: The two masses that were compared, scaled if asked; not saved.
        flow: Where mass moves, if asked for; not saved.
    """

    value: float
    lower: float
    upper: float
    space: str
    mass: float
    unit: str = ""
    masses: tuple[FloatArray, FloatArray] | None = field(default=None, repr=False, compare=False)
    flow: FloatArray | GridFlow | Plan | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The numbers, without arrays."""
        return {
            "value": self.value,
            "lower": self.lower,
            "upper": self.upper,
            "space": self.space,
            "mass": self.mass,
            **({"unit": self.unit} if self.unit else {}),
        }

    @staticmethod
    def from_json(data: Any) -> EmdResult:
        """The result a JSON object states.

        Raises:
            InvalidInput: The object is no such result.

        """
        try:
            numbers = [float(data[name]) for name in ("value", "lower", "upper", "mass")]
            value, lower, upper, mass = numbers
            if not lower <= value <= upper:
                raise ValueError("its value is not between its bounds")
            return EmdResult(
                value, lower, upper, str(data["space"]), mass, str(data.get("unit", ""))
            )
        except KeyError as problem:
            raise InvalidInput(f"not a whole distance: it has no {problem}") from None
        except (TypeError, ValueError) as problem:
            raise InvalidInput(f"not a whole distance: {problem}") from None
