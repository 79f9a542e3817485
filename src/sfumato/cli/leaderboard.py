"""`sfumato leaderboard`: all methods on the same samples of made-up or public places, and yours with them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.area import four_numbers
from sfumato.cli.chance import chance
from sfumato.cli.console import Json, Quiet, say, sentences, show, working
from sfumato.cli.map_options import Overwrite, X, Y, keep_apart, named_columns
from sfumato.errors import InvalidInput, InvalidParameter

if TYPE_CHECKING:
    from sfumato.heatmap.benchmark import Contender, Place, Score

CITIES = "made-up cities"
MOST_CITIES = 30
EPSILONS, QUICK_EPSILONS = "0.1,0.5,1,2,5,10", "0.5,1,5"
RUNS, QUICK_RUNS = 60, 6
# Times are ratios to this one's, where it runs too.
BASE = "pyramid"
UNCHECKED = "{}: its privacy was not checked; see sfumato audit"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Places whose scores are taken together, and the samples to run: (place, number)."""

    name: str
    runs: tuple[tuple[Place, int], ...]


@sentences
def leaderboard(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tables of PUBLIC rows, each a place of its own beside the made-up cities.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help=f"Epsilon {QUICK_EPSILONS} and {QUICK_RUNS} runs: seconds."),
    ] = False,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Your own, as module:function; the current folder is looked in; again for more. It is given "
            "counts (a square of floats, in users, each of whom has mass 1), epsilon and a NumPy generator, "
            "and gives back a square of the same shape, none below 0.",
            show_default=False,
        ),
    ] = None,
    methods: Annotated[
        str, typer.Option(help="Which of ours, with commas; else all.", show_default=False)
    ] = "",
    epsilon: Annotated[str, typer.Option(help="Values of epsilon, with commas.")] = EPSILONS,
    users: Annotated[
        int, typer.Option(help="How many people of a place are sampled.", min=1)
    ] = 200,
    runs: Annotated[
        int, typer.Option(help="Samples at each epsilon, over all cities or of a file.", min=2)
    ] = RUNS,
    cities: Annotated[bool, typer.Option(help="Whether made-up cities are run too.")] = True,
    public: Annotated[
        bool,
        typer.Option("--public", help="The rows are public or made up; exact errors may be shown."),
    ] = False,
    user: Annotated[
        str,
        typer.Option(
            help="Column that says whose row it is.", rich_help_panel="Rows", show_envvar=False
        ),
    ] = "user",
    x: X = "lon",
    y: Y = "lat",
    bounds: Annotated[
        str,
        typer.Option(
            help="Box of the files, stretched to the map: west,south,east,north; else that of the rows.",
            show_default=False,
            rich_help_panel="Rows",
            show_envvar=False,
        ),
    ] = "",
    out: Annotated[Path, typer.Option(help="The page to write, .html.")] = Path("leaderboard.html"),
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare methods: four metrics, means with 95 % intervals, paired differences, times, and pictures.

    All methods run on the same samples of users, with noise that comes again: the same command
    gives the same numbers, times excepted. The first method, or yours, is held against every other.
    It is a simulation: never run it on private data, for the errors it shows are exact numbers
    about the rows.
    """
    from sfumato.heatmap.benchmark import times

    hush = quiet or json
    if quick:
        epsilon = QUICK_EPSILONS if epsilon == EPSILONS else epsilon
        runs = QUICK_RUNS if runs == RUNS else runs
    epsilons = _numbers(epsilon)
    contenders = _contenders(methods, method or [], users)
    _check_out(out, files or [], overwrite=overwrite)
    if files and not public:
        raise InvalidParameter(
            "a leaderboard shows exact errors: its rows must be public or made up, said aloud by --public; "
            "nothing was read"
        )
    sources = _sources(files or [], users, runs, cities, (user, x, y), bounds)
    scores: list[Score] = []
    names = [one.name for one in contenders]
    for source, value in product(sources, epsilons):
        told = f"{source.name}: epsilon {value:g}, {len(source.runs)} runs of {len(names)} methods"
        with working(told, quiet=hush), _aside(method):
            scores += _scored(source, contenders, users=users, epsilon=value)
    with working("drawing", quiet=hush), _aside(method):
        pictures = {one.name: _picture(one, contenders, users, epsilons) for one in sources}
    notes = [UNCHECKED.format(name) for name in method or []]
    _write(out, scores, pictures, names[0], users, notes, overwrite=overwrite)
    say(f"wrote {out}", quiet=hush)
    result = {
        "simulation": True,
        "notes": notes,
        "users": users,
        "methods": names,
        "sources": {one.name: _standings(scores, one.name, names[0]) for one in sources},
        "times": times(scores, BASE) if BASE in names else {},
        "scores": [asdict(score) for score in scores],
        "written": str(out),
    }
    show(result, "\n\n".join([*_lines(scores, names[0], users), *notes]), json=json)


def _aside(own: Sequence[str] | None) -> AbstractContextManager[None]:
    """What somebody's own function prints goes to stderr; ours print nothing."""
    if not own:
        return nullcontext()
    from sfumato.cli.audit_live import aside

    return aside()


