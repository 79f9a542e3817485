"""`sfumato sense`: private sensors. Readings in, readings with noise out; where sources are, roughly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import (
    sense_place,
    sense_plan,
    sense_recover,
    sense_simulate,
    sense_site,
    sense_track,
)
from sfumato.cli.console import Json, Quiet, say, sentences, show, working
from sfumato.cli.ledger import budget_of
from sfumato.cli.sense_files import read_snapshots
from sfumato.cli.sense_outputs import check_outputs, write_paid
from sfumato.cli.sense_site import CalibrationOption, Calibrations, planned_noise, reading_loss
from sfumato.errors import InvalidInput, InvalidParameter, LedgerMismatch, SfumatoError
from sfumato.files import write_table

if TYPE_CHECKING:
    from datetime import datetime

    from sfumato.privacy import ZCDP, ApproxDP, Ledger, Loss
    from sfumato.sensing import Site, Snapshot

app = typer.Typer(
    help="Private sensors: release noisy readings, recover where sources are, take noise off with a key.",
    no_args_is_help=True,
)
app.command("simulate")(sense_simulate.simulate)
app.command("site")(sense_site.site)
app.command("plan")(sense_plan.plan)
app.command("place")(sense_place.place)
app.command("ledger")(sense_site.ledger)
keys = typer.Typer(
    help="Keys: a master key for whoever may take noise off, a key file for each device."
)
app.add_typer(keys, name="key")


@app.command("release")
@sentences
def release_readings(
    readings: Annotated[
        Path,
        typer.Argument(
            help="Exact readings: a table with sensor, value, perhaps time.", show_default=False
        ),
    ],
    site: Annotated[Path, typer.Option(help="The site's file.", show_default=False)],
    out: Annotated[
        list[Path],
        typer.Option(
            help="New file(s): .json for everything, .csv for the numbers.", show_default=False
        ),
    ],
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger that pays.", show_default=False)
    ] = None,
    windows: Annotated[
        Path | None,
        typer.Option(help="Instead of --ledger: a folder with one ledger for each window of time."),
    ] = None,
    window: Annotated[str, typer.Option(help="Length of a window: 30m, 6h, 1d.")] = "1d",
    budget_epsilon: Annotated[
        str, typer.Option(help="Budget of each window.", show_default=False)
    ] = "",
    budget_delta: Annotated[str, typer.Option(help="And its delta.")] = "1e-5",
    epsilon: Annotated[
        str, typer.Option(help="What one reading of all sensors costs.", show_default=False)
    ] = "",
    delta: Annotated[str, typer.Option(help="And its delta.")] = "1e-6",
    rho: Annotated[str, typer.Option(help="Its cost in rho instead.", show_default=False)] = "",
    share: Annotated[
        int | None,
        typer.Option(
            help="Instead: an equal share of the whole budget, for so many readings.", min=1
        ),
    ] = None,
    device: Annotated[
        Path | None,
        typer.Option(help="A device's key file: the noise can be taken off with the master key."),
    ] = None,
    some: Annotated[
        bool, typer.Option("--some", help="Only some sensors are in the table: this device's own.")
    ] = False,
    calibration: CalibrationOption = Calibrations.analytic,
    note: Annotated[str, typer.Option(help="A line for the ledger.")] = "",
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Check everything but the readings, say the cost, read nothing."
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Release readings: pay, round, add noise.

    The promise is made for all sensors of the site together. Each time in the table is one reading,
    and is paid for by the window it falls into; a window that renews does not protect a source that
    stays.
    """
    from sfumato.privacy import Ledger
    from sfumato.privacy.accounting import encode
    from sfumato.sensing import Device, Readings, read_site, unit_of
    from sfumato.sensing import release_readings as release_snapshot

    hush = quiet or json
    check_outputs(out, {".json", ".csv"}, reads=[readings, site, ledger, device])
    found = read_site(site)
    budget, payer = _payer(found, ledger, windows, window, budget_epsilon, budget_delta)
    with working("planning the noise", quiet=hush):
        planned = planned_noise(found, _loss(budget, epsilon, delta, rho, share), calibration)
    if ledger is not None:
        Ledger(ledger).afford(planned.cost, bound=planned.bound())
    promise = (
        f"{planned.cost} for one reading of {len(found.sensors)} sensors: sigma {planned.sigma:.4g}"
    )
    if dry_run:
        unit = unit_of(found.sensors, window=f"within each {window}" if windows else "")
        result = {"cost": encode(planned.cost), "sigma": planned.sigma, "unit": unit}
        show(result, f"would cost {promise}; nothing was read or charged", json=json)
        return
    snapshots = read_snapshots(readings, found)
    for number, (_, values) in enumerate(snapshots, 1):
        missing = [name for name in found.sensors.names if name not in values]
        if missing and not some:
            # The time is not quoted: where columns are mixed up it is a reading.
            raise InvalidInput(
                f"{readings} has no reading of sensor {missing[0]!r} at time {number} of {len(snapshots)}; "
                "--some releases a part; nothing was charged"
            )
    paid_by = [payer(time) for time, _ in snapshots]
    for file in {one.path for one, _ in paid_by}:
        costs = [planned.cost for one, _ in paid_by if one.path == file]
        Ledger(file).afford(*costs)
    sealer = None if device is None else Device(device)
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
    write_paid(Readings(found, tuple(released)), out)
    if stopped is not None:
        part = f"{len(released)} of {len(snapshots)} readings were released and written"
        if isinstance(stopped, SfumatoError):
            raise type(stopped)(f"{stopped}; {part}") from stopped
        say(part, quiet=quiet)
        raise stopped
    statement = _promised(released)
    say(f"released {'1 reading, ' if len(released) == 1 else ''}{statement}", quiet=hush)
    result = {
        "written": [str(path) for path in out],
        "readings": len(released),
        "sigma": planned.sigma,
        "statement": statement,
        "sealed": sealer is not None,
        "ledgers": sorted({str(one.path) for one, _ in paid_by}),
    }
    show(result, "\n".join(str(path) for path in out), json=json)


