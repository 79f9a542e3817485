from .budget import at_most
from .guarded import Source, lattice
from .release import release_from_json

__all__ = [
    "Source",
    "at_most",
    "lattice",
    "release_from_json",
]
