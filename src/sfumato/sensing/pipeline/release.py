"""From a site to noisy readings that anybody may have, and back with a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import check_outputs, write_outputs
from sfumato.privacy import Ledger, Loss
from sfumato.privacy.runs import Run
from sfumato.sensing.model.site import Site
from sfumato.sensing.pipeline.payer import (
    Windows,
    check_moments,
    opened,
    payer_of,
    schedule_of,
    with_schedule,
)
from sfumato.sensing.pipeline.requests import ReadingsRequest, digest_of
from sfumato.sensing.pipeline.site import site_of
from sfumato.sensing.pipeline.snapshots import ReadingsGiven, checked_snapshots
from sfumato.sensing.release.keys import Device
from sfumato.sensing.release.noise_plan import NoisePlan, check_noise_plan, unit_of, window_in
from sfumato.sensing.release.readings import (
    Readings,
    Snapshot,
    kept_snapshot,
    plan,
    release_snapshot,
)
from sfumato.sensing.release.rounds import share_of
from sfumato.sensing.results.release import ReleasePrice, ReleaseResult
from sfumato.sensing.table_form import Columns, TableForm

if TYPE_CHECKING:
    from sfumato.sensing.release.noise_plan import Calibration, SensorLoss

Watch = Callable[[str], None]
"""Is told what is being done, step by step."""


def price_release(
    site: Site | str | Path,
    *,
    ledger: Ledger | str | Path | None = None,
    windows: Windows | None = None,
    loss: SensorLoss | None = None,
    share: int | None = None,
    calibration: Calibration = "analytic",
    noise_plan: NoisePlan | None = None,
    watch: Watch | None = None,
) -> ReleasePrice:
    """What `release_readings` would charge for one reading of all sensors; nothing is read or charged.

    Args:
        site: The site, or its file.
        ledger: The ledger that would pay, or its file; or `windows`.
        windows: Ledgers of windows of time that would pay.
        loss: What one reading of all sensors may cost; or `share`. Epsilon alone takes Laplace noise.
        share: An equal share of the whole budget, for so many readings.
        calibration: "analytic", the least noise, or "papers", the papers' formula.
        noise_plan: A plan that was made for this site, instead of `loss` and `share`.
        watch: Is told what is being done.

    Returns:
        The cost, the deviation of the noise, and what is protected.

    Raises:
        BudgetExceeded: The ledger has less left.
        LedgerMismatch: The ledger is for another site.
    """
    found = site_of(site)
    budget, _ = payer_of(found, ledger, windows)
    planned = planned_noise(found, budget, loss, share, calibration, noise_plan, watch)
    if ledger is not None:
        opened(ledger).afford(planned.cost, bound=planned.bound())
    during = "" if windows is None else f"within each {windows.length}"
    unit = unit_of(found.sensors, window=during)
    return ReleasePrice(
        planned.cost, planned.sigma, unit, len(found.sensors), weighted=bool(planned.gains)
    )


def release_readings(
    readings: ReadingsGiven,
    site: Site | str | Path,
    *,
    ledger: Ledger | str | Path | None = None,
    windows: Windows | None = None,
    loss: SensorLoss | None = None,
    share: int | None = None,
    device: Device | str | Path | None = None,
    some: bool = False,
    calibration: Calibration = "analytic",
    noise_plan: NoisePlan | None = None,
    note: str = "",
    once: str = "",
    anew: bool = False,
    columns: Columns | None = None,
    round_time: str = "",
    reference: str | Path | None = None,
    history: bool = False,
    since: str = "",
    until: str = "",
    out: Sequence[str | Path] = (),
    watch: Watch | None = None,
) -> ReleaseResult:
    """Release readings: check everything, pay, round, add noise, seal, write.

    The promise is made for all sensors of the site together. Each time is one reading, and is paid for by
    the ledger, or by that of the window it falls into; a window that renews does not protect a source that
    stays. All that can be refused is refused before anything is charged. What was paid for is kept beside
    the ledger until it is written: whatever stops a release, `resume_readings` finishes it.

    Args:
        readings: A table with sensor, value and perhaps time, or with a column for each sensor (CSV, JSON,
            Parquet, or of pandas, polars or pyarrow), or the history that Home Assistant exports; or values
            by sensor; or a list of pairs, a time and its values by sensor. In the unit that the site states.
            Where a value is blank, unavailable or unknown there is a gap; in a history the last one holds.
        site: The site, or its file.
        ledger: The ledger that pays, or its file; or `windows`.
        windows: Ledgers of windows of time that pay; then every time is written like 2026-11-16T09:30Z.
        loss: What one reading of all sensors costs; or `share`.
        share: An equal share of the whole budget, for so many readings.
        device: A device, or its key file: the noise can then be taken off with the master key.
        some: Whether readings may be of some of the sensors only: a device's own.
        calibration: "analytic", the least noise, or "papers", the papers' formula.
        noise_plan: A plan that was made for this site: what a device has that cannot plan.
        note: A line for the ledger.
        once: A key under which this request is released once: with the same key the same request gives
            the readings that were released, at no cost (`made_before`); another request is refused.
        anew: Whether to pay again for a request that was paid for and not delivered: without it,
            `resume_readings` finishes that one.
        columns: What the columns of the table are called.
        round_time: How far apart rounds are, 30s, 1m, 1h: every reading belongs to the nearest one, and is
            taken as if it were of that moment. Needed where clocks differ by seconds; "0" says that every
            time is a round of its own. Where windows pay, each is some whole rounds long, and a reading
            belongs to a round of the window it lies in.
        reference: A table of time and value of the public baseline of the site, where the readings do not
            hold it under its name.
        history: Whether a row is there because a reading changed: then rounds are those of `round_time`
            from `since` to `until`, all of which must be said, and the last state of each sensor holds. Home
            Assistant's exports are known by their columns. The site's `step` must be at least twice the
            smallest change that sensors report.
        since: When `windows` that do not say it begin, and the rounds of a history, a public date: not later
            than the states that its table begins with. Where windows say it, it is of the history only, and
            theirs unless it is said.
        until: And end; not later than the table does.
        out: New files, .json (everything) or .csv (the numbers).
        watch: Is told what is being done.

    Returns:
        The noisy readings, with what is promised.

    Raises:
        BudgetExceeded: The ledger has less left than all readings cost; nothing was charged.
        InvalidInput: A table or a file is not as it should be; nothing was charged.
        InvalidParameter: A reading is no finite number or of no sensor, or a time no line of text; nothing
            was charged.
        LedgerMismatch: The ledger is for another site, or the key another request's; nothing was charged.
        ReleasedAlready: The same request, with the same times, was paid for and not delivered; nothing was
            charged.

    >>> import tempfile
    >>> from sfumato.privacy import ApproxDP
    >>> from sfumato.sensing import describe_site, heat_line, open_ledger
    >>> line = heat_line(sources=100, sensors=20, diffusion_time=0.05)
    >>> hall = describe_site("hall", operator=line, radius="1/100", unit="mass", per_source=1).site
    >>> exact = dict(zip(hall.sensors.names, line.columns([30])[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book = open_ledger(hall, f"{folder}/hall.ledger", ApproxDP(4, "1e-6")).ledger
    ...     noisy = release_readings(exact, hall, ledger=book, loss=ApproxDP(2, "1e-6"))
    >>> noisy.statement[:40], round(noisy.sigma, 2)
    ('epsilon 2, delta 1e-06 for each source, ', 0.19)
    """
    check_note(note)
    files = tuple(map(Path, out))
    reads = [value for value in (readings, site, ledger, device) if isinstance(value, str | Path)]
    check_outputs(
        files, {".json", ".csv"}, reads=[Path(value) for value in reads], overwrite=bool(once)
    )
    found = site_of(site)
    windows, since, until = with_schedule(windows, since, until)
    budget, payer = payer_of(found, ledger, windows)
    planned = planned_noise(found, budget, loss, share, calibration, noise_plan, watch)
    if ledger is not None and not once:
        opened(ledger).afford(planned.cost, bound=planned.bound())
    form = TableForm(
        columns or Columns(),
        round_time,
        None if reference is None else str(reference),
        history,
        since,
        until,
    )
    snapshots = checked_snapshots(
        readings, found, planned, some=some, form=form, schedule=schedule_of(windows)
    )
    if once and windows is not None and not all(time for time, _ in snapshots):
        raise InvalidParameter(
            "with `once` and windows every reading has its time: without one, the same again is of "
            "another window; nothing was charged"
        )
    asked = ReadingsRequest(
        str(readings) if isinstance(readings, str | Path) else None,
        found,
        str(site) if isinstance(site, str | Path) else None,
        windows,
        loss,
        share,
        calibration,
        noise_plan,
        str(device.path if isinstance(device, Device) else device) if device else None,
        some,
        note,
        len(snapshots),
        files,
        form,
        digest_of(time for time, _ in snapshots),
        all(time for time, _ in snapshots),
    )
    if windows is not None:
        check_moments(windows, [time for time, _ in snapshots], form.round_time)
    run = Run(asked.request, once=once, anew=anew)
    paid_by = [payer(time) for time, _ in snapshots]
    made = [
        bool(once) and run.made(one, part_of(number), number=number)
        for number, (one, _) in enumerate(paid_by)
    ]
    check_outputs(files, {".json", ".csv"}, overwrite=all(made))
    for file in {one.path for one, _ in paid_by}:
        costs = [
            planned.cost
            for (one, _), done in zip(paid_by, made, strict=True)
            if one.path == file and not done
        ]
        Ledger(file).afford(*costs)
    return carried_out(
        asked,
        run,
        planned,
        [one for one, _ in paid_by],
        reading=lambda number: snapshots[number],
        device=device,
    )


def check_note(note: str) -> None:
    """Refuse a line for the ledger that is none.

    Args:
        note: The line; "" for none.

    Raises:
        InvalidParameter: It is not printable on one line.
    """
    if not note.isprintable():
        raise InvalidParameter("a note must be printable on one line; nothing was charged")


def carried_out(
    asked: ReadingsRequest,
    run: Run,
    planned: NoisePlan,
    ledgers: Sequence[Ledger | None],
    *,
    reading: Callable[[int], tuple[str, Mapping[str, float]]],
    payer: Callable[[str], tuple[Ledger, str]] | None = None,
    device: Device | str | Path | None = None,
    paid_only: bool = False,
) -> ReleaseResult:
    """Release each reading, or find it as it was released, and write all of them.

    A reading whose ledger is None has not been paid for; `payer` says who pays then.
    """
    released: list[Snapshot] = []
    used: list[str] = []
    sealers: list[Device] = []
    known = [one for one in ledgers if one is not None]
    with run.on(*known):
        for number, book in enumerate(ledgers):
            part = part_of(number)
            if book is not None and run.drawn(book, part, number=number):
                paid, told = run.release(book, planned.mechanism, _no_data, part=part)
                released.append(kept_snapshot(paid, told))
            elif paid_only:
                break
            else:
                time, values = reading(number)
                one = book if book is not None or payer is None else payer(time)[0]
                if one is None:
                    raise InvalidInput("nobody pays for a reading; nothing was charged")
                book = one
                if device is not None and not sealers:
                    sealers.append(device if isinstance(device, Device) else Device(device))
                released.append(
                    release_snapshot(
                        values,
                        asked.site,
                        planned,
                        ledger=book,
                        device=sealers[0] if sealers else None,
                        window=window_in(book.header.unit),
                        time=time,
                        note=asked.note,
                        run=run,
                        part=part,
                    )
                )
            used.append(str(book.path))
        whole = Readings(asked.site, tuple(released))
        write_outputs(whole.write, asked.outputs, again=True)
        before = run.made_before
        run.delivered()
        if paid_only:
            run.give_up()
    return ReleaseResult(whole, planned.sigma, asked.outputs, tuple(sorted(set(used))), before)


def part_of(number: int) -> str:
    """What the part of a request is called that pays for a reading, numbered from 0."""
    return f"reading {number + 1}"


def _no_data() -> Any:
    raise InvalidInput("what was drawn needs no data")


def planned_noise(
    site: Site,
    budget: Loss,
    loss: SensorLoss | None,
    share: int | None,
    calibration: Literal["analytic", "papers"],
    noise_plan: NoisePlan | None,
    watch: Watch | None,
) -> NoisePlan:
    """The noise: as planned before, or for what one reading costs."""
    if noise_plan is not None:
        if loss is not None or share is not None:
            raise InvalidParameter(
                "a noise plan has its own cost, got another beside it; nothing was charged"
            )
        check_noise_plan(noise_plan, site)
        return noise_plan
    cost = _loss(budget, loss, share)
    if watch is not None:
        watch("planning the noise")
    return plan(site, cost, calibration=calibration)


def _loss(budget: Loss, loss: SensorLoss | None, share: int | None) -> SensorLoss:
    """What one reading costs: as asked, or its share of the whole budget."""
    if share is None:
        if loss is None:
            raise InvalidParameter(
                "say what one reading costs: `loss` (or, to release, a `share` of the ledger); "
                "nothing was charged"
            )
        return loss
    if loss is not None:
        raise InvalidParameter(
            "`share` stands alone: it is a share of the ledger's budget; nothing was charged"
        )
    return share_of(budget, share)
