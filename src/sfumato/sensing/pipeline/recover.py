"""Recover sources from noisy readings, and check a recovery: what `sense recover` and `sense check` do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import chdtri

from sfumato._random import generator, seed_of
from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.sensing.diagnostics.laplace_tails import chance_of_squares
from sfumato.sensing.diagnostics.misfit import misfit
from sfumato.sensing.diagnostics.shared_level import SharedLevel, shared_level
from sfumato.sensing.model.operators.places import wide_cells
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.site import Site, part_of_site
from sfumato.sensing.pipeline.inputs import (
    ReadingsInput,
    SourcesInput,
    complete,
    merged,
    not_a_site,
    true_sources,
)
from sfumato.sensing.recovery.answer import Answer, Estimate
from sfumato.sensing.recovery.ceiling import ceiling_of
from sfumato.sensing.recovery.certificate import Recovery
from sfumato.sensing.recovery.certified_error import ErrorCertificate
from sfumato.sensing.recovery.certified_tree import TreeCertificate
from sfumato.sensing.recovery.community import communities as find_communities
from sfumato.sensing.recovery.community import community_of
from sfumato.sensing.recovery.error_bound import certify_error
from sfumato.sensing.recovery.estimators.least_mass import recover
from sfumato.sensing.recovery.estimators.registry import (
    DEFAULT_ESTIMATOR,
    Estimator,
    RecoveryProblem,
    estimator_named,
    required_noise,
)
from sfumato.sensing.recovery.merging import MergedReadings
from sfumato.sensing.recovery.options import RecoveryOptions, Unknown
from sfumato.sensing.recovery.radius import default_radius
from sfumato.sensing.recovery.solver.operator_cache import cached
from sfumato.sensing.results.diagnostics import (
    CommunityReport,
    FieldReport,
    MisfitReport,
    RecoveryDiagnostics,
)
from sfumato.sensing.results.recovery import RecoveryResult
from sfumato.sensing.results.verdict import UNLIKELY, verdict_of
from sfumato.spaces import Graph

if TYPE_CHECKING:
    from sfumato.sensing.diagnostics.field_sensors import FaultySensor
    from sfumato.sensing.diagnostics.fitted_field import Field

Watch = Callable[[str], None]

# Diffusion times that are tried: so many, down to and up to this factor.
TIME_FACTOR, TIMES = 8.0, 13
MAX_TESTED = (
    1 << 17
)  # cells up to which the physics is tested: 1.7 s there with 500 sensors, R up to 7 s
LEAST = "least"
NOT_CERTIFIED = (
    "some of the noise is Laplace and some is Gaussian: no error is certified of a mixture"
)


def recover_sources(
    readings: ReadingsInput,
    *,
    site: Site | str | Path | None = None,
    noise: float | None = None,
    estimator: str | Estimator = DEFAULT_ESTIMATOR,
    max_mass: float = 1.0,
    max_sources: int | None = None,
    count: int | None = None,
    seed: int | None = None,
    fit: Sequence[Unknown] = (),
    time: str = "",
    average: bool = False,
    radius: float | Literal["papers"] | None = None,
    sources: SourcesInput | None = None,
    communities: int = 2,
    certify: bool = True,
    watch: Watch | None = None,
) -> RecoveryResult:
    """Recover roughly where sources are, how many, and how sure that is, from noisy readings.

    Costs no privacy: it works on what was released. R, the least mass that explains the readings
    within their noise, is always computed with a proof, which `check_recovery` checks again; the
    answer of the chosen estimator stands beside it.

    Args:
        readings: A .json file that `sense release` wrote, `Readings`, or several of one site (one of
            each device); or, with `site` and `noise`, a .csv file, a DataFrame with columns sensor and
            value (perhaps time and sigma), a mapping by sensor, or one number for each sensor.
        site: The site, or its file, for readings that do not hold their own.
        noise: Standard deviation of the noise of one reading, in the unit of the site's operator, for
            readings that do not say it.
        estimator: "bayes-median" (the Bayes rule for earth mover's distance), "least" (R itself),
            "off-grid" (least squares between cells), "mixture", or one that was registered.
        max_mass: The largest mass of one source. Too large costs little, too small much.
        max_sources: The most sources to consider; None means 12, or up to 64 where readings ask for
            more, and 8 between cells.
        count: The number of sources, for "mixture", "off-grid" or `fit`.
        seed: Seed of the draws; None means a hash of the readings, so that the same readings always
            have the same answer.
        fit: What is not known and is estimated too: "offset" of all readings, the diffusion "time";
            each looks for broken sensors first, "sensors" for these only.
        time: Which time, where readings are of several: as it is written, or a clock (12:00), a date,
            a number; with `average` also a range "A..B".
        average: Whether to average all times: for sources that stay, with less noise.
        radius: How far R may be from the readings, or "papers" for sigma sqrt(m); None means what
            noise that sources could make exceeds in 1 of 10 draws, and all that no source can make.
        sources: True sources of a simulation, to measure errors: a table of cell and mass, a mapping,
            or one mass for each cell.
        communities: On a graph: say which of so many communities the source is in; 1 for none.
        certify: Whether to bound how far the answer is from the truth at worst, whatever the sources:
            half a second or so on a line, some seconds in a plane or on a graph.
        watch: Called with a sentence when the work begins.

    Returns:
        The certificate of R, the answer with its credible regions, and diagnostics.

    Raises:
        InvalidInput: If readings, site or sources cannot be read or do not fit together.
        InvalidParameter: If options do not go together or are out of range.
        SolverFailed: If no answer could be proved.

    >>> from sfumato.privacy import MovedMass
    >>> from sfumato.sensing import heat_line
    >>> from sfumato.sensing.planning import synthetic_site
    >>> line = heat_line(sources=20, sensors=8, diffusion_time=0.01)
    >>> hall = synthetic_site("hall", line, MovedMass("1/10", "line"))
    >>> found = recover_sources(line.columns([5])[:, 0], site=hall, noise=0.05, estimator="least")
    >>> found.certificate.status, [one["cell"] for one in found.sources()]
    ('optimal', [5])
    """
    chosen = estimator_named(estimator) if isinstance(estimator, str) else estimator
    options = RecoveryOptions(
        chosen, max_mass, max_sources, count, seed, tuple(fit), radius, communities, certify
    )
    complete(readings, site=site, known=noise is not None or radius is not None)
    try:
        read = merged(readings, site=site, noise=noise, time=time, average=average, weigh=True)
    except InvalidInput:
        not_a_site(readings)
        raise
    truth = None if sources is None else true_sources(sources, read.site)
    if watch is not None:
        watch(f"recovering from {len(read.names)} readings")
    return recovered(read, options, truth)


def recovered(
    read: MergedReadings,
    options: RecoveryOptions,
    truth: FloatArray | None = None,
    *,
    operator: Operator | None = None,
) -> RecoveryResult:
    """R, the field where it is to be fitted, the test of the physics, and the answer.

    Where R says that nothing can be told there is no answer. Where R is infeasible there is one
    only if a test finds that the physics fits, so that it was the noise: the default radius leaves
    that 1 draw of 10. An `operator` to the sensors that were read, where a caller has it, keeps what
    was computed for it from one round to the next.
    """
    seen = part_of_site(read.site, read.names) if operator is None else operator
    limit = options.limit(read.noise)
    if read.laplace is not None and read.noise and limit.get("radius", 0) is None:
        within = default_radius(
            seen, read.values, read.noise, max_mass=options.max_mass, laplace=read.laplace.terms
        )
        limit = {"radius": within}
    stated = recover(seen, read.values, max_mass=options.max_mass, **limit)
    labels = _labels(stated, options.communities)
    found, noise, field = stated, read.noise, None
    remarks: list[str] = []
    if options.fit:
        field = _fitted(stated, read, options)
        noise = field.sigma
        found = recover(
            field.operator, field.readings, max_mass=options.max_mass, **options.limit(noise)
        )
    tested = None if field is None else MisfitReport.of(field.misfit)
    if field is None and noise and found.operator.space.size <= MAX_TESTED:
        tested = MisfitReport.of(
            misfit(
                found.operator, found.readings, sigma=noise, max_mass=options.max_mass,
                min_sigma=read.min_noise, laplace=read.laplace is not None,
            )
        )  # fmt: skip
    if read.mixed and options.certify:
        remarks.append(NOT_CERTIFIED)
    estimator = options.estimator
    why = estimator.unsuitable(found.operator, noise)
    if why:
        remarks.append(f"{estimator.name} {why}: the answer is the least mass")
        estimator = estimator_named(LEAST)
    by_noise = found.status == "infeasible" and tested is not None and not tested.message
    ceiling = ceiling_of(found, noise)
    answer: Answer | None = None
    if found.status == "optimal" or (by_noise and not estimator.needs_certificate):
        answer = estimator.estimate(_problem(found, noise, options, labels))
        wide = wide_cells(found.operator, noise or 0.0, options.max_mass)
        remarks += [wide] if wide and answer.beliefs is not None else []
        if read.laplace is not None:
            answer = _fits_laplace(answer, len(found.readings) - (answer.offset is not None))
        if field is not None and answer.offset is not None:
            from sfumato.sensing.diagnostics.fitted_field import with_offset

            field = with_offset(field, answer.offset, read.site.reading_unit)
        if by_noise and not _unexplained(answer):
            remarks.append(
                "R has no answer, as noise alone does in 1 draw of 10: a test finds that the physics fits"
            )
    elif field is not None:
        told = (
            "nothing can be told" if found.status == "zero" else "no sources explain the readings"
        )
        remarks = [f"with the fitted field {told}"]
    else:
        remarks = []
    solved = stated.status == "optimal"
    diagnostics = RecoveryDiagnostics(
        (*read.remarks, *remarks),
        tested,
        None if field is None else FieldReport.of(field),
        _community(stated, labels, read.site) if labels is not None and solved else None,
        _distance(stated, truth) if solved else None,
        _distance(answer.estimate, truth)
        if answer is not None and answer.estimate.masses.any()
        else None,
        _suspects(found, read, options) if field is None and tested and tested.message else (),
        ceiling,
        _level(found, read, options),
        None if read.mixed else _certified(stated, answer, read, options),
    )
    diagnostics = replace(diagnostics, verdict=verdict_of(found.status, answer, diagnostics))
    return RecoveryResult(
        read.site,
        read.names,
        stated,
        read.noise,
        read.statement,
        read.rehearsal,
        read.time,
        read.averaged,
        answer,
        diagnostics,
        None if field is None else found,
    )


def _fits_laplace(answer: Answer, degrees: int) -> Answer:
    """The answer, with the chance that noise leaves as much as it does taken of Laplace noise."""
    beliefs = answer.beliefs
    if beliefs is None or beliefs.fits is None or beliefs.fits >= 1:
        return answer
    square = float(chdtri(degrees, max(beliefs.fits, 1e-300)))
    fits = chance_of_squares(degrees, square)
    doubt = "" if beliefs.fits < UNLIKELY <= fits else beliefs.doubt
    return replace(answer, beliefs=replace(beliefs, fits=fits, doubt=doubt))


def _certified(
    stated: Recovery, answer: Answer | None, read: MergedReadings, options: RecoveryOptions
) -> ErrorCertificate | TreeCertificate | None:
    """A bound of the error, of the readings as they were released: what was fitted to them proves nothing.

    An offset may be anything. A fitted time or sensors that are left out were chosen by the readings.
    """
    if not options.certify or not read.noise or set(options.fit) - {"offset"}:
        return None
    if answer is None and stated.status != "optimal":
        return None
    operator = stated.operator
    estimate = (
        Estimate(operator, operator.space.places(stated.support), stated.estimate[stated.support])
        if answer is None
        else answer.estimate
    )
    return certify_error(
        operator,
        stated.readings,
        estimate,
        sigma=read.noise,
        max_mass=options.max_mass,
        offset="offset" in options.fit,
        laplace=read.laplace,
    )


def _level(found: Recovery, read: MergedReadings, options: RecoveryOptions) -> SharedLevel | None:
    """The offset that most of the readings are, where a level was taken off them and none is fitted."""
    if read.site.level is None or not read.noise or "offset" in options.fit:
        return None
    unit = read.site.reading_unit
    return shared_level(found.operator, found.readings, sigma=read.noise, unit=unit)


def _unexplained(answer: Answer) -> bool:
    fits = None if answer.beliefs is None else answer.beliefs.fits
    return fits is not None and fits < UNLIKELY


def _suspects(
    found: Recovery, read: MergedReadings, options: RecoveryOptions
) -> tuple[FaultySensor, ...]:
    """The sensors to go and look at, where the readings do not fit."""
    from sfumato.sensing.diagnostics.field_sensors import faulty_sensors

    suspects = faulty_sensors(
        found.operator,
        read.rounds,
        sigma=read.noises,
        max_mass=options.max_mass,
        laplace=read.laplace is not None,
    )
    return tuple(replace(one, unit=read.site.reading_unit) for one in suspects)


def _distance(found: Recovery | Estimate, truth: FloatArray | None) -> float | None:
    """How far an answer is from the truth, where somebody knows it."""
    if truth is None:
        return None
    from sfumato.sensing.recovery.distance import emd_of

    return emd_of(found, truth)


def _problem(
    found: Recovery, noise: float | None, options: RecoveryOptions, labels: IntArray | None
) -> RecoveryProblem:
    return RecoveryProblem(
        found.operator,
        found.readings,
        noise,
        options.max_mass,
        found,
        generator(seed_of(found.readings) if options.seed is None else options.seed),
        options.count if "count" in options.estimator.options else None,
        options.most,
        labels,
        "offset" in options.fit,
    )


def _fitted(found: Recovery, read: MergedReadings, options: RecoveryOptions) -> Field:
    from sfumato.sensing.diagnostics.field import fit_field

    required_noise(read.noise, "`fit`")
    times = None
    if "time" in options.fit:
        stated = found.operator.time
        if stated is None:
            raise InvalidParameter("a matrix has no diffusion time to `fit`; nothing was recovered")
        times = np.geomspace(stated / TIME_FACTOR, stated * TIME_FACTOR, TIMES).tolist()
    return fit_field(
        found.operator,
        read.rounds,
        sigma=read.noises,
        max_mass=options.max_mass,
        offset=math.inf if "offset" in options.fit else 0.0,
        times=times,
        sources=options.count,
        min_sigma=read.min_noise,
        laplace=read.laplace is not None,
        unit=read.site.reading_unit,
    )


def _labels(found: Recovery, count: int) -> IntArray | None:
    """The communities of a graph, if one asks for several."""
    space = found.operator.space
    if not isinstance(space, Graph) or found.status == "zero" or count < 2:
        return None
    return cached(
        found.operator, f"communities {count}", lambda: find_communities(space, count=count)
    )


def _community(found: Recovery, labels: IntArray, site: Site) -> CommunityReport:
    best = community_of(found.estimate, labels)
    members = tuple(site.cell(int(node)) for node in (labels == best.label).nonzero()[0])
    return CommunityReport(int(best.label), members, tuple(map(float, best.shares)))
