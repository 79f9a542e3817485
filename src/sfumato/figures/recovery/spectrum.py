"""The spectrum of an operator, as PNG: which numbers readings still tell, and which are gone."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter
from sfumato.figures.style import FONT_LABEL, FONT_NOTE, HIDDEN, LOST, NOISE, SEEN, THROUGH


def draw_conditioning(
    singular_values: npt.ArrayLike,
    *,
    caption: str,
    noise: float | None = None,
    complete: bool = True,
    lost: float | None = None,
) -> bytes:
    """One PNG of singular values on a log scale, those that noise or rounding hides in grey.

    Args:
        singular_values: At least one, none below 0: a unit along a singular vector changes the
            readings by its value.
        caption: Words below the picture, wrapped.
        noise: The deviation of the noise of one reading, drawn as a line: what lies below it is
            hidden by noise.
        complete: Whether these are all singular values.
        lost: What lies below this times the first value drowns in the rounding of doubles; 2**-50
            times their number if left out.

    Returns:
        The bytes of a PNG file.

    Raises:
        InvalidParameter: For arrays of another shape, numbers that are not finite, or nothing to
            draw.
    """
    values = np.asarray(singular_values, dtype=np.float64)
    if values.ndim != 1 or not values.size or not (np.isfinite(values) & (values >= 0)).all():
        raise InvalidParameter(
            "singular values must be a list of at least one number, finite and not negative; "
            "nothing was drawn"
        )
    if not values.max() > 0:
        raise InvalidParameter(
            "a spectrum on a log scale needs a value above 0, got none; nothing was drawn"
        )
    if noise is not None and not 0 < noise < np.inf:
        raise InvalidParameter(f"noise must be above 0 and finite, got {noise}; nothing was drawn")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ordered = np.sort(values)[::-1]
    number = np.arange(1, ordered.size + 1)
    floor = ordered[0] * (ordered.size * 2.0**-50 if lost is None else lost)
    bottom = floor / 30
    hidden = (ordered <= floor) | (ordered <= (noise or 0.0))
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    drawn = np.maximum(ordered, bottom * 1.5)
    axis.semilogy(number, drawn, color=THROUGH, linewidth=0.8, zorder=1)
    for chosen, color, label in (
        (~hidden, SEEN, "readings tell it"),
        (hidden, HIDDEN, "hidden"),
    ):
        if chosen.any():
            axis.scatter(number[chosen], drawn[chosen], s=16, color=color, label=label, zorder=2)
    axis.axhspan(bottom, floor, color=LOST, zorder=0, label="lost to rounding: physics hides it")
    if noise is not None:
        axis.axhline(noise, color=NOISE, linewidth=1.4, label=f"noise of one reading: {noise:.3g}")
    axis.set_ylim(bottom, max(ordered[0], noise or 0.0) * 3)
    axis.set_xlabel(
        "number of the singular value" + ("" if complete else " (the leading ones only)")
    )
    axis.set_ylabel("singular value")
    axis.legend(fontsize=FONT_NOTE, frameon=False)
    figure.supxlabel(caption, fontsize=FONT_LABEL, wrap=True, parse_math=False)
    out = io.BytesIO()
    # No date and no version in the file: the same values give the same bytes.
    figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
    return out.getvalue()
