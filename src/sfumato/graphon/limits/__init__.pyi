from .bounds import (
    attained_rate,
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
