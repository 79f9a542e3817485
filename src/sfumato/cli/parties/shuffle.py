"""`sfumato shuffle`: one map of many devices, mixed by a shuffler and added up by somebody else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.console import Json, Quiet, sentences, show
from sfumato.cli.endings import told_of_signals
from sfumato.cli.heatmap.grouped_options import AreaOptions
from sfumato.cli.heatmap.maps import one_thread
from sfumato.cli.heatmap.options import Epsilon, Out, Overwrite, Title, aloud, watching
from sfumato.cli.missing import ToldTogether, check_given
from sfumato.cli.option_groups import grouped
from sfumato.cli.resuming import Note, Team
from sfumato.errors import InvalidParameter

app = typer.Typer(
    help="Shuffled maps: devices add noise in shares, a shuffler mixes what they send, nobody sees rows.",
    no_args_is_help=True,
)


app.callback()(one_thread)

PlanFile = Annotated[
    Path, typer.Argument(help="The plan, as `sfumato shuffle plan` wrote it.", show_default=False)
]
Where = Annotated[
    str, typer.Option("--shuffler", help="HOST:PORT of the shuffler.", show_default=False)
]
Patience = Annotated[
    float, typer.Option(help="Seconds that the shuffler may be silent; devices wait longer.", min=1)
]


@app.command()
@sentences
def keys(
    file: Annotated[
        Path,
        typer.Argument(
            help="Where the key goes, NAME.key; NAME.pub is for the plan.", show_default=False
        ),
    ],
    json: Json = False,
) -> None:
    """Make the keys of a shuffler, or of an adder: each makes its own, and keeps NAME.key to itself."""
    from sfumato.heatmap.shuffled import make_keys

    public = make_keys(file)
    text = f"made {file} (for nobody else) and {file.with_suffix('.pub')} (for the plan)"
    show({"key": str(file), "public": str(public)}, text, json=json)


@app.command(cls=ToldTogether)
@grouped
@sentences
def plan(
    out: Annotated[Path, typer.Option(help="The plan's file.", show_default=False)],
    epsilon: Epsilon,
    devices: Annotated[
        int, typer.Option(help="How many devices take part at most.", show_default=False, min=2)
    ],
    batch: Annotated[
        int,
        typer.Option(
            help="How many the shuffler mixes at least: with fewer in a round it forwards nothing.",
            show_default=False,
        ),
    ],
    adder: Annotated[Path, typer.Option(help="NAME.pub of whoever adds up.", show_default=False)],
    shuffler: Annotated[Path, typer.Option(help="NAME.pub of the shuffler.", show_default=False)],
    area: AreaOptions,
    curious: Annotated[
        int,
        typer.Option(
            help="How many devices of a batch somebody else may read, or add no noise: their shares are not "
            "counted on."
        ),
    ] = 0,
    delta: Annotated[str, typer.Option(help="What mixing may add to the loss.")] = "1e-10",
    width: Annotated[int, typer.Option(help="Cells of a level that are followed.")] = 20,
    units: Annotated[
        int, typer.Option(help="Into how many units a device divides its mass, a power of two.")
    ] = 64,
    title: Title = "",
    json: Json = False,
) -> None:
    """Plan a shuffled map: how many messages and bytes a device sends, and when it is worth it.

    The plan is one public file for devices, shuffler and adder. Nothing is charged.
    """
    from sfumato.heatmap import public_area
    from sfumato.heatmap.shuffled import plan_shuffled, shuffled_text
    from sfumato.privacy import Shuffled

    check_given()
    found = plan_shuffled(
        public_area(**area.keywords()),
        epsilon=epsilon,
        trust=Shuffled(batch, devices, curious),
        adder=adder,
        shuffler=shuffler,
        delta=delta,
        width=width,
        units=units,
        title=title,
    )
    found.plan.write(out)
    show(found.to_json(), shuffled_text(found), json=json)


@app.command()
@sentences
def serve(
    plan: PlanFile,
    key: Annotated[Path, typer.Option(help="The shuffler's own NAME.key.", show_default=False)],
    listen: Annotated[str, typer.Option(help="HOST:PORT; port 0 is a free one.")] = "127.0.0.1:0",
    enrolled: Annotated[
        Path | None,
        typer.Option(
            help="A file with the SHA-256 of the token of each device that may report, one a line."
        ),
    ] = None,
    anybody: Annotated[
        bool,
        typer.Option(
            "--anybody",
            help="Instead of --enrolled: anybody may report, and whoever does often counts as many.",
        ),
    ] = False,
    wait: Annotated[
        float, typer.Option(help="Seconds that a round waits for devices.", min=0)
    ] = 600,
    memory: Annotated[
        int,
        typer.Option(help="Bytes that reports may take, mixed; the plan says how many it needs."),
    ] = 2**31,
    quiet: Quiet = False,
) -> None:
    """Run the shuffler until the map is done: it takes one report a device, mixes, forwards and forgets.

    Of fewer devices than a batch it forwards nothing.
    """
    import asyncio

    from sfumato.heatmap.shuffled import Keys, Shuffler, parse_address, read_enrolled, read_plan

    host, port = parse_address(listen)
    if anybody is (enrolled is not None):
        raise InvalidParameter(
            "say who may report: `enrolled` with a file, or `anybody`; nothing was started"
        )
    with told_of_signals(), watching(quiet=quiet) as watch:
        shuffler = Shuffler(
            read_plan(plan),
            Keys.read(key),
            wait=wait,
            enrolled=None if enrolled is None else read_enrolled(enrolled),
            memory=memory,
            watch=watch,
        )

        def ready(found: int) -> None:
            show({}, f"listening at {host}:{found}", json=False)

        asyncio.run(shuffler.serve(host, port, ready=ready))


@app.command()
@sentences
def send(
    plan: PlanFile,
    shuffler: Where,
    at: Annotated[
        list[str] | None,
        typer.Option(
            help="X,Y of a place where the person of this device was; several.", show_default=False
        ),
    ] = None,
    token: Annotated[
        Path | None,
        typer.Option(
            help="A file with the 32 hexadecimal digits by which the shuffler knows this device."
        ),
    ] = None,
    memory: Annotated[
        Path | None,
        typer.Option(
            help="A file in which the device notes what it has answered, so that it never does twice; needed, "
            "but for a trial."
        ),
    ] = None,
    most_epsilon: Annotated[
        str | None,
        typer.Option(help="What all plans in the memory may cost this device together."),
    ] = None,
    most_delta: Annotated[
        str | None, typer.Option(help="The delta of all plans in the memory together, at most.")
    ] = None,
    trial: Annotated[
        Path | None,
        typer.Option(
            help="For trials: a table with columns user, lon, lat; a device for each user, all in this process."
        ),
    ] = None,
    timeout: Patience = 600,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take part with one device: it answers each round once, with noise, and ends when the map is done.

    A device without --at sends noise alone: it stands in for one that is gone.
    """
    from sfumato.heatmap.shuffled import (
        Device,
        devices_of_rows,
        parse_place,
        read_plan,
        read_token,
        send_reports,
        shuffled_text,
    )

    agreed = read_plan(plan)
    if trial is not None:
        devices = devices_of_rows(agreed, trial)
    else:
        if memory is None:
            raise InvalidParameter(
                "a device that forgets what it has answered answers twice: give `memory`; nothing was sent"
            )
        own = None if token is None else read_token(token)
        places = [parse_place(one) for one in at or ()]
        devices = [
            Device(
                agreed,
                places,
                token=own,
                memory=memory,
                most_epsilon=most_epsilon,
                most_delta=most_delta,
            )
        ]
    with told_of_signals(), watching(quiet=quiet or json) as watch:
        found = send_reports(devices, shuffler, timeout=timeout, watch=watch)
    show(found.to_json(), shuffled_text(found), json=json)


@app.command()
@sentences
def collect(
    plan: PlanFile,
    shuffler: Where,
    key: Annotated[Path, typer.Option(help="The adder's own NAME.key.", show_default=False)],
    ledger: Annotated[
        Path, typer.Option(help="The ledger that pays, of --model shuffled.", show_default=False)
    ],
    out: Out,
    note: Note = "",
    team: Team = "",
    overwrite: Overwrite = False,
    timeout: Annotated[
        float,
        typer.Option(
            help="Seconds to wait for a round; a minute more than the shuffler, at least."
        ),
    ] = 1200,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add up what devices send, round by round, and make the map: charged first, then asked.

    Too few devices in a round stop it, with exit code 10; what was charged stands.
    """
    from sfumato.heatmap.shuffled import collect_shuffled, shuffled_text

    with told_of_signals(), watching(quiet=quiet or json) as watch:
        found = collect_shuffled(
            plan,
            key=key,
            shuffler=shuffler,
            ledger=ledger,
            outputs=out,
            note=note,
            team=team,
            overwrite=overwrite,
            timeout=timeout,
            watch=watch,
            warn=aloud,
        )
    show(found.to_json(), shuffled_text(found), json=json)
