from .least_mass import recover
from .min_radius import recover_min_radius
from .off_grid import scene_of
from .posterior import SourcePosterior
from .posterior_cells import MOST_CELLS, runs_needed

__all__ = [
    "MOST_CELLS",
    "SourcePosterior",
    "recover",
    "recover_min_radius",
    "runs_needed",
    "scene_of",
]
