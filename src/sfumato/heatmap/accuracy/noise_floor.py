"""How wide the noise on a count is, from what is known of a map: what one cell may be by chance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sfumato.heatmap.accuracy.noise_mark import FINEST_SEEN, PICTURE_SIGMA

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
    price, users = release.map_epsilon, release.tiles.total
    if price <= 0 or users <= 0:
        return math.inf
    return 2 * max(1 / price, release.usual_noise) / users


def quick_density(release: HeatmapRelease) -> float:
    """How high such noise stands in the smoothed map, in users on the whole grid.

    As one place, or on all cells of the map, if that is more: for maps whose method cannot be
    simulated. A Gaussian of deviation s peaks at 1 / (2 pi s^2).
    """
    level = min(release.area.grid.levels, FINEST_SEEN)
    blob: float = 2 * math.pi * (PICTURE_SIGMA * 2.0**level) ** 2
    # A posterior shows, and a prior cuts, many more tiles than were counted, but neither adds
    # noise.
    known = release.posterior
    if known is not None and known.counts is not None:
        tiles = int(known.counts.last.sum())
    else:
        tiles = release.tiles.codes.size if release.prior is None else release.prior.tiles
    height = noise_share(release) * max(1 / max(1.0, blob), min(1.0, tiles / 4.0**level))
    users = release.tiles.total
    return height * users * 4.0**level if users > 0 else 0.0
