"""The noise of a sensor, planned where there is a whole computer: an equal share of a window for each round."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.network.sensors.config import SensorConfig
from sfumato.network.sensors.sensor import checked
from sfumato.privacy import ZCDP, ApproxDP, PureDP
from sfumato.privacy.accounting import encode
from sfumato.sensing.model import read_site
from sfumato.sensing.release import SensorLoss, plan, share_of


@dataclass(frozen=True, slots=True)
class SensorPlan:
    """What a sensor will do, before it does anything.

    Attributes:
        file: The noise plan.
        site: The name of the site.
        sensors: The sensors that this device reads.
        period_ms: How far apart rounds are.
        window: The length of a window.
        budget: What the rounds of a window may cost together.
        cost: What one round costs, for all sensors of the site together.
        sigma: The deviation of the noise on each reading, in the unit of the site's operator; the largest of
            this device's sensors, where each has its own.
        rounds: How many rounds a window has.
        paid_rounds: How many of them its budget pays for.
    """

    file: Path
    site: str
    sensors: tuple[str, ...]
    period_ms: int
    window: str
    budget: ApproxDP | PureDP
    cost: SensorLoss
    sigma: float
    rounds: int
    paid_rounds: int

    def to_json(self) -> dict[str, Any]:
        """Everything, with exact numbers as text."""
        return {
            "noise_plan": str(self.file),
            "site": self.site,
            "sensors": list(self.sensors),
            "period_ms": self.period_ms,
            "window": self.window,
            "budget": encode(self.budget),
            "cost": encode(self.cost),
            "sigma": self.sigma,
            "rounds": self.rounds,
            "paid_rounds": self.paid_rounds,
        }


def plan_sensor(config: SensorConfig) -> SensorPlan:
    """Plan the noise of a sensor and write it to the file that its configuration names.

    Every round of a window costs an equal share of the window's budget. All devices of a site use the same
    plan: what a round costs is what all of them send in it together.

    Args:
        config: What sensor.toml says.

    Returns:
        What the sensor will do.

    Raises:
        InvalidInput: The file of the plan exists already, or a file cannot be read.
    """
    made = plan(read_site(config.site), share_of(config.budget, config.rounds_per_window))
    made.write(config.noise_plan)
    return describe_sensor(config)


def describe_sensor(config: SensorConfig) -> SensorPlan:
    """What a sensor will do, from its files; nothing is read of its input, and nothing is charged.

    Args:
        config: What sensor.toml says.

    Returns:
        What it costs, how much noise it adds, and how many rounds a window pays for.

    Raises:
        InvalidInput: A file cannot be read, is of another site, or a window pays for no round.
    """
    site, planned = checked(config)
    cost = planned.cost
    budget, paid = config.budget, 0
    match cost:
        case ZCDP(rho) if isinstance(budget, ApproxDP):
            paid = share_of(budget, 1).rho // rho
        case ApproxDP(epsilon, delta) if isinstance(budget, ApproxDP):
            paid = min(budget.epsilon // epsilon, budget.delta // delta)
        case PureDP(epsilon):
            paid = budget.epsilon // epsilon
        case _:  # epsilon alone pays for no delta
            pass
    if not paid:
        raise InvalidInput(
            f"a round costs {cost}, the budget of a window is {config.budget}; nothing was started"
        )
    rounds = config.rounds_per_window
    return SensorPlan(
        config.noise_plan, site.name, config.sensors, config.period_ms, config.window, config.budget,
        cost, max(float(planned.sigmas[site.sensors.names.index(name)]) for name in config.sensors),
        rounds, min(rounds, int(paid)),
    )  # fmt: skip
