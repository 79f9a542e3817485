"""Exact readings as they come: named, finite, of a type that a site allows, in the unit of its operator."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting import double_above
from sfumato.sensing.model.site import Site


def named_numbers(
    values: Mapping[str, float] | npt.ArrayLike, site: Site
) -> tuple[tuple[str, ...], FloatArray]:
    """The sensors that read and what they read; what is no reading is refused, and not quoted."""
    names = site.sensors.names
    if isinstance(values, Mapping):
        known = set(names)
        # Not quoted: where a mapping is the wrong way round, a name is a reading.
        for place, name in enumerate(values, 1):
            if name not in known:
                raise InvalidParameter(
                    f"site {site.name!r} has no sensor of the {place}. name given; nothing was charged"
                )
        names = tuple(name for name in names if name in values)
        values = [values[name] for name in names]
    if isinstance(values, np.ma.MaskedArray):
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
    _check_types({array.dtype, *(part.dtype for part in parts)}, site)
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
    return names, numbers


def _check_types(types: set[np.dtype[Any]], site: Site) -> None:
    """Refuse numbers of a short type whose rounding the site's step does not cover; `plan` covers doubles."""
    for short in (np.float16, np.float32):
        if np.dtype(short) not in types:
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            apart = (
                np.inf
                if site.largest is None
                else np.spacing(short(float(double_above(site.largest))))
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


def in_sources(numbers: FloatArray, site: Site) -> FloatArray:
    """Readings in the unit of the operator, cut where the site's range ends: both move no two further apart.

    Divided by a double above per_source, so that the change is never more than planned; a quotient
    is rounded as a reading is, and both fit into `plan.SLIP`.
    """
    if site.largest is not None:
        end = float(site.largest)
        numbers = np.clip(numbers, -end, end)
    # Too large for a double is cut like any other that is too large.
    with np.errstate(over="ignore"):
        return np.asarray(numbers / float(double_above(site.per_source or Fraction(1))))
