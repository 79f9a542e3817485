from .certified import WORTH_STATING, certified_emd, known_of_nothing
from .counts import NoisyCounts
from .error_corrections import ZOOM_CORRECTIONS, Corrections, ErrorName
from .map_error import (
    ErrorInterval,
    MapError,
    between,
    calibrated,
    drawn_errors,
    on_scale,
)
from .map_posterior import MapPosterior
from .noise_floor import noise_share
from .posterior import CountsPosterior
from .prior import Declared, Prior, read_prior, sharpened
from .tree_fit import objective, reconstruct
from .uncertainty import (
    HEAVY,
    TIMES,
    MapBand,
    Mark,
    Uncertainty,
    heaviest,
    in_a_ring,
    ring,
)

__all__ = [
    "HEAVY",
    "TIMES",
    "WORTH_STATING",
    "ZOOM_CORRECTIONS",
    "Corrections",
    "CountsPosterior",
    "Declared",
    "ErrorInterval",
    "ErrorName",
    "MapBand",
    "MapError",
    "MapPosterior",
    "Mark",
    "NoisyCounts",
    "Prior",
    "Uncertainty",
    "between",
    "calibrated",
    "certified_emd",
    "drawn_errors",
    "heaviest",
    "in_a_ring",
    "known_of_nothing",
    "noise_share",
    "objective",
    "on_scale",
    "read_prior",
    "reconstruct",
    "ring",
    "sharpened",
]
