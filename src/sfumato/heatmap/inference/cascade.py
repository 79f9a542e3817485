"""The prior of a map: mass falls down the cells by random shares, evenly in some places, in spikes in others.

A cell gives a share t of its mass to its first half and the rest to the second; t is Beta
distributed around a center c, with parameters 2 a c and 2 a (1 - c). A shape a near 0 sends all
mass one way, a large one splits as the center says. Which shapes are common is not assumed: it is
fitted to the noisy counts, for cells of little and of much mass apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version

import numpy as np
import numpy.typing as npt

from sfumato._compiled import cache_folder
from sfumato._types import FloatArray, IntArray
from sfumato.files import cached_array

SHAPES = (0.04, 0.12, 0.35, 1.0, 3.0, 10.0, 40.0)
# Cells of up to so many users share a mixture of shapes: one user is in one place, a hundred are in
# many.
MASSES = (1.5, 6.0, 25.0)
# Tables run over the logit of t, and over centers of these logits.
LOGITS, CENTERS = np.linspace(-18.0, 18.0, 361), np.linspace(-3.5, 3.5, 15)
# How common shapes are before anything is seen: one or two users are in few places, many may be
# anywhere.
USUAL = (
    (0.30, 0.25, 0.20, 0.12, 0.07, 0.04, 0.02),
    (0.20, 0.20, 0.20, 0.20, 0.10, 0.06, 0.04),
    (1 / 7,) * 7,
    (1 / 7,) * 7,
)
# A fitted mixture is as firm as this many further splits that show the usual shapes.
PSEUDO = 6.0
# Of so many parts of its weight it is noted where a share reaches them.
SLOTS = 64
# The same between the centers too, for shares that are drawn by the million: so many rows to a center.
ROWS, NARROW = 8, 128
STEPS = 12


@dataclass(frozen=True, eq=False)
class Shares:
    """Tables of t under a mixture of shapes, one for each class of mass.

    `below` [class, center, logit] is P(t <= ...), `part` the part of the mean of t that lies below.
    Of several maps with mixtures of their own the classes lie one after another.
    """

    below: FloatArray
    part: FloatArray

    @cached_property
    def slots(self) -> npt.NDArray[np.int16]:
        """How many logits of each row are below evenly spaced parts of 1 [class, center, slot]."""
        rows = self.below.reshape(-1, self.below.shape[2])
        parts = np.arange(SLOTS + 1) / SLOTS
        found = np.stack(
            [np.searchsorted(one, parts) for one in np.maximum.accumulate(rows, axis=1)]
        )
        return found.astype(np.int16).reshape(*self.below.shape[:2], -1)

    @cached_property
    def narrow(self) -> npt.NDArray[np.int16]:
        """The same of ROWS centers in the place of one and of NARROW parts: a search finds the same sooner.

        Between two centers the tables are blended in proportion: what lies between two rows of these
        is reached between where they are.
        """
        along = (np.arange(ROWS) / ROWS)[:, None]
        blended = self.below[:, :-1, None] * (1 - along) + self.below[:, 1:, None] * along
        logits = self.below.shape[2]
        between = blended.reshape(len(self.below), -1, logits)
        rows = np.concatenate([between, self.below[:, -1:]], axis=1).reshape(-1, logits)
        reached = np.floor(np.maximum.accumulate(rows, axis=1) * NARROW).astype(np.int64)
        reached = np.minimum(reached, NARROW) + (NARROW + 1) * np.arange(len(rows))[:, None]
        count = np.bincount(reached.ravel(), minlength=len(rows) * (NARROW + 1))
        found = np.zeros((len(rows), NARROW + 1), dtype=np.int16)
        found[:, 1:] = np.cumsum(count.reshape(found.shape)[:, :-1], axis=1)
        return found.reshape(len(self.below), -1, NARROW + 1)

    def tables(self, masses: FloatArray, maps: IntArray) -> IntArray:
        """Which table the share of a cell of this mass has, in a map of this number."""
        found = np.searchsorted(MASSES, masses)
        classes = len(MASSES) + 1
        return found + classes * maps if len(self.below) > classes else found


@lru_cache(maxsize=1)
def by_shape() -> Shares:
    """The same tables with shapes in the place of classes."""
    t, centers = 1 / (1 + np.exp(-LOGITS)), 1 / (1 + np.exp(-CENTERS))
    a = np.array(SHAPES)[:, None, None]
    c = centers[None, :, None]

    def tables() -> FloatArray:
        from scipy.special import betainc

        # The mean of t up to x is c times the distribution of Beta(2 a c + 1, 2 a (1 - c)) at x.
        below, above = (
            betainc(2 * a * c, 2 * a * (1 - c), t),
            betainc(2 * a * c + 1, 2 * a * (1 - c), t),
        )
        return np.array([below, c * above], dtype=np.float64)

    # To load SciPy's functions takes longer than most that is asked of a map: a process in many does.
    made_of = (
        f"shares/1 scipy {version('scipy')}".encode() + a.tobytes() + c.tobytes() + t.tobytes()
    )
    below, part = cached_array(cache_folder(), "shares", made_of, tables)
    return Shares(below, part)


def usual_mixture() -> FloatArray:
    """How common each shape is for each class of mass [class, shape], before anything is seen."""
    return np.array(USUAL)


def mixed(mixture: FloatArray) -> Shares:
    """The tables of a mixture of shapes."""
    tables = by_shape()
    return Shares(
        np.einsum("gj,jsk->gsk", mixture, tables.below),
        np.einsum("gj,jsk->gsk", mixture, tables.part),
    )


@lru_cache(maxsize=1)
def usual_shares() -> Shares:
    """The tables of the usual mixture."""
    return mixed(usual_mixture())


def fit_mixture(
    evidence: FloatArray, masses: FloatArray, usual: FloatArray | None = None
) -> FloatArray:
    """The mixture [class, shape] that makes what was seen of splits most likely, with PSEUDO usual ones more.

    `evidence` [split, shape] is the logarithm of how likely the counts below a split are under each
    shape. Expectation and maximisation in turn, STEPS times: enough for weights of a few
    hundredths.
    """
    usual = usual_mixture() if usual is None else usual
    found = usual.copy()
    classes = np.searchsorted(np.array(MASSES), masses)
    for group in range(len(found)):
        seen = evidence[classes == group]
        if not len(seen):
            continue
        likely = np.exp(seen - seen.max(axis=1, keepdims=True))
        for _ in range(STEPS):
            owed = likely * found[group]
            owed /= owed.sum(axis=1, keepdims=True)
            found[group] = (owed.sum(axis=0) + PSEUDO * usual[group]) / (len(seen) + PSEUDO)
    return found
