"""Broken variants of the package, one way each: the suite must catch every one.

A saboteur strikes by replacing one part of the package in the process it is called in.
`conftest.py` calls it when SFUMATO_SABOTEUR names it, so the very test that guards the real code
runs against the broken one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
from tests.audit import saboteurs as audits
from tests.files import saboteurs as files
from tests.network import saboteurs as networks
from tests.privacy import saboteurs as ledgers
from tests.sensing import saboteurs as sensors


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
    from sfumato.privacy.noise.system import SystemNoise

    exact = SystemNoise.laplace

    def smaller(self: Any, scale: Any, size: int) -> Any:
        return exact(self, float(scale) * 0.9, size)

    plant(SystemNoise, "laplace", smaller)


def _keyed_noise_too_small() -> None:
    from sfumato.privacy.noise import keyed, tables
    from sfumato.privacy.noise.laws import LaplaceLaw

    true = tables.sampler

    def smaller(law: Any) -> Any:
        return true(LaplaceLaw(law.scale * Fraction(9, 10)) if isinstance(law, LaplaceLaw) else law)

    plant(keyed, "sampler", smaller)


def _gaussian_off_by_one_table_entry() -> None:
    from sfumato.privacy.noise import keyed, lookup

    def shifted(raw: bytes, sampler: Any) -> Any:
        draws = lookup.look_up(raw, sampler)
        return draws + np.sign(draws)

    plant(keyed, "look_up", shifted)


def _float_noise() -> None:
    from sfumato.privacy.mechanisms.discrete_laplace import DiscreteLaplace

    def float_sample(self: Any, exact: Any, noise: Any) -> Any:
        rng = np.random.default_rng()
        return exact + rng.laplace(scale=float(self.scale), size=exact.size)

    plant(DiscreteLaplace, "sample", float_sample)


def _sensitivity_of_replacement_forgotten() -> None:
    from sfumato.privacy.ledger import guarded
    from sfumato.privacy.ledger.guarded import Bound

    true = guarded.guard

    def halved(values: Any, bound: Any, **rest: Any) -> Any:
        return true(
            values,
            Bound(bound.neighbors, bound.size, l1=1, l2_squared=1, linf=1, entries=1),
            **rest,
        )

    plant(guarded, "guard", halved)


def _charged_after_sampling() -> None:
    from sfumato.privacy.accounting.guarantee import Guarantee
    from sfumato.privacy.ledger import charging, entries
    from sfumato.privacy.ledger.guarded import open_for_release
    from sfumato.privacy.ledger.ledger import Ledger
    from sfumato.privacy.ledger.release import Release
    from sfumato.privacy.noise.system import SystemNoise

    def backwards(
        self: Any, mechanism: Any, guarded: Any, *, noise: Any = None, note: str = "", **_: Any
    ) -> Any:
        source = noise or SystemNoise()
        value = mechanism.sample(open_for_release(guarded), source)
        cost = mechanism.cost(guarded.bound)
        asked = replace(entries.draft(mechanism, guarded, cost, source), note=note)
        entry = charging.charge_entry(self, asked)[0]
        promise = Guarantee(cost, self.header.neighbors, self.header.unit, self.header.model)
        return Release(
            value, guarded.exponent, promise, self.header.id, entry, self.header.rehearsal
        )

    plant(Ledger, "release", backwards)


def _no_lock() -> None:
    import os

    from sfumato.privacy.ledger.storage import book, disk

    plant(book, "held", lambda real, path: disk.open_file(real, os.O_RDWR, path))


def _chain_without_the_body() -> None:
    from sfumato.privacy.ledger.storage import book, rows

    true = rows.link
    for module in (book, rows):
        plant(module, "link", lambda previous, body: true(previous, body[:20]))


def _counter_never_moves() -> None:
    from sfumato.privacy.noise.keyed import KeyedNoise

    plant(KeyedNoise, "_take", lambda self, law, size, blocks: (self.epoch, 0))


def _parameters_not_in_the_key() -> None:
    from sfumato.privacy.noise import keyed

    true = keyed.derive_key
    plant(keyed, "derive_key", lambda key, law, *, context="": true(key, None, context=context))


def _response_rounded_up() -> None:
    from sfumato.privacy.accounting import numbers as exact
    from sfumato.privacy.mechanisms import randomised_response

    plant(
        randomised_response,
        "exp_below",
        lambda power: exact.exp_below(power) * (1 + Fraction(1, 2**50)),
    )


def _conversion_rounded_down() -> None:
    from sfumato.privacy.accounting import conversion
    from sfumato.privacy.ledger import budget

    def larger(epsilon: Any, delta: Any) -> Any:
        return conversion.rho_within(epsilon, delta) * Fraction(11, 10)

    plant(budget, "rho_within", larger)


def _papers_formula_trusted() -> None:
    from sfumato.privacy.accounting import calibration

    plant(calibration, "gaussian_keeps", lambda *_, **__: True)


def _gaussian_cost_without_the_half_turned_round() -> None:
    from sfumato.privacy.accounting.losses import ZCDP
    from sfumato.privacy.mechanisms.discrete_gaussian import DiscreteGaussian

    true = DiscreteGaussian.cost
    plant(DiscreteGaussian, "cost", lambda self, bound: ZCDP(true(self, bound).rho / 2))


def _selection_at_twice_the_sharpness() -> None:
    from sfumato.privacy.mechanisms.permute_and_flip import PermuteAndFlip

    true = PermuteAndFlip.sample

    def sharper(self: Any, values: Any, noise: Any) -> Any:
        return true(PermuteAndFlip(self.scale / 2), values, noise)

    plant(PermuteAndFlip, "sample", sharper)


def _pay_below_the_cost() -> None:
    from sfumato.privacy.ledger import entries

    plant(entries, "paid", lambda cost, pay: cost if pay is None else pay)


def _pyramid_follows_exact_counts() -> None:
    from sfumato.heatmap.methods import pyramid
    from sfumato.heatmap.methods.protocol import NoisyLevel, NoisyTree
    from sfumato.privacy import DiscreteLaplace
    from sfumato.spaces import Grid

    def exactly(self: Any, values: Any, noise: Any) -> Any:
        cells, levels = np.arange(values.groups << 2 * self.first_level), list[NoisyLevel]()
        for level, scale in enumerate(self.scales, start=self.first_level):
            cells = Grid.children(cells).ravel() if levels else cells
            counts = values.of_cells(level, cells)
            noisy = DiscreteLaplace(scale).sample(counts, noise)
            kept = pyramid._largest(counts, cells >> 2 * level, self.width)
            cells, noisy = cells[kept], noisy[kept]
            levels.append(NoisyLevel(level, cells, noisy))
        return NoisyTree(values.groups, tuple(levels))

    plant(pyramid.Pyramid, "sample", exactly)


def _pyramid_noise_too_small_on_one_level() -> None:
    from sfumato.heatmap.methods.pyramid import Pyramid

    true = Pyramid.sample

    def smaller(self: Any, values: Any, noise: Any) -> Any:
        scales = (*self.scales[:-1], self.scales[-1] * Fraction(9, 10))
        return true(Pyramid(scales, self.first_level, self.width), values, noise)

    plant(Pyramid, "sample", smaller)


def _every_row_a_user() -> None:
    from sfumato.privacy import UNITS
    from sfumato.records import aggregate as sums

    def unbounded(rows: Any, columns: Any, parts: Any, groups: Any) -> Any:
        place = [*sums.PART_NAMES[: len(parts)], "cell"]
        return rows.group_by(place).agg(units=rows.count() * UNITS)

    plant(sums, "_sums", unbounded)


def _every_group_a_user() -> None:
    from sfumato.privacy import UNITS
    from sfumato.records import aggregate as sums

    true = sums._sums

    def apart(rows: Any, columns: Any, parts: Any, groups: Any) -> Any:
        if not parts:
            return true(rows, columns, parts, groups)
        names = list(sums.PART_NAMES[: len(parts)])
        visits = rows.group_by(["user", *names, "cell"]).agg(count=rows.count())
        totals = visits.group_by(["user", *names]).agg(total=visits["count"].sum())
        joined = visits.join(totals, ["user", *names])
        shares = joined.select(*names, "cell", units=(joined["count"] * UNITS) // joined.total)
        return shares.group_by([*names, "cell"]).agg(units=shares.units.sum().cast("int64"))

    plant(sums, "_sums", apart)


def _rows_read_twice() -> None:
    """Totals of another reading than the visits: rows may have come or gone between."""
    from sfumato.records import aggregate as sums
    from sfumato.records.engines import arrow_table

    def apart(visits: Any, whole: list[str]) -> Any:
        totals = visits.group_by(whole).agg(total=visits["count"].sum().cast("int64"))
        engine = visits.get_backend()
        with warnings.catch_warnings(action="ignore"):
            engine.con.register("again", arrow_table(totals))
            return visits.join(engine.table("again"), whole)

    plant(sums, "_with_totals", apart)


def _users_by_collation() -> None:
    from sfumato.records import aggregate as sums

    plant(sums, "user_key", lambda column, name: (column, column.notnull()))


def _rows_wherever_lines_begin() -> None:
    """DuckDB's own reader, which looks for the beginning of a row in the middle of a file."""
    from sfumato.records.engines.duckdb import DuckDBEngine, duckdb_engine
    from sfumato.records.quiet import quietly

    def parallel(self: Any, files: Any, *, connection: Any) -> Any:
        database, names = duckdb_engine(), files.text.names
        places = {f"c{place}": name for place, name in enumerate(names)}

        def read() -> Any:
            rows = database.read_csv(
                list(files.paths), auto_detect=False, header=True, columns=dict.fromkeys(places, "VARCHAR"),
                quote='"', escape='"', ignore_errors=True, strict_mode=False,
            )  # fmt: skip
            return rows.rename({name: place for place, name in places.items()})

        return quietly(read, "unreadable")

    plant(DuckDBEngine, "read_files", parallel)