def _contenders(methods: str, own: Sequence[str], users: int) -> list[Contender]:
    """Those the options name: a researcher's own first, then ours."""
    from sfumato.heatmap.benchmark import Ours, Own, standard_methods

    ours = standard_methods(users)
    wanted = [name.strip() for name in methods.split(",")] if methods else list(ours)
    for name in wanted:
        if name not in ours:
            raise InvalidParameter(f"methods are {', '.join(ours)}, got {name!r}; nothing was run")
    names = [*own, *wanted]
    if len(set(names)) < len(names) or len(names) < 2:
        raise InvalidParameter(
            f"two methods or more that differ are compared, got {names}; nothing was run"
        )
    with _aside(own):
        functions = [Own(target, _function(target)) for target in own]
    return [*functions, *(Ours(name, ours[name]) for name in wanted)]


def _function(target: str) -> Callable[..., Any]:
    """What a module:function names."""
    from sfumato.audit.boxes import load_function

    return load_function(target)


def _numbers(text: str) -> list[float]:
    """Values of epsilon, from small to large."""
    try:
        values = sorted({float(part) for part in text.split(",")})
    except ValueError:
        values = []
    if not values or not all(0 < value < math.inf for value in values):
        raise InvalidParameter(
            f"epsilon is numbers above 0, with commas, got {text!r}; nothing was run"
        )
    return values


def _check_out(out: Path, files: Sequence[str], *, overwrite: bool) -> None:
    """Refuse before minutes of work what would be refused after them."""
    if out.suffix != ".html":
        raise InvalidParameter(f"the leaderboard is a page, .html, got {out}; nothing was run")
    if os.path.lexists(out) and not overwrite:
        raise InvalidParameter(f"{out} exists; say --overwrite to replace it; nothing was run")
    if not out.parent.is_dir():
        raise InvalidInput(f"there is no folder {out.parent}; nothing was run")
    for file in files:
        keep_apart([out], [], file)


def _sources(
    files: Sequence[str],
    users: int,
    runs: int,
    cities: bool,
    columns: tuple[str, str, str],
    bounds: str,
) -> list[Source]:
    """The made-up cities, and each file for itself."""
    from sfumato.heatmap.benchmark import CITIZENS, public_place, synthetic_places

    if not (files or cities):
        raise InvalidParameter(
            "with --no-cities there must be files to run on, got none; nothing was run"
        )
    box = four_numbers(bounds) if bounds else None
    named = named_columns(*columns, "", "", 2**20, "", False)
    found = []
    if cities:
        places = synthetic_places(
            min(MOST_CITIES, runs), people=max(CITIZENS, users), chance=chance
        )
        found.append(Source(CITIES, _samples(places, runs)))
    for file in dict.fromkeys(files):
        place = public_place(file, named, name=file, bounds=box)
        if place.users < users:
            raise InvalidInput(
                f"{file} has rows of {place.users} people in the bounds, fewer than --users {users}; "
                "nothing was run"
            )
        found.append(Source(file, _samples([place], runs)))
    return found


