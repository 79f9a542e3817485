"""Below which height a picture of a map shows noise: from what was released, and what is known of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sfumato.heatmap.inference.uncertainty import TIMES
from sfumato.privacy import ZCDP

if TYPE_CHECKING:
    from sfumato.heatmap.results import HeatmapRelease


def noise_share(release: HeatmapRelease) -> float:
    """The share below which a single cell may well be noise: that of twice the scale of the noise.

    86 % of Laplace noise is below twice its scale. It is at least about 1 / epsilon users, or
    1 / sqrt(2 rho), however the map was made [ghosh12]. A map of nobody has only noise.

    Args:
        release: The map.

    Returns:
        A share of all mass; infinite for a map of nobody.

    """
    loss = release.receipt.guarantee.loss
    price: float = math.sqrt(2 * loss.rho) if isinstance(loss, ZCDP) else float(loss.epsilon)
    users = release.tiles.total
    if price <= 0 or users <= 0:
        return math.inf
    own = None if release.posterior is None else release.posterior.noise_scale
    return 2 * max(1 / price, release.noise_scale if own is None else own) / users


def quick_floor(release: HeatmapRelease, level: int, *, sigma: float) -> float:
    """How high such noise stands in a picture of a level blurred by sigma.

    As one place, or on all cells of the map, if that is more. A Gaussian over s cells peaks at
    1 / (2 pi s^2).
    """
    blob: float = 2 * math.pi * (sigma * 2.0**level) ** 2
    # A posterior shows, and a prior cuts, many more tiles than were counted, but neither adds
    # noise.
    known = release.posterior
    if known is not None and known.counts is not None:
        tiles = int(known.counts.last.sum())
    else:
        tiles = release.tiles.codes.size if release.prior is None else release.prior.tiles
    return noise_share(release) * max(1 / max(1.0, blob), min(1.0, tiles / 4.0**level))


def picture_floor(release: HeatmapRelease, level: int, *, sigma: float) -> float:
    """The floor of a picture: from the draws of a map that has a posterior, else the quick one.

    Of what such a map shows at places where there may be under half the average, 95 % is below it.
    """
    if release.posterior is None:
        return quick_floor(release, level, sigma=sigma)
    band = release.band()
    first_column, first_row, last_column, last_row = release.area.window(band.level)
    here = np.s_[first_row:last_row, first_column:last_column]
    shown, low = release.image(band.level, sigma=sigma)[here], band.low[here]
    doubtful = np.sort(shown[low <= 1 / (TIMES * low.size)])
    if not doubtful.size:
        return 0.0
    held = np.cumsum(doubtful)
    # A cell of a coarser picture has several of the band's.
    return float(doubtful[np.searchsorted(held, 0.95 * held[-1])]) * 4.0 ** (band.level - level)
