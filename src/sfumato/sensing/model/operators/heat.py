"""What heat on a line and in a plane have in common: the kernel, and what it says of itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato.sensing.model.operators.protocol import Operator, some_sensors
from sfumato.sensing.model.sensors import Sensors

if TYPE_CHECKING:
    from sfumato.sensing.model.changes import Largest
    from sfumato.spaces import Grid, Line, Points


@dataclass(frozen=True)
class HeatOperator(Operator):
    """Heat that spreads freely: known anywhere, also between cells. T is the papers' mu t."""

    space: Line | Grid | Points
    sensors: Sensors
    diffusion_time: float
    kind: ClassVar[str] = "heat"

    def take(self, rows: IntArray) -> Self:
        """The operator to some of its sensors, by their numbers."""
        return replace(self, sensors=some_sensors(self.sensors, rows))

    @property
    def time(self) -> float:
        """The diffusion time T."""
        return self.diffusion_time

    def with_time(self, time: float) -> Self:
        """The same operator with another diffusion time."""
        return self if time == self.diffusion_time else replace(self, diffusion_time=time)

    def changes(self, *, over_distance: bool) -> Largest:
        """The largest change between any two places, not cells alone."""
        from sfumato.sensing.model.heat_changes import heat_changes

        return heat_changes(self, over_distance=over_distance)

    def l1_changes(self, *, over_distance: bool) -> float:
        """The same in l1, move by move."""
        from sfumato.sensing.model.heat_changes import heat_l1_changes

        return heat_l1_changes(self, over_distance=over_distance)

    def sampled_changes(self, *, over_distance: bool) -> FloatArray | None:
        """Changes of single sensors at evenly spaced places."""
        from sfumato.sensing.model.heat_changes import sampled_changes

        return sampled_changes(self, over_distance=over_distance)

    def largest_reading(self) -> float:
        """What a source adds to a sensor where it stands, if one does or not."""
        axes = self.sensors.positions.shape[1]
        return float((4 * math.pi * self.diffusion_time) ** (-axes / 2))

    @property
    def in_space(self) -> bool:
        """Sensors stand on the line, or in the plane."""
        return True

    @property
    def kernel_width(self) -> float:
        """The deviation sqrt(2T) of the kernel along each axis."""
        return math.sqrt(2 * self.diffusion_time)

    @property
    def nonnegative(self) -> bool:
        """Heat is never negative."""
        return True

    def to_json(self) -> dict[str, Any]:
        """The diffusion time."""
        return {"diffusion_time": self.diffusion_time}


def heat(distance: FloatArray, time: float) -> FloatArray:
    """The heat kernel on a line."""
    return np.asarray(np.exp(-(distance**2) / (4 * time)) / math.sqrt(4 * math.pi * time))
