"""An operator whose readings are multiplied, each by a public gain: noise for each sensor, as one sigma.

Sensor k adds noise of sigma / gain_k exactly if its reading, times gain_k, gets noise of sigma. So the site
of such sensors has this operator, readings are multiplied where they come in (`release.exact`), and all that
follows, noise, ledger, seal, packets, solver, estimators and checks, knows one sigma and needs no change
(docs/proofs/noise-per-sensor.md). A gain of 0 switches a sensor off: it sends nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only, real_array
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import Operator, columns_tell_all, duals_of
from sfumato.sensing.model.sensors import Sensors

if TYPE_CHECKING:
    from sfumato.sensing.model.changes import Largest
    from sfumato.sensing.model.operators.protocol import SourceSpace

LARGEST_GAIN = 16.0
"""No sensor adds less than 1/16 of the noise that a gain of 1 has: physics that is a little wrong there
would tell the more, the less noise there is."""
SMALLEST_GAIN = 2.0**-6
"""A sensor with more than 64 times the noise tells nothing: it is switched off."""


@dataclass(frozen=True, eq=False)
class Weighted(Operator):
    """The readings of an operator, each times its gain; sources, places and sensors are the same."""

    of: Operator
    gains: FloatArray
    kind: ClassVar[str] = "weighted"

    @property
    def space(self) -> SourceSpace:  # type: ignore[override]
        """Where sources may be."""
        return self.of.space

    @property
    def sensors(self) -> Sensors:  # type: ignore[override]
        """All sensors, those that are switched off included: the promise is for the whole set."""
        return self.of.sensors

    @property
    def sources_at(self) -> str:  # type: ignore[override]
        """As without gains."""
        return self.of.sources_at

    def columns(self, cells: npt.ArrayLike) -> FloatArray:
        """What one unit in each of these cells reads, times the gains: sensors by cells."""
        return self._rows * self.of.columns(cells)

    def readings(self, sources: npt.ArrayLike) -> FloatArray:
        """What the sensors read of these masses, times the gains, without noise."""
        return self.gains * self.of.readings(sources)

    def adjoint(self, dual: npt.ArrayLike) -> FloatArray:
        """The transposed map: one number for each cell."""
        return self.of.adjoint(self.gains * duals_of(dual, len(self.sensors)))

    def apply(self, block: FloatArray) -> FloatArray:
        """The readings of several source vectors at once."""
        return self._rows * self.of.apply(block)

    def apply_adjoint(self, block: FloatArray) -> FloatArray:
        """The adjoint of several dual vectors at once."""
        return self.of.apply_adjoint(self._rows * block)

    def dense(self) -> FloatArray:
        """The whole matrix."""
        return self._rows * self.of.dense()

    def take(self, rows: IntArray) -> Operator:
        """The same to some of the sensors."""
        return Weighted(self.of.take(rows), read_only(self.gains[rows]))

    @property
    def time(self) -> float | None:
        """As without gains."""
        return self.of.time

    @property
    def time_name(self) -> str:
        """As without gains."""
        return self.of.time_name

    def with_time(self, time: float) -> Weighted:
        """The same gains at another time: what they cost then is computed anew."""
        return replace(self, of=self.of.with_time(time))

    def changes(self, *, over_distance: bool) -> Largest:
        """The largest change of all readings times their gains: the weighted norm of a move.

        Differences come before gains, so that rounding is of the difference. What an operator from
        outside says of itself bounds it by the largest gain, and by its sensors one by one; also where it
        is one of ours with `changes` of its own.
        """
        from sfumato.sensing.model.changes import Largest, column_changes, no_change
        from sfumato.sensing.model.operators.graph_diffusion import GraphDiffusion
        from sfumato.sensing.model.operators.heat import HeatOperator

        says = type(self.of).changes
        if isinstance(self.of, HeatOperator) and says is HeatOperator.changes:
            from sfumato.sensing.model.heat_changes import heat_changes

            return heat_changes(
                self.of, over_distance=over_distance, gains=tuple(self.gains.tolist())
            )
        if isinstance(self.of, GraphDiffusion) and says is GraphDiffusion.changes:
            from sfumato.sensing.model.graph_sensitivity import weighted_changes

            if self.space.size == 1:
                return no_change(self)
            return weighted_changes(self.of, self.gains, over_distance=over_distance)
        if columns_tell_all(self.of) and says is Operator.changes:
            return column_changes(self.of, over_distance=over_distance, gains=self.gains)
        found = self.of.changes(over_distance=over_distance)
        alone = found.per_sensor * self.gains
        l2 = min(found.l2 * float(self.gains.max()), math.hypot(*alone.tolist()))
        return Largest(l2, alone, None, found.error + (len(alone) + 16) * 2.0**-51)

    def sampled_changes(self, *, over_distance: bool) -> FloatArray | None:
        """Changes of single sensors at some places, times the gains."""
        found = self.of.sampled_changes(over_distance=over_distance)
        return None if found is None else self._rows * found

    def largest_reading(self) -> float:
        """What a source of mass 1 adds at most to any reading, times its gain."""
        return self.of.largest_reading() * float(self.gains.max())

    @property
    def nodes(self) -> IntArray | None:
        """As without gains."""
        return self.of.nodes

    @property
    def in_space(self) -> bool:
        """As without gains."""
        return self.of.in_space

    @property
    def factors(self) -> tuple[FloatArray, FloatArray] | None:
        """The gains go with the first."""
        found = self.of.factors
        return None if found is None else (self._rows * found[0], found[1])

    @property
    def nonnegative(self) -> bool:
        """As without gains, which are not negative."""
        return self.of.nonnegative

    @property
    def constant(self) -> bool:
        """As without gains."""
        return self.of.constant

    @property
    def costly_columns(self) -> bool:
        """As without gains."""
        return self.of.costly_columns

    @property
    def column_entries(self) -> int:
        """As without gains."""
        return self.of.column_entries

    @property
    def _rows(self) -> FloatArray:
        return self.gains[:, np.newaxis]

    def to_json(self) -> dict[str, Any]:
        """The gains, and the operator they are of."""
        return {"gains": self.gains.tolist(), "of": {"kind": self.of.kind, **self.of.to_json()}}

    @classmethod
    def from_json(cls, data: dict[str, Any], space: SourceSpace, sensors: Sensors) -> Weighted:
        """The operator that a site file describes."""
        from sfumato.sensing.model.operators.registry import operator_from_json

        return weighted(operator_from_json(data["of"], space, sensors), data["gains"])


def weighted(operator: Operator, gains: npt.ArrayLike) -> Weighted:
    """An operator whose sensors add noise of sigma over their gains.

    Args:
        operator: How sources spread to sensors.
        gains: One for each sensor, 1/64 to 16, or 0 to switch it off; not all 0. Public: they may depend on
            the site, and must not on any reading.

    Returns:
        The operator.

    Raises:
        InvalidParameter: A gain is out of its range, or the operator has gains already.

    >>> from sfumato.sensing import heat_line
    >>> line = heat_line(sources=4, sensors=2, diffusion_time=0.1)
    >>> bool((weighted(line, [1, 2]).columns([0])[1] == 2 * line.columns([0])[1]).all())
    True
    """
    given = np.array(real_array("gains", gains))
    if isinstance(operator, Weighted):
        raise InvalidParameter("the sensors have gains already; nothing was built")
    if given.shape != (len(operator.sensors),):
        raise InvalidParameter(
            f"there must be one gain for each of {len(operator.sensors)} sensors, got shape {given.shape}; "
            "nothing was built"
        )
    within = (given == 0) | ((given >= SMALLEST_GAIN) & (given <= LARGEST_GAIN))
    if not within.all() or not given.any():
        raise InvalidParameter(
            f"a gain lies between {SMALLEST_GAIN:g} and {LARGEST_GAIN:g}, or is 0, and not all are 0, got "
            f"{given[~within][:1].tolist() or 0}; nothing was built"
        )
    return Weighted(operator, read_only(given))


def without_gains(operator: Operator) -> Operator:
    """What sensors read as they are: the operator that has the gains, or itself.

    Args:
        operator: Any operator.

    Returns:
        One without gains.
    """
    return operator.of if isinstance(operator, Weighted) else operator


def gains_of(operator: Operator) -> FloatArray:
    """The gains of its sensors; 1 each where it has none.

    Args:
        operator: Any operator.

    Returns:
        One number for each sensor.
    """
    return operator.gains if isinstance(operator, Weighted) else np.ones(len(operator.sensors))


def gains_counted(operator: Operator) -> tuple[float, ...]:
    """The gains that a noise plan counts: none where all sensors have one sigma.

    Args:
        operator: Any operator.

    Returns:
        One number for each sensor, or nothing.
    """
    return tuple(operator.gains.tolist()) if isinstance(operator, Weighted) else ()
