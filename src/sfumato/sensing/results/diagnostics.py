"""What is known of the quality of a recovery: the test of the physics, the fitted field, communities."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sfumato.sensing.model.reading_unit import AS_READ, ReadingUnit
from sfumato.sensing.results.verdict import UNJUDGED, Verdict

if TYPE_CHECKING:
    from sfumato.sensing.diagnostics.field_sensors import FaultySensor
    from sfumato.sensing.diagnostics.fitted_field import Field
    from sfumato.sensing.diagnostics.misfit import Misfit
    from sfumato.sensing.diagnostics.shared_level import SharedLevel
    from sfumato.sensing.recovery.ceiling import Ceiling
    from sfumato.sensing.recovery.certified_error import ErrorCertificate
    from sfumato.sensing.recovery.certified_tree import TreeCertificate


@dataclass(frozen=True, slots=True)
class MisfitReport:
    """Whether any sources explain the readings: the p-value of a test, and a warning or ""."""

    p_value: float
    message: str

    @staticmethod
    def of(tested: Misfit) -> MisfitReport:
        """What is kept of a test."""
        return MisfitReport(tested.p_value, tested.message)

    def to_json(self) -> dict[str, Any]:
        """As it is saved and printed."""
        return {"p_value": self.p_value, "said": self.message}

    @staticmethod
    def from_json(data: Any) -> MisfitReport:
        """What a JSON object states."""
        return MisfitReport(float(data["p_value"]), str(data["said"]))


@dataclass(frozen=True, slots=True)
class FieldReport:
    """What was estimated of the field together with the sources.

    Attributes:
        messages: Sentences for a person.
        offset: What is added to all readings, in their unit; 0 where it was not asked for.
        offset_error: Its standard error; None where sources could have made any offset.
        time: The diffusion time, or the rate on a graph; None where it could not be told.
        time_is_below: A time that is too large whatever the sources are; None where none is.
        interval: Where the time lies if sources are few.
        faulty_sensors: Sensors that the others contradict; they were left out.
        offset_interval: Where the offset is with 90 %, all sources there may be counted, as
            `offset_error` does then; None where the answer takes the fitted offset for known.
    """

    messages: tuple[str, ...]
    offset: float
    offset_error: float | None
    time: float | None
    time_is_below: float | None
    interval: tuple[float, float] | None
    faulty_sensors: tuple[FaultySensor, ...]
    offset_interval: tuple[float, float] | None = None

    @staticmethod
    def of(field: Field) -> FieldReport:
        """What is kept of a fitted field."""
        return FieldReport(
            field.messages,
            field.offset,
            field.offset_error if math.isfinite(field.offset_error) else None,
            field.time,
            field.time_is_below,
            field.interval,
            field.faulty_sensors,
            field.offset_interval,
        )

    def to_json(self) -> dict[str, Any]:
        """As it is saved and printed."""
        return {
            "said": list(self.messages),
            "offset": self.offset,
            "offset_error": self.offset_error,
            "offset_interval": _both(self.offset_interval),
            "time": self.time,
            "time_is_below": self.time_is_below,
            "interval": _both(self.interval),
            "suspects": suspects_json(self.faulty_sensors),
        }

    @staticmethod
    def from_json(data: Any) -> FieldReport:
        """What a JSON object states."""
        return FieldReport(
            tuple(map(str, data["said"])),
            float(data["offset"]),
            _maybe(data["offset_error"]),
            _maybe(data["time"]),
            _maybe(data["time_is_below"]),
            _ends(data["interval"]),
            suspects_from(data["suspects"]),
            _ends(data.get("offset_interval")),  # files of before have none
        )


@dataclass(frozen=True, slots=True)
class CommunityReport:
    """The community of a graph that holds most of R's mass: its label, nodes, and every one's share."""

    label: int
    members: tuple[str, ...]
    shares: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """As it is saved and printed."""
        return {
            "label": self.label,
            "nodes": len(self.members),
            "members": list(self.members),
            "shares": list(self.shares),
        }

    @staticmethod
    def from_json(data: Any) -> CommunityReport:
        """What a JSON object states."""
        return CommunityReport(
            int(data["label"]), tuple(map(str, data["members"])), tuple(map(float, data["shares"]))
        )


@dataclass(frozen=True, slots=True)
class RecoveryDiagnostics:
    """All that must be known of a recovery beside its sources.

    Attributes:
        remarks: Sentences about how the answer was made.
        misfit: The test of the stated physics; None where the noise is unknown.
        field: What was fitted of the field; None where nobody asked.
        community: On a graph, the community that holds most of R's mass.
        emd: Earth mover's distance of R to the true sources, where these were given.
        answer_emd: The same of the answer.
        suspects: Sensors that the others contradict, looked for where the physics does not fit and
            no field was fitted; they were not left out.
        ceiling: The largest mass of a source, where a cell of R is at it or no sources under it fit, and
            what the readings say against it; None where it makes no difference.
        level: The offset of all sensors, where readings are more even than any one source makes them, the
            site has a level and no offset was fitted; None where they are not.
        error: How far the answer is from the truth at worst, with its proofs; None where nobody asked, not
            on a line, and where a time or sensors were fitted.
        verdict: Whether to rely on the recovery, from all of these.
    """

    remarks: tuple[str, ...] = ()
    misfit: MisfitReport | None = None
    field: FieldReport | None = None
    community: CommunityReport | None = None
    emd: float | None = None
    answer_emd: float | None = None
    suspects: tuple[FaultySensor, ...] = ()
    ceiling: Ceiling | None = None
    level: SharedLevel | None = None
    error: ErrorCertificate | TreeCertificate | None = None
    verdict: Verdict = UNJUDGED

    @property
    def faulty_sensors(self) -> tuple[FaultySensor, ...]:
        """Sensors that the others contradict: left out where a field was fitted, else suspected."""
        return self.suspects if self.field is None else self.field.faulty_sensors


def _maybe(value: Any) -> float | None:
    return None if value is None else float(value)


def _both(ends: tuple[float, float] | None) -> list[float] | None:
    return None if ends is None else list(ends)


def _ends(data: Any) -> tuple[float, float] | None:
    return None if data is None else (float(data[0]), float(data[1]))


def suspects_json(suspects: tuple[FaultySensor, ...]) -> list[dict[str, Any]]:
    """Suspected sensors as they are saved and printed."""
    return [asdict(one) for one in suspects]


def suspects_from(data: Any) -> tuple[FaultySensor, ...]:
    """The suspected sensors that a JSON list states."""
    from sfumato.sensing.diagnostics.field_sensors import FaultySensor

    # A file of before has no unit.
    units = [ReadingUnit.from_json(one["unit"]) if "unit" in one else AS_READ for one in data]
    return tuple(
        FaultySensor(**{**one, "unit": unit}) for one, unit in zip(data, units, strict=True)
    )