def _samples(places: Sequence[Place], runs: int) -> tuple[tuple[Place, int], ...]:
    """The places in turn, until there are as many samples as runs."""
    return tuple((places[number % len(places)], number // len(places)) for number in range(runs))


def _scored(
    source: Source, contenders: Sequence[Contender], *, users: int, epsilon: float
) -> list[Score]:
    from sfumato.heatmap.benchmark import score_sample

    return [
        score
        for place, sample in source.runs
        for score in score_sample(
            place,
            contenders,
            source=source.name,
            users=users,
            epsilon=epsilon,
            sample=sample,
            chance=chance,
        )
    ]


def _picture(
    source: Source, contenders: Sequence[Contender], users: int, epsilons: Sequence[float]
) -> tuple[str, bytes]:
    """The first sample of a source at the epsilon nearest to 1: the truth and every method's map."""
    from sfumato.figures import draw_small_maps
    from sfumato.heatmap.benchmark import maps_of_sample

    epsilon = min(epsilons, key=lambda value: abs(math.log(value)))
    place, sample = source.runs[0]
    drawn = list(
        maps_of_sample(
            place, contenders, users=users, epsilon=epsilon, sample=sample, chance=chance
        )
    )
    of_what = f"{users} people of {place.name} at epsilon {epsilon:g}"
    caption = f"{of_what}: the truth, and what each method makes of it"
    truth = drawn[0][1]
    panels = [(name or "the truth", image) for name, image, _ in drawn]
    # The rows are public, so their peak may set the scale.
    return caption, draw_small_maps(panels, top=float(truth.max()), caption="Simulated; " + caption)


def _of(scores: Sequence[Score], source: str) -> list[Score]:
    return [score for score in scores if score.source == source]


def _standings(scores: Sequence[Score], source: str, first: str) -> dict[str, Any]:
    """The JSON twin of the tables of one source."""
    from sfumato.heatmap.benchmark import (
        METRICS,
        duels,
        epsilons_of,
        firsts,
        mean_of,
        methods_of,
        tally,
    )

    mine = _of(scores, source)
    against = {rival: duels(mine, first, rival) for rival in methods_of(mine) if rival != first}
    return {
        "means": [
            {"epsilon": epsilon, "method": name, "metric": metric}
            | asdict(mean_of(mine, name, epsilon=epsilon, metric=metric))
            for epsilon, name, metric in product(epsilons_of(mine), methods_of(mine), METRICS)
        ],
        "best_means": firsts(mine),
        "against": {
            rival: asdict(tally(found))
            | {"cells": [_cell(asdict(one)) | {"sign": one.sign} for one in found]}
            for rival, found in against.items()
        },
    }


def _cell(cell: dict[str, Any]) -> dict[str, Any]:
    """JSON has no word for a ratio to 0."""
    return cell if math.isfinite(cell["ratio"]) else cell | {"ratio": None}


def _lines(scores: Sequence[Score], first: str, users: int) -> list[str]:
    """The tables as a terminal shows them."""
    from sfumato.heatmap.benchmark import aligned, first_table, mean_table, tally_table

    parts = []
    for source in dict.fromkeys(score.source for score in scores):
        mine = _of(scores, source)
        parts += [
            _about(mine, source, users),
            aligned(mean_table(mine)),
            aligned(first_table(mine, BASE)),
            aligned(tally_table(mine, first)),
        ]
    return parts


def _about(scores: Sequence[Score], source: str, users: int) -> str:
    from sfumato.heatmap.benchmark import epsilons_of, methods_of

    runs = len(scores) // len(methods_of(scores)) // len(epsilons_of(scores))
    return f"{source}: {runs} runs of {users} people at each epsilon"


def _write(
    out: Path,
    scores: Sequence[Score],
    pictures: dict[str, tuple[str, bytes]],
    first: str,
    users: int,
    notes: Sequence[str],
    *,
    overwrite: bool,
) -> None:
    """The page: for each source the ranking, the pictures, the means, and the first method's duels."""
    from sfumato.heatmap.benchmark import (
        SIGNS,
        duels,
        first_table,
        mean_table,
        methods_of,
        sign_table,
        tally,
        tally_table,
    )
    from sfumato.report import Section, write_report

    sections = [
        Section(
            "What was run",
            "\n\n".join(
                [
                    "All methods on the same samples, 256 x 256 cells, each person with mass 1. Similarity "
                    "and Pearson grow towards 1, KL(true || estimate) and EMD (l1, in sides of the map) fall "
                    "towards 0, all of maps blurred by 0.02 sides; ± is half of a 95 % t interval over the "
                    "runs. Everything is simulated on public or made-up rows: nothing here was released, and "
                    "nobody was protected. The coarse method is told the number of people, the gaussian one "
                    "has a delta of 1e-6.",
                    *notes,
                ]
            ),
        )
    ]
    for source in dict.fromkeys(score.source for score in scores):
        mine = _of(scores, source)
        caption, picture = pictures[source]
        sections += [
            Section(_about(mine, source, users), "", table=first_table(mine, BASE)),
            Section(f"{first} against the others", SIGNS, table=tally_table(mine, first)),
            Section("Pictures", caption, picture=picture, description=caption),
            Section("Means", "", table=mean_table(mine)),
        ]
        for rival in methods_of(mine):
            if rival != first:
                found = duels(mine, first, rival)
                sections.append(
                    Section(f"{first} against {rival}", str(tally(found)), table=sign_table(found))
                )
    write_report(out, "Leaderboard of private heatmaps", sections=sections, overwrite=overwrite)
