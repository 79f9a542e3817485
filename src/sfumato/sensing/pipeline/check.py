"""Check a recovery independently of the solver: what `sense check` does."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import InvalidInput, InvalidParameter, LedgerMismatch
from sfumato.files import read_json
from sfumato.privacy import Ledger
from sfumato.sensing.pipeline.inputs import Released, all_readings
from sfumato.sensing.recovery.merging import MergedReadings, merge, merge_each
from sfumato.sensing.recovery.verify import check
from sfumato.sensing.recovery.verify_error import check_error
from sfumato.sensing.release.readings import Readings, Snapshot
from sfumato.sensing.results.check import CheckResult
from sfumato.sensing.results.recovered_rounds import FORMAT as ROUNDS
from sfumato.sensing.results.recovered_rounds import RecoveredRounds, read_recovered_rounds
from sfumato.sensing.results.recovery import RecoveryResult, read_recovery


def check_recovery(
    result: RecoveryResult | RecoveredRounds | str | Path,
    *,
    readings: Released | Sequence[Released] | None = None,
    ledgers: Sequence[Ledger | str | Path] = (),
) -> CheckResult:
    """Check a recovery again, independently of the solver: its proof, and who paid for its readings.

    Args:
        result: The recovery, or its .json file; or rounds that were recovered each by itself, or theirs.
        readings: The noisy readings it was made from, of one or several devices; with `ledgers`.
        ledgers: The ledgers that paid for these readings.

    Returns:
        What the proof shows. `holds` is False where any part fails, and `why` says which. Of rounds it is
        the first that fails, or where all hold the one with the largest gap, and how many there are.

    Raises:
        InvalidInput: If a file cannot be read.
        InvalidParameter: If one of `readings` and `ledgers` is given without the other.

    >>> from sfumato.sensing import describe_site, heat_line, recover_sources
    >>> line = heat_line(sources=20, sensors=8, diffusion_time=0.01)
    >>> hall = describe_site("hall", operator=line, radius="1/10").site
    >>> found = recover_sources(line.columns([5])[:, 0], site=hall, noise=0.05, estimator="least")
    >>> check_recovery(found).holds
    True
    """
    if bool(ledgers) != (readings is not None):
        raise InvalidParameter("`ledger` and `readings` go together; nothing was checked")
    name = str(result) if isinstance(result, str | Path) else "the recovery"
    saved, other = _saved(result) if isinstance(result, str | Path) else (result, "")
    if isinstance(saved, RecoveryResult):
        told = _proved(saved, name)
        if told.holds and other:
            return told.failed(_contradicts(name, other))
        if not told.holds or readings is None:
            return told
        return _paid(told, [saved], name, readings, ledgers)
    found = [one.recovery for one in saved.rounds if one.recovery is not None]
    unsolved = len(saved.rounds) - len(found)
    rest = f"; {unsolved} more have no recovery to check" if unsolved else ""
    if not found:
        raise InvalidInput(f"{name} has no round with a recovery; nothing was checked")
    each = [
        _proved(one, f"{name}, round {one.time or number}") for number, one in enumerate(found, 1)
    ]
    failed = next((one for one in each if not one.holds), None)
    if failed is not None:
        return failed
    if other:
        return each[0].failed(_contradicts(name, other))
    worst = max(each, key=lambda one: one.gap if math.isfinite(one.gap) else 0.0)
    why = f"the proofs of {len(each)} rounds hold{rest}"
    whole = replace(worst, why=why, message=f"{name}: {why}")
    return whole if readings is None else _paid(whole, found, name, readings, ledgers)


def _saved(path: str | Path) -> tuple[RecoveryResult | RecoveredRounds, str]:
    """What a file holds, one recovery or several rounds; and where it says what the rest of it does not."""
    data = read_json(path, "a whole recovery")
    rounds = isinstance(data, dict) and data.get("format") == ROUNDS
    saved = read_recovered_rounds(path) if rounds else read_recovery(path)
    return saved, _unlike(data, json.loads(json.dumps(saved.to_json())), "")


def _contradicts(name: str, other: str) -> str:
    return f"{name} says another {other} than the rest of it"


def _unlike(told: Any, again: Any, where: str) -> str:
    """The first place where a file differs from what is made of it; what either lacks is not compared."""
    match told, again:
        case dict(), dict():
            pairs = [(name, told[name], again[name]) for name in told if name in again]
        case list(), list() if len(told) == len(again):
            pairs = [
                (str(at), one, other)
                for at, (one, other) in enumerate(zip(told, again, strict=True))
            ]
        case ((int() | float()), (int() | float())):
            alike = told == again or math.isclose(told, again, rel_tol=1e-9, abs_tol=1e-12)
            return "" if alike and isinstance(told, bool) == isinstance(again, bool) else where
        case _:
            return "" if told == again else where
    found = (_unlike(one, other, f"{where}.{name}".lstrip(".")) for name, one, other in pairs)
    return next(filter(None, found), "")


def _proved(saved: RecoveryResult, name: str) -> CheckResult:
    found = check(saved.certificate)
    certified = saved.diagnostics.error
    if found.holds and certified is not None:
        r = saved.certificate
        wrong = check_error(
            certified,
            r.operator,
            r.readings,
            saved.estimate,
            sigma=saved.sigma or 0.0,
            max_mass=r.max_mass,
        )
        if wrong:
            found = replace(found, holds=False, why=f"of the certified error {wrong}")
        else:
            # What it rests on is said: a file may state less noise, or promise for fewer sources.
            bound = (
                f"the error is at most {certified.bound:.4g} with {100 * certified.level:g}%, of sources "
                f"{'anywhere' if certified.anywhere else 'at cells only'} up to {r.max_mass:g}, "
                f"{'' if certified.laplace is None else 'Laplace '}noise "
                f"{saved.sigma:.4g}{', any offset' if certified.offset else ''}"
            )
            found = replace(found, why=f"{found.why}; {bound}")
    return CheckResult(
        found.holds,
        saved.certificate.status,
        found.objective,
        found.bound,
        found.gap,
        found.residual,
        saved.certificate.radius,
        found.why,
        message=f"{name}: {saved.certificate.status + ', ' if found.holds else ''}{found.why}",
    )


def _paid(
    told: CheckResult,
    saved: Sequence[RecoveryResult],
    name: str,
    readings: Released | Sequence[Released],
    ledgers: Sequence[Ledger | str | Path],
) -> CheckResult:
    """Whether the readings are those of the recovery, and every one was paid for in these ledgers."""
    books = [one if isinstance(one, Ledger) else Ledger(Path(one)) for one in ledgers]
    # Each is read once, however many releases are looked up in it.
    read_once = [(book, book.statement()) for book in books]
    known, first = {book.header.id: (book, said) for book, said in read_once}, read_once[0]
    files = [readings] if isinstance(readings, str | Path | Readings | Snapshot) else list(readings)
    read = all_readings(files)
    if not _made_from(saved, read):
        return told.failed(f"{name} was not made from these readings")
    if _promises_otherwise(saved, read):
        return told.failed(f"{name} says that another promise was made than for these readings")
    for file, one in zip(files, read, strict=True):
        for snapshot in one.snapshots:
            # One that is of none of them is told so by the first.
            book, said = known.get(snapshot.release.ledger, first)
            try:
                book.check(snapshot.release, now=said)
            except LedgerMismatch as problem:
                return told.failed(
                    f"{file if isinstance(file, str | Path) else one.site.name}: {problem}"
                )
    return told.paid_in([str(book.path) for book in books])


def _made_from(saved: Sequence[RecoveryResult], read: list[Readings]) -> bool:
    """Whether these readings, merged as the recoveries say, are those in them."""
    weighed = len(saved) == 1 and _merged_as(saved, read, weigh=True)
    # One that was saved before devices were weighed counts all noise as the most of it.
    return weighed or _merged_as(saved, read, weigh=False)


def _promises_otherwise(saved: Sequence[RecoveryResult], read: list[Readings]) -> bool:
    """Whether a recovery states a loss, or that it was no rehearsal, which its readings do not."""
    if len(saved) == 1:
        again = [merge(read, time=saved[0].time, average=saved[0].averaged)]
    else:
        by_time = {one.time: one for one in merge_each(read)}
        again = [by_time[one.time] for one in saved]
    return any(
        (one.statement, one.rehearsal) != (other.statement, other.rehearsal)
        for one, other in zip(saved, again, strict=True)
    )


def _merged_as(saved: Sequence[RecoveryResult], read: list[Readings], *, weigh: bool) -> bool:
    try:
        if len(saved) == 1:
            one = saved[0]
            again = [merge(read, time=one.time, average=one.averaged, weigh=weigh)]
        else:
            by_time = {one.time: one for one in merge_each(read)}
            again = [by_time[one.time] for one in saved]
    except (InvalidInput, InvalidParameter, KeyError):  # no such time, or another number of them
        return False
    site = again[0].site.to_json()
    first = saved[0].site
    if any(one.site is not first and one.site != first for one in saved) or site != first.to_json():
        return False
    return all(_same(one, other) for one, other in zip(again, saved, strict=True))


def _same_law(again: MergedReadings, saved: RecoveryResult) -> bool:
    """Whether a certified error is of Laplace noise where the readings have it, and of as many rounds."""
    certified = saved.diagnostics.error
    if certified is None or (again.laplace is None and certified.laplace is None):
        return True
    if again.mixed or again.laplace is None or certified.laplace is None:
        return False
    return np.allclose(again.laplace, certified.laplace, rtol=1e-9, atol=0)


def _same(again: MergedReadings, saved: RecoveryResult) -> bool:
    if again.names != saved.names or again.noise is None or saved.sigma is None:
        return False
    # A certified error rests on the noise: half of it would prove too much.
    if not math.isclose(again.noise, saved.sigma, rel_tol=1e-9):
        return False
    if not _same_law(again, saved):
        return False
    if not saved.averaged:
        return np.array_equal(again.values, saved.certificate.readings)
    # Sums in another order of the files differ in their last bits.
    slack = 1e-12 * (saved.sigma or 0.0)
    return np.allclose(again.values, saved.certificate.readings, rtol=1e-12, atol=slack)
