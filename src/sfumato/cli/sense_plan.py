"""`sfumato sense plan`: the noise, what to expect, and what would do better, before anything is read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.chance import chance
from sfumato.cli.console import Json, Quiet, say, sentences, show, working
from sfumato.cli.sense_imagined import (
    CellsOption,
    Imagined,
    LengthOption,
    RadiusOption,
    SensorsOption,
    TimeOption,
    Where,
    imagined,
)
from sfumato.cli.sense_outputs import check_outputs
from sfumato.cli.sense_site import (
    CalibrationOption,
    Calibrations,
    Rho,
    planned_noise,
    reading_loss,
)
from sfumato.errors import InvalidParameter
from sfumato.files import write_file

if TYPE_CHECKING:
    from sfumato.privacy import ZCDP, ApproxDP
    from sfumato.sensing import NoisePlan, Site
    from sfumato.sensing.planning import Curve, Design, RecoveryForecast


class Masses(StrEnum):
    """What is known of the sources to expect."""

    known = "known"
    free = "free"


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
            help="And its delta: 1e-6; of --readings together 1e-5, as `sense ledger` has it.",
            show_default=False,
        ),
    ] = "",
    rho: Rho = "",
    readings: Annotated[
        int | None,
        typer.Option(help="So many readings share the cost: plan for each of them.", min=1),
    ] = None,
    calibration: CalibrationOption = Calibrations.analytic,
    on: Annotated[
        Where | None,
        typer.Option(
            help="Without a site: a line, a plane, or a graph of two communities.",
            show_default=False,
        ),
    ] = None,
    sensors: SensorsOption = None,
    cells: CellsOption = None,
    length: LengthOption = None,
    diffusion_time: TimeOption = None,
    radius: RadiusOption = "",
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
    from sfumato.cli import sense_forecast as words
    from sfumato.cli import sense_plan_page as pages
    from sfumato.cli.sense_cost import after_readings
    from sfumato.cli.sense_words import many, plain
    from sfumato.sensing import conditioning, read_site
    from sfumato.sensing.planning import Design

    check_outputs([plot] if plot else [], {".png"}, reads=[site])
    check_outputs([out] if out else [], {".html", ".png"}, reads=[site])
    if trials == 1:
        raise InvalidParameter(
            "a mean with an interval needs two trials, got 1; nothing was planned"
        )
    rng = chance(seed)
    made_up = Imagined(on, sensors, cells, diffusion_time, radius, length)
    if site is None:
        found = imagined(made_up, kind="planned", rng=rng, undone="nothing was planned")
    elif made_up.given:
        raise InvalidParameter(
            f"a site says its own {made_up.given[0]}; leave one out; nothing was planned"
        )
    else:
        found = read_site(site)
    more = want is not None or curves or out is not None
    if trials == 0 and more:
        raise InvalidParameter(
            "--want, --curves and --out simulate, --trials 0 does not; nothing was planned"
        )
    if want is not None and not 0 < want < float("inf"):
        raise InvalidParameter(
            f"a wanted error is positive and finite, got {want}; nothing was planned"
        )
    hush = quiet or json
    with working(f"looking at {many(len(found.sensors), 'sensor')}", quiet=hush):
        total = reading_loss(epsilon, delta or ("1e-6" if readings is None else "1e-5"), rho)
        loss = _each(total, readings, calibration)
        design = Design(found, loss, sources or 1, masses.value, calibration.value)
        planned = planned_noise(found, loss, calibration)
        physics = conditioning(found.operator)
        result, lines = words.noise(
            design, planned, physics, total=total, readings=readings, details=details
        )
        assumed = made_up.assumed(found) if site is None else []
        lines = [lines[0], *assumed, *lines[1:]]
        head = 2 + len(assumed)
        rest: list[str] = []
        for part, told in (
            words.resolution_of(design, planned, readings),
            after_readings(design, planned, total, readings),
        ):
            result |= part
            rest += told
        part, papers = words.bounds(design)
        result |= part
    if plot is not None:
        write_file(plot, _spectrum(found, planned, physics))
    if trials != 0 and (site is None or sources is not None or more):
        begin = perf_counter()
        part, told, foreseen = _simulated(design, rng, trials, readings=readings, quiet=hush)
        seconds = perf_counter() - begin
        result |= part
        lines = lines[:head] + told + lines[head:]
        if want is not None:
            part, needs = _needs(
                design, want, foreseen, rng, trials, shared=(total, readings), quiet=hush
            )
            result |= part
            head += len(told)
            lines = lines[:head] + needs + lines[head:]
        lines += rest
        if curves or out is not None:
            drawn = _curves(design, foreseen, rng, trials, quiet=hush)
            part = pages.curves(design, drawn)
            if out is not None:
                pages.write_page(out, design, lines + papers, drawn, result, foreseen, part)
                say(f"wrote {out}", quiet=hush)
            result |= part
            lines += pages.tables(design, drawn) if curves else []
            lines += [part["best_time"]["said"]] if "best_time" in part else []
            lines += papers
        else:
            lines += [*papers, pages.not_shown(design, foreseen, seconds)]
    else:
        lines += rest + papers
        lines += ["--sources 1 forecasts how far off answers will be"] if trials != 0 else []
    show(plain(result), "\n".join(lines), json=json)


def _each(
    total: ZCDP | ApproxDP, readings: int | None, calibration: Calibrations
) -> ZCDP | ApproxDP:
    """What one reading may cost: all, or the share of it that a ledger lets so many readings have."""
    from sfumato.sensing.release import share_of

    if readings is None:
        return total
    if calibration is Calibrations.papers:
        raise InvalidParameter(
            "the papers' calibration is of a single reading, got --readings; nothing was planned"
        )
    return share_of(total, readings)


def _simulated(
    design: Design, rng: Any, trials: int | None, *, readings: int | None, quiet: bool
) -> tuple[dict[str, Any], list[str], RecoveryForecast]:
    from sfumato.cli import sense_forecast as words
    from sfumato.sensing.planning import MOST, forecast_recovery

    with working(f"simulating up to {trials or MOST} recoveries", quiet=quiet) as tell:
        foreseen = forecast_recovery(design.scene, rng=rng, most=trials or MOST, progress=tell)
    return *words.forecast(design, foreseen, readings=readings), foreseen


def _needs(
    design: Design,
    want: float,
    foreseen: RecoveryForecast,
    rng: Any,
    trials: int | None,
    *,
    shared: tuple[ZCDP | ApproxDP, int | None],
    quiet: bool,
) -> tuple[dict[str, Any], list[str]]:
    from sfumato.cli import sense_forecast as words
    from sfumato.cli.sense_need import needs as told_of
    from sfumato.sensing.model.operators import Matrix
    from sfumato.sensing.planning import WANTED_TRIALS, required

    needs = []
    for axis in ("cost",) if isinstance(design.site.operator, Matrix) else ("sensors", "cost"):
        name = words.axis_name(design, "cost" if axis == "cost" else "sensors")
        with working(
            f"simulating what a mean error of {want:g} takes: {name}", quiet=quiet
        ) as tell:
            needs.append(
                required(
                    design,
                    "cost" if axis == "cost" else "sensors",
                    want,
                    rng=rng,
                    estimator=foreseen.best.estimator,
                    trials=min(trials or WANTED_TRIALS, WANTED_TRIALS),
                    progress=tell,
                )
            )
    return told_of(design, needs, even=foreseen.even, total=shared[0], readings=shared[1])


def _curves(
    design: Design, foreseen: RecoveryForecast, rng: Any, trials: int | None, *, quiet: bool
) -> list[Curve]:
    """How the error moves with all that can be changed."""
    from sfumato.cli import sense_forecast as words
    from sfumato.sensing.planning import AXES, ESTIMATORS, error_curve, values_on

    usable = ESTIMATORS if foreseen.bayes is not None else ESTIMATORS[:1]
    found = []
    for number, axis in enumerate(AXES, 1):
        if values_on(design, axis):
            doing = f"simulating errors against {words.axis_name(design, axis)} ({number} of {len(AXES)})"
            with working(doing, quiet=quiet) as tell:
                found.append(
                    error_curve(
                        design,
                        axis,
                        rng=rng,
                        trials=trials,
                        estimators=usable,
                        best_by=foreseen.best.estimator,
                        progress=tell,
                    )
                )
    return found


def _spectrum(site: Site, planned: NoisePlan, physics: Any) -> bytes:
    from sfumato.figures import draw_conditioning

    return draw_conditioning(
        physics.singular_values,
        caption=f"{site.name}: {len(site.sensors)} sensors, {site.operator.space.size} cells",
        noise=planned.sigma,
        complete=physics.complete,
    )
