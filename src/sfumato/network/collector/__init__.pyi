from .collector import Collector, Output
from .config import NetworkConfig, read_network
from .gate import MEANINGS
from .recoveries import Recovered
from .state import CollectorState, DeviceState, Promise
from .store import StoredPacket, StoredRound, open_store, read_rounds

__all__ = [
    "MEANINGS",
    "Collector",
    "CollectorState",
    "DeviceState",
    "NetworkConfig",
    "Output",
    "Promise",
    "Recovered",
    "StoredPacket",
    "StoredRound",
    "open_store",
    "read_network",
    "read_rounds",
]
