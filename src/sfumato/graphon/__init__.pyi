from .assignment import permuted_distance, twice_permuted_distance
from .blocks import Blocks
from .cut_distance import Distance, distance
from .estimate import (
    Estimate,
    constant,
    estimation_error,
    from_labels,
    least_squares,
    spectral,
    usvt,
)
from .holdout import guarded_fit
from .limits import (
    attained_rate,
    contiguity_floor,
    divergence_bound,
    error_floor,
    estimation_rate,
    packing,
)
from .model import BlockGraphon
from .network import Network, as_network
from .release import (
    TRACY_WIDOM,
    FlippedDyads,
    PrivateBlocks,
    blocks_in,
    noise_edge,
    release_blocks,
    response_signal,
    square,
)
from .sample import Sampled, sample_graph
from .thresholds import REGIMES, Detectability, detectability, even_like, phases, signal, signals

__all__ = [
    "REGIMES",
    "TRACY_WIDOM",
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
    "blocks_in",
    "constant",
    "contiguity_floor",
    "detectability",
    "distance",
    "divergence_bound",
    "error_floor",
    "estimation_error",
    "estimation_rate",
    "even_like",
    "from_labels",
    "guarded_fit",
    "least_squares",
    "noise_edge",
    "packing",
    "permuted_distance",
    "phases",
    "release_blocks",
    "response_signal",
    "sample_graph",
    "signal",
    "signals",
    "spectral",
    "square",
    "twice_permuted_distance",
    "usvt",
]
