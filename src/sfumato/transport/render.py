"""A distance in words, and a picture of what moves."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from sfumato.errors import InvalidParameter
from sfumato.transport.results import EmdResult, GridFlow

if TYPE_CHECKING:
    from sfumato.figures import Frame


def render_emd(result: EmdResult) -> str:
    """One line for a distance and its bounds.

    Args:
        result: What `compare_masses` found.

    Returns:
        The sentence that `sfumato emd` prints.

    """
    unit = f" {result.unit}" if result.unit else ""
    return f"{result.value}{unit} (at least {result.lower}, at most {result.upper})"


def draw_emd(
    result: EmdResult,
    *,
    names: tuple[str, str] = ("before", "after"),
    shares: bool = False,
    frame: Frame | None = None,
) -> bytes:
    """Where mass moves on a grid, as PNG; scales follow the two masses: whoever compares them can read them.

    Args:
        result: What `compare_masses` found with `flow=True`.
        names: What the two masses are called.
        shares: Whether masses are shares of a whole.
        frame: Where the grid lies, for axes with positions; None counts cells.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: The masses are on no grid, or the flow was not asked for.

    """
    from sfumato.figures import arrows, flow_field

    if not isinstance(result.flow, GridFlow) or result.masses is None:
        raise InvalidParameter("a picture is of a `flow` on a grid; nothing was drawn")
    p, q = result.masses
    east, north = result.flow.east, result.flow.north
    far = f"{result.value:.6g} {result.unit}".rstrip()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a letter of a file's name that no font has
        return flow_field(
            p,
            q,
            east,
            north,
            caption=f"earth mover's distance {far} on {p.shape[1]} x {p.shape[0]} cells, l1; one of the "
            "cheapest ways to move the mass",
            unit="share of the mass" if shares else "mass",
            top=max(float(p.max()), float(q.max())) or 1.0,
            longest=float(arrows(east, north, p.shape).mass.max()) or None,
            names=(_short(names[0]), _short(names[1])),
            frame=frame,
        )


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:24]}...{name[-13:]}"
