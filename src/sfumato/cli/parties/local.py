"""`sfumato local`: maps of people who trust nobody; every device randomises before it sends."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.console import Json, Overwrite, Quiet, say, sentences, show
from sfumato.cli.heatmap.maps import one_thread

app = typer.Typer(
    help="Local maps: every device randomises before it sends, and nobody is trusted.",
    no_args_is_help=True,
)

app.callback()(one_thread)

QuestionFile = Annotated[
    Path,
    typer.Argument(help="The question, as local plan or collect wrote it.", show_default=False),
]


@app.command()
@sentences
def plan(
    users: Annotated[
        int, typer.Option(help="How many devices will answer.", min=1, show_default=False)
    ],
    epsilon: Annotated[
        str, typer.Option(help="What an answer may tell, up to 16.", show_default=False)
    ],
    want: Annotated[
        float | None,
        typer.Option(
            help="A Similarity, e.g. 0.8: say how many devices it takes.", show_default=False
        ),
    ] = None,
    bounds: Annotated[
        str, typer.Option(help="Low x, low y, high x, high y of the map, for the question.")
    ] = "0,0,1,1",
    campaign: Annotated[
        str, typer.Option(help="A name that no other campaign with these devices has.")
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(help="Write the question of round 1 here.", show_default=False),
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Forecast a local map from the number of devices and epsilon alone; with --out, write what to ask.

    It reads no data. The forecast is that of simulated cities; below some number of devices no map is
    worth showing, and it says so.
    """
    from sfumato.heatmap.local import ask_first, plan_local, plan_text, read_bounds

    planned = plan_local(users, epsilon, target=want)
    if out is not None:
        box = read_bounds(bounds)
        ask_first(planned.design, out, bounds=box, campaign=campaign, overwrite=overwrite)
    show(planned.to_json(), plan_text(planned), json=json)
    if out is not None:
        say(f"wrote {out}, the question of round 1", quiet=json)


@app.command()
@sentences
def answer(
    question: QuestionFile,
    device: Annotated[
        str, typer.Option(help="The name of this device; a pseudonym will do.", show_default=False)
    ],
    ledger: Annotated[Path, typer.Option(help="The device's own ledger.", show_default=False)],
    place: Annotated[
        list[str],
        typer.Option(
            help="X,Y or X,Y,MASS: where its user is; repeat it, and one is drawn by mass.",
            show_default=False,
        ),
    ],
    budget_epsilon: Annotated[
        str | None,
        typer.Option(
            help="Make the ledger, if there is none: epsilon for all campaigns together.",
            show_default=False,
        ),
    ] = None,
    at_most: Annotated[
        str | None,
        typer.Option(
            help="Refuse a question that asks for more epsilon than this.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the answer here, not to the screen.", show_default=False),
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Answer a question on the device: pay its own ledger, then draw.

    Prints one line of JSON: what to send. Nothing else leaves the device. The same question again gets
    the same answer, at no cost; it is never drawn anew.
    """
    import json as json_

    from sfumato.files import write_file
    from sfumato.heatmap.local import answer as answered
    from sfumato.heatmap.local import read_places, read_question

    found = answered(
        read_question(question),
        read_places(place),
        device=device,
        ledger=ledger,
        budget=budget_epsilon,
        at_most=at_most,
    )
    line = json_.dumps(found.to_json(), separators=(",", ":"))
    if found.again:
        say("this question was answered before: the same answer again, at no cost", quiet=quiet)
    if out is None:
        print(line)  # noqa: T201
    else:
        write_file(out, line + "\n", overwrite=overwrite)


@app.command()
@sentences
def collect(
    questions: Annotated[
        list[Path],
        typer.Argument(
            help="The question of round 1, and that of round 2 if it was asked.", show_default=False
        ),
    ],
    answers: Annotated[
        list[Path] | None,
        typer.Option(help="Answers, one JSON object a line; repeat it.", show_default=False),
    ] = None,
    listen: Annotated[
        int | None,
        typer.Option(
            help="Take answers by HTTP on this machine until interrupted; --answers keeps them.",
            show_default=False,
            min=0,
            max=65535,
        ),
    ] = None,
    mqtt: Annotated[
        str | None,
        typer.Option(
            help="Take answers from mqtt://HOST/TOPIC or mqtts://USER@HOST/TOPIC until interrupted; "
            "--answers keeps them. A level + of the topic is the name of the device.",
            show_default=False,
        ),
    ] = None,
    mqtt_password: Annotated[
        Path | None,
        typer.Option(help="The user's password at the broker, a private file.", show_default=False),
    ] = None,
    mqtt_ca: Annotated[
        Path | None,
        typer.Option(help="The authority of the broker's certificate.", show_default=False),
    ] = None,
    ask: Annotated[
        Path | None,
        typer.Option(help="Write the question of round 2 here.", show_default=False),
    ] = None,
    out: Annotated[
        list[Path] | None,
        typer.Option(help="Write the map: .json, .png or .npy; repeat it.", show_default=False),
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Collect answers: write the question of round 2, or the map of all answers together.

    A device counts once: its first answer. One to round 1 that comes after round 2 was asked still
    counts in the map. Answers come from files, and by HTTP on this machine or from an MQTT topic.
    """
    from sfumato.errors import InvalidParameter
    from sfumato.heatmap.local import collect_answers, collected_text, gather_answers, serve_answers

    def tell(message: str) -> None:
        say(message, quiet=quiet or json)

    paths = answers or []
    if listen is not None and mqtt is not None:
        raise InvalidParameter("answers come by `listen` or by `mqtt`, not by both; not listening")
    if listen is not None:
        serve_answers(questions, port=listen, answers=paths, tell=tell)
    if mqtt is not None:
        from sfumato.network import listen_to, read_inbox

        inbox = read_inbox(mqtt, password_file=mqtt_password, ca_file=mqtt_ca)
        gather_answers(
            questions,
            answers=paths,
            source=lambda desk: listen_to(inbox, desk.take, client_id=desk.name, tell=tell),
            tell=tell,
        )
    result = collect_answers(questions, paths, ask=ask, outputs=out or (), overwrite=overwrite)
    show(result.to_json(), collected_text(result), json=json)
