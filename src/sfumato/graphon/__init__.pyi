from .blocks import Blocks
from .cut_distance import Distance, distance
from .estimate import Estimate, estimation_error, least_squares, spectral, usvt
from .limits import attained_rate, contiguity_floor, error_floor, estimation_rate, packing
from .model import BlockGraphon
from .network import Network, as_network
from .release import FlippedDyads, PrivateBlocks, release_blocks, response_signal
from .sample import Sampled, sample_graph
from .thresholds import Detectability, detectability, even_like, phases, signal, signals

__all__ = [
    "BlockGraphon",
    "Blocks",
    "Detectability",
    "Distance",
    "Estimate",
    "FlippedDyads",
    "Network",
    "PrivateBlocks",
    "Sampled",
    "as_network",
    "attained_rate",
    "contiguity_floor",
    "detectability",
    "distance",
    "error_floor",
    "estimation_error",
    "estimation_rate",
    "even_like",
    "least_squares",
    "packing",
    "phases",
    "release_blocks",
    "response_signal",
    "sample_graph",
    "signal",
    "signals",
    "spectral",
    "usvt",
]
