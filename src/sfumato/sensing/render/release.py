"""Sites, releases and keys in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.sensing.render.words import many

if TYPE_CHECKING:
    from sfumato.sensing.model.site import Site
    from sfumato.sensing.release.readings import Snapshot
    from sfumato.sensing.results.release import (
        LedgerResult,
        ReleasePrice,
        ReleaseResult,
        SimulationResult,
        SiteResult,
        UnsealedResult,
    )


def site_remarks(result: SiteResult) -> list[str]:
    """What was described, and what it cannot be used for yet.

    Args:
        result: What `describe_site` described.

    Returns:
        One line, and a second where the site has no unit to release in.
    """
    site, file = result.site, "" if result.file is None else f": {result.file}"
    box = site.box
    words = "" if box is None else " by ".join(f"{a:g} to {b:g}" for a, b in zip(*box, strict=True))
    where = f" at {words}" if words else ""
    cells = site.operator.space.size
    lines = [f"a site of {len(site.sensors)} sensors and {cells} cells{where}{file}"]
    if site.origin is not None:
        north, east = site.origin
        lines.append(
            f"places are metres east and north of {north:g}, {east:g} (latitude, longitude)"
        )
    lines += _level_remarks(site)
    lines += _time_remarks(site)
    if not site.unit:
        lines.append(
            "it can be planned with, not released from: that takes `unit` and `per_source`"
        )
    elif not result.step_given:
        lines.append(
            "no `step` was said: readings are taken to be unrounded. If sensors read in steps, of 0.1 say, the "
            "noise is too little for what is promised: say `step` 0.1; if they do not, say 0"
        )
    return lines


def _level_remarks(site: Site) -> list[str]:
    """What is taken off readings, and what a source adds, as a person at a sensor would see it."""
    lines = []
    if site.level is not None:
        ambient = f"{float(site.level.ambient):g} {site.unit}"
        own = (
            f", offsets of {many(len(site.level.offsets), 'sensor')}" if site.level.offsets else ""
        )
        runs = f", and what {site.level.running!r} reads" if site.level.running else ""
        lines.append(f"taken off readings, public: {ambient}{own}{runs}")
    width = site.operator.kernel_width
    if site.per_source is not None and width is not None:
        axes = site.sensors.positions.shape[1]
        near = float(site.per_source) * (2 * math.pi * width**2) ** (-axes / 2)
        lines.append(f"a source of mass 1 adds {near:.3g} {site.unit} to a sensor where it stands")
    return lines


def _time_remarks(site: Site) -> list[str]:
    """A question, where heat spreads over the whole site, or not to the next sensor."""
    width, places = site.operator.kernel_width, site.sensors.positions
    if site.box is None or width is None or len(places) < 2 or len(site.box[0]) != places.shape[1]:
        return []
    low, high = site.box
    size = max(b - a for a, b in zip(low, high, strict=True))
    apart = np.sqrt(np.square(places[:, np.newaxis] - places).sum(axis=2))
    np.fill_diagonal(apart, np.inf)
    near = float(np.median(apart.min(axis=1)))
    time = site.operator.time
    if width > size:
        return [
            f"is `diffusion_time` {time:g} right? Heat spreads {width:.3g} wide, over all of a site {size:.3g} "
            "wide: sensors would read alike wherever sources are"
        ]
    if width < near / 4:
        return [
            f"is `diffusion_time` {time:g} right? Heat spreads {width:.2g} wide, and sensors are {near:.3g} "
            "apart: most sources would reach none"
        ]
    return []


def ledger_remark(result: LedgerResult) -> str:
    """The budget, and for whom it is.

    Args:
        result: What `open_ledger` made.

    Returns:
        One line.
    """
    header = result.ledger.header
    return f"made {result.ledger.path} with {header.budget} for each {header.unit}"


def simulation_remark(result: SimulationResult) -> str:
    """How many sources were made up, and how many sensors read them.

    Args:
        result: What `simulate_site` made up.

    Returns:
        One line.
    """
    sources = many(int((result.sources > 0).sum()), "source")
    return f"made up {sources} and what {many(len(result.site.sensors), 'sensor')} read of them"


def price(result: ReleasePrice) -> str:
    """What a release would cost.

    Args:
        result: What `price_release` found.

    Returns:
        One line.
    """
    promise = f"{result.cost} for one reading of {result.sensors} sensors: sigma {result.sigma:.4g}"
    if result.weighted:
        promise += " over the gain of each sensor"
    return f"would cost {promise}; nothing was read or charged"


def release_remark(result: ReleaseResult) -> str:
    """What was released, and what is promised of it.

    Args:
        result: What `release_readings` released.

    Returns:
        One line.
    """
    one = "1 reading, " if len(result.readings.snapshots) == 1 else ""
    return f"released {one}{result.statement}{_missing(result)}"


def _missing(result: ReleaseResult) -> str:
    """How many readings are missing, and of whom most; it is in the release for all to see."""
    missing, site = result.missing, result.readings.site
    if not missing:
        return ""
    total = len(result.readings.snapshots) * len(site.sensors)
    worst = max(missing, key=lambda name: missing[name])
    return (
        f"; {sum(missing.values())} of {total} readings of the site's sensors are missing, {missing[worst]} of "
        f"them of sensor {worst!r}"
    )


def statement(released: Sequence[Snapshot]) -> str:
    """What was promised: of several readings each, and all together for those of one ledger."""
    from sfumato.privacy import ZCDP, as_approx, compose

    one = str(released[0].guarantee)
    if len(released) == 1:
        return one
    largest = max(
        sum(snapshot.release.ledger == ledger for snapshot in released)
        for ledger in {snapshot.release.ledger for snapshot in released}
    )
    whole = compose([released[0].guarantee.loss] * largest)
    meant = ""
    if isinstance(whole, ZCDP):  # rho means little to most people
        meant = f" (epsilon {float(as_approx(whole, '1e-6').epsilon):.3g} at delta 1e-06)"
    windows = "" if largest == len(released) else ", the most in one window"
    return f"{len(released)} readings, each {one}; {largest} together {whole}{meant}{windows}"


def unsealed(result: UnsealedResult) -> str:
    """One line for each reading.

    Args:
        result: What `unseal_readings` revealed; the text is as private.

    Returns:
        Time (if any), sensor and value in each line.
    """
    return "\n".join(f"{time} {sensor} {value!r}".lstrip() for time, sensor, value in result.rows)
