"""Masses as integers: validated once, rounded to a lattice, with what the rounding may cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidInput

BLOCK = 2**16
LOW = 2**30 - 1
BITS = 62  # all excess and want together stay below 2**62 units, so no sum of units overflows
SMALLEST, LARGEST = 2.0**-300, 2.0**300


@dataclass(frozen=True, slots=True)
class Excess:
    """A signed mass in integer units of 2**-exponent, and how much mass (at most) rounding has misplaced."""

    units: IntArray
    exponent: int
    misplaced: float

    def mass(self, units: int) -> float:
        """So many units as mass."""
        return math.ldexp(units, -self.exponent)


def as_array(values: npt.ArrayLike, name: str) -> npt.NDArray[np.generic]:
    """Anything array-like as an array, not yet checked."""
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInput(f"{name} must not be masked; fill it first; no distance was computed")
    try:
        return np.asarray(values)
    except ValueError:
        raise InvalidInput(
            f"{name} must have rows of one length; no distance was computed"
        ) from None


def checked(
    values: npt.ArrayLike, shape: tuple[int, ...], *, name: str, signed: bool = False
) -> FloatArray:
    """Masses as doubles: one finite number for each cell, none negative."""
    array = shaped(values, shape, name=name)
    weighed(array, name=name, signed=signed)
    return array


def shaped(values: npt.ArrayLike, shape: tuple[int, ...], *, name: str) -> FloatArray:
    """Doubles of the right shape, whatever their values."""
    given = as_array(values, name)
    if given.dtype.kind not in "iufb":
        raise InvalidInput(
            f"{name} must be numbers, got type {given.dtype}; no distance was computed"
        )
    if given.shape != shape:
        raise InvalidInput(
            f"{name} must have shape {shape}, got {given.shape}; no distance was computed"
        )
    return np.ascontiguousarray(given, dtype=np.float64)


def weighed(array: FloatArray, *, name: str, signed: bool = False) -> float:
    """The mass, when every entry is finite and none negative (unless signed masses are meant)."""
    with np.errstate(over="ignore", invalid="ignore"):
        mass = float(np.abs(array).sum() if signed else array.sum())
    if not math.isfinite(
        mass
    ):  # a sum that overflows is as bad as an infinite entry, and as fast to see
        raise InvalidInput(
            f"{name} must be finite, also in sum, got NaN or infinity; no distance was computed"
        )
    if not signed and array.size and array.min() < 0:
        raise InvalidInput(
            f"{name} must not be negative, got {array.min():g}; no distance was computed"
        )
    if mass and not SMALLEST < mass < LARGEST:
        raise InvalidInput(
            f"a mass must lie between 2**-300 and 2**300, got {mass:g}; no distance was computed"
        )
    return mass


def same_masses(p: float, q: float, *, cells: int, normalize: bool) -> None:
    """Refuse masses that are not equal up to rounding, or cannot be normalised."""
    if normalize:
        if min(p, q) <= 0:
            raise InvalidInput(f"a mass of 0 cannot be scaled to 1, got {p:g} and {q:g}")
    # Sums of n doubles, each off by half a unit in the last place: beyond this the masses do
    # differ.
    elif abs(p - q) > (cells + 15) * 2**-52 * max(p, q):
        raise InvalidInput(
            f"masses must be equal, got {p:.17g} and {q:.17g}; "
            "scale them, or let `normalize=True` scale both to 1"
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """The excess p - q in doubles, p + q, and how much mass rounding may have misplaced so far."""

    excess: FloatArray
    whole: FloatArray
    slip: float

    @property
    def mass(self) -> float:
        """The mass of p, which is that of q."""
        return float(self.whole.sum()) / 2


def difference(p: FloatArray, q: FloatArray, *, normalize: bool) -> Difference:
    """The excess p - q, after both have been scaled to mass 1 if asked; unequal masses are an error."""
    same_masses(float(p.sum()), float(q.sum()), cells=p.size, normalize=normalize)
    if normalize:
        # Correctly rounded sums and quotients: each share is off by 2**-52 of itself, both masses
        # by 2**-51 together.
        p, q = p / math.fsum(p.ravel()), q / math.fsum(q.ravel())
        return Difference(p - q, p + q, 2**-50)
    z = p - q
    return Difference(z, p + q, 2**-50 * float(np.abs(z).sum()))


def to_units(z: FloatArray, slip: float, *, parts: Sequence[npt.NDArray[np.intp]] | None) -> Excess:
    """A signed mass on the lattice 2**-exponent, the finest that fits; each part is made to sum to exactly 0.

    The scale is a power of two, so scaling is exact and only rounding misplaces mass: half a unit a
    cell and the repair of the sums, beside what had slipped before.
    """
    total = float(np.abs(z).sum())
    if total == 0:
        return Excess(np.zeros(z.shape, np.int64), 0, slip)
    exponent = BITS - math.frexp(total)[1]
    scaled = np.ldexp(z, exponent)
    units = np.rint(scaled).astype(np.int64)
    for part in parts or ():
        _repair(units.reshape(-1), part)
    off = float(np.abs(scaled - units).sum())
    # The sums themselves are rounded, by far less than the 2**-40 that is added.
    return Excess(units, exponent, (math.ldexp(off, -exponent) + slip) * (1 + 2**-40))


def _repair(flat: IntArray, part: npt.NDArray[np.intp]) -> None:
    """Make the sum of a part 0 by a unit or a few on its largest entries."""
    inside = flat[part]
    rest = int(inside.sum())
    if rest == 0:
        return
    count = min(abs(rest), inside.size)
    largest = part[np.argpartition(-np.abs(inside), count - 1)[:count]]
    share, extra = divmod(abs(rest), count)
    flat[largest] -= np.sign(rest) * share
    flat[largest[:extra]] -= np.sign(rest)


def dot(a: npt.NDArray[np.signedinteger], units: IntArray) -> int:
    """The exact sum of a * units: in blocks and two halves of 30 bits, so that an int64 holds each."""
    a, units = a.reshape(-1), units.reshape(-1)
    if int(np.abs(a).max(initial=0)) >= 2**16:
        return sum(map(mul, a.tolist(), units.tolist()))
    result = 0
    for at in range(0, a.size, BLOCK):
        wide, part = a[at : at + BLOCK].astype(np.int64), units[at : at + BLOCK]
        result += (int(wide @ (part >> 30)) << 30) + int(wide @ (part & LOW))
    return result


def weight(units: IntArray, lengths: IntArray | int = 1) -> int:
    """The exact sum of |units| * lengths."""
    size = np.abs(units.reshape(-1))
    if isinstance(lengths, int):
        return lengths * ((int((size >> 30).sum()) << 30) + int((size & LOW).sum()))
    return sum(map(mul, size.tolist(), lengths.tolist()))
