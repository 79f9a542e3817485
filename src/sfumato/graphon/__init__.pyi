from .assignment import permuted_distance, twice_permuted_distance
from .blocks import Blocks
from .blocks_release import release_blocks, resume_blocks, write_blocks
from .cut_distance import Distance, distance
from .flipped_dyads import FlippedDyads
from .limits import detectability, error_floor, estimation_rate, signals
from .model import BlockGraphon
from .network import Network, as_network
from .pipeline import (
    compare_networks,
    find_blocks,
    network_limits,
    simulate_network,
    write_network,
)
from .release import (
    TRACY_WIDOM,
    PrivateBlocks,
    blocks_in,
    noise_edge,
    private_blocks,
    response_signal,
    square,
)
from .render import render_blocks, render_comparison, render_limits
from .results import BlocksResult, NetworkComparison, NetworkFiles, NetworkLimits, read_blocks
from .sample import Sampled, sample_graph

__all__ = [
    "TRACY_WIDOM",
    "BlockGraphon",
    "Blocks",
    "BlocksResult",
    "Distance",
    "FlippedDyads",
    "Network",
    "NetworkComparison",
    "NetworkFiles",
    "NetworkLimits",
    "PrivateBlocks",
    "Sampled",
    "as_network",
    "blocks_in",
    "compare_networks",
    "detectability",
    "distance",
    "error_floor",
    "estimation_rate",
    "find_blocks",
    "network_limits",
    "noise_edge",
    "permuted_distance",
    "private_blocks",
    "read_blocks",
    "release_blocks",
    "render_blocks",
    "render_comparison",
    "render_limits",
    "response_signal",
    "resume_blocks",
    "sample_graph",
    "signals",
    "simulate_network",
    "square",
    "twice_permuted_distance",
    "write_blocks",
    "write_network",
]
