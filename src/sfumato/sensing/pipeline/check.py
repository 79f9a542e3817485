"""Check a recovery independently of the solver: what `sense check` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sfumato.errors import InvalidInput, InvalidParameter, LedgerMismatch
from sfumato.privacy import Ledger
from sfumato.sensing.pipeline.inputs import Released, all_readings
from sfumato.sensing.recovery.merging import merge
from sfumato.sensing.recovery.verify import check
from sfumato.sensing.release.readings import Readings, Snapshot
from sfumato.sensing.results.check import CheckResult
from sfumato.sensing.results.recovery import RecoveryResult, read_recovery


def check_recovery(
    result: RecoveryResult | str | Path,
    *,
    readings: Released | Sequence[Released] | None = None,
    ledgers: Sequence[Ledger | str | Path] = (),
) -> CheckResult:
    """Check a recovery again, independently of the solver: its proof, and who paid for its readings.

    Args:
        result: The recovery, or its .json file.
        readings: The noisy readings it was made from, of one or several devices; with `ledgers`.
        ledgers: The ledgers that paid for these readings.

    Returns:
        What the proof shows. `holds` is False where any part fails, and `why` says which.

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
    saved = read_recovery(result) if isinstance(result, str | Path) else result
    found = check(saved.certificate)
    told = CheckResult(
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
    if not found.holds or readings is None:
        return told
    return _paid(told, saved, name, readings, ledgers)


def _paid(
    told: CheckResult,
    saved: RecoveryResult,
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
    if not made_from(saved, read):
        return told.failed(f"{name} was not made from these readings")
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


def made_from(saved: RecoveryResult, read: list[Readings]) -> bool:
    """Whether these readings, merged as the recovery says, are those in it."""
    try:
        again = merge(read, time=saved.time, average=saved.averaged)
    except (InvalidInput, InvalidParameter):  # no such time, or another number of them
        return False
    same_site = again.site.to_json() == saved.site.to_json()
    if not same_site or again.names != saved.names:
        return False
    if not saved.averaged:
        return np.array_equal(again.values, saved.certificate.readings)
    # Sums in another order of the files differ in their last bits.
    slack = 1e-12 * (saved.sigma or 0.0)
    return np.allclose(again.values, saved.certificate.readings, rtol=1e-12, atol=slack)