def _numbers_as_they_are_written() -> None:
    from sfumato.records import in_memory, text_rows

    for module in (in_memory, text_rows):
        plant(module, "plain_number", str)


def _tamper_with_maps(tamper: Any) -> None:
    """Have `tamper(guarded, area, make)` make maps: of sums, and from the front door."""
    charging = import_module("sfumato.heatmap.pipeline.charging")
    plan = import_module("sfumato.heatmap.pipeline.release_plan")
    true_release, true_sum, true_maps = charging.release_sums, plan.sum_cells, plan.maps_of_receipt
    last: list[Any] = []

    def released(guarded: Any, area: Any, **rest: Any) -> Any:
        return tamper(guarded, area, lambda where: true_release(guarded, where, **rest))

    def summed(*values: Any, **named: Any) -> Any:
        last[:] = [true_sum(*values, **named)]
        return last[0]

    def made(receipt: Any, area: Any, **rest: Any) -> Any:
        return tamper(last[0], area, lambda where: true_maps(receipt, where, **rest))

    plant(charging, "release_sums", released)
    plant(plan, "sum_cells", summed)
    plant(plan, "maps_of_receipt", made)


def _bounds_from_the_data() -> None:
    from dataclasses import replace

    from sfumato.privacy.ledger.guarded import open_for_release

    def fitted(guarded: Any, area: Any, make: Any) -> Any:
        grid, codes = area.grid, open_for_release(guarded).codes
        if codes.size:
            columns, rows = grid.decode(codes % grid.size)
            x, y = grid.edges()
            low_x, low_y, high_x, high_y = area.bounds
            box = (
                max(low_x, float(x[columns.min()])),
                max(low_y, float(y[rows.min()])),
                min(high_x, float(x[columns.max() + 1])),
                min(high_y, float(y[rows.max() + 1])),
            )
            area = replace(area, bounds=box)
        return make(area)

    _tamper_with_maps(fitted)


