"""Broken sensors, one way each; `tests/saboteurs.py` lists them with the test that must catch them."""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from types import SimpleNamespace
from typing import Any


def sensing(name: str) -> Any:
    """The module itself: the room's door hands out functions of the same names."""
    return import_module(f"sfumato.sensing.{name}")


def rounding_not_counted() -> None:
    from sfumato.privacy.accounting.numbers import sqrt_above

    def smooth(sensitivity: Any, step: Any, exponent: int, readings: int, gains: Any = ()) -> Any:
        del gains
        return (Fraction(sensitivity.l2) + step * sqrt_above(Fraction(readings))) / Fraction(
            2
        ) ** exponent

    sensing("release.noise_plan")._moved = smooth


def gains_not_checked() -> None:
    """The answer of the linear program trusted: noise for the readings as they are without gains."""
    sensing("model.operators.weighted").Weighted.changes = lambda self, *, over_distance: (
        self.of.changes(over_distance=over_distance)
    )


def gains_rounded_the_wrong_way() -> None:
    """Readings divided by a little less than they should be."""
    module = sensing("release.exact")
    true = module._divisors
    module._divisors = lambda per_source, gains: true(per_source, gains) * (1 - 2.0**-50)


def noisier_sensors_taken_unasked() -> None:
    """The rule that noise for each sensor is safe for other questions, not looked at."""
    sensing("planning.noise_choice").NOISIER = float("inf")


def offsets_seen_through_gains() -> None:
    """Certificates for any offset that know nothing of a plain constant, where an offset adds the gains."""
    import numpy as np

    module = sensing("recovery.certified_error")
    module.gains_of = lambda operator: np.ones(len(operator.sensors))


def laplace_for_the_euclidean_length() -> None:
    """Laplace noise calibrated to how far readings move in l2, which sums exceed."""
    module = sensing("model.sensitivity")
    module.l1_sensitivity = lambda operator, neighbors: module.sensitivity(operator, neighbors).l2


def laplace_certified_as_gaussian() -> None:
    """How far Laplace noise goes, by the law of Gaussian noise, whose tails are shorter."""
    module = sensing("recovery.certified_error")
    true = module.direction_quantiles
    module.direction_quantiles = lambda directions, level, laplace=None: true(directions, level)


def steps_not_counted_in_gains() -> None:
    """What noise for each sensor gains, as if gains did not make the sensors' own steps louder."""
    module = sensing("planning.noise_weights")
    module._counted = lambda site, operator=None: (
        module.sensitivity(operator or site.operator, site.neighbors).l2
    )


def bends_not_counted() -> None:
    """Sources between the nodes of a part read as its nodes do."""
    sensing("recovery.error_bound").OF_CHECK = -1.0


def promises_not_compared() -> None:
    """A recovery may state any promise, if its readings were paid for."""
    sensing("pipeline.check")._promises_otherwise = lambda saved, read: False


def heat_taken_for_exact() -> None:
    """What hides who began a whisper, as if heat was known to 1e-13 at any rate."""
    sensing("whisper.protect").diffusion_error = lambda diffusion: 1e-13


def step_never_written() -> None:
    sensing("release.keys")._replace = lambda path, data: None


def epoch_without_chance() -> None:
    import_module("sfumato.privacy.noise.keyed").os = SimpleNamespace(urandom=bytes)  # type: ignore[attr-defined]


def changed_readings_unsealed() -> None:
    sensing("release.seal").hmac = SimpleNamespace(compare_digest=lambda one, other: True)


def seals_without_their_site() -> None:
    sensing("release.readings")._sealed = lambda site, names, time: [list(names), time]


def any_sensors_in_the_ledger() -> None:
    sensing("release.noise_plan").unit_of = lambda sensors, window="": "source"


def residual_not_looked_at() -> None:
    sensing("recovery.verify").SLACK = float("inf")


def sensitivity_per_step() -> None:
    """The papers' formula on the line: neighbors one step apart, not one unit of distance."""
    module = sensing("model.sensitivity")
    true = module._scale
    module._scale = lambda operator, neighbors: (False, true(operator, neighbors)[1])


def readings_count_once() -> None:
    """A day of readings for the price of one."""
    module = sensing("release.rounds")
    true = module._cost
    module._cost = lambda loss, squared, count, delta: true(loss, squared / count, count, delta)


def whispers_twice_as_loud() -> None:
    """Each node lies as seldom as for twice the epsilon that was asked for."""
    module = sensing("whisper.answers")
    true = module.RandomisedResponse
    module.RandomisedResponse = lambda epsilon: true(2 * Fraction(epsilon))


def centers_only() -> None:
    """Sensitivity from the centers of cells, as if nobody stood between them."""
    by_columns = sensing("model.changes").column_changes
    for kind in (
        sensing("model.operators.heat_line").HeatLine,
        sensing("model.operators.heat_plane").HeatPlane,
    ):
        kind.changes = lambda self, *, over_distance: by_columns(self, over_distance=over_distance)


def any_unit() -> None:
    """Readings taken as if a source added 1 to them, whatever they are in."""
    module = sensing("release.readings")
    true = module.release_snapshot
    untold = sensing("planning.synthetic").synthetic_site

    def guess(values: Any, site: Any, noise_plan: Any, **how: Any) -> Any:
        told = site if site.per_source else untold(site.name, site.operator, site.neighbors)
        planned = module.replace(noise_plan, site=told.digest)
        return true(values, told, planned, **how)

    for name in ("sfumato.sensing", "sfumato.sensing.release", "sfumato.sensing.release.readings"):
        room: Any = import_module(name)
        room.release_snapshot = guess


def short_types_not_looked_at() -> None:
    """Readings in float16 as if they were doubles."""
    sensing("release.exact")._check_types = lambda *_: None


def _everywhere(name: str, broken: Any) -> None:
    """Put a broken part wherever the room knows the true one by this name: solver, and all that use it."""
    for place, module in list(sys.modules.items()):
        if place.startswith("sfumato.sensing.") and hasattr(module, name):
            setattr(module, name, broken)


def solver_measures_short() -> None:
    true = sensing("recovery.solver.norms").length
    _everywhere("length", lambda vector: true(vector) * 0.9)


def solver_leaves_out_the_last_cell() -> None:
    true = sensing("model.operators.protocol").column_chunks

    def shorter(operator: Any, cells: Any) -> Any:
        last = operator.shape[1] - 1
        return (part for part in true(operator, cells[cells != last]) if part.size)

    for name in ("price", "compress", "certify"):
        sensing(f"recovery.solver.{name}").column_chunks = shorter


def solver_diffuses_too_far() -> None:
    true = sensing("recovery.solver.long_diffusion").diffuse_long
    _everywhere(
        "diffuse_long",
        lambda given, masses: true(replace(given, rate=given.rate * 1.001), masses),
    )
