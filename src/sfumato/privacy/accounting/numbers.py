"""Exact numbers, and directed rounding where exactness ends."""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidParameter

Number = int | float | str | Fraction

# Every transcendental value is computed with this many bits and then rounded, in the stated
# direction, to at most ROUNDED bits: the rounding step is 2**190 times the error of the
# computation.
WORKING = 256
ROUNDED = 64
SMALLEST = 4096
# What is computed in decimals has as many bits, and some more.
DIGITS = 90
# Above 4300 digits Python reads no integer; so many on either side of a fraction are read here.
MAX_DIGITS = 4000


def exact(number: Number, *, name: str = "number") -> Fraction:
    """The fraction a person means by a number: 0.1 is 1/10, not the double nearest to it.

    Args:
        number: An integer, a float (read as it prints), a fraction, or text such as 1e-6 or 1/3.
        name: What messages call it.

    Returns:
        The fraction.

    Raises:
        InvalidParameter: The number is not finite, or has too many digits.

    Example:
        >>> exact(0.1), exact("1e-6"), exact("1/3")
        (Fraction(1, 10), Fraction(1, 1000000), Fraction(1, 3))

    """
    if isinstance(number, str) and not _short(number):
        raise InvalidParameter(
            f"{name} must be a fraction of at most {MAX_DIGITS} digits, or a number of at most 400, got one "
            "of more"
        )
    try:
        return Fraction(str(float(number))) if isinstance(number, float) else Fraction(number)
    except (ValueError, OverflowError, ZeroDivisionError, TypeError):
        raise InvalidParameter(f"{name} must be a finite number, got {number!r}") from None


def _short(text: str) -> bool:
    """Whether a number written out has few digits: 1e999999999 would be a billion of them."""
    if re.fullmatch(rf"-?[0-9]{{1,{MAX_DIGITS}}}(/[0-9]{{1,{MAX_DIGITS}}})?", text):
        return True
    exponent = re.search(r"[eE]([+-]?\d+)", text)
    return len(text) <= 400 and (
        exponent is None or (len(exponent[1]) < 6 and abs(int(exponent[1])) <= 400)
    )


def written(number: Fraction) -> str:
    """A fraction as text, exactly: as `str` does it, and beyond the digits at which Python gives up.

    Args:
        number: The fraction.

    Returns:
        A whole number, or two with a bar between them.

    Example:
        >>> written(Fraction(1, 3)), written(Fraction(-2))
        ('1/3', '-2')

    """
    top, bottom = Decimal(number.numerator), Decimal(number.denominator)
    return f"{top:f}" if number.denominator == 1 else f"{top:f}/{bottom:f}"


def plain(number: Fraction, *, rounding: str = ROUND_CEILING) -> str:
    """A fraction as people read it, to 6 digits, never smaller than it is; the exact value is in the JSON.

    Args:
        number: The fraction.
        rounding: A rounding mode of `decimal`; up by default.

    Returns:
        At most 6 significant digits.

    Example:
        >>> plain(Fraction(1, 2)), plain(Fraction(1, 3)), plain(Fraction(1, 3), rounding="ROUND_FLOOR")
        ('0.5', '0.333334', '0.333333')

    """
    digits = Context(prec=6, rounding=rounding).divide(
        Decimal(number.numerator), Decimal(number.denominator)
    )
    near = float(digits)
    return f"{near:.6g}" if digits == 0 or 0 < abs(near) < math.inf else str(digits)


def up(value: Any) -> Fraction:
    """A fraction at or above a value computed with WORKING bits, by at most 2**-62 of it.

    Args:
        value: An `mpmath` real.

    Returns:
        The fraction.

    """
    return _rounded(value, +1)


def down(value: Any) -> Fraction:
    """A fraction at or below a value computed with WORKING bits, by at most 2**-62 of it."""
    return _rounded(value, -1)


def _rounded(value: Any, direction: int) -> Fraction:
    import mpmath

    if abs(value) < mpmath.ldexp(1, -SMALLEST):
        # Too small for any double: one step away from 0 in the right direction, or 0 itself.
        return Fraction(direction, 2**SMALLEST) if value * direction > 0 else Fraction(0)
    exponent = int(mpmath.floor(mpmath.log(abs(value), 2))) - ROUNDED
    step = Fraction(2) ** exponent
    return (int(mpmath.floor(mpmath.ldexp(value, -exponent))) + (2 if direction > 0 else -1)) * step


def above(value: Fraction) -> Fraction:
    """As `up`, of a value that is a fraction already, computed with some 2**-WORKING of it."""
    return _stepped(value, +1)


def below(value: Fraction) -> Fraction:
    """As `down`, of a value that is a fraction already, computed with some 2**-WORKING of it."""
    return _stepped(value, -1)


def _stepped(value: Fraction, direction: int) -> Fraction:
    if abs(value) < Fraction(1, 2**SMALLEST):
        return Fraction(direction, 2**SMALLEST) if value * direction > 0 else Fraction(0)
    step = Fraction(2) ** (_log2_below(abs(value)) - ROUNDED)
    return (math.floor(value / step) + (2 if direction > 0 else -1)) * step


def exp_below(power: Fraction) -> Fraction:
    """A fraction at or below e**power, by at most 2**-62 of it.

    Args:
        power: The power.

    Returns:
        e**power, rounded down.

    """
    import mpmath

    with mpmath.workprec(WORKING):
        return down(mpmath.exp(real(power)))


def sqrt_above(number: Fraction) -> Fraction:
    """A fraction at or above the square root, by at most 2**-62 of it.

    In integers, exactly as `up` rounds, so that a device which checks a plan needs no real numbers.

    Args:
        number: A fraction, at least 0.

    Returns:
        The root, rounded up.

    Example:
        >>> 0 < sqrt_above(Fraction(2)) ** 2 - 2 < Fraction(1, 2**60)
        True

    """
    if not number:
        return Fraction(0)
    if number < Fraction(1, 4**SMALLEST):
        return Fraction(1, 2**SMALLEST)
    exponent = _log2_below(number) // 2 - ROUNDED
    step = Fraction(2) ** exponent
    return (math.isqrt(math.floor(number / step**2)) + 2) * step


def _log2_below(number: Fraction) -> int:
    """floor(log2(number)), for a number above 0."""
    near = number.numerator.bit_length() - number.denominator.bit_length()
    return near if number >= Fraction(2) ** near else near - 1


def real(number: Fraction) -> Any:
    """The number as an mpmath real at the current precision.

    Args:
        number: The fraction.

    Returns:
        An `mpmath.mpf`.

    """
    import mpmath

    return mpmath.mpf(number.numerator) / number.denominator


def double_above(number: Number, *, name: str = "number") -> Fraction:
    """The smallest double at or above a number, as a fraction: noise parameters are rounded up to it.

    A float is already a double and stays as it is.

    Args:
        number: A number; not a float is rounded up.
        name: What messages call it.

    Returns:
        A fraction that is exactly a double.

    Raises:
        InvalidParameter: The number is not finite, or beyond the doubles.

    Example:
        >>> double_above(Fraction(1, 3)) > Fraction(1, 3), double_above(0.1) == Fraction(0.1)
        (True, True)

    """
    if isinstance(number, float) and math.isfinite(number):
        return Fraction(number)
    wanted = exact(number, name=name)
    try:
        near = float(wanted)
    except OverflowError:
        raise InvalidParameter(
            f"{name} must be a finite number, got one beyond any double"
        ) from None
    return Fraction(near if Fraction(near) >= wanted else math.nextafter(near, math.inf))
