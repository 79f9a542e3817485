"""Exact readings as they come: named, finite, of a type that a site allows, in the unit of its operator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting import double_above
from sfumato.sensing.model.operators.weighted import Weighted
from sfumato.sensing.model.site import LARGEST_STEP, Site
from sfumato.sensing.release.noise_plan import LARGEST_READING


@dataclass(frozen=True, slots=True, eq=False)
class ExactReadings:
    """What some sensors read, and the public level that is to be taken off each."""

    names: tuple[str, ...]
    numbers: FloatArray
    level: tuple[Fraction, ...]
    gains: tuple[float, ...] = ()


def named_numbers(values: Mapping[str, float] | npt.ArrayLike, site: Site) -> ExactReadings:
    """The sensors that read and what they read; what is no reading is refused, and not quoted.

    Under the name of the site's running baseline, if it has one, is the public reference.
    """
    names = site.sensors.names
    level, reference = site.level, None
    if level is not None and level.running:
        values, reference = _without_reference(values, level.running)
    if isinstance(values, Mapping):
        known = set(names)
        # Not quoted: where a mapping is the wrong way round, a name is a reading.
        for place, name in enumerate(values, 1):
            if name not in known:
                raise InvalidParameter(
                    f"site {site.name!r} has no sensor of the {place}. name given; nothing was charged"
                )
        off_now = set(site.off)
        names = tuple(name for name in names if name in values and name not in off_now)
        values = [values[name] for name in names]
    if isinstance(values, np.ndarray) and isinstance(values, np.ma.MaskedArray):
        raise InvalidParameter("readings must not be masked; nothing was charged")
    try:
        array = np.asarray(values)
        # In a list, a short number may stand beside doubles.
        parts = [np.asarray(one) for one in values] if isinstance(values, list | tuple) else []
        numbers = array.astype(np.float64) if array.dtype.kind in "biuf" else None
    except (TypeError, ValueError, OverflowError):
        numbers = None
    if numbers is None:
        raise InvalidParameter("readings must be numbers, got something else; nothing was charged")
    off = (Fraction(0),) * len(names) if level is None else tuple(level.of(names, reference))
    _check_types(
        {array.dtype, *(part.dtype for part in parts)},
        site,
        max(map(abs, off), default=Fraction(0)),
    )
    if numbers.shape != (len(names),) or not names:
        raise InvalidParameter(
            f"there must be one reading for each of {len(site.sensors)} sensors, got shape {numbers.shape}; "
            "nothing was charged"
        )
    # That a sensor is broken is said; what it read is not.
    broken = np.flatnonzero(~np.isfinite(numbers))
    if broken.size:
        raise InvalidParameter(
            f"a reading must be a finite number, sensor {names[broken[0]]!r} has none; nothing was charged"
        )
    return _switched_on(ExactReadings(names, numbers, off), site)


def _switched_on(read: ExactReadings, site: Site) -> ExactReadings:
    """The readings of the sensors that send, with their gains, where sensors have such."""
    if not isinstance(site.operator, Weighted):
        return read
    gain = dict(zip(site.sensors.names, site.gains.tolist(), strict=True))
    on = [row for row, name in enumerate(read.names) if gain[name]]
    if not on:
        raise InvalidParameter("all these sensors are switched off; nothing was charged")
    names = tuple(read.names[row] for row in on)
    return ExactReadings(
        names,
        read.numbers[on],
        tuple(read.level[row] for row in on),
        tuple(gain[name] for name in names),
    )


def _without_reference(
    values: Mapping[str, float] | npt.ArrayLike, name: str
) -> tuple[Mapping[str, float], float]:
    """Readings of sensors, and that of the public reference beside them."""
    if not isinstance(values, Mapping) or name not in values:
        raise InvalidParameter(
            f"the site takes off the public baseline {name!r}, which these readings lack; nothing was charged"
        )
    try:
        found = float(values[name])
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not abs(found) <= LARGEST_STEP:
        raise InvalidParameter(
            f"the public baseline {name!r} must be a number within 1e100; nothing was charged"
        )
    return {other: value for other, value in values.items() if other != name}, found


def _check_types(types: set[np.dtype[Any]], site: Site, off: Fraction) -> None:
    """Refuse numbers of a short type whose rounding the site's step does not cover; `plan` covers doubles.

    Readings are rounded where they are, up to `off` further from 0 than what is left of them.
    """
    for short in (np.float16, np.float32):
        if np.dtype(short) not in types:
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            apart = (
                np.inf
                if site.largest is None
                else np.spacing(short(float(double_above(site.largest + off))))
            )
        if not np.isfinite(apart) or Fraction(float(apart)) > site.step:
            said = (
                "says no largest reading" if site.largest is None else f"says up to {site.largest}"
            )
            raise InvalidParameter(
                f"readings of type {np.dtype(short)} are rounded: the step of the site must be at least the "
                f"spacing of that type at its largest reading, and site {site.name!r} {said} and step "
                f"{site.step}; nothing was charged"
            )


def check_level(read: ExactReadings, site: Site, exponent: int) -> None:
    """Refuse a level so far from 0 that doubles next to it are coarser than the lattice; it is public.

    A reading is a double within 2**-53 of itself. With the level and what is left of the reading each within
    half of LARGEST_READING units, the reading is within all of it and off by 2**-6 units, what is left by
    2**-7 more, its quotient by another: 2**-5, two of them `SLIP`, as without a level.
    """
    gains = read.gains or (1.0,) * len(read.level)
    most = max(
        (abs(one) * Fraction(gain) for one, gain in zip(read.level, gains, strict=True)),
        default=Fraction(0),
    ) / (site.per_source or 1)
    if most > LARGEST_READING // 2 * Fraction(2) ** exponent:
        raise InvalidParameter(
            "the level taken off readings is too large for the noise beside it: doubles there are coarser; "
            "nothing was charged"
        )


def in_sources(
    numbers: FloatArray,
    site: Site,
    *,
    level: Sequence[Fraction] = (),
    exponent: int = 0,
    gains: Sequence[float] = (),
) -> FloatArray:
    """Readings in the unit of the operator, cut where the site's range ends: both move no two further apart.

    The level is taken off exactly, and rounded once. Divided by a double above per_source, so that
    the change is never more than planned; a quotient is rounded as a reading is, and all fit into
    `plan.SLIP` (`check_level`). Gains go into that divisor, so that they round nothing once more.
    """
    shifted = any(level)
    if shifted:
        left = [Fraction(one) - off for one, off in zip(numbers.tolist(), level, strict=True)]
        numbers = np.array([_double(one) for one in left])
    if site.largest is not None:
        end = float(site.largest)
        numbers = np.clip(numbers, -end, end)
    # Too large for a double is cut like any other that is too large.
    with np.errstate(over="ignore"):
        sources = np.asarray(numbers / _divisors(site.per_source or Fraction(1), gains))
    if not shifted:
        return sources
    half = math.ldexp(LARGEST_READING // 2, exponent)
    return np.asarray(np.clip(sources, -half, half))


def _divisors(per_source: Fraction, gains: Sequence[float]) -> FloatArray:
    """What readings are divided by, one for all or one for each; never less than it should be."""
    if not gains:
        return np.array(float(double_above(per_source)))
    return np.array([float(double_above(per_source / Fraction(gain))) for gain in gains])


def _double(exactly: Fraction) -> float:
    """The double nearest to a fraction; what is too large for one is infinite, and cut later."""
    try:
        return float(exactly)
    except OverflowError:
        return math.copysign(math.inf, exactly)
