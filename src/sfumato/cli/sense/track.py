"""`sfumato sense track|whisper`: sources followed through rounds, and where a whisper began."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.console import Json, Quiet, say, sentences, show, watching
from sfumato.cli.endings import UNRELIABLE, told_of_signals
from sfumato.cli.option_groups import grouped
from sfumato.cli.resuming import Anew, Note
from sfumato.cli.sense.options import FloorPlanOptions, Overwrite, SpreadOptions
from sfumato.files import check_outputs, write_file

whisper = typer.Typer(
    help="Whisper networks: who heard it, told through noise; in which community did it begin?",
    no_args_is_help=True,
)
GraphFile = Annotated[
    Path, typer.Option(help="Who talks to whom, public: edge list u, v.", show_default=False)
]
LargestPart = Annotated[
    bool, typer.Option("--largest-part", help="Keep the largest connected part of the graph.")
]
SpreadName = Annotated[
    str,
    typer.Option(
        help="How it spreads: independent, or along edges as independent-cascade, si or linear-threshold."
    ),
]


@grouped
@sentences
def track(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Noisy readings (.json) of one site, as `sense release` wrote them: of several "
            "times, in one file or in several.",
            show_default=False,
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="A new .json file for the track.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw it: a .png file.", show_default=False)
    ] = None,
    count: Annotated[
        int, typer.Option(help="How many sources there are: it is not learned.", min=1)
    ] = 1,
    speed: Annotated[
        float | None,
        typer.Option(
            help="How far a source goes in a round, as a deviation; otherwise it is learned."
        ),
    ] = None,
    upper: Annotated[float, typer.Option(help="Largest mass of one source.")] = 1.0,
    seed: Annotated[
        int | None,
        typer.Option(help="Chance of the draws, for several sources; else that of the readings."),
    ] = None,
    without_suspects: Annotated[
        bool,
        typer.Option(
            "--without-suspects",
            help="Leave out sensors that the others contradict: dead or drifting ones.",
        ),
    ] = False,
    layout: Annotated[
        Path | None, typer.Option(help="Where to draw the nodes of a graph: table of node, x, y.")
    ] = None,
    *,
    floor: FloorPlanOptions,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Follow sources that move: where each was in each round, and how sure that is.

    Costs nothing beyond what the rounds have cost; that is added up from their receipts, because
    whoever is followed is in all of them. Exit 9 where the readings contradict the track: the
    verdict, said first, is not to rely on it.
    """
    from sfumato.sensing.pipeline import track_sources
    from sfumato.sensing.render import draw_track, track_lines

    inputs = [*files, layout, floor.over, floor.outline]
    check_outputs([out] if out else [], {".json"}, reads=inputs, overwrite=overwrite)
    check_outputs([plot] if plot else [], {".png"}, reads=inputs, overwrite=overwrite)
    plan = floor.read()
    with watching(quiet=quiet or json) as watch:
        result = track_sources(
            files,
            count=count,
            speed=speed,
            max_mass=upper,
            seed=seed,
            leave_out_faulty=without_suspects,
            watch=watch,
        )
    picture = None if plot is None else draw_track(result, plan=plan, layout=layout)
    if out is not None:
        result.write(out, overwrite=overwrite)
    if plot is not None and picture is not None:
        write_file(plot, picture, overwrite=overwrite)
    show(result.to_json(), track_lines(result), json=json)
    if not result.verdict.reliable:
        raise typer.Exit(UNRELIABLE)


