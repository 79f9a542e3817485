"""Distances of places in coordinates; SciPy is loaded when they are asked for, not before."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sfumato._types import FloatArray

Norm = Literal["euclidean", "l1"]


def apart(places: FloatArray, others: FloatArray, norm: Norm) -> FloatArray:
    """How far each of some places is from each of others: [places, others]."""
    from scipy.spatial import distance

    return np.asarray(distance.cdist(places, others, "cityblock" if norm == "l1" else "euclidean"))
