from .closed_rounds import RoundLines, round_line
from .collector import Collector, Output
from .config import NetworkConfig, read_network
from .gate import MEANINGS
from .home_assistant import HomeAssistant, discovery, entity_state
from .metrics import prometheus
from .recoveries import Recovered
from .render import live_view, network_lines, promise_words, round_sentence, state_lines
from .service import LastRounds, run_collector
from .state import CollectorState, DeviceState, Promise
from .state_server import serve_state
from .store import StoredPacket, StoredRound, open_store, read_rounds
from .subscription import Subscription

__all__ = [
    "MEANINGS",
    "Collector",
    "CollectorState",
    "DeviceState",
    "HomeAssistant",
    "LastRounds",
    "NetworkConfig",
    "Output",
    "Promise",
    "Recovered",
    "RoundLines",
    "StoredPacket",
    "StoredRound",
    "Subscription",
    "discovery",
    "entity_state",
    "live_view",
    "network_lines",
    "open_store",
    "prometheus",
    "promise_words",
    "read_network",
    "read_rounds",
    "round_line",
    "round_sentence",
    "run_collector",
    "serve_state",
    "state_lines",
]
