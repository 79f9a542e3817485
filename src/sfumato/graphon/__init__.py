"""Block structure of networks, with the limits of what a sample can tell."""

from sfumato.graphon.blocks import Blocks
from sfumato.graphon.contiguity import Outlook, even_like, outlook, phases, signal, signals
from sfumato.graphon.distance import Distance, distance
from sfumato.graphon.estimate import Estimate, estimation_error, least_squares, spectral, usvt
from sfumato.graphon.limits import attained_rate, contiguity_floor, error_floor, estimation_rate, packing
from sfumato.graphon.model import BlockGraphon
from sfumato.graphon.network import Network, as_network
from sfumato.graphon.release import FlippedDyads, PrivateBlocks, release_blocks, response_signal
from sfumato.graphon.sample import Sampled, sample_graph

__all__ = [
    "BlockGraphon",
    "Blocks",
    "Distance",
    "Estimate",
    "FlippedDyads",
    "Network",
    "Outlook",
    "PrivateBlocks",
    "Sampled",
    "as_network",
    "attained_rate",
    "contiguity_floor",
    "distance",
    "error_floor",
    "estimation_error",
    "estimation_rate",
    "even_like",
    "least_squares",
    "outlook",
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
