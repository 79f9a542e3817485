"""`sfumato sense recover|check`: where sources are, from noisy readings, with a proof that can be checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.console import FAILED, Json, Quiet, fail, sentences, show, working
from sfumato.cli.sense_answer import Asked, Estimator, Given, Unknown, field_told, give, limit
from sfumato.cli.sense_draw import draw
from sfumato.cli.sense_files import read_sigma, read_sources
from sfumato.cli.sense_noisy import made_from, read_noisy
from sfumato.cli.sense_outputs import check_outputs
from sfumato.cli.sense_told import told
from sfumato.errors import InvalidInput, InvalidParameter, LedgerMismatch
from sfumato.files import write_file

if TYPE_CHECKING:
    from sfumato._types import FloatArray, IntArray
    from sfumato.sensing import Recovery, SavedRecovery, Site

_REMARKS = {
    "optimal": "",
    "zero": "the readings are within the radius of no sources at all: nothing can be told from them",
    "infeasible": "no sources in the box explain the readings within the radius (this is proved): the site "
    "does not fit (--fit may find out why), or --radius or --upper is too small",
}


@sentences
def recover(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Noisy readings: .json as `sense release` wrote it, of one or several devices; "
            "or one .csv with --site and --sigma.",
            show_default=False,
        ),
    ],
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="File(s): .json with answer and proof, .csv with the answer's sources.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw it: a .png file.", show_default=False)
    ] = None,
    estimator: Annotated[
        Estimator,
        typer.Option(
            help="Who answers: the Bayes rule for earth mover's distance, the least mass, least squares "
            "between cells, or a mixture of known width."
        ),
    ] = Estimator.bayes_median,
    count: Annotated[
        int | None,
        typer.Option(help="How many sources there are: for a mixture, off-grid, or --fit.", min=1),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            help="The most sources that are thought of: 12, or up to 64 if readings ask for more; between "
            "cells 8.",
            min=1,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Chance of the draws; otherwise that of the readings themselves."),
    ] = None,
    fit: Annotated[
        list[Unknown] | None,
        typer.Option(
            help="Estimate too what is not known: an offset of all readings, the diffusion time; each looks "
            "for broken sensors first, 'sensors' for these only.",
            show_default=False,
        ),
    ] = None,
    site: Annotated[Path | None, typer.Option(help="The site, for .csv readings.")] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Deviation of the noise, for .csv readings.")
    ] = None,
    time: Annotated[str, typer.Option(help="Which of several times.", show_default=False)] = "",
    average: Annotated[
        bool,
        typer.Option("--average", help="Average all times: of sources that stay, with less noise."),
    ] = False,
    radius: Annotated[
        str,
        typer.Option(
            help="How far R may be from the readings: a number, or 'papers' for sigma sqrt(m); otherwise "
            "what noise that sources could make exceeds in 1 of 10 draws, and all that no source can make.",
            show_default=False,
        ),
    ] = "",
    upper: Annotated[
        float,
        typer.Option(help="Largest mass of one source. Too large costs little, too small much."),
    ] = 1.0,
    sources: Annotated[
        Path | None, typer.Option(help="True sources of a simulation: table of cell, mass.")
    ] = None,
    layout: Annotated[
        Path | None, typer.Option(help="Where to draw the nodes of a graph: table of node, x, y.")
    ] = None,
    communities: Annotated[
        int,
        typer.Option(help="On a graph: say which of so many communities the source is in.", min=1),
    ] = 2,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files of --out and --plot.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Recover roughly where sources are, how many, and how sure that is.

    Costs nothing: readings with noise may be worked on as one likes. R, the least mass that
    explains the readings within their noise, is always computed with a proof, which `sense check`
    checks again; the answer of another --estimator stands beside it, and has no proof.
    """
    from sfumato.sensing import recover as solve
    from sfumato.sensing.model import part_of_site

    hush = quiet or json
    inputs = [*files, site, sources, layout]
    check_outputs(out or [], {".json", ".csv"}, reads=inputs, overwrite=overwrite)
    check_outputs([plot] if plot else [], {".png"}, reads=inputs, overwrite=overwrite)
    asked = Asked(
        estimator,
        upper=upper,
        most=most,
        count=count,
        seed=seed,
        fit=tuple(fit or ()),
        radius=radius,
    )
    _both(files, site=site, noise=sigma is not None or bool(radius))
    try:
        read = read_noisy(files, site=site, sigma=sigma, time=time, average=average)
    except InvalidInput:
        _no_site(files)
        raise
    truth = None if sources is None else read_sources(sources, read.site)
    with working(f"recovering from {len(read.names)} readings", quiet=hush):
        operator = part_of_site(read.site, read.names)
        found = solve(operator, read.values, upper=upper, **limit(radius, read.sigma))
        labels = _labels(found, communities)
        given = give(found, read, asked, labels=labels)
    saved = read.saved(found, given.answer)
    result = _result(saved, given, truth, read.site, labels)
    for path in out or []:
        saved.write(path, overwrite=overwrite)
    if plot is not None:
        picture = draw(saved, truth, layout=layout, labels=labels, given=given)
        write_file(plot, picture, overwrite=overwrite)
    show(result, told(saved, result, remarks=_remarks(found, given)), json=json)


