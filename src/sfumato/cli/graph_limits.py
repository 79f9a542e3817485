"""`sfumato graph limits`: whether a network can tell anything about blocks."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.console import Json, Quiet, say, sentences, show, working
from sfumato.cli.graph_files import (
    Columns,
    Overwrite,
    ends_of,
    read_blocks,
    read_edges,
    read_words,
    signals_line,
)
from sfumato.cli.sense_outputs import check_outputs
from sfumato.errors import InvalidParameter
from sfumato.files import write_file


@sentences
def limits(
    graph: Annotated[
        Path | None,
        typer.Argument(
            help="An edge list, or blocks of `graph blocks --out`, whose nodes, blocks and chances are taken "
            "where they are not given.",
            show_default=False,
        ),
    ] = None,
    n: Annotated[int | None, typer.Option("--n", help="Nodes.", min=2, show_default=False)] = None,
    k: Annotated[int | None, typer.Option("--k", help="Blocks.", min=2, show_default=False)] = None,
    rho: Annotated[
        float | None,
        typer.Option(
            "--rho", help="The largest chance of an edge: that within blocks.", show_default=False
        ),
    ] = None,
    between: Annotated[
        float | None,
        typer.Option(
            help="The chance of an edge between blocks, as a share of --rho; 0.2 if not known.",
            min=0,
            max=1,
            show_default=False,
        ),
    ] = None,
    columns: Columns = "",
    plot: Annotated[
        Path | None, typer.Option(help="Draw the phase diagram: .png.", show_default=False)
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what a network of n nodes can tell about k blocks: before anyone collects it, or of one you have.

    Blocks of even size, an edge within one with chance rho and between two with a share of that.
    """
    from sfumato.graphon import attained_rate, detectability, error_floor, estimation_rate

    check_outputs([plot] if plot else [], {".png"}, reads=[graph], overwrite=overwrite)
    hush = quiet or json
    mine = None if graph is None else _measured(graph, ends_of(columns), hush=hush)
    case = _case(mine, n, k, rho, between)
    said = detectability(case.n, case.k, within=case.within, between=case.between)
    rho = max(case.within, case.between)
    rates = {
        "rate": estimation_rate(case.n, case.k, rho),
        "attained": attained_rate(case.n, case.k, rho),
        "floor": error_floor(case.n, case.k, rho).value,
    }
    compared = {
        "signal": said.signal,
        "contiguous": said.contiguous,
        "degree": said.degree,
        "search_degree": None if math.isinf(said.search_degree) else said.search_degree,
        "separation": said.separation,
        "trivial": said.trivial,
    }
    lines = [
        *([] if mine is None else [mine.sentence, mine.signals]),
        *(
            ["the faintest of these directions, as even blocks:"]
            if mine is not None and mine.k > 2
            else []
        ),
        f"{case.n:,} nodes in {case.k} even blocks, chances {case.within:.3g} within and "
        f"{case.between:.3g} between:",
        said.sentence,
        f"no estimator errs by less than {rates['floor']:.3g} on every network like this (delta_2, expected)",
        f"up to constants: nobody beats {rates['rate']:.3g}, least squares attains {rates['attained']:.3g}, "
        f"answering 0 errs by at most {rho:.3g}",
    ]
    show({**asdict(case), "regime": said.regime, **compared, **rates}, "\n".join(lines), json=json)
    if plot is not None:
        write_file(plot, _phases(case, said.sentence), overwrite=overwrite)
        say(f"written: {plot}", quiet=hush)


@dataclass(frozen=True, slots=True)
class Case:
    """Even blocks to ask about, and the chances of an edge within them and between."""

    n: int
    k: int
    within: float
    between: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What a network says of itself: its nodes, its blocks, and even blocks as faint as its faintest."""

    n: int
    k: int
    within: float
    between: float
    sentence: str
    signals: str


def _measured(path: Path, ends: tuple[str, str] | None, *, hush: bool) -> Measured:
    from sfumato.graphon import Blocks, even_like, signals

    if (kept := read_blocks(path)) is not None:
        graphon, n, sentence = kept.graphon, kept.nodes, f"{kept.nodes:,} nodes: {kept.reason}"
    else:
        given = read_edges(path, ends=ends)
        with working(f"looking for blocks in {path}", quiet=hush):
            found = Blocks().fit(given.network)
        graphon, n, sentence = (
            found.graphon_,
            given.network.size,
            f"{read_words(given)}: {found.reason_}",
        )
    within, between = even_like(graphon)
    return Measured(
        n, graphon.k, within, between, sentence, signals_line(signals(graphon, n).tolist())
    )


def _case(
    mine: Measured | None, n: int | None, k: int | None, rho: float | None, between: float | None
) -> Case:
    """What was given, else what was measured."""
    if mine is None and (n is None or k is None or rho is None):
        raise InvalidParameter("give --n, --k and --rho, or an edge list; nothing was computed")
    if mine is not None:
        n = n or mine.n
        if rho is None and mine.k == 1:
            raise InvalidParameter(
                f"no blocks are found in it ({mine.sentence}): to ask about some that it might have, give "
                "--k and --rho; nothing was computed"
            )
        if rho is None and k is not None and k != mine.k:
            raise InvalidParameter(
                f"it has {mine.k} blocks by itself: to ask about {k}, give --rho as well, the chance within "
                "them; nothing was computed"
            )
        k = k or mine.k
        if rho is None:
            if between is not None:
                raise InvalidParameter(
                    "--between is a share of --rho: give both; nothing was computed"
                )
            return Case(n, k, mine.within, mine.between)
    if n is None or k is None or k < 2 or rho is None:
        raise InvalidParameter("give --k, how many blocks to ask about; nothing was computed")
    share = 0.2 if between is None else between
    if not 0 < rho <= 1:
        raise InvalidParameter(
            f"--rho must be above 0 and at most 1, got {rho}; nothing was computed"
        )
    if share == 1:
        raise InvalidParameter("--between 1 leaves nothing to tell blocks by; nothing was computed")
    return Case(n, k, rho, share * rho)


def _phases(case: Case, sentence: str) -> bytes:
    import numpy as np

    from sfumato.figures import phase_picture
    from sfumato.graphon import REGIMES, phases

    low, rho = sorted((case.within, case.between))
    contrast = (1 - low / rho) * (1 if case.within == rho else -1)
    most = max(2, min(case.n // 2, max(100, 2 * case.k)))
    blocks = np.unique(np.geomspace(2, most, 60).round().astype(np.int64))
    densities = np.geomspace(min(rho, 1 / case.n) / 2, 1, 160)
    where = "between blocks" if contrast > 0 else "within blocks"
    return phase_picture(
        densities,
        blocks,
        phases(case.n, contrast=contrast, densities=densities, blocks=blocks),
        names=REGIMES,
        caption=f"{case.n:,} nodes; the chance {where} is {low / rho:.3g} of the larger. Yours: {sentence}.",
        trivial=(blocks / case.n) ** 2,
        point=(rho, case.k),
    )
