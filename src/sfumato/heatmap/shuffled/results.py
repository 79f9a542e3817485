"""What plans and releases of shuffled maps return, to JSON: the fields that `--json` prints are here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.heatmap.private_map import HeatmapRelease
from sfumato.heatmap.results import ReleaseResult
from sfumato.heatmap.shuffled.plan import ShufflePlan
from sfumato.heatmap.shuffled.session import OpenedRound


@dataclass(frozen=True, slots=True)
class ModelNoise:
    """How much noise is on a count of the first level in one trust model.

    Attributes:
        model: The model.
        deviation: The standard deviation, in people.
        sees: Who sees what.

    """

    model: str
    deviation: float
    sees: str


@dataclass(frozen=True, slots=True)
class PlannedShuffle:
    """A plan of a shuffled map, and what it takes.

    Attributes:
        plan: The plan.
        wrap_chance: How likely any count wraps, at most: it costs accuracy, and no privacy.
        device_seconds: CPU seconds of a device, about.
        adder_hours: CPU hours of the adder, about: it opens messages one after another.
        round_hours: Those of the largest round, for which devices wait, about.
        noises: The noise on a count of the first level, in this model and in others.

    """

    plan: ShufflePlan
    wrap_chance: float
    device_seconds: float
    adder_hours: float
    round_hours: float
    noises: tuple[ModelNoise, ...]

    def to_json(self) -> dict[str, Any]:
        """What `sfumato shuffle plan --json` prints."""
        plan = self.plan
        return {
            "plan": plan.to_json(),
            "digest": plan.digest.hex(),
            "cells": plan.cells,
            "rounds": len(plan.scales),
            "messages": plan.messages,
            "bytes_a_message": plan.record,
            "bytes_a_device": plan.bytes_a_device,
            "device_seconds": self.device_seconds,
            "adder_hours": self.adder_hours,
            "round_hours": self.round_hours,
            "shuffler_bytes": plan.shuffler_bytes,
            "wrap_chance": self.wrap_chance,
            "cost": {"epsilon": str(plan.cost[0]), "delta": float(plan.cost[1])},
            "noise": [
                {"model": one.model, "deviation": one.deviation, "sees": one.sees}
                for one in self.noises
            ],
        }


@dataclass(frozen=True, slots=True)
class ShuffledResult:
    """A shuffled map, what was paid, and how its rounds went.

    Attributes:
        release: The map, what was paid, what is left, and the files that were written.
        digest: The SHA-256 of the plan.
        rounds: The rounds, coarsest first.
        enrolled: Whether the shuffler says that it took reports of enrolled devices alone.

    """

    release: ReleaseResult
    digest: str
    rounds: tuple[OpenedRound, ...]
    enrolled: bool

    @property
    def map(self) -> HeatmapRelease:
        """The map."""
        return self.release.maps[0]

    def to_json(self) -> dict[str, Any]:
        """What `sfumato shuffle collect --json` prints."""
        return {
            **self.release.to_json(),
            "shuffled": {
                "digest": self.digest,
                "enrolled": self.enrolled,
                "rounds": [
                    {
                        "level": one.level,
                        "cells": one.cells,
                        "arrived": one.arrived,
                        "spoilt": one.spoilt,
                        "bytes_received": one.received,
                    }
                    for one in self.rounds
                ],
            },
        }
