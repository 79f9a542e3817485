from .entries import (
    Specimen,
    all_specimens,
    broken,
    half_noise,
    laplace,
    private,
    response_of_ours,
    selection,
)
from .self_test import SelfTest, selftest

__all__ = [
    "SelfTest",
    "Specimen",
    "all_specimens",
    "broken",
    "half_noise",
    "laplace",
    "private",
    "response_of_ours",
    "selection",
    "selftest",
]