@app.command()
@sentences
def unseal(
    readings: Annotated[Path, typer.Argument(help="Sealed readings (.json).", show_default=False)],
    key: Annotated[Path, typer.Option(help="The master key.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(help="A new .csv file that only you may read; else they are printed."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take the noise off, exactly: for the holder of the master key. What comes out is private again."""
    from sfumato.sensing import read_master_key, read_readings, unseal_snapshot

    master = read_master_key(key)
    found = read_readings(readings)
    rows = [
        {"time": snapshot.time, "sensor": name, "value": value}
        for snapshot in found.snapshots
        for name, value in zip(
            snapshot.names,
            unseal_snapshot(snapshot, found.site, master).reveal().tolist(),
            strict=True,
        )
    ]
    if out is None:
        show(
            {"private": True, "readings": rows},
            "\n".join(f"{r['time']} {r['sensor']} {r['value']!r}".lstrip() for r in rows),
            json=json,
        )
        return
    write_table(
        out, ["time", "sensor", "value"], [list(row.values()) for row in rows], private=True
    )
    remark = "" if quiet else " (private)"
    show({"private": True, "written": str(out)}, f"{out}{remark}", json=json)


@keys.command("new")
@sentences
def key_new(
    file: Annotated[
        Path, typer.Argument(help="A new file for the master key.", show_default=False)
    ],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a master key: keep it off the devices, whoever holds it can take the noise off."""
    from sfumato.sensing import new_master_key, write_master_key

    master = new_master_key()
    write_master_key(file, master)
    say(f"made master key {master.id}; who holds {file} can take noise off", quiet=quiet or json)
    show({"key": str(file), "id": master.id}, str(file), json=json)


@keys.command("device")
@sentences
def key_device(
    master: Annotated[Path, typer.Argument(help="The master key.", show_default=False)],
    file: Annotated[
        Path, typer.Argument(help="A new key file for the device.", show_default=False)
    ],
    name: Annotated[
        str, typer.Option(help="What the device is called; give each one its own name.")
    ],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make the key file of one device; it moves forward each time the device starts, and never back."""
    from sfumato.sensing import read_master_key, write_device_key

    key = read_master_key(master)
    write_device_key(file, key, name)
    say(f"made a key for device {name!r} under master key {key.id}", quiet=quiet or json)
    show({"key": str(file), "device": name, "id": key.id}, str(file), json=json)


def _promised(released: list[Snapshot]) -> str:
    """What was promised: of several readings each, and all together for those of one ledger."""
    from sfumato.privacy import ZCDP, as_approx, compose

    one = str(released[0].guarantee)
    if len(released) == 1:
        return one
    largest = max(
        sum(snapshot.release.ledger == ledger for snapshot in released)
        for ledger in {snapshot.release.ledger for snapshot in released}
    )
    whole = compose([released[0].guarantee.loss] * largest)
    meant = ""
    if isinstance(whole, ZCDP):  # rho means little to most people
        meant = f" (epsilon {float(as_approx(whole, '1e-6').epsilon):.3g} at delta 1e-06)"
    windows = "" if largest == len(released) else ", the most in one window"
    return f"{len(released)} readings, each {one}; {largest} together {whole}{meant}{windows}"


def _payer(
    site: Site, ledger: Path | None, windows: Path | None, window: str, epsilon: str, delta: str
) -> tuple[Loss, Callable[[str], tuple[Ledger, str]]]:
    """The whole budget, and who pays for the reading of a time: the one ledger, or that of its window."""
    from sfumato.privacy import Ledger
    from sfumato.sensing import describe_window, parse_window, window_ledger, window_of

    if (ledger is None) == (windows is None):
        raise InvalidParameter(
            "say who pays: --ledger FILE or --windows FOLDER; nothing was charged"
        )
    if ledger is not None:
        if not ledger.exists():
            raise InvalidInput(
                f"there is no ledger at {ledger}; `sfumato sense ledger` makes one; nothing was charged"
            )
        book = Ledger(ledger)
        _pays_for(book, site, "")
        return book.header.budget, lambda _: (book, "")
    if windows is None or not epsilon:
        raise InvalidParameter(
            "--windows needs --budget-epsilon, the budget of each; nothing was charged"
        )
    length, budget, folder = parse_window(window), budget_of(epsilon, delta, ""), windows

    def of_window(time: str) -> tuple[Ledger, str]:
        moment = _moment(time)
        book = window_ledger(
            folder,
            moment,
            length=length,
            budget=budget,
            sensors=site.sensors,
            source=site.name,
            neighbors=site.neighbors,
        )
        during = describe_window(window_of(moment, length), length)
        _pays_for(book, site, during)
        return book, during

    return budget, of_window


def _pays_for(book: Ledger, site: Site, window: str) -> None:
    """Refuse a ledger of other sensors or another promise before anything is read."""
    from sfumato.sensing import unit_of

    unit = unit_of(site.sensors, window=window)
    if book.header.source != site.name:
        raise LedgerMismatch(
            f"{book.path} accounts for the source {book.header.source!r}, the site is {site.name!r}; "
            "nothing was charged"
        )
    if (book.header.neighbors, book.header.unit) != (site.neighbors, unit):
        raise LedgerMismatch(
            f"{book.path} accounts for each {book.header.unit} ({book.header.neighbors}), the site for each "
            f"{unit} ({site.neighbors}); nothing was charged"
        )


def _moment(time: str) -> datetime:
    """When a reading was taken: as its table says, in UTC unless it names a zone; or now."""
    from datetime import UTC, datetime, timedelta

    now = datetime.now(UTC)
    if not time:
        return now
    # A time is not quoted: where columns are mixed up it is a reading.
    try:
        found = datetime.fromisoformat(time)
        moment = (found.replace(tzinfo=UTC) if found.tzinfo is None else found).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(
            "with --windows every time is written like 2026-11-16T09:30Z, got another; nothing was charged"
        ) from None
    if moment > now + timedelta(minutes=5):
        raise InvalidInput("a reading cannot be of a time to come, got one; nothing was charged")
    return moment


def _loss(budget: Loss, epsilon: str, delta: str, rho: str, share: int | None) -> ZCDP | ApproxDP:
    """What one reading costs: as asked, or its share of the whole budget."""
    from sfumato.privacy import ZCDP, ApproxDP
    from sfumato.sensing.release import share_of

    if share is None:
        return reading_loss(epsilon, delta, rho)
    if epsilon or rho:
        raise InvalidParameter(
            "--share stands alone: it is a share of the ledger's budget; nothing was charged"
        )
    if not isinstance(budget, ZCDP | ApproxDP):
        raise InvalidParameter(
            f"Gaussian noise needs a budget with a delta, got {budget}; nothing was charged"
        )
    return share_of(budget, share)


app.command("recover")(sense_recover.recover)
app.command("check")(sense_recover.check)
app.command("track")(sense_track.track)
app.add_typer(sense_track.whisper, name="whisper")
