"""A calibration in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.sensing.render.words import listed

if TYPE_CHECKING:
    from sfumato.sensing.diagnostics.calibration import Fitted
    from sfumato.sensing.results.calibration import CalibrationResult


def calibration_lines(result: CalibrationResult) -> list[str]:
    """What was fitted and how sure it is, a line each.

    Args:
        result: What `calibrate_site` fitted.

    Returns:
        The lines.
    """
    unit = result.site.unit
    lines = [
        f"from {result.readings} readings at {result.rounds} times, public by their owner's consent"
    ]
    if result.beside is not None and result.time is not None and result.gain is not None:
        lines += [
            f"a source adds {_told(result.beside, unit)} to a sensor where it stands",
            f"diffusion time {_told(result.time, '')}",
            f"gain {_told(result.gain, unit)}; noise will be for its upper end, so that masses come out "
            f"{100 * (1 - result.gain.value / result.gain.high):.0f} % lower",
        ]
    else:
        lines.append("nobody stood in the room: the gain and the diffusion time are as they were")
    lines.append(f"sensors read {_told(result.ambient, unit)} where nobody is, on average")
    name, most, error = max(result.offsets, key=lambda one: abs(one[1]))
    lines.append(
        f"the furthest from it is {name!r}, by {most:+.3g} {unit} (standard error {error:.2g})"
    )
    lines.append(
        f"what is left has a deviation of {result.deviation:.3g} {unit}; errors hold if it is noise of each "
        "reading by itself"
    )
    if result.stuck:
        who, one = listed([*map(repr, result.stuck)]), len(result.stuck) == 1
        named = f"sensor {who}: its readings are" if one else f"sensors {who}: readings of each are"
        looks = (
            "it looks stuck, and what it reads" if one else "they look stuck, and what they read"
        )
        lines.append(
            f"LOOK AT {named} one and the same number, and those of others vary; {looks} where nobody is "
            "would be wrong"
        )
    return lines


def _told(one: Fitted, unit: str) -> str:
    return f"{one.value:.4g} {unit}".rstrip() + f" ({one.low:.4g} to {one.high:.4g} with 95 %)"
