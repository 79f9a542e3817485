"""`sfumato heatmap draw` and `hotspots`: what can be done with a map that is paid for."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.cli.map_options import H3, Out, Over, Overwrite, Title, write_maps
from sfumato.cli.prior import PriorFile, declared_prior, keep_prior

File = Annotated[Path, typer.Argument(help="A map saved as .json.", show_default=False)]


@sentences
def draw(
    file: File,
    out: Out,
    over: Over = None,
    h3_resolution: H3 = None,
    title: Title = "",
    prior: PriorFile = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a saved map in other formats: it is paid for, so this costs nothing."""
    from sfumato.heatmap import check_outputs, read_heatmap

    saved = read_heatmap(file)
    if title:
        saved = replace(saved, title=title)
    check_outputs(out, saved.area, over=over, h3_resolution=h3_resolution, overwrite=overwrite)
    keep_prior(prior, out)
    if (public := declared_prior(prior, saved.area)) is not None:
        saved = saved.sharpened(public)
    written = write_maps(
        (saved,),
        {saved.group: out},
        over=over,
        h3_resolution=h3_resolution,
        overwrite=overwrite,
        hush=quiet or json,
    )
    show({"statement": saved.statement, "written": written}, "\n".join(written), json=json)


@sentences
def hotspots(
    file: File,
    count: Annotated[int, typer.Option("-k", help="How many places.", min=1)] = 5,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The k places that best stand for a saved map (k-median), and the share of mass near each.

    How far the mass is from them on average is said beside what no k places can be below.

    Where the map knows how sure it is, "real" is said of those within a ring of its picture: there
    is over twice the map's average in every ring, all at once with a chance of 95%.
    """
    from sfumato.heatmap import read_heatmap
    from sfumato.heatmap.inference import in_a_ring

    saved = read_heatmap(file)
    fit = saved.find_hotspots(count)
    found = fit.spots
    lines = [f"{spot.x:.6g}  {spot.y:.6g}  {spot.share:.1%}" for spot in found]
    result: dict[str, Any] = {
        "statement": saved.statement,
        "hotspots": [asdict(spot) for spot in found],
        "distance": fit.distance,
        "lower": fit.lower,
        "gap": fit.gap,
    }
    if saved.posterior is not None or saved.known_marks is not None:
        marks = saved.marks()
        real = [in_a_ring(spot.x, spot.y, marks=marks, grid=saved.area.grid) for spot in found]
        lines = [f"{line}  real" if sure else line for line, sure in zip(lines, real, strict=True)]
        for row, sure in zip(result["hotspots"], real, strict=True):
            row["real"] = sure
        result["marks"] = [asdict(mark) for mark in marks]
    say(
        f"mass is {fit.distance:.3g} sides of the map from the nearest place on average; no choice of "
        f"{count} brings it below {fit.lower:.3g}, {fit.gap:.1%} less",
        quiet=quiet or json,
    )
    show(result, "\n".join(lines), json=json)
