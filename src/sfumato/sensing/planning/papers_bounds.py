"""What the papers prove of a design, beside what is simulated: bounds up to a constant, and one without."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato._types import FloatArray
from sfumato.privacy import ApproxDP, PureDP
from sfumato.sensing.planning.forecast import Scene
from sfumato.sensing.planning.limits import (
    RecoveryBound,
    private_recovery_bound,
    recovery_bound,
    recovery_lower_bound,
)
from sfumato.sensing.release.noise_plan import SensorLoss
from sfumato.spaces import Line


@dataclass(frozen=True, slots=True)
class PapersBounds:
    """The papers' bounds on the least mass, on a line; None where they say nothing of it.

    `private` is for the papers' own noise, `noisy` for the noise that is planned; both are in
    lengths of the line, and hold up to a constant that nobody has computed. `lower` holds as it is,
    for the worst sources, and is in the unit of the site.
    """

    private: RecoveryBound | None
    noisy: RecoveryBound | None
    lower: float | None
    length: float

    @property
    def upper(self) -> float | None:
        """What the bound at the planned noise says but for its constant, in the unit of the site."""
        if self.noisy is None or not self.noisy.applies or math.isinf(self.noisy.bracket):
            return None
        return self.length * min(1.0, self.noisy.bracket)


def papers_bounds(scene: Scene, loss: SensorLoss) -> PapersBounds:
    """What the papers prove of a scene: heat on an even line; for k sources spread over it, at sensors.

    Theirs is a bound for sources away from the ends that stand alike between evenly placed sensors,
    so that is what it is asked of: about 1/k of the line apart, the first about 1/2k from its end.

    A line of length L is theirs of length 1 with T / L**2, and noise L sigma. Only the bound for
    their own noise looks at the loss; of Laplace noise, which epsilon alone takes, nothing is proved.

    >>> from sfumato.sensing.model.operators.heat_line import heat_line
    >>> line = heat_line(sources=100, sensors=50, diffusion_time=0.05)
    >>> found = papers_bounds(Scene(line, 0.1), ApproxDP(4, "1/10"))
    >>> round(found.upper or 0, 2), round(found.lower or 0, 4)
    (0.3, 0.0008)
    """
    operator = scene.operator
    if (
        isinstance(loss, PureDP)  # all of it is of Gaussian noise
        or operator.kernel_width is None
        or operator.time is None
        or not isinstance(operator.space, Line)
        or not _even(operator.space)
    ):
        return PapersBounds(None, None, None, math.nan)
    length = float(operator.space.positions[-1])
    k, sigma, time = scene.sources, scene.sigma, operator.time / length**2
    sensors = np.sort(operator.sensors.positions[:, 0]) / length
    places = _spread(sensors, k)
    apart = 1 / k if k > 1 and places is None else None
    noisy = recovery_bound(
        sources=k,
        sensors=sensors,
        diffusion_time=time,
        sigma=sigma * length,
        separation=apart,
        places=places,
    )
    private = None
    if isinstance(loss, ApproxDP):
        private = private_recovery_bound(
            sources=k,
            cells=operator.space.size,
            sensors=sensors,
            diffusion_time=time,
            epsilon=float(loss.epsilon),
            delta=float(loss.delta),
            separation=apart,
            places=places,
        )
    lower = recovery_lower_bound(operator, sigma).value if operator.space.size >= 5 else None
    return PapersBounds(private, noisy, lower, length)


def _spread(sensors: FloatArray, k: int) -> FloatArray | None:
    """The sensors nearest to 1/2k, 3/2k, ... of all of them; None if there are fewer than sources."""
    m = sensors.size
    chosen = (
        sensors[[((2 * i - 1) * m + k) // (2 * k) - 1 for i in range(1, k + 1)]] if k <= m else None
    )
    inside = (
        chosen is not None and np.all((chosen >= 0) & (chosen <= 1)) and np.all(np.diff(chosen) > 0)
    )
    return chosen if inside else None


def _even(line: Line) -> bool:
    return line.size > 1 and line == Line(line.size, float(line.positions[-1]))
