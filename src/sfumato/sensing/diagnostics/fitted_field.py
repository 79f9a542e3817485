"""A fitted field: what to recover from, what was found on the way, and sentences about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfumato._types import FloatArray
from sfumato._validate import read_only
from sfumato.sensing.diagnostics.field_sensors import FaultySensor
from sfumato.sensing.diagnostics.misfit import Misfit
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.model.operators.weighted import gains_of
from sfumato.sensing.model.reading_unit import ReadingUnit
from sfumato.sensing.recovery.answer import SharedOffset

SHARED = "all readings share an offset of"
"""How the sentence about an offset begins."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """What to recover from, once the field is known: an operator, readings, and what was found on the way.

    `operator` has the estimated time and no suspected sensors; `readings` are theirs, less the
    offset, and `sigma` the deviation of their noise: of several rounds, of what `combine` makes of
    them. `offset_error` is its standard error, masses being unknown but the found cells, the time
    and the suspects taken for known: 0 where nobody asked, inf where the sources found could have
    made any offset themselves. Sources that blend, or a wrong time, pass for an offset, so it is
    too small then; where an answer counts all sources that there may be (`with_offset`),
    `offset_error` does so too, and `offset_interval` is where the offset is with 90 %. `time` is the
    diffusion time, or the rate on a graph, None if nobody asked, or if no source stands out from
    the noise: then the stated one stays. `interval` is where it lies
    if there are no more than `sources` sources; `time_is_below` is one of the given times that is too
    large whatever the sources are, with 95 %, the least such, or None where none is. `misfit` is of
    what is left; `messages` are sentences for a person. All of it is made from what was released.
    """

    operator: Operator
    readings: FloatArray
    sigma: float
    offset: float
    offset_error: float
    time: float | None
    interval: tuple[float, float] | None
    time_is_below: float | None
    sources: int
    faulty_sensors: tuple[FaultySensor, ...]
    misfit: Misfit
    messages: tuple[str, ...]
    offset_interval: tuple[float, float] | None = None


def messages_of(
    stated: Operator,
    field: Field,
    times: Sequence[float] | None,
    *,
    offset: bool,
    unit: ReadingUnit,
) -> tuple[str, ...]:
    """What must be known of a fitted field, in sentences: sensors, offset, time, and what is left."""
    lines = [f"{suspect.message} and was left out" for suspect in field.faulty_sensors]
    lines += [] if lines else ["no sensor is contradicted by the others"]
    if len(field.faulty_sensors) >= len(stated.sensors) / 4:
        lines.append(
            "a quarter of the sensors is suspected: look at the physics first, then at the sensors"
        )
    if offset:
        known = (
            "the places of the sources"
            if times is None
            else "the places of the sources and the time"
        )
        lines.append(
            f"{SHARED} {unit.number(field.offset)} ± "
            f"{unit.text(field.offset_error, '.2g')} "
            f"(a standard error, {known} taken for known: it may be more, and sources that all sensors "
            "read alike count as offset)"
        )
    told = stated.time or 0.0
    name = stated.time_name
    if times is not None and field.interval is None:
        lines.append(
            f"no source stands out from the noise, so the {name} cannot be told; the stated {told:.3g} stays"
        )
    if times is not None and field.interval is not None:
        low, high = field.interval
        few = "1 source" if field.sources == 1 else f"{field.sources} sources"
        lines.append(
            f"the {name} is {low:.3g} to {high:.3g} if {few} made the readings, and {field.time:.3g} is taken"
        )
        if low <= times[0] or high >= times[-1]:
            lines.append(
                f"that interval reaches the end of the {name}s tried, {times[0]:.3g} to {times[-1]:.3g}: "
                "state another, or say how many sources there are"
            )
        if field.time_is_below is not None:
            lines.append(
                f"whatever the sources are, the {name} is below {field.time_is_below:.3g}, with 95 %"
            )
        if high < told:
            lines.append(
                f"it lies below the stated {told:.3g}, for which the noise was made: sources move readings "
                "by more than was thought, so the promise of privacy was weaker than stated"
            )
    return tuple([*lines, field.misfit.message] if field.misfit.message else lines)


def with_offset(field: Field, left: SharedOffset, unit: ReadingUnit) -> Field:
    """The field with the offset of an answer that counts all sources there may be.

    `left` is what `field.readings` share still, `unit` what the sentence tells it in.
    """
    offset = field.offset + left.value
    low, high = (field.offset + end for end in left.interval)
    said = (
        f"{SHARED} {unit.number(offset)} ± {unit.text(left.error, '.2g')} (a standard error; "
        f"{unit.number(low)} to {unit.text(high)} with 90 %, sources being unknown too)"
    )
    return replace(
        field,
        readings=read_only(field.readings - left.value * gains_of(field.operator)),
        offset=offset,
        offset_error=left.error,
        messages=tuple(said if one.startswith(SHARED) else one for one in field.messages),
        offset_interval=(low, high),
    )
