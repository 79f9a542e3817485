from .certified import WORTH_STATING, certified_emd, known_of_nothing
from .error_corrections import ZOOM_CORRECTIONS, Corrections, ErrorName
from .map_error import (
    ErrorInterval,
    MapError,
    between,
    calibrated,
    drawn_errors,
    on_scale,
)
from .noise_floor import noise_share
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
    "ErrorInterval",
    "ErrorName",
    "MapBand",
    "MapError",
    "Mark",
    "Uncertainty",
    "between",
    "calibrated",
    "certified_emd",
    "drawn_errors",
    "heaviest",
    "in_a_ring",
    "known_of_nothing",
    "noise_share",
    "on_scale",
    "ring",
]
