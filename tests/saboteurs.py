"""Broken variants of the package, one way each: the suite must catch every one.

A saboteur strikes by replacing one part of the package in the process it is called in. `conftest.py` calls it
when SFUMATO_SABOTEUR names it, so the very test that guards the real code runs against the broken one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Saboteur:
    """What is broken, the test that must fail because of it, and words of the failure."""

    strike: Callable[[], None]
    caught_by: str
    because: str


def plant(place: Any, name: str, part: Any) -> None:
    """Put a broken part in place of one that is there."""
    assert hasattr(place, name)
    setattr(place, name, part)


def _system_noise_too_small() -> None:
    from sfumato.privacy.system import SystemNoise

    exact = SystemNoise.laplace

    def smaller(self: Any, scale: Any, size: int) -> Any:
        return exact(self, float(scale) * 0.9, size)

    plant(SystemNoise, "laplace", smaller)


def _keyed_noise_too_small() -> None:
    from sfumato.privacy import keyed, tables
    from sfumato.privacy.laws import LaplaceLaw

    true = tables.sampler

    def smaller(law: Any) -> Any:
        return true(LaplaceLaw(law.scale * Fraction(9, 10)) if isinstance(law, LaplaceLaw) else law)

    plant(keyed, "sampler", smaller)


def _gaussian_off_by_one_table_entry() -> None:
    from sfumato.privacy import keyed, lookup

    def shifted(raw: bytes, sampler: Any) -> Any:
        draws = lookup.look_up(raw, sampler)
        return draws + np.sign(draws)

    plant(keyed, "look_up", shifted)


def _float_noise() -> None:
    from sfumato.privacy.mechanisms import DiscreteLaplace

    def float_sample(self: Any, exact: Any, noise: Any) -> Any:
        rng = np.random.default_rng()
        return exact + rng.laplace(scale=float(self.scale), size=exact.size)

    plant(DiscreteLaplace, "sample", float_sample)


def _sensitivity_of_replacement_forgotten() -> None:
    from sfumato.privacy import guarded
    from sfumato.privacy.guarded import Bound

    true = guarded.guard

    def halved(values: Any, bound: Any, **rest: Any) -> Any:
        return true(values, Bound(bound.neighbors, bound.size, l1=1, l2_squared=1, linf=1, entries=1), **rest)

    plant(guarded, "guard", halved)


def _charged_after_sampling() -> None:
    from sfumato.privacy.guarantee import Guarantee
    from sfumato.privacy.guarded import open_for_release
    from sfumato.privacy.ledger import Ledger
    from sfumato.privacy.release import Release
    from sfumato.privacy.system import SystemNoise

    def backwards(self: Any, mechanism: Any, guarded: Any, *, noise: Any = None, note: str = "") -> Any:
        source = noise or SystemNoise()
        self._admit(guarded, source, note)
        value = mechanism.sample(open_for_release(guarded), source)
        cost = mechanism.cost(guarded.bound)
        entry = self._charge(mechanism, cost, None, note)
        promise = Guarantee(cost, self.header.neighbors, self.header.unit, self.header.model)
        return Release(value, guarded.exponent, promise, self.header.id, entry, self.header.rehearsal)

    plant(Ledger, "release", backwards)


def _no_lock() -> None:
    from contextlib import contextmanager

    from sfumato.privacy import ledger_file

    @contextmanager
    def unlocked(connection: Any) -> Any:
        yield

    plant(ledger_file, "locked", unlocked)


def _chain_without_the_body() -> None:
    from sfumato.privacy import ledger_file

    true = ledger_file.link
    plant(ledger_file, "link", lambda previous, body: true(previous, body[:20]))


def _counter_never_moves() -> None:
    from sfumato.privacy.keyed import KeyedNoise

    plant(KeyedNoise, "_take", lambda self, law, size, blocks: (self.epoch, 0))


def _parameters_not_in_the_key() -> None:
    from sfumato.privacy import keyed

    true = keyed.derive_key
    plant(keyed, "derive_key", lambda key, law, *, context="": true(key, None, context=context))


def _response_rounded_up() -> None:
    from sfumato.privacy import exact, mechanisms

    plant(mechanisms, "exp_below", lambda power: exact.exp_below(power) * (1 + Fraction(1, 2**50)))


def _conversion_rounded_down() -> None:
    from sfumato.privacy import budget, conversion

    def larger(epsilon: Any, delta: Any) -> Any:
        return conversion.rho_within(epsilon, delta) * Fraction(11, 10)

    plant(budget, "rho_within", larger)


def _papers_formula_trusted() -> None:
    from sfumato.privacy import calibration

    plant(calibration, "gaussian_keeps", lambda *_, **__: True)


def _gaussian_cost_without_the_half_turned_round() -> None:
    from sfumato.privacy.losses import ZCDP
    from sfumato.privacy.mechanisms import DiscreteGaussian

    true = DiscreteGaussian.cost
    plant(DiscreteGaussian, "cost", lambda self, bound: ZCDP(true(self, bound).rho / 2))


def _selection_at_twice_the_sharpness() -> None:
    from sfumato.privacy.mechanisms import PermuteAndFlip

    true = PermuteAndFlip.sample

    def sharper(self: Any, values: Any, noise: Any) -> Any:
        return true(PermuteAndFlip(self.scale / 2), values, noise)

    plant(PermuteAndFlip, "sample", sharper)


SABOTEURS: dict[str, Saboteur] = {
    "system noise 10 % too small": Saboteur(
        _system_noise_too_small,
        "tests/privacy/test_noise_laws.py::test_system_laplace_has_its_law",
        "does not follow its law",
    ),
    "keyed noise 10 % too small": Saboteur(
        _keyed_noise_too_small,
        "tests/privacy/test_noise_laws.py::test_keyed_laplace_has_its_law",
        "does not follow its law",
    ),
    "keyed draws pushed one step out": Saboteur(
        _gaussian_off_by_one_table_entry,
        "tests/privacy/test_keyed.py::test_known_answers",
        "At index 9 diff: -2 != -1",
    ),
    "float noise instead of lattice noise": Saboteur(
        _float_noise,
        "tests/privacy/test_precision.py::test_the_low_bits_of_a_release_say_nothing",
        ">= 1e-06",
    ),
    "a replaced user counted as an added one": Saboteur(
        _sensitivity_of_replacement_forgotten,
        "tests/privacy/test_guarded.py::test_a_neighbor_moves_a_histogram_within_its_bound",
        "AssertionError: l1",
    ),
    "budget charged after sampling": Saboteur(
        _charged_after_sampling,
        "tests/privacy/test_ledger_faults.py::test_kill_at_every_step",
        "a value without an entry",
    ),
    "no lock between processes": Saboteur(
        _no_lock,
        "tests/privacy/test_ledger_faults.py::test_two_racing_processes_cannot_overspend",
        "'outcomes'",
    ),
    "hash chain that skips the cost": Saboteur(
        _chain_without_the_body,
        "tests/privacy/test_ledger_faults.py::test_an_edited_entry_is_named",
        "DID NOT RAISE LedgerDamaged",
    ),
    "a nonce reused": Saboteur(
        _counter_never_moves,
        "tests/privacy/test_keyed.py::test_no_counter_is_used_twice",
        "array_equal",
    ),
    "parameters left out of the key": Saboteur(
        _parameters_not_in_the_key,
        "tests/privacy/test_keyed.py::test_another_parameter_is_another_stream",
        "< 0.11",
    ),
    "randomised response rounded towards the truth": Saboteur(
        _response_rounded_up,
        "tests/privacy/test_mechanisms.py::test_response_ratio_is_at_most_e_to_the_epsilon",
        "assert mpf('1.0000000000000008",
    ),
    "Gaussian account 10 % too large": Saboteur(
        _conversion_rounded_down,
        "tests/privacy/test_budget.py::test_the_gaussian_account_keeps_the_budget",
        "<= (mpf(",
    ),
    "the papers' calibration trusted everywhere": Saboteur(
        _papers_formula_trusted,
        "tests/privacy/test_calibration.py::test_the_papers_formula_is_refused_where_it_fails",
        "DID NOT RAISE InvalidParameter",
    ),
    "discrete Gaussian charged half": Saboteur(
        _gaussian_cost_without_the_half_turned_round,
        "tests/privacy/test_mechanisms.py::test_gaussian_cost_bounds_every_renyi_divergence",
        "* (1 + 1e-09))",
    ),
    "selection twice as sharp as charged": Saboteur(
        _selection_at_twice_the_sharpness,
        "tests/privacy/test_mechanisms.py::test_selection_has_its_law",
        "does not follow its law",
    ),
}
