from .bounds import (
    attained_rate,
    contiguity_floor,
    divergence_bound,
    error_floor,
    estimation_rate,
    packing,
)
from .thresholds import REGIMES, Detectability, detectability, even_like, phases, signal, signals

__all__ = [
    "REGIMES",
    "Detectability",
    "attained_rate",
    "contiguity_floor",
    "detectability",
    "divergence_bound",
    "error_floor",
    "estimation_rate",
    "even_like",
    "packing",
    "phases",
    "signal",
    "signals",
]