def _title_with_the_number_of_users() -> None:
    from dataclasses import replace

    from sfumato.privacy import UNITS
    from sfumato.privacy.ledger.guarded import open_for_release

    def telling(guarded: Any, area: Any, make: Any) -> Any:
        users = round(open_for_release(guarded).units.sum() / UNITS)
        return tuple(replace(one, title=f"{users} users") for one in make(area))

    _tamper_with_maps(telling)


def _cut_cells_taken_to_be_even() -> None:
    from sfumato.heatmap.analysis.zone_intervals import _Cells

    def even(self: Any, whole: Any, touched: Any, part: Any) -> Any:
        found = np.where(touched & ~whole, part, whole)
        return found, found

    plant(_Cells, "border", even)


def _mark_without_noise() -> None:
    from sfumato.heatmap.accuracy.noise_mark import SimulatedNoise

    plant(SimulatedNoise, "laplace", lambda self, scale, size: np.zeros(size, dtype=np.int64))


def _empty_never_said() -> None:
    private_map = import_module("sfumato.heatmap.private_map")
    true = private_map.noise_mark

    def full(*values: Any) -> Any:
        found = true(*values)
        return None if found is None else replace(found, empty=False)

    plant(private_map, "noise_mark", full)


def _reconstruct_with_a_sign_wrong() -> None:
    import inspect

    from sfumato.heatmap.inference import tree_fit_kernel as reconstruct_kernel

    # Beyond its count a cell costs more, not less: the bit of the slope is left out where it turns
    # to plus.
    source = inspect.getsource(reconstruct_kernel.solve.py_func)
    right = "key | bit,"
    assert source.count(right) == 1
    _, _, body = source.partition("\n")
    scope = dict(vars(reconstruct_kernel))
    exec(body.replace(right, "key,"), scope)  # noqa: S102
    plant(reconstruct_kernel, "solve", scope["solve"])


def _privtree_without_the_decay() -> None:
    from sfumato.heatmap.methods.baselines.privtree import PrivTree

    true = PrivTree.sample

    class Undecayed(PrivTree):
        decay = 0

    def deeper(self: Any, values: Any, noise: Any) -> Any:
        rest = {"leaf_scale": self.leaf_scale, "most_leaves": self.most_leaves}
        return true(Undecayed(self.levels, scale=self.scale, **rest), values, noise)

    plant(PrivTree, "sample", deeper)


def _strips_charged_once() -> None:
    from sfumato.heatmap.methods.private_bounds import PrivateBounds

    plant(PrivateBounds, "cost", lambda self, bound: self.law.cost(bound))


def _zoom_prices_by_exact_counts() -> None:
    from sfumato.heatmap.methods.zoom import Zoom
    from sfumato.privacy import UNITS

    true, known = Zoom.sample, dict[str, Any]()

    def watched(self: Any, values: Any, noise: Any) -> Any:
        known["values"] = values
        return true(self, values, noise)

    plant(Zoom, "sample", watched)
    plant(
        Zoom, "masses", lambda _, __, level, cells: known["values"].of_cells(level, cells) / UNITS
    )


def _zoom_forgets_what_was_spent() -> None:
    from sfumato.heatmap.methods.zoom import _Budget

    true = _Budget.count

    def forgetful(self: Any, level: int, cells: Any, left: Any, parts: Any) -> Any:
        true(self, level, cells, left, parts)
        return left

    plant(_Budget, "count", forgetful)


def _grid_potentials_not_checked() -> None:
    from sfumato.transport import grid as on_grid
    from sfumato.transport.masses import weight

    def trusting(units: Any, surplus: int) -> Any:
        from sfumato.transport.scales import solve_scales

        _, _, east, north, _ = solve_scales(units, surplus)
        return weight(east) + weight(north), east, north

    plant(on_grid, "_solved", trusting)


def _draws_believed() -> None:
    from sfumato.heatmap.accuracy import map_error

    plant(map_error, "_corrections_of", lambda posterior: None)


def _draws_without_noise() -> None:
    map_error = import_module("sfumato.heatmap.accuracy.map_error")
    true = map_error.maps_inside

    def sure(*asked: Any) -> Any:
        """As if the counts had a tenth of their noise."""
        draws = true(*asked)
        return 0.9 * draws.mean(axis=0) + 0.1 * draws

    plant(map_error, "maps_inside", sure)


