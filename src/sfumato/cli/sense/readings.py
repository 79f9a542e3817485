"""`sfumato sense`: private sensors. Readings in, readings with noise out; where sources are, roughly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.console import Json, Quiet, say, sentences, show, watching
from sfumato.cli.endings import MADE_BEFORE, told_of_signals
from sfumato.cli.ledger import budget_of
from sfumato.cli.missing import ToldTogether, check_given, tell_with_files
from sfumato.cli.resuming import Anew, ListOnly, Note, OfEntry, Once, OtherOut, resumed
from sfumato.cli.sense import calibrate as sense_calibrate
from sfumato.cli.sense import keys as sense_keys
from sfumato.cli.sense import plan as sense_plan
from sfumato.cli.sense import recover as sense_recover
from sfumato.cli.sense import site as sense_site
from sfumato.cli.sense import track as sense_track
from sfumato.cli.sense.options import (
    CalibrationOption,
    Calibrations,
    RoundTime,
    SensorColumn,
    TimeColumn,
    ValueColumn,
    reading_loss,
)
from sfumato.errors import Mistakes
from sfumato.files import check_outputs

if TYPE_CHECKING:
    from sfumato.sensing.pipeline import Windows

app = typer.Typer(
    help="Private sensors: release noisy readings, recover where sources are, take noise off with a key.",
    no_args_is_help=True,
)
app.command("simulate")(sense_site.simulate)
app.command("site")(sense_site.site)
app.command("calibrate")(sense_calibrate.calibrate)
app.command("plan")(sense_plan.plan)
app.command("place")(sense_plan.place)
app.command("ledger")(sense_site.ledger)
app.command("unseal")(sense_keys.unseal)
app.add_typer(sense_keys.keys, name="key")


@app.command("release", cls=ToldTogether)
@sentences
def release(
    readings: Annotated[
        Path,
        typer.Argument(
            help="Exact readings: a table with sensor, value, perhaps time, or a column for each sensor; .csv, "
            ".json, .parquet; or Home Assistant's history.",
            show_default=False,
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
    since: Annotated[
        str,
        typer.Option(
            help="When windows begin, e.g. 2026-11-16: a reading dated before opens none. Else with the first "
            "in the folder, or now. And when rounds of a history begin.",
            show_default=False,
        ),
    ] = "",
    until: Annotated[
        str,
        typer.Option(
            help="When windows end; else now. And rounds of a history.", show_default=False
        ),
    ] = "",
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
    round_time: RoundTime = "",
    history: Annotated[
        bool,
        typer.Option(
            "--history",
            help="A row is there because a reading changed: release what was read last at every --round-time "
            "from --since to --until. Home Assistant's exports are known.",
        ),
    ] = False,
    reference: Annotated[
        Path | None,
        typer.Option(
            help="The site's public baseline, if it is not among the readings: table of time, value.",
            show_default=False,
        ),
    ] = None,
    sensor: SensorColumn = "sensor",
    value: ValueColumn = "value",
    time: TimeColumn = "time",
    calibration: CalibrationOption = Calibrations.analytic,
    note: Note = "",
    once: Once = "",
    anew: Anew = False,
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
    from sfumato.sensing.pipeline import check_note

    quietly = quiet or json
    mistakes = Mistakes()
    asked: dict[str, Any] = {}
    with mistakes.noted():
        check_given()
    for path in out or ():
        with mistakes.noted():
            reads = [readings, site, ledger, device]
            check_outputs([path], {".json", ".csv"}, reads=reads, overwrite=bool(once))
    with mistakes.noted():
        asked["loss"] = reading_loss(epsilon, delta, rho)
    with mistakes.noted():
        asked["windows"] = _windows(windows, window, budget_epsilon, budget_delta)
    with mistakes.noted():
        check_note(note)
    tell_with_files(mistakes, readings, site, ledger, device, reference)

    from sfumato.sensing import Columns
    from sfumato.sensing.pipeline import price_release, release_readings
    from sfumato.sensing.render import price, release_remark

    asked |= {"ledger": ledger, "share": share, "calibration": calibration.value}
    if dry_run:
        with watching(quiet=quietly) as watch:
            priced = price_release(site, watch=watch, **asked)
        show(priced.to_json(), price(priced), json=json)
        return
    with told_of_signals(), watching(quiet=quietly) as watch:
        result = release_readings(
            readings,
            site,
            device=device,
            some=some,
            note=note,
            once=once,
            anew=anew,
            columns=Columns(sensor=sensor, value=value, time=time),
            round_time=round_time,
            reference=reference,
            history=history,
            since=since,
            until=until,
            out=out,
            watch=watch,
            **asked,
        )
    say(release_remark(result), quiet=quietly)
    show(result.to_json(), "\n".join(str(path) for path in out), json=json)
    if result.made_before:
        raise typer.Exit(MADE_BEFORE)


@app.command()
@sentences
def resume(
    ledger: Annotated[
        Path,
        typer.Argument(
            help="The ledger that paid, or the folder of ledgers of windows.", show_default=False
        ),
    ],
    readings: Annotated[
        Path | None,
        typer.Option(help="The exact readings, if they have moved since.", show_default=False),
    ] = None,
    device: Annotated[
        Path | None,
        typer.Option(help="The device's key file, if it has moved since.", show_default=False),
    ] = None,
    out: OtherOut = None,
    paid_only: Annotated[
        bool,
        typer.Option(
            "--paid-only", help="Write what was drawn, and give up what was not paid for yet."
        ),
    ] = False,
    entry: OfEntry = None,
    list_only: ListOnly = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Finish readings, or answers, that were paid for and not delivered: after a signal or a crash.

    What was drawn is taken from beside the ledger, with its seal; what was paid for and not drawn is
    drawn now, at no cost. Readings of the same table that were not paid for yet are charged.
    """
    from sfumato.sensing.pipeline import resume_readings

    with told_of_signals(), watching(quiet=quiet or json) as watch:
        result = resume_readings(
            ledger,
            entry=entry,
            readings=readings,
            device=device,
            out=out,
            paid_only=paid_only,
            list_only=list_only,
            watch=watch,
        )
    resumed(result, list_only=list_only, json=json)


def _windows(folder: Path | None, length: str, epsilon: str, delta: str) -> Windows | None:
    """The windows of time that pay, if a folder was given."""
    from sfumato.sensing.pipeline import Windows

    if folder is None:
        return None
    budget = budget_of(epsilon, delta, "") if epsilon else None
    return Windows(folder, budget, length)


app.command("recover")(sense_recover.recover)
app.command("check")(sense_recover.check)
app.command("track")(sense_track.track)
app.add_typer(sense_track.whisper, name="whisper")