def _remarks(found: Recovery, given: Given) -> list[str]:
    """What must be known of a result, printed with it: not to be hushed."""
    field, doubts = given.field, given.misfit
    return [
        *([_REMARKS[found.status]] if field is None and found.status != "optimal" else []),
        *given.remarks,
        *(() if field is None else field.said),
        *([doubts.said] if field is None and doubts is not None and doubts.said else []),
    ]


def _result(
    saved: SavedRecovery,
    given: Given,
    truth: FloatArray | None,
    site: Site,
    labels: IntArray | None,
) -> dict[str, Any]:
    """What --json prints: the saved recovery without what only a check needs, and what else was found."""
    from sfumato.sensing import emd_of

    result = {**saved.to_json(), "site": site.name}
    del result["dual"], result["readings"]
    result["expected_noise"] = (
        None if saved.sigma is None else saved.sigma * len(saved.names) ** 0.5
    )
    if truth is not None:
        if saved.recovery.status == "optimal":
            result["emd"] = emd_of(saved.recovery, truth)
        if given.answer is not None and given.answer.estimate.masses.any():
            result["answer"]["emd"] = emd_of(given.answer.estimate, truth)
    result["remarks"] = list(given.remarks)
    doubts = given.misfit
    result["misfit"] = None if doubts is None else {"p_value": doubts.p_value, "said": doubts.said}
    result["field"] = None if given.field is None else field_told(given.field)
    if labels is not None and saved.recovery.status == "optimal":
        result["community"] = _community(saved, labels)
    return result


@sentences
def check(
    file: Annotated[Path, typer.Argument(help="A recovery (.json).", show_default=False)],
    ledger: Annotated[
        list[Path] | None,
        typer.Option(help="Also check that --readings were paid for, in these ledgers."),
    ] = None,
    readings: Annotated[
        list[Path] | None,
        typer.Option(
            help="The noisy readings it was made from (.json), of one or several devices."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Check a recovery again, independently: its proof, and who paid for its readings; exit 1 if not."""
    from sfumato.privacy import Ledger
    from sfumato.sensing import check as verify
    from sfumato.sensing import read_readings, read_recovery

    if bool(ledger) != bool(readings):
        raise InvalidParameter("--ledger and --readings go together; nothing was checked")
    saved = read_recovery(file)
    found = verify(saved.recovery)
    result: dict[str, Any] = {
        "holds": found.holds,
        "status": saved.recovery.status,
        "objective": found.objective,
        "bound": found.bound,
        "gap": found.gap,
        "residual": found.residual,
        "radius": saved.recovery.radius,
        "why": found.why,
    }
    result = {
        name: None if value != value or value in (float("inf"), -float("inf")) else value
        for name, value in result.items()
    }
    if not found.holds:
        fail(f"{file}: {found.why}", code=FAILED, json=json)
    text = f"{file}: {saved.recovery.status}, {found.why}"
    if ledger and readings:
        books = {book.header.id: book for book in map(Ledger, ledger)}
        read = [read_readings(path) for path in readings]
        if not made_from(saved, read):
            fail(f"{file} was not made from these readings", code=FAILED, json=json)
        for path, one in zip(readings, read, strict=True):
            try:
                for snapshot in one.snapshots:
                    # One that is of none of them is told so by the first.
                    books.get(snapshot.release.ledger, next(iter(books.values()))).check(
                        snapshot.release
                    )
            except LedgerMismatch as problem:
                fail(f"{path}: {problem}", code=FAILED, json=json)
        result["paid"] = True
        paid = " and ".join(map(str, ledger))
        text += f"; releases of these sensors were paid for in {paid} (no receipt vouches for their values)"
    show(result, text, json=json)


def _labels(found: Recovery, count: int) -> IntArray | None:
    """The communities of a graph, if one asks for several."""
    from sfumato.sensing import communities
    from sfumato.spaces import Graph

    space = found.operator.space
    if not isinstance(space, Graph) or found.status == "zero" or count < 2:
        return None
    return communities(space, count=count)


def _community(saved: SavedRecovery, labels: IntArray) -> dict[str, Any]:
    """The community that holds most of R's mass."""
    from sfumato.sensing import community_of

    answer = community_of(saved.recovery.estimate, labels)
    return {
        "label": int(answer.label),
        "nodes": int((labels == answer.label).sum()),
        "members": [saved.site.cell(int(node)) for node in (labels == answer.label).nonzero()[0]],
        "shares": [float(share) for share in answer.shares],
    }


def _both(files: list[Path], *, site: Path | None, noise: bool) -> None:
    """Ask for all that a table of readings lacks at once, not for one thing after the other."""
    if site is not None or noise or len(files) != 1 or files[0].suffix == ".json":
        return
    if read_sigma(files[0]) is None:
        raise InvalidParameter("readings in a .csv need --site and --sigma; nothing was recovered")


def _no_site(files: list[Path]) -> None:
    """Say so where a file that is not of readings is a site."""
    from sfumato.sensing import read_site

    for path in files:
        try:
            read_site(path)
        except InvalidInput:
            continue
        raise InvalidInput(
            f"{path} is a site, not readings of one: give noisy readings, as `sense release` writes them, or "
            f"a .csv with --site {path} and --sigma; nothing was recovered"
        )
