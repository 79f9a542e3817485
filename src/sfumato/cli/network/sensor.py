"""`sfumato sensor`: a sensor that adds noise before it sends; `sfumato unseal`: packets for the key holder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.cli.sense.keys import PassphraseFile, passphrase_of

app = typer.Typer(
    help="A sensor over MQTT: read, add noise, pay, seal and publish on a fixed schedule.",
    no_args_is_help=True,
)
ConfigFile = Annotated[
    Path,
    typer.Argument(
        help="sensor.toml: site, noise plan, key, budget, input and broker.", show_default=False
    ),
]


@app.command("run")
@sentences
def run(
    sensor: ConfigFile,
    rounds: Annotated[
        int | None, typer.Option(help="Stop after so many rounds; else it goes on.", min=1)
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check every file, say what a round costs; read, charge and send nothing.",
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a sensor until it is stopped.

    When packets are sent, and how long they are, depends on the clock and on sensor.toml alone. A round
    without a reading sends the last one again under fresh noise.
    """
    from sfumato.cli.network.light import run_until_stopped
    from sfumato.network.sensors import describe_sensor, plan_lines, read_sensor_config, run_line

    if dry_run:
        found = describe_sensor(read_sensor_config(sensor))
        show(found.to_json(), plan_lines(found), json=json)
        return
    result = run_until_stopped(sensor, rounds, quiet=quiet)
    show(result.to_json(), run_line(result), json=json)


@app.command("plan")
@sentences
def plan(sensor: ConfigFile, json: Json = False) -> None:
    """Plan the noise of a sensor, an equal share of a window for each round, into its file noise_plan.

    Do this on a computer: the sensor itself needs the file alone. All devices of a site use the same one.
    """
    from sfumato.network.sensors import plan_lines, plan_sensor, read_sensor_config

    made = plan_sensor(read_sensor_config(sensor))
    show(made.to_json(), plan_lines(made), json=json)


@app.command("table")
@sentences
def table(
    sensor: ConfigFile,
    file: Annotated[Path, typer.Argument(help="A new file for the device.", show_default=False)],
    json: Json = False,
) -> None:
    """Write the table of a sensor's noise for a small device: C or MicroPython, in devices/.

    Where the site says how coarse readings are (its step), it also says the whole numbers by which the device
    turns counts of each sensor into lattice units: each sensor its own, where each has its own noise.
    """
    from sfumato.network.sensors import read_sensor_config, table_lines, write_device_table

    made = write_device_table(read_sensor_config(sensor), file)
    show(made.to_json(), table_lines(made), json=json)


@sentences
def unseal(
    rounds: Annotated[
        Path,
        typer.Argument(
            help="A collector's rounds in JSON lines, or its store in SQLite.",
            show_default=False,
        ),
    ],
    key: Annotated[Path, typer.Option(help="The master key.", show_default=False)],
    site: Annotated[
        Path | None, typer.Option(help="The site's file, for names.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A new .csv file that only you may read; else they are printed."),
    ] = None,
    passphrase_file: PassphraseFile = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take the noise off packets, exactly: for the holder of the master key. What comes out is private again.

    Packets of another key, and those that somebody changed, the collector too, are refused. That it was
    done is written into the key's log first.
    """
    from sfumato.network import read_packets, unseal_packets
    from sfumato.network.sensors import unsealed_lines
    from sfumato.sensing import read_site

    secret = passphrase_of(key, passphrase_file)
    found = unseal_packets(
        read_packets(rounds),
        key,
        site=None if site is None else read_site(site),
        out=out,
        passphrase=secret,
        named=str(rounds),
    )
    if found.refused:
        say(f"{found.refused} packets were refused", quiet=quiet or json)
    remark = "" if quiet else " (private)"
    show(found.to_json(), unsealed_lines(found) if out is None else f"{out}{remark}", json=json)
