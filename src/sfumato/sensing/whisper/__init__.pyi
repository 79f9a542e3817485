from .answers import UNIT, WhisperAnswers, bound_of, read_whisper, whisper_release
from .cascades import (
    SPREADS,
    Cascade,
    IndependentCascade,
    LinearThreshold,
    SusceptibleInfected,
    draw_cascades,
    spread_named,
)
from .posterior import WhisperPosterior, start_loss, whisper_posterior
from .protect import StartsProtection, protect_starts
from .simulated import CascadePosterior, cascade_posterior, cascade_posteriors
from .spread import Spread, whisper_cascade, whisper_spread

__all__ = [
    "SPREADS",
    "UNIT",
    "Cascade",
    "CascadePosterior",
    "IndependentCascade",
    "LinearThreshold",
    "Spread",
    "StartsProtection",
    "SusceptibleInfected",
    "WhisperAnswers",
    "WhisperPosterior",
    "bound_of",
    "cascade_posterior",
    "cascade_posteriors",
    "draw_cascades",
    "protect_starts",
    "read_whisper",
    "spread_named",
    "start_loss",
    "whisper_cascade",
    "whisper_posterior",
    "whisper_release",
    "whisper_spread",
]