@whisper.command()
@grouped
@sentences
def plan(
    graph: Annotated[
        Path,
        typer.Argument(help="Who talks to whom, public: edge list u, v.", show_default=False),
    ],
    target: Annotated[
        float,
        typer.Option(
            help="The loss allowed between two protected starts: odds change by e to it at most.",
            show_default=False,
        ),
    ],
    spread: Annotated[
        str,
        typer.Option(
            help="The model it rests on: independent, independent-cascade, si or linear-threshold.",
            show_default=False,
        ),
    ],
    protect_starts_within: Annotated[
        int | None,
        typer.Option(
            help="Starts at most so many hops apart are protected from each other; else any two.",
            min=1,
            show_default=False,
        ),
    ] = None,
    communities: Annotated[
        int | None,
        typer.Option(
            help="Starts of one community of so many are protected from each other.",
            min=1,
            show_default=False,
        ),
    ] = None,
    *,
    model: SpreadOptions,
    largest_part: LargestPart = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say with which epsilon all answers together hide who began it; nothing private is read.

    A Pufferfish guarantee: it holds if the whisper spreads as --spread says. What `whisper release`
    promises each node stands beside it, and holds however it spreads.
    """
    from sfumato.sensing.pipeline import plan_whisper

    with watching(quiet=quiet or json) as watch:
        found = plan_whisper(
            graph,
            spread=spread,
            target=target,
            within=protect_starts_within,
            communities=communities,
            **model.keywords(),
            largest_part=largest_part,
            watch=watch,
        )
    show(found.to_json(), str(found), json=json)


@whisper.command()
@sentences
def release(
    answers: Annotated[
        Path,
        typer.Argument(
            help="Exact answers: a table with node, heard (yes or no).", show_default=False
        ),
    ],
    graph: GraphFile,
    ledger: Annotated[
        Path,
        typer.Option(
            help="The ledger that pays: `ledger create --unit node --neighbors replace`.",
            show_default=False,
        ),
    ],
    epsilon: Annotated[
        str, typer.Option(help="What one answer of each node costs.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="A new .json file.", show_default=False)],
    largest_part: LargestPart = False,
    note: Note = "",
    anew: Anew = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Check everything but the answers, say the cost, read nothing."
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Release who has heard: pay, then flip each answer with a chance that epsilon sets.

    The promise is for each node's own answer; those of others tell about it too. It is not that
    nobody learns where it began: another start changes the answers of many. Whoever runs this reads
    everybody's exact answers, the central model; a ledger of --model local is for a node that
    releases its own row alone.
    """
    from sfumato.sensing.pipeline import release_whisper, whisper_cost
    from sfumato.sensing.render import answers_remark, whisper_price

    if dry_run:
        check_outputs([out], {".json"}, reads=[answers, graph, ledger])
        planned = whisper_cost(graph, epsilon=epsilon, ledger=ledger, largest_part=largest_part)
        show(planned.to_json(), whisper_price(planned), json=json)
        return
    with told_of_signals():
        paid = release_whisper(
            answers,
            graph,
            epsilon=epsilon,
            ledger=ledger,
            out=out,
            largest_part=largest_part,
            note=note,
            anew=anew,
        )
    say(answers_remark(paid), quiet=quiet or json)
    show({"written": str(out), **paid.summary()}, str(out), json=json)


@whisper.command()
@grouped
@sentences
def locate(
    said: Annotated[
        list[Path],
        typer.Argument(
            help="Answers with noise (.json), as `whisper release` wrote them: one file of all nodes, or "
            "several of one graph and one epsilon, in the local model one of each node.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="A .json file with the probability of every node.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw it: a .png file.", show_default=False)
    ] = None,
    communities: Annotated[int, typer.Option(help="Of how many communities.", min=1)] = 2,
    share: Annotated[
        float, typer.Option(help="The set of nodes named holds the start with this.")
    ] = 0.9,
    spread: SpreadName = "independent",
    *,
    model: SpreadOptions,
    start: Annotated[
        str,
        typer.Option(
            help="The true start of a simulation: a node's name, or the start.csv of `whisper simulate`.",
            show_default=False,
        ),
    ] = "",
    layout: Annotated[
        Path | None, typer.Option(help="Where to draw the nodes: table of node, x, y.")
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say where it began: how likely each community and each node is; it costs nothing more.

    Where it ran from mouth to mouth, --spread names how: what is then said of communities and of the
    set of nodes is so as often as it says, on whispers simulated that way.
    """
    from sfumato.sensing.pipeline import find_whisper
    from sfumato.sensing.render import draw_whisper, whisper_text

    check_outputs([out] if out else [], {".json"}, reads=[*said, layout], overwrite=overwrite)
    check_outputs([plot] if plot else [], {".png"}, reads=[*said, layout], overwrite=overwrite)
    with watching(quiet=quiet or json) as watch:
        result = find_whisper(
            said,
            communities=communities,
            share=share,
            spread=spread,
            **model.keywords(),
            start=start,
            watch=watch,
        )
    if out is not None:
        result.write(out, overwrite=overwrite)
    if plot is not None:
        write_file(plot, draw_whisper(result, layout=layout), overwrite=overwrite)
    show(result.summary(), whisper_text(result), json=json)


@whisper.command()
@sentences
def simulate(
    folder: Annotated[Path, typer.Argument(help="A new folder for the files.", show_default=False)],
    nodes: Annotated[int, typer.Option(help="Nodes, in two communities.", min=4)] = 200,
    graph: Annotated[
        Path | None,
        typer.Option(help="Instead: make up a whisper on this graph of your own: u, v."),
    ] = None,
    mouth_to_mouth: Annotated[
        float | None,
        typer.Option(
            help="It runs along edges, each with this chance; otherwise as the model has it."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same whisper again.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make up a network and a whisper that began somewhere in it: to try everything on."""
    from sfumato.sensing.pipeline import simulate_whisper
    from sfumato.sensing.render import simulated_remark

    made = simulate_whisper(
        graph, nodes=nodes, mouth_to_mouth=mouth_to_mouth, seed=seed, folder=folder
    )
    say(simulated_remark(made), quiet=quiet or json)
    files = made.to_json()
    show(files, "\n".join(files.values()), json=json)
