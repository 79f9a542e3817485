"""`sfumato sense plan|place`: the noise, what to expect, what would do better, before anything is read."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from itertools import starmap
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato._random import generator
from sfumato.cli.console import Json, Quiet, in_flags, say, sentences, show, watching
from sfumato.cli.heatmap.options import four_numbers
from sfumato.cli.option_groups import grouped
from sfumato.cli.sense.options import (
    CalibrationOption,
    Calibrations,
    Delta,
    Epsilon,
    Rho,
    SyntheticSite,
    Where,
    required_loss,
)
from sfumato.errors import InvalidParameter
from sfumato.files import check_outputs, write_file


class Masses(StrEnum):
    """What is known of the sources to expect."""

    known = "known"
    free = "free"


class Noise(StrEnum):
    """How noise is shared out."""

    auto = "auto"
    one = "one"
    each = "each"


@grouped
@sentences
def plan(
    site: Annotated[
        Path | None,
        typer.Argument(
            help="The site, as `sense site` wrote it; left out, an even one is made up.",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[
        str,
        typer.Option(
            help="What one reading of all sensors may cost; with --readings, all of them together.",
            show_default=False,
        ),
    ] = "",
    delta: Annotated[
        str,
        typer.Option(
            help="And its delta: 1e-6; of --readings together 1e-5, as `sense ledger` has it; 0 for epsilon "
            "alone, by Laplace noise.",
            show_default=False,
        ),
    ] = "",
    rho: Rho = "",
    readings: Annotated[
        int | None,
        typer.Option(help="So many readings share the cost: plan for each of them.", min=1),
    ] = None,
    calibration: CalibrationOption = Calibrations.analytic,
    noise: Annotated[
        Noise,
        typer.Option(
            help="One sigma for all sensors, or each its own: the same cost, and more is told where it can be; "
            "auto takes each where it tells twice as much and is safe, and says so."
        ),
    ] = Noise.auto,
    keep: Annotated[
        float | None,
        typer.Option(
            help="With --noise each: the share of its weight with one sigma that every sensor keeps (9/10); 0 "
            "lets sensors be switched off.",
            min=0.0,
            max=1.0,
            show_default=False,
        ),
    ] = None,
    site_out: Annotated[
        Path | None,
        typer.Option(
            help="Write the site with the noise planned, each sensor's own if it has one, to release with: a "
            "new .json file.",
            show_default=False,
        ),
    ] = None,
    offset: Annotated[
        bool,
        typer.Option(
            "--offset",
            help="All readings will share an offset that nobody knows (`recover --fit offset`): noise for each "
            "counts what is left.",
        ),
    ] = False,
    on: Annotated[
        Where | None,
        typer.Option(
            help="Without a site: a line, a plane, or a graph of two communities.",
            show_default=False,
        ),
    ] = None,
    *,
    made_up: SyntheticSite,
    sources: Annotated[
        int | None,
        typer.Option(
            help="How many sources to expect (1): simulated, also on a SITE if given.", min=1
        ),
    ] = None,
    masses: Annotated[
        Masses, typer.Option(help="Sources to expect are all of mass 1, or anything from 0.3 to 1.")
    ] = Masses.known,
    trials: Annotated[
        int | None,
        typer.Option(
            help="Simulate at most so many recoveries (800); 0 for none, an instant answer.", min=0
        ),
    ] = None,
    want: Annotated[
        float | None,
        typer.Option(
            help="A mean error to reach: says the sensors, and the epsilon, that it takes."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same simulation again.")] = None,
    curves: Annotated[
        bool,
        typer.Option(
            "--curves",
            help="Say how errors move with T, sensors, epsilon and sources, and the best T; takes minutes.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Draw these curves instead, with the plan: an .html page or a .png."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw what physics hides beside the noise: a .png file.")
    ] = None,
    details: Annotated[
        bool,
        typer.Option(
            "--details", help="Say what physics hides: spectrum, coherence, the papers' lemmas."
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say how much noise sensors would add and how good answers will be; and if asked, what would be better.

    Nothing is read or charged. Errors are earth mover's distances in the site's own unit, simulated
    on sources in random cells, with the papers' recovery (least mass) and with the Bayes median.
    With a SITE that takes --sources, --want, --curves or --out; without one it is always done. What
    another T, more sensors, more epsilon or more sources would change takes --curves or --out.
    """
    from sfumato.sensing.pipeline import plan_sensors
    from sfumato.sensing.render import page_sections, picture, plan_text, spectrum

    check_outputs([plot] if plot else [], {".png"}, reads=[site])
    check_outputs([out] if out else [], {".html", ".png"}, reads=[site])
    check_outputs([site_out] if site_out else [], {".json"}, reads=[site])
    if site_out is not None and noise is Noise.one:
        raise InvalidParameter(
            "--site-out writes a site with noise for each, got --noise one; nothing was planned"
        )
    options = made_up.on(on)
    if site is not None and options.given:
        raise InvalidParameter(
            f"a site says its own `{options.given[0]}`; leave one out; nothing was planned"
        )
    if out is not None and trials == 0:
        raise InvalidParameter("--out simulates, --trials 0 does not; nothing was planned")
    quietly = quiet or json
    with watching(quiet=quietly) as watch:
        result = plan_sensors(
            options if site is None else site,
            required_loss(epsilon, delta or ("1e-6" if readings is None else "1e-5"), rho),
            readings=readings,
            calibration=calibration.value,
            noise=noise.value,
            keep=keep,
            offset=offset,
            sources=sources,
            masses=masses.value,
            trials=trials,
            target=want,
            curves=curves or out is not None,
            rng=generator(seed),
            watch=watch,
        )
    if plot is not None:
        write_file(plot, spectrum(result))
    if site_out is not None:
        result.design.site.write(site_out)
        say(f"wrote {site_out}", quiet=quietly)
    if out is not None:
        if out.suffix == ".png":
            write_file(out, picture(result))
        else:
            from sfumato.report import Section, write_report

            parts = page_sections(result, details=details)
            sections = [replace(one, text=in_flags(one.text)) for one in starmap(Section, parts)]
            title = f"Plan: {result.design.site.name}"
            write_report(out, title, sections=sections, overwrite=False)
        say(f"wrote {out}", quiet=quietly)
    show(result.to_json(), plan_text(result, details=details, tables=curves), json=json)


