"""What sensors read where nobody is: public, and taken off every reading before noise is added.

Taking off a number that does not depend on the sources leaves the difference of any two readings as it was, so
nothing that is promised changes. It must be public: a level computed from private readings is a release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting import Number, exact

_NUMBER = re.compile(r"\s*([-+]?\d*\.?\d+(?:[eE][-+]?\d+)?(?:/\d+)?)\s*(.*?)\s*")
TEMPERATURES = frozenset(
    (
        "c",
        "°c",
        "degc",
        "celsius",
        "f",
        "°f",
        "degf",
        "fahrenheit",
        "k",
        "kelvin",
        "degree",
        "degrees",
    )
)
"""Units in which an empty room does not read 0."""


@dataclass(frozen=True, slots=True)
class Level:
    """What a sensor reads where nobody is: `ambient`, its own offset, and a public reference that runs.

    Attributes:
        ambient: The same for all sensors and all time, in their unit.
        offsets: How much more single sensors read, by name.
        running: The name of a public reference (outdoors, say) whose reading of the same time is taken off;
            "" for none. It is no sensor of the site.
    """

    ambient: Fraction = Fraction(0)
    offsets: tuple[tuple[str, Fraction], ...] = ()
    running: str = ""

    def of(self, names: Sequence[str], reference: float | None) -> list[Fraction]:
        """What is taken off the readings of these sensors."""
        own = dict(self.offsets)
        base = self.ambient + (Fraction(reference) if reference is not None else 0)
        return [base + own.get(name, 0) for name in names]

    def check(self, names: Sequence[str]) -> None:
        """Refuse offsets of no sensor, and a reference that is private."""
        unknown = [name for name, _ in self.offsets if name not in set(names)]
        if unknown:
            raise InvalidParameter(
                f"offsets are of sensors of the site, got one of {unknown[0]!r}; nothing was built"
            )
        if self.running in set(names):
            raise InvalidParameter(
                f"a running baseline is public, and {self.running!r} is a sensor of the site, whose readings "
                "are private: name a reference that is not one of them; nothing was built"
            )
        if not self.running.isprintable():
            raise InvalidParameter("a baseline's name must be printable; nothing was built")

    def to_json(self) -> dict[str, Any]:
        """With exact numbers as text; parts that say nothing are left out."""
        return {
            "ambient": str(self.ambient),
            **({"offsets": {name: str(v) for name, v in self.offsets}} if self.offsets else {}),
            **({"running": self.running} if self.running else {}),
        }

    @staticmethod
    def from_json(data: Any) -> Level:
        """The level that a JSON object states."""
        told = data.get("offsets", {})
        return Level(
            exact(data["ambient"], name="ambient"),
            tuple((str(name), exact(value, name="offset")) for name, value in told.items()),
            str(data.get("running", "")),
        )


def with_unit(value: Number | None, name: str, unit: str) -> tuple[Fraction | None, str]:
    """A number that may carry its unit, like "0.8C", and the unit: that of the number, or the one given.

    >>> with_unit("0.8 C", "per_source", "")
    (Fraction(4, 5), 'C')
    """
    if value is None:
        return None, unit
    found = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if found is None or not found[2]:
        return exact(value, name=name.replace("_", "-")), unit
    if unit and unit != found[2]:
        raise InvalidParameter(
            f"`{name}` is in {found[2]!r}, and `unit` is {unit!r}: a site has one; nothing was built"
        )
    return exact(found[1], name=name.replace("_", "-")), found[2]


def level_of(
    ambient: Number | None,
    offsets: Mapping[str, Number] | None,
    running: str,
    unit: str,
) -> tuple[Level | None, str]:
    """The level that was said, if any was, and the unit; a site in degrees must say one.

    Room temperature would otherwise pass as twenty sources at every sensor.
    """
    base, unit = with_unit(ambient, "ambient", unit)
    if base is None and not offsets and not running:
        if unit.lower() in TEMPERATURES:
            raise InvalidParameter(
                f"readings in {unit!r} are not 0 where nobody is: say what they are there: `ambient` (0 if "
                "it is taken off already), `offsets` of sensors, or a public `baseline`; nothing was built"
            )
        return None, unit
    own = [(name, with_unit(value, "offsets", unit)[0]) for name, value in (offsets or {}).items()]
    held = tuple((name, value) for name, value in own if value is not None)
    return Level(base or Fraction(0), held, running), unit
