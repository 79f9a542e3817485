"""`sfumato joint`: one map of several parties, of whom nobody shows their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.console import Json, Quiet, sentences, show
from sfumato.cli.endings import FAILED, MADE_BEFORE, told_of_signals
from sfumato.cli.heatmap.grouped_options import AreaOptions, FileOptions, MethodOptions, RowOptions
from sfumato.cli.heatmap.maps import one_thread
from sfumato.cli.heatmap.options import Epsilon, Out, PriorFile, Title, aloud, watching
from sfumato.cli.missing import ToldTogether, check_given
from sfumato.cli.option_groups import grouped
from sfumato.cli.resuming import Note, OtherTable, Team
from sfumato.errors import Mistakes

app = typer.Typer(
    help="Joint maps: several parties, one private map, and nobody shows their rows.",
    no_args_is_help=True,
)


app.callback()(one_thread)


@app.command(cls=ToldTogether)
@grouped
@sentences
def release(
    parties: Annotated[
        Path,
        typer.Option(help="The parties, parties.toml; the same at all.", show_default=False),
    ],
    me: Annotated[
        str,
        typer.Option(
            help="Which of them this is: its number in the file, from 1, or its name.",
            show_default=False,
        ),
    ],
    epsilon: Epsilon,
    ledger: Annotated[
        Path,
        typer.Option(help="This party's ledger, of --model joint.", show_default=False),
    ],
    out: Out,
    rows: RowOptions,
    area: AreaOptions,
    method: MethodOptions,
    files: FileOptions,
    input: Annotated[  # noqa: A002 - the name users see
        str | None,
        typer.Argument(
            help="This party's rows, as for heatmap release; nothing for a helper.",
            show_default=False,
        ),
    ] = None,
    prior: PriorFile = None,
    title: Title = "",
    note: Note = "",
    team: Team = "",
    other_table: OtherTable = False,
    anew: Annotated[
        bool,
        typer.Option(
            "--anew",
            help="Begin another session, though one was charged and not finished: it is charged again. At all "
            "parties or none.",
        ),
    ] = False,
    timeout: Annotated[
        float, typer.Option(help="Seconds to wait for the others at each step.", min=1)
    ] = 600,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check everything but the data, say the cost and the digest of the request; ask nobody.",
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Release one private map of the rows of several parties; run it at each of them.

    All compare a digest of the request before anything is charged. Each party charges its own ledger,
    and adds its own share of the noise to sums that only all of them together open. A party that stops,
    is late or asks for something else stops all, with exit code 10; the same command again at all
    parties goes on, at no further cost.
    """
    from sfumato.heatmap.distributed import check_joint_release

    words: dict[str, Any] = {
        "team": team,
        "other_table": other_table,
        "users": method.users,
        **rows.keywords(),
        **area.keywords(),
        **files.keywords(),
    }
    mistakes = Mistakes()
    with mistakes.noted():
        check_given()
    with mistakes.noted():
        method.check()
    with mistakes.noted():
        check_joint_release(
            input, ledger=ledger, epsilon=epsilon, outputs=out or (), note=note, **words
        )
    mistakes.tell()

    from sfumato.heatmap.distributed import joint_text, plan_joint

    planned = plan_joint(
        input,
        parties=parties,
        me=me,
        ledger=ledger,
        epsilon=epsilon,
        method=method.named(),
        prior=prior,
        outputs=out or (),
        title=title,
        note=note,
        anew=anew,
        **words,
    )
    if dry_run:
        show(planned.result.to_json(), joint_text(planned.result), json=json)
        return
    with told_of_signals(), watching(quiet=quiet or json) as watch:
        result = planned.run(timeout=timeout, watch=watch, warn=aloud)
    show(result.to_json(), joint_text(result), json=json)
    if result.release.made_before and not result.resumed:
        raise typer.Exit(MADE_BEFORE)


@app.command()
@sentences
def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Ledgers of different parties, and maps saved as .json.", show_default=False
        ),
    ],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check that the ledgers (and maps) of several parties tell of the same releases; exit 1 if not.

    Ledgers hold nothing of the rows: parties can show them to each other.
    """
    from sfumato.heatmap.distributed import check_joint, joint_text

    found = check_joint(files)
    if json or not quiet or not found.same:
        show(found.to_json(), joint_text(found), json=json)
    if not found.same:
        raise typer.Exit(FAILED)


@app.command()
@sentences
def certificates(
    folder: Annotated[Path, typer.Argument(help="Where they go.", show_default=False)],
    names: Annotated[
        str,
        typer.Option(
            help="Whose: the name of this party as in parties.toml (several with commas, to try it out).",
            show_default=False,
        ),
    ],
    days: Annotated[int, typer.Option(help="How long they are good for.", min=1)] = 730,
    json: Json = False,
) -> None:
    """Make a key, NAME.key, and a certificate, NAME.crt, by which the other parties know this one.

    Each party makes its own, keeps the key to itself, and sends the certificate to all others by a way
    on which nobody can exchange it.
    """
    from sfumato.heatmap.distributed import joint_text, make_certificates

    made = make_certificates(folder, [name.strip() for name in names.split(",")], days=days)
    show(made.to_json(), joint_text(made), json=json)


@app.command()
@sentences
def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything of the demo.")] = Path(
        "joint-demo"
    ),
    epsilon: Annotated[str, typer.Option(help="What the map may cost each party.")] = "1",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run three parties on this machine: synthetic people, certificates made on the spot, one map.

    Each party is a process of its own, which is told what a user would type. A folder that is there is
    refused.
    """
    from sfumato.heatmap.distributed import DemoParty, joint_text, run_joint_demo

    def command(party: DemoParty) -> list[str]:
        rows, ledger = (party.folder / f"{party.name}{end}" for end in (".parquet", ".ledger"))
        return [
            *("joint", "release", str(rows), "--user", "user"),
            *("--parties", str(party.folder / "parties.toml"), "--me", str(party.number)),
            *("--ledger", str(ledger), "--epsilon", epsilon),
            *("--bounds", ",".join(map(str, party.bounds)), "--levels", "7"),
            *(word for file in party.outputs for word in ("--out", str(file))),
        ]

    with told_of_signals(), watching(quiet=quiet or json) as watch:
        result = run_joint_demo(out, command=command, epsilon=epsilon, watch=watch)
    show(result.to_json(), joint_text(result), json=json)
