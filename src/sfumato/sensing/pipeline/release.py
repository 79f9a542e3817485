"""From a site to noisy readings that anybody may have, and back with a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sfumato.errors import InvalidInput, InvalidParameter, SfumatoError
from sfumato.files import check_outputs, keep_paid, write_table
from sfumato.privacy import ZCDP, ApproxDP, Ledger, Loss
from sfumato.sensing.model.site import Site
from sfumato.sensing.pipeline.payer import Windows, opened, payer_of
from sfumato.sensing.pipeline.site import site_of
from sfumato.sensing.release.keys import (
    Device,
    MasterKey,
    new_master_key,
    read_master_key,
    write_device_key,
    write_master_key,
)
from sfumato.sensing.release.noise_plan import NoisePlan, check_noise_plan, unit_of
from sfumato.sensing.release.readings import (
    Readings,
    Snapshot,
    check_snapshot,
    plan,
    read_readings,
    release_snapshot,
    unseal_snapshot,
)
from sfumato.sensing.release.rounds import share_of
from sfumato.sensing.results.release import (
    KeyResult,
    ReleasePrice,
    ReleaseResult,
    UnsealedResult,
)
from sfumato.sensing.tables import Frame, read_snapshots, snapshots_of

if TYPE_CHECKING:
    from sfumato.sensing.release.noise_plan import Calibration

Watch = Callable[[str], None]
"""Is told what is being done, step by step."""

ReadingsGiven = str | Path | Mapping[str, float] | Sequence[tuple[str, Mapping[str, float]]] | Frame
"""Exact readings: a file, values by sensor, such values for several times, or a table in memory."""


def price_release(
    site: Site | str | Path,
    *,
    ledger: Ledger | str | Path | None = None,
    windows: Windows | None = None,
    loss: ZCDP | ApproxDP | None = None,
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
        loss: What one reading of all sensors may cost; or `share`.
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
    planned = _planned(found, budget, loss, share, calibration, noise_plan, watch)
    if ledger is not None:
        opened(ledger).afford(planned.cost, bound=planned.bound())
    during = "" if windows is None else f"within each {windows.length}"
    unit = unit_of(found.sensors, window=during)
    return ReleasePrice(planned.cost, planned.sigma, unit, len(found.sensors))


def release_readings(
    readings: ReadingsGiven,
    site: Site | str | Path,
    *,
    ledger: Ledger | str | Path | None = None,
    windows: Windows | None = None,
    loss: ZCDP | ApproxDP | None = None,
    share: int | None = None,
    device: Device | str | Path | None = None,
    some: bool = False,
    calibration: Calibration = "analytic",
    noise_plan: NoisePlan | None = None,
    note: str = "",
    out: Sequence[str | Path] = (),
    watch: Watch | None = None,
) -> ReleaseResult:
    """Release readings: check everything, pay, round, add noise, seal, write.

    The promise is made for all sensors of the site together. Each time is one reading, and is paid for by
    the ledger, or by that of the window it falls into; a window that renews does not protect a source that
    stays. All that can be refused is refused before anything is charged. Should a later reading fail all
    the same, what was paid for is written to `out`, or without it to a file beside the ledger, and the
    message says which.

    Args:
        readings: A table with sensor, value and perhaps time (CSV, JSON, or of pandas, polars or pyarrow);
            or values by sensor; or a list of pairs, a time and its values by sensor. In the unit that the
            site states.
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
        out: New files, .json (everything) or .csv (the numbers).
        watch: Is told what is being done.

    Returns:
        The noisy readings, with what is promised.

    Raises:
        BudgetExceeded: The ledger has less left than all readings cost; nothing was charged.
        InvalidInput: A table or a file is not as it should be; nothing was charged.
        InvalidParameter: A reading is no finite number or of no sensor, or a time no line of text; nothing
            was charged.
        LedgerMismatch: The ledger is for another site; nothing was charged.

    >>> import tempfile
    >>> from sfumato.sensing import describe_site, heat_line, open_ledger
    >>> line = heat_line(sources=100, sensors=20, diffusion_time=0.05)
    >>> hall = describe_site("hall", operator=line, radius="1/100", unit="degC", per_source=1).site
    >>> exact = dict(zip(hall.sensors.names, line.columns([30])[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book = open_ledger(hall, f"{folder}/hall.ledger", ApproxDP(4, "1e-6")).ledger
    ...     noisy = release_readings(exact, hall, ledger=book, loss=ApproxDP(2, "1e-6"))
    >>> noisy.statement[:40], round(noisy.sigma, 2)
    ('epsilon 2, delta 1e-06 for each source, ', 0.19)
    """
    files = tuple(map(Path, out))
    reads = [value for value in (readings, site, ledger, device) if isinstance(value, str | Path)]
    check_outputs(files, {".json", ".csv"}, reads=[Path(value) for value in reads])
    found = site_of(site)
    budget, payer = payer_of(found, ledger, windows)
    planned = _planned(found, budget, loss, share, calibration, noise_plan, watch)
    if ledger is not None:
        opened(ledger).afford(planned.cost, bound=planned.bound())
    snapshots = _snapshots(readings, found)
    for number, (_, values) in enumerate(snapshots, 1):
        missing = [name for name in found.sensors.names if name not in values]
        if missing and not some:
            # The time is not quoted: where columns are mixed up it is a reading.
            what = readings if isinstance(readings, str | Path) else "the table"
            raise InvalidInput(
                f"{what} has no reading of sensor {missing[0]!r} at time {number} of {len(snapshots)}; "
                "`some` releases a part; nothing was charged"
            )
    for time, values in snapshots:
        check_snapshot(values, found, planned, time=time)
    paid_by = [payer(time) for time, _ in snapshots]
    for file in {one.path for one, _ in paid_by}:
        costs = [planned.cost for one, _ in paid_by if one.path == file]
        Ledger(file).afford(*costs)
    sealer = Device(device) if isinstance(device, str | Path) else device
    released: list[Snapshot] = []
    stopped: BaseException | None = None
    try:
        for (time, values), (one, during) in zip(snapshots, paid_by, strict=True):
            released.append(
                release_snapshot(
                    values,
                    found,
                    planned,
                    ledger=one,
                    device=sealer,
                    window=during,
                    time=time,
                    note=note,
                )
            )
    except BaseException as problem:  # an interrupt too: what is paid for is not thrown away
        if not released:
            raise
        stopped = problem
    whole = Readings(found, tuple(released))
    receipt = released[0].release.entry.hash
    if stopped is not None and not files:  # nobody else has them: beside the ledger they are found
        files = (paid_by[0][0].path.with_name(f"readings.{receipt[:12]}.json"),)
    keep_paid(whole.write, files, receipt=receipt, what="readings")
    if stopped is not None:
        part = (
            f"{len(released)} of {len(snapshots)} readings were charged, released and written to "
            f"{' and '.join(map(str, files))}"
        )
        if isinstance(stopped, SfumatoError):
            raise type(stopped)(f"{part}; what stopped the next: {stopped}") from stopped
        stopped.add_note(part)
        if watch is not None:
            watch(part)
        raise stopped
    ledgers = sorted({str(one.path) for one, _ in paid_by})
    return ReleaseResult(whole, planned.sigma, files, tuple(ledgers))


def unseal_readings(
    readings: Readings | str | Path,
    key: MasterKey | str | Path,
    *,
    out: str | Path | None = None,
) -> UnsealedResult:
    """Take the noise off, exactly, for the holder of the master key; what comes out is private again.

    Args:
        readings: Sealed readings, or their .json file.
        key: The master key, or its file.
        out: A new .csv file that only its owner may read.

    Returns:
        The readings as they were quantised, by time and sensor.

    Raises:
        InvalidInput: The readings were not sealed, or under another key, or were changed since.
    """
    master = key if isinstance(key, MasterKey) else read_master_key(key)
    found = readings if isinstance(readings, Readings) else read_readings(readings)
    rows = tuple(
        (snapshot.time, name, value)
        for snapshot in found.snapshots
        for name, value in zip(
            snapshot.names,
            unseal_snapshot(snapshot, found.site, master).reveal().tolist(),
            strict=True,
        )
    )
    if out is None:
        return UnsealedResult(rows)
    write_table(out, ["time", "sensor", "value"], rows, private=True)
    return UnsealedResult(rows, Path(out))


def make_master_key(file: str | Path) -> KeyResult:
    """Make a master key: keep it off the devices, whoever holds it can take the noise off.

    Args:
        file: A new file that only its owner may read.

    Returns:
        The file, and the public id of the key.

    Raises:
        InvalidInput: The file exists already, or cannot be written.
    """
    master = new_master_key()
    write_master_key(file, master)
    return KeyResult(Path(file), master.id)


def make_device_key(master: MasterKey | str | Path, file: str | Path, *, name: str) -> KeyResult:
    """Make the key file of one device; it moves forward each time the device starts, and never back.

    Args:
        master: The master key, or its file.
        file: A new file for the device.
        name: What the device is called; each one has its own name.

    Returns:
        The file, the device and the id of the master key.

    Raises:
        InvalidInput: The file exists already, or cannot be written.
        InvalidParameter: The name is empty or not printable.
    """
    key = master if isinstance(master, MasterKey) else read_master_key(master)
    write_device_key(file, key, name)
    return KeyResult(Path(file), key.id, name)


def _snapshots(readings: ReadingsGiven, site: Site) -> list[tuple[str, Mapping[str, float]]]:
    """Values by sensor for each time, at least one; what is wrong is named by its number, and not quoted."""
    if isinstance(readings, Mapping):
        return [("", readings)]
    if isinstance(readings, str | Path):
        found: list[Any] = [*read_snapshots(readings, site)]
    elif isinstance(readings, Sequence):
        found = [*readings]
    elif hasattr(readings, "columns"):
        found = [*snapshots_of(readings, site)]
    else:
        raise InvalidInput(
            "readings are a file, values by sensor, a list of pairs of a time and such values, or a table "
            f"with columns sensor and value, got {type(readings).__name__}; nothing was charged"
        )
    if not found:
        raise InvalidInput("there must be at least one reading, got none; nothing was charged")
    for number, one in enumerate(found, 1):
        if not (isinstance(one, tuple | list) and len(one) == 2 and isinstance(one[1], Mapping)):
            raise InvalidInput(
                f"number {number} of the readings is no pair of a time and values by sensor; "
                "nothing was charged"
            )
    return [(time, values) for time, values in found]


def _planned(
    site: Site,
    budget: Loss,
    loss: ZCDP | ApproxDP | None,
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


def _loss(budget: Loss, loss: ZCDP | ApproxDP | None, share: int | None) -> ZCDP | ApproxDP:
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
    if not isinstance(budget, ZCDP | ApproxDP):
        raise InvalidParameter(
            f"Gaussian noise needs a budget with a delta, got {budget}; nothing was charged"
        )
    return share_of(budget, share)