@sentences
def place(
    count: Annotated[
        int, typer.Option(help="How many sensors there will be.", min=1, show_default=False)
    ],
    candidates: Annotated[
        Path | None,
        typer.Argument(
            help="Places that could have a sensor: table of sensor, x, perhaps y.",
            show_default=False,
        ),
    ] = None,
    site: Annotated[
        Path | None,
        typer.Option(
            help="Instead of CANDIDATES: the sensors of this site, on a graph or by a matrix too.",
            show_default=False,
        ),
    ] = None,
    diffusion_time: Annotated[
        float | None, typer.Option(help="T = diffusivity times time.", show_default=False)
    ] = None,
    epsilon: Epsilon = "",
    delta: Delta = "1e-6",
    rho: Rho = "",
    line: Annotated[
        int | None, typer.Option(help="Sources on a line of so many cells.", min=2)
    ] = None,
    length: Annotated[float | None, typer.Option(help="Length of the line (1).")] = None,
    grid: Annotated[
        int | None,
        typer.Option(help="Sources in a plane: 2**GRID by 2**GRID cells of --bounds.", min=1),
    ] = None,
    bounds: Annotated[str, typer.Option(help="The plane's west,south,east,north (0,0,1,1).")] = "",
    radius: Annotated[
        str, typer.Option(help="How far mass may move without anybody telling.")
    ] = "",
    swapped: Annotated[
        str,
        typer.Option(
            help="Instead of --radius: two adjacent cells, each up to this, may be swapped."
        ),
    ] = "",
    mass: Annotated[float, typer.Option(help="The mass of a source.")] = 1.0,
    trials: Annotated[
        int | None,
        typer.Option(help="Simulate so many recoveries from both sets: the gain.", min=2),
    ] = None,
    sources: Annotated[
        int, typer.Option(help="How many sources to simulate; places are chosen for one.", min=1)
    ] = 1,
    seed: Annotated[int | None, typer.Option(help="The same simulation again.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A new .csv table of the chosen, for `sense site --sensors`."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw candidates and the chosen: a .png file.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Choose which of many possible places should have a sensor; nothing is read or charged.

    Noise grows with how much all sensors tell together, so the best places are not simply the most,
    nor those spread out evenly, which are shown beside them. They are chosen for the place of one
    source, wherever it is; for several they mostly help too, but less: --trials with --sources says
    how much.
    """
    from sfumato.sensing import read_site
    from sfumato.sensing.pipeline import plan_placement
    from sfumato.sensing.render import placement_picture, placement_table, placement_text

    check_outputs([out] if out else [], {".csv"}, reads=[candidates, site])
    check_outputs([plot] if plot else [], {".png"}, reads=[candidates, site])
    loss = required_loss(epsilon, delta, rho)
    described: dict[str, Any] = {
        "line": line,
        "length": length,
        "grid": grid,
        "bounds": bounds or None,
        "diffusion_time": diffusion_time,
        "radius": radius or None,
        "swapped": swapped or None,
    }
    given = [name for name, value in described.items() if value is not None]
    if (site is None) == (candidates is None):
        raise InvalidParameter(
            "say where sensors could be: a table of candidates or --site, got "
            f"{'neither' if site is None else 'both'}; nothing was placed"
        )
    if site is not None and given:
        raise InvalidParameter(
            f"a site says its own --{given[0].replace('_', '-')}; leave one out; nothing was placed"
        )
    described["bounds"] = four_numbers(bounds) if bounds else None
    quietly = quiet or json
    with watching(quiet=quietly) as watch:
        result = plan_placement(
            read_site(site) if site is not None else candidates or Path(),
            count,
            loss,
            mass=mass,
            trials=trials,
            sources=sources,
            rng=generator(seed),
            watch=watch,
            **described,
        )
    # Both are made before either is written.
    made = [] if out is None else [(out, placement_table(result))]
    made += [] if plot is None else [(plot, placement_picture(result))]
    for path, data in made:
        write_file(path, data)
        say(f"wrote {path}", quiet=quietly)
    show(result.to_json(), placement_text(result), json=json)
