"""Broken noise, releases and auditors, one way each; `tests/saboteurs.py` lists who catches them."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np
from scipy import stats


def room(name: str) -> Any:
    """The module itself: a room's door may hand out a function of the same name."""
    return import_module(f"sfumato.{name}")


def half_the_noise_in_the_table() -> None:
    from sfumato.privacy.noise.laws import LaplaceLaw
    from sfumato.privacy.noise.tables import sampler

    def smaller(law: Any) -> Any:
        return sampler(LaplaceLaw(law.scale / 2) if isinstance(law, LaplaceLaw) else law)

    room("privacy.noise.keyed").sampler = smaller


def gaussian_noise_of_doubles() -> None:
    rng = np.random.default_rng()

    def unrounded(self: Any, values: Any, noise: Any) -> Any:
        return values + rng.normal(0.0, float(self.sigma), values.size)

    room("privacy").RoundedGaussian.sample = unrounded


def replacement_counted_once() -> None:
    from sfumato.privacy import AddRemoveUser, Bound
    from sfumato.privacy.ledger.guarded import guard, histogram, open_for_release

    def once(
        cells: Any, size: int, *, source: str, neighbors: Any = None, unit: str = "user"
    ) -> Any:
        true = histogram(cells, size, source=source, neighbors=neighbors, unit=unit)
        bound = Bound(neighbors or AddRemoveUser(), size, l1=1, unit=unit)
        return guard(open_for_release(true), bound, source=source)

    room("privacy").histogram = room("privacy.ledger.guarded").histogram = once


def cells_chosen_by_exact_counts() -> None:
    from tests.audit.twins import ExactChoice

    def exactly(self: Any, values: Any, noise: Any) -> Any:
        return ExactChoice(self).sample(values, noise)

    room("heatmap.methods.pyramid").Pyramid.sample = exactly


def bets_on_the_runs_that_chose_the_event() -> None:
    """The auditor's runs are fresh, but what it bets on are those that it has already learnt from."""
    runs = room("audit.boxes.runs").Runs
    true = runs.draw

    def again(self: Any, max_runs: int, *, seconds: float) -> Any:
        fresh = true(self, max_runs, seconds=seconds)
        size = len(fresh[0])
        # The later runs choose events, the earlier ones only what may be an event.
        return tuple(rows[-size:] for rows in self.rows) if len(self.rows[0]) >= size else fresh

    runs.draw = again


def second_sample_taken_for_the_truth() -> None:
    """The ratio test as if the chance on the second input were the share that was seen."""

    def sure(
        k1: int,
        n1: int,
        k2: int,
        n2: int,
        *,
        epsilon: float,
        delta: float = 0.0,
        level: float = 0.05,
    ) -> float:
        allowed = min(1.0, math.exp(epsilon) * k2 / n2 + delta)
        return float(stats.binom.sf(k1 - 1, n1, allowed))

    room("audit.fixed.ratio").p_value = sure


def refuted_as_soon_as_the_bet_is_won() -> None:
    """Fresh runs are made, and whatever they show is taken for a confirmation."""
    room("audit.sequential.confirm").Confirmation.holds = True


def certificate_of_the_claim_itself() -> None:
    """The proximity is used, and not told."""

    def silent(claim: Any, proximity: float, **_: Any) -> Any:
        return claim.loss

    room("audit.property_testing.certificate").certified_loss = silent
