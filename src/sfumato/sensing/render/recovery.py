"""A recovery in words: what one can be sure of first, then R's line with its proof."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from sfumato.figures import at_least
from sfumato.sensing.model.operators.weighted import Weighted
from sfumato.sensing.recovery.answer import Answer, SourceBeliefs, SourceFit, place_of
from sfumato.sensing.recovery.certified_error import ErrorCertificate
from sfumato.sensing.recovery.distance import error_at_most
from sfumato.sensing.render.words import percent, text_of
from sfumato.sensing.results.mass_by_place import spacing
from sfumato.sensing.results.recovery import RecoveryResult
from sfumato.spaces import Graph

LITTLE = 0.95  # of what is so without a reading: a bound above it tells nothing
MAX_ROWS = 20
MAX_MEMBERS = 12
MAX_CLUSTERS = 5  # of an answer's mass that are told by their places
CRUMB = 0.005  # of all mass: less is left out
FAR_BELOW = (
    0.5  # of the largest mass: regions hold less often where all sources together are below it
)
TOO_WIDE = (
    "errors too wide to tell, or none at all: the readings do not tell these sources apart; the bands of "
    "bayes-median say what can be told"
)


def recovery_text(result: RecoveryResult) -> str:
    """All of `recovery_lines` as plain text.

    Args:
        result: The recovery.

    Returns:
        Several lines.
    """
    return text_of(recovery_lines(result))


def recovery_lines(result: RecoveryResult) -> list[Any]:
    """All that is printed of a recovery: lines of text and rich tables, and what must be known of it.

    Args:
        result: The recovery.

    Returns:
        Strings and rich tables, in order.
    """
    answer, told = result.answer, result.diagnostics
    name = result.site.name
    by_r = only_r(result)
    lines: list[Any] = [f"verdict: {told.verdict.message}"]
    lines += [f"  and {reason}" for reason in told.verdict.reasons]
    if answer is not None and not by_r:
        lines += [*_answered(result, answer), f"R: {_status(result)}"]
    else:
        what = "R of the readings as released, without the fitted field: " if told.field else ""
        lines += [f"{name}: {what}{_status(result)}", *_sources(result.least_mass_sources())]
    more = [*_communities(result), *certified_lines(result), *_distances(result)]
    return [*lines, *more, *_remarks(result)]


def only_r(result: RecoveryResult) -> bool:
    """Whether there is nothing but R itself: no answer, or the least mass of the readings as released."""
    answer = result.answer
    return answer is None or (answer.estimator == "least" and result.diagnostics.field is None)


def _remarks(result: RecoveryResult) -> list[str]:
    """What must be known of a result, whoever asks for quiet."""
    told = result.diagnostics
    said = [told.verdict.message, *told.verdict.reasons]
    more = [*told.remarks, *(() if told.field is None else told.field.messages)]
    more += [] if told.ceiling is None else [told.ceiling.message]
    # What the verdict says is not said again.
    return [one for one in more if not any(one in sentence for sentence in said)]


def _answered(result: RecoveryResult, answer: Answer) -> list[Any]:
    if answer.beliefs is not None:
        return _believed(result, answer, answer.beliefs)
    name = result.site.name
    rows = _with_errors(answer.sources(result.site), answer.fit)
    count = f"{len(rows)} source{'s' * (len(rows) != 1)}"
    lines = [
        f"{name}: {count}, total mass {answer.estimate.masses.sum():.4g}, by {answer.estimator}",
        *_sources(rows),
        *(region_lines(result, answer) if answer.regions is not None else []),
    ]
    return lines if answer.fit is None else [*lines, *_fitted(result, answer.fit)]


def _fitted(result: RecoveryResult, fit: SourceFit) -> list[str]:
    lines = [] if fit.distinguishes else [TOO_WIDE]
    if fit.at_max_mass:
        what = "a mass is" if fit.at_max_mass == 1 else f"{fit.at_max_mass} masses are"
        top = f"{result.certificate.max_mass:g}"
        lines.append(
            f"{what} at the largest allowed, {top}: give `max_mass` if sources may be larger"
        )
    if len(fit.scores) > 1:
        tried = ", ".join(f"{k}: {score:.4g}" for k, score in fit.scores.items())
        lines.append(f"scores of the counts tried, the least wins: {tried}")
    if not fit.converged:
        lines.append("it did NOT come to rest: take it as a guess")
    return lines


def _believed(result: RecoveryResult, answer: Answer, beliefs: SourceBeliefs) -> list[str]:
    likely = sorted(beliefs.counts.items(), key=lambda pair: -pair[1])
    many = ", ".join(f"{k} with {percent(p)}" for k, p in likely[:4] if p >= 0.01)
    low, high = beliefs.total
    mass = f"{low:.4g}" if f"{low:.4g}" == f"{high:.4g}" else f"{low:.4g} to {high:.4g}"
    head = f"{result.site.name}: how many sources: {many}; total mass {mass} with {percent(beliefs.level)}"
    lines = [f"{head}; the draws mixed"] if beliefs.mixed else [head, beliefs.mixing_message]
    top = result.certificate.max_mass
    if high < FAR_BELOW * top:
        lines.append(
            f"all sources together are far below the largest mass allowed for one, {top:g}: with a `max_mass` "
            "nearer to what one can have, answers are better and hold more often"
        )
    return [*lines, *region_lines(result, answer), *cluster_lines(result, answer)]


def region_lines(result: RecoveryResult, answer: Answer) -> list[str]:
    """One sentence for each credible region."""
    regions = answer.region_rows(result.site)
    if not regions:
        return ["no place is sure to have a source near it: the readings tell too little"]
    rows = []
    for one in regions[:MAX_ROWS]:
        where = one.get("name") or ", ".join(f"{one[axis]:.4g}" for axis in "xyz" if axis in one)
        near = f"within {one['radius']:.3g} of" if one["radius"] else "at"
        rows.append(f"  a source {near} {where} with {at_least(one['probability'])}")
    if len(regions) > MAX_ROWS:
        rows.append(f"  and {len(regions) - MAX_ROWS} more places")
    return rows


def cluster_lines(result: RecoveryResult, answer: Answer) -> list[str]:
    """Where an answer has its mass: the largest clusters, one cell to each side of their largest source."""
    found, space = answer.estimate, result.site.operator.space
    places, masses = found.places, found.masses.copy()
    total, reach = float(masses.sum()), spacing(space) * (1 + 1e-6)
    clusters: list[tuple[Any, float]] = []
    while len(clusters) < MAX_CLUSTERS and masses.max(initial=0) > 0:
        top = int(masses.argmax())
        mine = space.distances_between(places[[top]], places)[0] <= reach
        mass = float(masses[mine].sum())
        if mass < CRUMB * total:
            break
        clusters.append((masses[mine] @ places[mine] / mass if reach else places[top], mass))
        masses[mine] = 0
    if not clusters:
        return []
    if not isinstance(space, Graph):  # along a line as one reads it; nodes by their mass
        clusters.sort(key=lambda cluster: tuple(np.asarray(cluster[0])))
    rows = [f"{mass:.2g} at {_called(place_of(result.site, at))}" for at, mass in clusters]
    rest = float(masses.sum())
    rows += [f"{rest:.2g} elsewhere"] if rest >= CRUMB * total else []
    return ["its mass: " + ", ".join(rows)]


def _called(place: dict[str, Any]) -> str:
    if "name" in place:
        return str(place["name"])
    numbers = ", ".join(f"{place[axis]:.4g}" for axis in "xyz" if axis in place)
    return f"({numbers})" if "y" in place else numbers


def _status(result: RecoveryResult) -> str:
    found = result.certificate
    head: str = found.status
    if found.status == "optimal":
        cells = f"{len(found.support)} cell{'s' * (len(found.support) > 1)} with a source"
        head += f", {cells}, total mass {found.objective:.4g}, gap {found.gap:.1e}"
    head += f"; radius {found.radius:.4g}"
    if result.expected_noise:
        unit = result.site.reading_unit
        sigma = f"{result.sigma:.4g}"
        if isinstance(found.operator, Weighted):
            each = (result.sigma or 0.0) / found.operator.gains
            sigma = (
                f"{unit.number(float(each.min()), '.4g')} to {unit.text(float(each.max()), '.4g')}"
            )
        elif unit.size != 1:
            sigma += f", {unit.text(result.sigma or 0.0)} of a reading"
        elif unit.name:
            sigma += f" {unit.name}"
        head += f", noise about {result.expected_noise:.4g} (sigma {sigma})"
    return head


def _with_errors(rows: list[dict[str, Any]], fit: SourceFit | None) -> list[dict[str, Any]]:
    """Sources with their standard errors, where the estimator has them."""
    if fit is None or fit.place_errors is None or fit.mass_errors is None:
        return rows
    return [
        {**row, **{f"error of {axis}": error for axis, error in zip("xyz", place, strict=False)},
         "error of mass": mass}
        for row, place, mass in zip(rows, fit.place_errors, fit.mass_errors, strict=True)
    ]  # fmt: skip


def _sources(sources: list[dict[str, Any]]) -> list[Any]:
    rows = sorted(sources, key=lambda row: -row["mass"])[:MAX_ROWS]
    if not rows:
        return []
    errors = [key for key in rows[0] if key.startswith("error")]
    names = [key for key in rows[0] if key not in {"cell", "mass", "share", *errors}]
    table = Table("cell", *names, "mass", "share", *errors)
    for row in rows:
        where = [escape(row[k]) if isinstance(row[k], str) else f"{row[k]:.4g}" for k in names]
        more = [f"{row[key]:.2g}" for key in errors]
        table.add_row(str(row["cell"]), *where, f"{row['mass']:.4g}", f"{row['share']:.0%}", *more)
    return [table, *([f"and {len(sources) - len(rows)} more"] if len(sources) > len(rows) else [])]


def _communities(result: RecoveryResult) -> list[str]:
    best = result.diagnostics.community
    if best is None:
        return []
    beliefs = None if result.answer is None else result.answer.beliefs
    shares = None if beliefs is None else beliefs.communities
    lines = []
    if shares is not None:
        likely = ", ".join(f"{label} with {percent(p)}" for label, p in enumerate(shares))
        lines.append(f"community that holds the most mass: {likely}")
    lines.append(
        f"{'R: ' if shares is not None else ''}community {best.label} of {len(best.members)} nodes, "
        f"{max(best.shares):.0%} of the mass: "
        + ", ".join(best.members[:MAX_MEMBERS])
        + (", ..." if len(best.members) > MAX_MEMBERS else "")
    )
    return lines


def certified_lines(result: RecoveryResult) -> list[str]:
    """How wrong the answer can be at worst, in one line."""
    found = result.diagnostics.error
    if found is None:
        return []
    top = result.certificate.max_mass
    where = "anywhere" if found.anywhere else "at cells only"
    known = "any offset, " if found.offset else ""
    least = (
        f"; no answer can be certified below {found.least:.3g}"
        if isinstance(found, ErrorCertificate)
        else ""
    )
    nothing = error_at_most(result.estimate)
    if found.bound > LITTLE * nothing:
        least += f"; without any reading it is {nothing:.3g}, so they tell nothing of that"
    return [
        f"at worst: within {found.bound:.3g} of the truth with {percent(found.level)}, whatever the sources "
        f"({where}, {known}no cell above {top:g}), if the physics and the noise are right{least}"
    ]


def _distances(result: RecoveryResult) -> list[str]:
    off, by_r = result.diagnostics.answer_emd, result.diagnostics.emd
    what = "earth mover's distance to the true sources, both scaled to 1"
    if off is not None and not only_r(result):
        return [f"{what}: {off:.4g}{'' if by_r is None else f' (R: {by_r:.4g})'}"]
    return [] if by_r is None else [f"{what}: {by_r:.4g}"]
