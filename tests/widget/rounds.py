"""Two recoveries of one corridor, for widgets that slide over rounds."""

from __future__ import annotations

from sfumato.privacy import MovedMass
from sfumato.sensing import RecoveryResult, heat_line
from sfumato.sensing.pipeline import recover_sources
from sfumato.sensing.planning import synthetic_site


def two_rounds() -> list[RecoveryResult]:
    """A source at each end of a line, one after the other."""
    line = heat_line(sources=16, sensors=8, diffusion_time=0.01)
    site = synthetic_site("corridor", line, MovedMass("1", line.space.metric))
    return [
        recover_sources(
            line.columns([cell])[:, 0], site=site, noise=0.01, estimator="least", certify=False
        )
        for cell in (3, 12)
    ]