def _true_cell_too_often() -> None:
    from sfumato.heatmap.local.channels import SubsetSelection

    exact = SubsetSelection.sample

    def oftener(self: Any, cell: int, noise: Any) -> Any:
        drawn = exact(self, cell, noise)
        return drawn if cell in drawn or noise.uniform(20, 1)[0] else exact(self, cell, noise)

    plant(SubsetSelection, "sample", oftener)


def _device_that_answers_twice() -> None:
    from sfumato.privacy import Ledger

    def forgetful(_self: Any, _key: str, _request: Any) -> None:
        return None

    real = Ledger.release

    def under_another_key(self: Any, *given: Any, once: str = "", **more: Any) -> Any:
        count = self.statement().count
        return real(self, *given, once=f"{once} {count}" if count else once, **more)

    plant(Ledger, "made_once", forgetful)
    plant(Ledger, "release", under_another_key)


SABOTEURS: dict[str, Saboteur] = {
    "a sensor that is silent without a reading": Saboteur(
        networks.silent_without_a_reading,
        "tests/network/test_sensor.py::test_when_and_how_long_do_not_depend_on_what_was_read",
        "assert False",
    ),
    "a packet of Laplace noise that says it is Gaussian": Saboteur(
        networks.laplace_named_gaussian,
        "tests/network/test_laplace_packets.py::test_a_sensor_of_epsilon_alone_sends_what_its_key_holder_can_read",
        "assert",
    ),
    "rounds that cost what the largest epsilon says": Saboteur(
        networks.rounds_cost_by_epsilon_alone,
        "tests/network/test_laplace_packets.py::test_a_round_costs_what_its_least_noise_costs",
        "assert (1.0, 1e-09) == (0.9, 0.001)",
    ),
    "dummies that everybody can tell": Saboteur(
        networks.dummies_not_masked,
        "tests/network/test_wire.py::test_the_key_holder_alone_tells_a_dummy",
        "assert 1 > 20",
    ),
    "a sensor that forgets which rounds were paid": Saboteur(
        networks.last_round_forgotten,
        "tests/network/test_sensor.py::test_a_clock_that_jumps_makes_no_round_twice",
        "assert",
    ),
    "a packet that is made again": Saboteur(
        networks.resends_made_again,
        "tests/network/test_sensor.py::test_what_was_not_acknowledged_is_sent_again_as_it_was",
        "assert [",
    ),
    "packets acknowledged before they are kept": Saboteur(
        networks.packets_acknowledged_before_they_are_kept,
        "tests/network/test_collector.py::test_a_store_that_is_full_accepts_nothing_until_it_is_not",
        "assert (6, 0) == (0, 0)",
    ),
    "packets that are taken again": Saboteur(
        networks.packets_taken_again,
        "tests/network/test_gate.py::test_a_packet_is_taken_once_and_its_resend_is_harmless",
        "assert 'taken' == 'resent'",
    ),
    "a collector that deletes what its window has paid": Saboteur(
        networks.needed_rounds_deleted,
        "tests/network/test_collector.py::test_what_is_deleted_is_not_needed_still",
        "assert 'taken' != 'taken'",
    ),
    "rows that are read twice": Saboteur(
        _rows_read_twice,
        "tests/records/test_sums.py::test_rows_are_read_once_where_they_change_meanwhile",
        "1048576",
    ),
    "heat taken for exact where a start is hidden": Saboteur(
        sensors.heat_taken_for_exact,
        "tests/sensing/test_whisper_starts.py::test_heat_that_is_off_is_counted",
        "assert",
    ),
    "a collector that checks no codes": Saboteur(
        networks.codes_not_checked,
        "tests/network/test_gate.py::test_who_does_not_hold_the_key_sends_in_vain",
        "assert 'taken' == 'wrong-code'",
    ),
    "shares of shape 1/n with a curious party": Saboteur(
        ledgers.shares_for_outsiders_only,
        "tests/privacy/test_shared_noise.py::"
        "test_curious_parties_lose_what_is_charged_and_no_more[1-trust1]",
        "<= (1.0 + 1e-09)",
    ),
    "a session that reuses its shares": Saboteur(
        ledgers.a_session_that_reuses_its_shares,
        "tests/heatmap/distributed/test_session.py::test_every_round_has_fresh_shares",
        "two rounds share their noise",
    ),
    "a session that draws again what was opened": Saboteur(
        ledgers.a_session_that_draws_again,
        "tests/heatmap/distributed/test_session.py::"
        "test_a_session_that_stopped_goes_on_and_costs_nothing[in the third round]",
        "a round was drawn again",
    ),
    "parties that charge before they agree": Saboteur(
        ledgers.parties_that_charge_before_they_agree,
        "tests/heatmap/distributed/test_session.py::"
        "test_parties_that_disagree_charge_nobody[changed0-epsilon]",
        "assert",
    ),
    "a party that reuses its share": Saboteur(
        ledgers.a_party_that_reuses_its_share,
        "tests/privacy/test_shared_noise.py::test_no_share_is_used_twice",
        "share their noise",
    ),
    "a wrapped modulus": Saboteur(
        ledgers.a_wrapped_modulus,
        "tests/privacy/test_shared_noise.py::test_sums_come_back_from_a_field",
        "a sum wrapped",
    ),
    "a ledger that pays for any model": Saboteur(
        ledgers.a_ledger_of_any_model,
        "tests/privacy/test_trust.py::test_a_party_alone_adds_no_noise_of_all",
        "DID NOT RAISE",
    ),
    "a shuffler that keeps order": Saboteur(
        ledgers.a_shuffler_that_keeps_order,
        "tests/heatmap/shuffled/test_device.py::test_a_shuffler_keeps_no_order",
        "a shuffler keeps the order of arrival",
    ),
    "too few messages": Saboteur(
        ledgers.too_few_messages,
        "tests/privacy/test_mixing.py::test_the_closed_form_is_above_the_exact_one[12-9-2]",
        "assert Fraction",
    ),
    "devices without noise": Saboteur(
        ledgers.devices_without_noise,
        "tests/heatmap/shuffled/test_device.py::test_every_device_adds_its_own_noise",
        "devices add no noise",
    ),
    "users compared by collation": Saboteur(
        _users_by_collation,
        "tests/heatmap/test_replay.py::test_every_collation_of_duckdb_tells_users_apart",
        "Differing items",
    ),
    "rows wherever lines begin": Saboteur(
        _rows_wherever_lines_begin,
        "tests/heatmap/test_replay.py::test_text_with_line_breaks_is_one_field[9000000-duckdb]",
        "was paid for",
    ),
    "numbers of users as they are written": Saboteur(
        _numbers_as_they_are_written,
        "tests/heatmap/test_replay.py::test_numbers_name_the_same_user_however_they_are_written",
        "was paid for",
    ),
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
        "tests/privacy/test_ledger_faults.py::test_kill_at_every_step[how0]",
        "a value without an entry",
    ),
    "no lock between processes": Saboteur(
        _no_lock,
        "tests/privacy/test_ledger_faults.py::test_two_racing_processes_cannot_overspend",
        "'outcomes'",
    ),
    "hash chain that skips the cost": Saboteur(
        _chain_without_the_body,
        "tests/privacy/test_ledger_faults.py::test_an_edited_entry_is_named[a cheaper cost]",
        "DID NOT RAISE LedgerDamaged",
    ),
    "a user-day ledger that pays for any map": Saboteur(
        ledgers.any_map_for_a_user_day,
        "tests/privacy/test_ledger_terms.py::test_a_ledger_of_user_days_pays_for_days_alone",
        "DID NOT RAISE",
    ),
    "user-days by any clock": Saboteur(
        ledgers.any_clock_for_a_user_day,
        "tests/privacy/test_ledger_terms.py::test_the_first_charge_binds_the_clock",
        "DID NOT RAISE LedgerMismatch",
    ),
    "a local ledger that pays for what was gathered": Saboteur(
        ledgers.anybody_s_data_in_a_local_ledger,
        "tests/privacy/test_ledger_terms.py::test_a_local_ledger_pays_for_nothing_that_was_gathered",
        "DID NOT RAISE LedgerMismatch",
    ),
    "a rehearsal known by its name": Saboteur(
        ledgers.rehearsal_by_name,
        "tests/privacy/test_ledger_terms.py::test_a_source_called_rehearsal_is_paid_for",
        "DID NOT RAISE LedgerMismatch",
    ),
    "a ledger under two names": Saboteur(
        ledgers.links_not_counted,
        "tests/privacy/test_ledger_names.py::test_hard_links_are_refused_under_every_name",
        "DID NOT RAISE LedgerError",
    ),
    "rows behind a ledger's length thrown away": Saboteur(
        ledgers.tail_thrown_away,
        "tests/privacy/test_ledger_torn.py::test_a_row_torn_at_any_byte_never_happened",
        "a whole row was thrown away",
    ),
    "a checkpoint that nobody checks": Saboteur(
        ledgers.checkpoint_not_checked,
        "tests/privacy/test_ledger_torn.py::test_a_checkpoint_that_lies_is_found[less was spent]",
        "DID NOT RAISE LedgerDamaged",
    ),
    "a key for any request": Saboteur(
        ledgers.once_for_any_request,
        "tests/privacy/test_ledger_once.py::test_another_request_under_a_key_is_refused",
        "ReleasedAlready",
    ),
    "a period that is not that of the rows": Saboteur(
        ledgers.period_not_bound,
        "tests/privacy/test_ledger_periods.py::test_a_user_day_moves_only_what_its_own_day_pays_for",
        "a day moved what another day paid for",
    ),
    "a copy that pays": Saboteur(
        ledgers.copies_pay,
        "tests/privacy/test_ledger_places.py::test_a_copy_is_refused_and_says_the_way_out",
        "DID NOT RAISE LedgerMismatch",
    ),
    "values drawn twice": Saboteur(
        ledgers.drawn_again_and_again,
        "tests/privacy/test_ledger_once.py::test_values_that_were_drawn_are_not_drawn_again",
        "DID NOT RAISE",
    ),
    "days paid for once, however often they are released": Saboteur(
        ledgers.overlapping_days_free,
        "tests/privacy/test_ledger_periods.py::test_releases_whose_days_overlap_add_up_on_those_days",
        "'epsilon 0.5' != 'epsilon 0'",
    ),
    "values that nobody waits for": Saboteur(
        ledgers.values_nobody_waits_for,
        "tests/privacy/test_runs.py::test_values_are_on_the_disk_before_anybody_has_them",
        "'wait .jsonl'",
    ),
    "a run that draws what was drawn": Saboteur(
        ledgers.runs_that_draw_again,
        "tests/privacy/test_runs.py::test_what_was_drawn_is_delivered_as_it_was_drawn",
        "At index 0 diff",
    ),
    "a key of a run whatever is asked": Saboteur(
        ledgers.once_whatever_is_asked,
        "tests/cli/test_once_and_resume.py::test_other_readings_under_the_key_are_refused[other1]",
        "assert 7 == 4",
    ),
    "a run of two processes at once": Saboteur(
        ledgers.runs_without_a_lock,
        "tests/privacy/test_runs.py::test_two_processes_finish_one_run_with_one_charge_and_one_draw",
        "(3, 3) == (2, 2)",
    ),
    "a run as it was before its lock": Saboteur(
        ledgers.runs_as_they_were_listed,
        "tests/privacy/test_runs.py::test_a_run_that_another_process_went_on_with_is_not_charged_again",
        "(1, 3, 3) == (1, 2, 2)",
    ),
    "what is paid for since removed as unpaid": Saboteur(
        ledgers.unpaid_at_first_sight,
        "tests/privacy/test_runs.py::test_what_was_paid_for_since_somebody_looked_is_not_removed",
        "assert 1 > 1",
    ),
    "a password beside the ledger": Saboteur(
        ledgers.passwords_kept,
        "tests/cli/test_once_and_resume.py::test_a_password_is_kept_nowhere_and_asked_for_again",
        "s3cret",
    ),
    "an entry that nobody read back": Saboteur(
        ledgers.entry_not_read_back,
        "tests/privacy/test_ledger_written.py::test_a_cost_of_too_many_digits_is_refused_and_the_ledger_stays_whole",
        "not a ledger entry",
    ),
    "drafts of a ledger that a signal leaves behind": Saboteur(
        ledgers.drafts_nobody_noted,
        "tests/files/test_signals.py::test_a_charge_that_is_ended_leaves_no_draft[SIGTERM]",
        "a draft of a ledger is left",
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
    "a pay below the cost": Saboteur(
        _pay_below_the_cost,
        "tests/privacy/test_ledger_pay.py::test_a_pay_that_does_not_cover_the_cost_is_refused",
        "DID NOT RAISE InvalidParameter",
    ),
    "top-w chosen on exact counts": Saboteur(
        _pyramid_follows_exact_counts,
        "tests/heatmap/test_pyramid.py::test_lazy_noise_has_the_law_of_noise_everywhere",
        "does not follow its law",
    ),
    "pyramid noise 10 % too small on one level": Saboteur(
        _pyramid_noise_too_small_on_one_level,
        "tests/heatmap/test_privacy.py::test_every_level_of_a_pyramid_has_its_law",
        "does not follow its law",
    ),
    "a split of zoom priced by exact counts": Saboteur(
        _zoom_prices_by_exact_counts,
        "tests/heatmap/test_zoom.py::test_what_is_bought_depends_on_what_was_released_alone",
        "what is counted depends on the data",
    ),
    "a budget of zoom spent twice": Saboteur(
        _zoom_forgets_what_was_spent,
        "tests/heatmap/test_zoom.py::test_every_path_pays_its_whole_budget_and_no_more[1]",
        "was to cost more than its budget",
    ),
    "every row a whole user": Saboteur(
        _every_row_a_user,
        "tests/heatmap/test_privacy.py::test_a_user_with_two_rows_moves_one_map_by_all_of_units",
        "assert 2097152 == 1048576",
    ),
    "a map that believes its draws": Saboteur(
        _draws_believed,
        "tests/heatmap/test_map_error.py::test_a_map_states_its_draws_corrected",
        "assert",
    ),
    "draws that do not know the noise": Saboteur(
        _draws_without_noise,
        "tests/heatmap/test_map_error.py::test_made_up_towns_are_as_far_off_as_their_maps_say",
        "17",
    ),
    "every map a whole user": Saboteur(
        _every_group_a_user,
        "tests/heatmap/test_privacy.py::test_a_user_on_two_maps_moves_both_together_by_all_of_units",
        "assert 2097152 == 1048576",
    ),
    "bounds from the data": Saboteur(
        _bounds_from_the_data,
        "tests/heatmap/test_privacy.py::test_the_area_of_a_map_is_the_one_that_was_asked_for",
        "the area follows the data",
    ),
    "a title with the number of users": Saboteur(
        _title_with_the_number_of_users,
        "tests/heatmap/test_release.py::test_nobody_one_user_and_a_city_leave_the_same_traces",
        "0 users",
    ),
    "cells that a border cuts taken to be even": Saboteur(
        _cut_cells_taken_to_be_even,
        "tests/heatmap/test_zone_intervals.py::test_one_crowd_in_a_corner_is_in_the_zone_or_not",
        "== 600 ± 1",
    ),
    "a noise mark without noise": Saboteur(
        _mark_without_noise,
        "tests/heatmap/test_noise_mark.py::test_one_map_of_nothing_in_twenty_exceeds_its_mark"
        "[laplace-area7-1]",
        "exceed a mark that one in twenty may",
    ),
    "an empty map that is not called empty": Saboteur(
        _empty_never_said,
        "tests/heatmap/test_noise_mark.py::test_an_empty_map_says_so_everywhere",
        "five maps of nobody in a row were not called empty",
    ),
    "a reconstruct off by a sign": Saboteur(
        _reconstruct_with_a_sign_wrong,
        "tests/heatmap/test_reconstruct.py::test_the_recursion_is_the_linear_program",
        "comparison failed",
    ),
    "PrivTree without its decay": Saboteur(
        _privtree_without_the_decay,
        "tests/heatmap/baselines/test_privtree.py::test_a_level_below_is_biased_by_the_decay",
        "is not a share of",
    ),
    "strips charged once": Saboteur(
        _strips_charged_once,
        "tests/heatmap/test_find_area.py::test_columns_and_rows_both_count_a_user",
        "PureDP(epsilon=Fraction(1, 4)) == PureDP(epsilon=Fraction(1, 2))",
    ),
    "a flow on a grid trusted without its potentials": Saboteur(
        _grid_potentials_not_checked,
        "tests/transport/test_grid.py::test_a_wrong_solution_is_caught",
        "DID NOT RAISE SolverFailed",
    ),
    "rounding of readings not counted": Saboteur(
        sensors.rounding_not_counted,
        "tests/sensing/test_readings.py::test_rounding_and_the_sensors_step_are_counted",
        "assert",
    ),
    "Laplace noise for the Euclidean length of a move": Saboteur(
        sensors.laplace_for_the_euclidean_length,
        "tests/sensing/test_laplace.py::test_neighbors_move_quantised_readings_within_the_bound[line]",
        "assert",
    ),
    "errors certified as if Laplace noise were Gaussian": Saboteur(
        sensors.laplace_certified_as_gaussian,
        "tests/sensing/test_laplace_certificates.py::test_noise_stays_within_the_directions_as_often_as_stated"
        "[graph]",
        "assert",
    ),
    "noise for each sensor without their steps": Saboteur(
        sensors.steps_not_counted_in_gains,
        "tests/sensing/test_noise_each.py::test_what_is_said_of_noise_for_each_counts_the_steps_of_sensors[1/10]",
        "assert",
    ),
    "errors certified of sources at nodes alone": Saboteur(
        sensors.bends_not_counted,
        "tests/sensing/test_certified_error.py"
        "::test_every_certificate_passes_its_check_where_sensors_are_few_and_cells_wide[line]",
        "is not proved to be at most",
    ),
    "recoveries that state another promise than was paid for": Saboteur(
        sensors.promises_not_compared,
        "tests/sensing/test_laplace_certificates.py"
        "::test_a_recovery_of_laplace_readings_is_certified_saved_checked_and_paid_for",
        "assert not True",
    ),
    "gains of sensors not in their sensitivity": Saboteur(
        sensors.gains_not_checked,
        "tests/sensing/test_noise_each.py::test_no_move_of_mass_costs_more_than_the_weighted_sensitivity[line]",
        "assert",
    ),
    "noisier sensors taken unasked": Saboteur(
        sensors.noisier_sensors_taken_unasked,
        "tests/sensing/test_noise_each.py::test_the_rule_keeps_one_sigma_where_it_is_not_safe_or_not_worth_it",
        "assert",
    ),
    "certificates that see an offset through gains": Saboteur(
        sensors.offsets_seen_through_gains,
        "tests/sensing/test_noise_each_offset.py::test_no_answer_and_no_certificate_hangs_on_the_offset",
        "assert",
    ),
    "counts of a small device too steep": Saboteur(
        networks.counts_too_steep,
        "tests/network/test_twins.py::test_a_lattice_moves_no_further_than_its_noise_is_for",
        "assert",
    ),
    "gains rounded towards less noise": Saboteur(
        sensors.gains_rounded_the_wrong_way,
        "tests/sensing/test_noise_each.py::test_readings_are_divided_by_no_less_than_they_should_be",
        "assert",
    ),
    "the step of a device never written": Saboteur(
        sensors.step_never_written,
        "tests/sensing/test_keys.py::test_each_start_takes_one_step_and_leaves_only_the_next",
        "assert (0,",
    ),
    "an epoch without chance": Saboteur(
        sensors.epoch_without_chance,
        "tests/sensing/test_keys.py::test_no_draw_is_used_twice_after_kill_restart_fork_and_a_restored_file",
        "assert",
    ),
    "changed readings unsealed": Saboteur(
        sensors.changed_readings_unsealed,
        "tests/sensing/test_readings.py::test_another_key_and_changed_readings_are_refused",
        "DID NOT RAISE InvalidInput",
    ),
    "a seal that fits any site": Saboteur(
        sensors.seals_without_their_site,
        "tests/sensing/test_seal_contract.py::test_what_the_package_seals_today_is_what_the_page_says",
        "assert",
    ),
    "a ledger for any set of sensors": Saboteur(
        sensors.any_sensors_in_the_ledger,
        "tests/sensing/test_readings.py::test_a_release_says_what_was_promised_and_for_which_sensors",
        'in "epsilon 1, delta 1e-06 for each source (',
    ),
    "sensitivity per step instead of per distance": Saboteur(
        sensors.sensitivity_per_step,
        "tests/sensing/test_sensitivity.py::test_steps_on_the_unit_line_are_not_of_length_one",
        "assert",
    ),
    "sensors calibrated at the centers of cells": Saboteur(
        sensors.centers_only,
        "tests/sensing/test_heat_changes.py::test_no_place_between_centers_moves_readings_further",
        "a place between centers moves the readings further",
    ),
    "readings in any unit": Saboteur(
        sensors.any_unit,
        "tests/sensing/test_units.py::test_a_site_that_never_said_its_unit_releases_nothing",
        "DID NOT RAISE",
    ),
    "readings of a short type counted as doubles": Saboteur(
        sensors.short_types_not_looked_at,
        "tests/sensing/test_units.py::test_a_short_type_is_refused_unless_the_step_covers_it[float16]",
        "DID NOT RAISE",
    ),
    "a solver that measures short": Saboteur(
        sensors.solver_measures_short,
        "tests/sensing/test_check.py::test_the_check_catches_a_wrong_length",
        "the check caught the solver",
    ),
    "a solver that leaves out a cell": Saboteur(
        sensors.solver_leaves_out_the_last_cell,
        "tests/sensing/test_check.py::test_the_check_catches_a_cell_left_out",
        "the check caught the solver",
    ),
    "a solver that diffuses too far": Saboteur(
        sensors.solver_diffuses_too_far,
        "tests/sensing/test_check.py::test_the_check_and_the_solver_diffuse_alike",
        "the check caught the solver",
    ),
    "a recovery whose residual nobody looks at": Saboteur(
        sensors.residual_not_looked_at,
        "tests/sensing/test_check.py::test_a_wrong_claim_is_refused",
        "assert",
    ),
    "a day of readings for the price of one": Saboteur(
        sensors.readings_count_once,
        "tests/sensing/test_rounds.py::test_rho_adds_up_and_nothing_more_is_claimed",
        "assert",
    ),
    "whispers twice as loud as paid for": Saboteur(
        sensors.whispers_twice_as_loud,
        "tests/sensing/test_whisper.py::test_a_release_is_paid_for_and_flipped_by_its_law",
        "PureDP",
    ),
    "half the noise in the keyed table": Saboteur(
        audits.half_the_noise_in_the_table,
        "tests/audit/test_our_mechanisms.py::test_a_mechanism_keeps_its_cost"
        "[discrete-laplace: nobody, then one alone]",
        "discrete-laplace does not keep epsilon 1",
    ),
    "Gaussian noise of doubles": Saboteur(
        audits.gaussian_noise_of_doubles,
        "tests/audit/test_our_mechanisms.py::test_a_mechanism_keeps_its_cost"
        "[rounded-gaussian: nobody, then one alone]",
        "rounded-gaussian does not keep epsilon 1, delta 0.01",
    ),
    "a replacement counted once": Saboteur(
        audits.replacement_counted_once,
        "tests/audit/test_our_releases.py::test_a_histogram_keeps_what_is_stated[replaced-epsilon 1]",
        "one moves does not keep epsilon 1 (one user's data replaced)",
    ),
    "cells of a map chosen by exact counts": Saboteur(
        audits.cells_chosen_by_exact_counts,
        "tests/audit/test_our_releases.py::test_a_map_keeps_what_it_states[pyramid]",
        "one alone does not keep epsilon 1",
    ),
    "an auditor that bets on what it learnt from": Saboteur(
        audits.bets_on_the_runs_that_chose_the_event,
        "tests/audit/test_assertion.py::"
        "test_a_private_function_fails_at_the_flake_rate_at_most_and_a_broken_one_always",
        "<= 14",
    ),
    "an auditor that does not look at fresh runs": Saboteur(
        audits.refuted_as_soon_as_the_bet_is_won,
        "tests/audit/test_confirm.py::test_runs_that_depend_on_each_other_refute_nothing[20000]",
        "== 0",
    ),
    "a certificate of the claim itself": Saboteur(
        audits.certificate_of_the_claim_itself,
        "tests/cli/test_audit_further.py::test_a_claim_about_random_data",
        "except with probability 0.2 over the data",
    ),
    "an auditor that takes the second sample for the truth": Saboteur(
        audits.second_sample_taken_for_the_truth,
        "tests/audit/test_ratio.py::test_the_level_holds_and_is_used_on_larger_samples[0.02-0.0]",
        "is not a share of",
    ),
    "a channel that sends the true cell a little too often": Saboteur(
        _true_cell_too_often,
        "tests/heatmap/local/test_channels.py::"
        "test_what_is_sampled_has_exactly_the_law_that_is_checked",
        "Differing items",
    ),
    "a device that answers twice": Saboteur(
        _device_that_answers_twice,
        "tests/heatmap/local/test_answer.py::"
        "test_the_same_question_gets_the_same_answer_and_is_paid_once",
        "BudgetExceeded",
    ),
    "drafts of a foreseeable name": Saboteur(
        files.drafts_of_a_foreseeable_name,
        "tests/files/test_atomic.py::test_a_link_planted_at_a_foreseeable_name_is_not_followed",
        "a link was followed",
    ),
    "results through links": Saboteur(
        files.results_through_links,
        "tests/files/test_atomic.py::test_a_result_that_is_a_link_is_kept_or_gives_way_itself[there]",
        "True) == ('new', False)",
    ),
    "drafts that a signal leaves behind": Saboteur(
        files.signals_not_asked,
        "tests/files/test_signals.py::test_a_write_that_is_ended_leaves_no_draft[SIGTERM]",
        "a draft is left",
    ),
    "consent from a file": Saboteur(
        files.consent_from_a_file,
        "tests/cli/test_aloud.py::test_a_file_cannot_say_it[heatmap rehearse-public]",
        "it was taken from a file",
    ),
    "consent from a variable": Saboteur(
        files.consent_from_a_variable,
        "tests/cli/test_aloud.py::test_a_variable_cannot_say_it[ledger create-epsilon]",
        "it was taken from a variable",
    ),
}
