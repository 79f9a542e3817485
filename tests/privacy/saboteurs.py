"""Broken ledgers, one way each; `tests/saboteurs.py` lists them with the test that must catch them."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any


def privacy(name: str) -> Any:
    """The module itself: the room's door hands out what is in it."""
    return import_module(f"sfumato.privacy.{name}")


def any_map_for_a_user_day() -> None:
    from sfumato.privacy.accounting import Clock
    from sfumato.privacy.accounting.units import period_of

    def any_mass(unit: str, *_: Any) -> Any:
        return 1, None if period_of(unit) is None else Clock("t")

    import_module("sfumato.records.aggregate").bounded_for = any_mass  # type: ignore[attr-defined]


def any_clock_for_a_user_day() -> None:
    privacy("ledger.terms").check_clock = lambda now, clock, path: None


def anybody_s_data_in_a_local_ledger() -> None:
    terms = privacy("ledger.terms")
    true = terms.check_bound

    def trusting(header: Any, bound: Any, path: Any) -> None:
        held = object.__new__(type(bound))
        for name in type(bound).__dataclass_fields__:
            object.__setattr__(held, name, "local" if name == "model" else getattr(bound, name))
        true(header, held, path)

    terms.check_bound = trusting


def rehearsal_by_name() -> None:
    mark = privacy("ledger.guarded").Rehearsal
    mark.__eq__ = lambda self, other: str(self) == str(other)


def links_not_counted() -> None:
    import os

    for module in ("book", "disk"):
        privacy(f"ledger.storage.{module}").open_file = lambda real, mode, path: os.open(real, mode)


def tail_thrown_away() -> None:
    book = privacy("ledger.storage.book")
    true = book.read_rows

    def short(data: bytes, *, base: int, until: int, **rest: Any) -> Any:
        return true(data[: until - base] if until else data, base=base, until=until, **rest)

    book.read_rows = short


def checkpoint_not_checked() -> None:
    tally = privacy("ledger.tally").Tally
    true = tally.take

    def trusting(self: Any, row: Any) -> Any:
        if row.kind != "checkpoint":
            return true(self, row)
        self.head = row.hash
        return None

    tally.take = trusting


def once_for_any_request() -> None:
    privacy("ledger.storage.store").request_hash = lambda request: "0" * 64


def period_not_bound() -> None:
    periods = import_module("sfumato.records.periods").Periods
    names = periods.names
    periods.names = property(lambda self: names.fget(self)[::-1])


def copies_pay() -> None:
    privacy("ledger.storage.rows").Place.same = lambda self, other: True


def drawn_again_and_again() -> None:
    store = privacy("ledger.storage.store")
    kept = store._lines

    def forgetful(data: bytes, name: str) -> Any:
        found, end = kept(data, name)
        found.pop("drawn", None)
        return found, end

    store._lines = forgetful
    ledger = privacy("ledger.ledger").Ledger
    true = ledger.find_row
    ledger.find_row = lambda self, wanted, fits: (
        None if "drawn" in wanted else true(self, wanted, fits)
    )


def entry_not_read_back() -> None:
    entries, book = privacy("ledger.entries"), privacy("ledger.storage.book")

    def hoped(held: Any, entry: Any) -> Any:
        body = entry.to_json()
        del body["hash"]
        return replace(entry, hash=book.append(held, body))

    entries.appended = hoped


def drafts_nobody_noted() -> None:
    from collections.abc import Iterator
    from contextlib import contextmanager
    from pathlib import Path
    from secrets import token_hex

    @contextmanager
    def by_the_way(path: Path, kind: str) -> Iterator[Path]:
        draft = path.with_name(f".{path.name}.{token_hex(6)}{kind}")
        try:
            yield draft
        finally:
            draft.unlink(missing_ok=True)

    privacy("ledger.storage.book").draft_beside = by_the_way


def overlapping_days_free() -> None:
    """A release that names days pays for those that nobody has paid for yet, and for no other."""
    accounts = privacy("ledger.accounts").Accounts
    true = accounts.after

    def untouched(self: Any, cost: Any, *, periods: Any = None, **rest: Any) -> Any:
        new = tuple(one for one in periods or () if one not in self.spent[""])
        return {} if periods and not new else true(self, cost, periods=new or None, **rest)

    accounts.after = untouched


