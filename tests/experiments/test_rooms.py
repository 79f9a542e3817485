"""Rounds of a room are right, say that they are not, or are wrong and do not say so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from experiments.sensors.rooms import Room, judged

from sfumato.sensing import Sensors, describe_site

pytestmark = pytest.mark.unit

PLACES = [(x + 0.5, y + 0.5) for y in range(3) for x in range(3)]
SITE = describe_site(
    "room", sensors=Sensors(PLACES, "abcdefghi"), grid=2, bounds=(0, 0, 3, 3), diffusion_time=0.3,
    radius=1, beside="5C", baseline="out", step=0,
).site  # fmt: skip


def row(time: str, above: list[float]) -> dict[str, Any]:
    """What sensors read of sources in some cells, at 20 degrees outside."""
    seen = SITE.operator.readings(above) * float(SITE.per_source or 1)
    return {"time": time, "out": 20.0, **dict(zip("abcdefghi", 20.0 + seen, strict=True))}


def test_rounds_are_counted_by_what_they_say() -> None:
    one, nobody = [0.0] * 16, [0.0] * 16
    one[3] = 1.0
    odd = {**row("odd", nobody), "a": 28.0, "b": 14.0}
    read = pd.DataFrame([row("one", one), row("nobody", nobody), odd])

    def right(time: str, sources: list[dict[str, Any]]) -> bool:
        found = {source["cell"] for source in sources if source["mass"] > 0.5}
        return found == ({3} if time == "one" else set())

    room = Room("room", SITE, read, right, 0.2, 1.5)
    outcomes, verdicts = judged(room)
    assert outcomes == {"right": 2, "said": 1}
    assert verdicts == {"rely": 1, "nothing": 1, "misfit": 1}
    wrong = judged(replace(room, right=lambda *_: False))[0]
    assert wrong == {"unsaid": 1, "said": 2}
