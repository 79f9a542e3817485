"""Replay at the door: what a release of a table and of its neighbor open, draw, pay, say and write.

Under the same noise, two runs that differ in one user may differ at the door by the bound, and
nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.seeded import seed_system

from sfumato.errors import SfumatoError
from sfumato.privacy import Bound, Guarded, Ledger
from sfumato.privacy.ledger import guarded as guarded_door
from sfumato.privacy.ledger import ledger
from sfumato.privacy.noise import system
from sfumato.records import CellSums

Vector = dict[int, int]


@dataclass
class Run:
    """What one run did, in order."""

    opened: list[tuple[Bound, Vector]] = field(default_factory=list)
    draws: list[tuple[str, float, int]] = field(default_factory=list)
    paid: list[tuple[Any, ...]] = field(default_factory=list)
    message: str = ""
    models: list[Any] = field(default_factory=list)

    @property
    def flow(self) -> tuple[object, ...]:
        """All that must not differ at all."""
        bounds = [bound for bound, _ in self.opened]
        return bounds, self.draws, self.paid, self.message


def record(release: Callable[[], object], budget: Ledger | Callable[[], Ledger]) -> Run:
    """One run under noise that comes again; its ledger is made anew if a maker is given."""
    run = Run()
    opening = guarded_door.open_for_release

    def watched(guarded: Guarded[Any]) -> Any:
        value = opening(guarded)
        run.opened.append((guarded.bound, vector(value)))
        return value

    with pytest.MonkeyPatch.context() as patch:
        seed_system(patch, b"the same noise in both runs")
        patch.setattr(ledger, "open_for_release", watched)
        for name in ("_opendp_laplace", "_opendp_gaussian"):
            patch.setattr(system, name, _noted(name, getattr(system, name), run.draws))
        try:
            release()
        except SfumatoError as refusal:
            run.message = str(refusal)
    statement = (budget if isinstance(budget, Ledger) else budget()).statement()
    run.paid = [(e.mechanism, repr(e.parameters), e.cost, e.note) for e in statement.entries]
    run.models = [statement.header.model] * len(run.opened)
    return run


def _noted(
    name: str, law: Callable[[float], Any], draws: list[tuple[str, float, int]]
) -> Callable[[float], Any]:
    """A law of noise that notes its scale and how many draws are asked for."""

    def at(scale: float) -> Any:
        sample = law(scale)

        def drawn(zeros: Any) -> Any:
            draws.append((name, scale, len(zeros)))
            return sample(zeros)

        return drawn

    return at


def vector(value: Any) -> Vector:
    """What was opened, sparse."""
    if isinstance(value, CellSums):
        return dict(zip(value.codes.tolist(), value.units.tolist(), strict=True))
    array = np.asarray(value).ravel()
    return {int(i): int(array[i]) for i in np.flatnonzero(array)}


def violations(one: Run, other: Run, *, steps: int = 1, removed: bool = False) -> list[str]:
    """What neighbors `steps` steps apart must not do; none if all is well.

    Where `other` is `one` with somebody `removed`, no cell may rise: that would be the mass of
    another.
    """
    found = []
    if one.flow != other.flow:
        parts = ("bounds", "draws", "entries", "messages")
        found += [
            f"{name} differ: {a} and {b}"
            for name, a, b in zip(parts, one.flow, other.flow, strict=True)
            if a != b
        ]
    for (bound, a), (_, b) in zip(one.opened, other.opened, strict=False):
        moved = [abs(a.get(code, 0) - b.get(code, 0)) for code in a.keys() | b.keys()]
        if removed and any(b[code] > a.get(code, 0) for code in b):
            found.append("a cell rose when somebody was removed")
        l1, l2_squared, linf = sum(moved), sum(m * m for m in moved), max(moved, default=0)
        limits = (
            ("l1", l1, steps, bound.l1),
            ("l2 squared", l2_squared, steps**2, bound.l2_squared),
            ("linf", linf, steps, bound.linf),
        )
        found += [
            f"{name} is {size}, at most {times * limit} was paid for"
            for name, size, times, limit in limits
            if limit is not None and Fraction(size) > times * limit
        ]
    for run in (one, other):
        if "local" in run.models:
            found.append("a ledger of the local model opened sums of many users")
    return found