def values_nobody_waits_for() -> None:
    store = privacy("ledger.storage.store")
    os, true = store.os, store._add

    class Hasty:
        """The system, which waits for no disk."""

        def __getattr__(self, name: str) -> Any:
            return (lambda _: None) if name == "fsync" else getattr(os, name)

    def hasty(handle: int, data: Any, *, at: int) -> Any:
        if data["kind"] != "drawn":
            return true(handle, data, at=at)
        store.os = Hasty()
        try:
            return true(handle, data, at=at)
        finally:
            store.os = os

    store._add = hasty


def runs_that_draw_again() -> None:
    ledger = privacy("ledger.ledger").Ledger
    entries, run = privacy("ledger.entries"), privacy("runs.run").Run

    def anew(
        self: Any, book: Any, number: int, mechanism: Any, guarded: Any, noise: Any, attach: Any
    ) -> Any:
        kept, data = ledger.kept(book, number), guarded()
        source = privacy("noise.system").SystemNoise() if noise is None else noise
        assert entries.draft(mechanism, data, None, source).mechanism == kept.entry.mechanism
        return book._drawn(kept.entry, mechanism, data, source, -1, attach), kept.attached

    run._found = anew


def once_whatever_is_asked() -> None:
    run = privacy("runs.run").Run
    true = run._request
    run._request = lambda self, part, number: {**true(self, part, number), "asked": {}}


def runs_without_a_lock() -> None:
    from contextlib import nullcontext

    for module in ("run", "resume"):
        privacy(f"runs.{module}").alone = lambda ledger, run: nullcontext()


def runs_as_they_were_listed() -> None:
    resume = privacy("runs.resume")
    resume.kept_run = lambda ledgers, name: next(
        run for run in resume.kept_runs(ledgers) if run.run == name
    )


def unpaid_at_first_sight() -> None:
    delivery = privacy("ledger.delivery")
    delivery.forget_unpaid = lambda ledger, file: delivery.store.forget(file)


def passwords_kept() -> None:
    requests = import_module("sfumato.heatmap.pipeline.requests")
    requests._without_secrets = lambda connection: (connection, True)  # type: ignore[attr-defined]


def shares_for_outsiders_only() -> None:
    from sfumato.privacy import Joint

    Joint.honest = property(lambda self: self.parties)  # type: ignore[assignment]


def a_party_that_reuses_its_share() -> None:
    shares = privacy("noise.shares")
    true = shares.draw_shares
    kept: list[Any] = []

    def again(*arguments: Any) -> Any:
        kept.append(true(*arguments) if not kept or kept[0].size != arguments[2].size else kept[0])
        return kept[-1]

    shares.draw_shares = again


def a_session_that_reuses_its_shares() -> None:
    session: Any = import_module("sfumato.heatmap.distributed.session")
    true = session.draw_shares
    kept: list[Any] = []

    def again(*arguments: Any) -> Any:
        kept.append(kept[0] if kept else true(*arguments))
        return kept[-1]

    session.draw_shares = again


def a_session_that_draws_again() -> None:
    receipts: Any = import_module("sfumato.heatmap.distributed.receipts")
    true = receipts.Receipts.write

    def write_once(kept: Any, number: int, *what: Any) -> None:
        """A receipt is written once, which by itself stops a party that draws again; this one knows."""
        if number > kept.begun():
            true(kept, number, *what)

    receipts.Receipts.sent = lambda *_: None
    receipts.Receipts.write = write_once


def parties_that_charge_before_they_agree() -> None:
    plan: Any = import_module("sfumato.heatmap.distributed.joint_plan")
    agreed = plan.Agreed("0" * 16 + "-" + "0" * 16, resumed=False)
    plan.agree = lambda *_, **__: agreed


def a_wrapped_modulus() -> None:
    import numpy as np

    privacy("noise.shares").from_field = lambda elements, modulus: np.array(elements)


def a_ledger_of_any_model() -> None:
    privacy("ledger.terms").check_mechanism = lambda *_: None


def a_shuffler_that_keeps_order() -> None:
    import numpy as np

    rounds: Any = import_module("sfumato.heatmap.shuffled.rounds")
    rounds.uniform_order = np.arange


def too_few_messages() -> None:
    """Half of what the theorem takes."""
    mixing = privacy("accounting.mixing")
    true = mixing.mixing_distance
    mixing.mixing_distance = lambda devices, messages, bits: true(devices, 2 * messages, bits)


def devices_without_noise() -> None:
    device: Any = import_module("sfumato.heatmap.shuffled.device")
    device.draw_shares = lambda _trust, _scales, which: 0 * which
