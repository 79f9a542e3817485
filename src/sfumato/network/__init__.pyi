from .broker import embedded_broker, free_port
from .demo import NetworkDemo, demo_lines, run_network_demo, started_at
from .demo_walk import Walker, demo_site
from .inbox import Inbox, listen_to, read_inbox
from .mqtt import BrokerConfig, MqttClient
from .topics import device_of, level_of, readings_filter, readings_topic
from .unseal import UnsealedPackets, read_packets, unseal_packets
from .wire import (
    MAX_BYTES,
    Packet,
    WireLoss,
    WireWindow,
    decode,
    encode,
    is_checked,
    is_signed,
    sealed,
    status_of,
)

__all__ = [
    "MAX_BYTES",
    "BrokerConfig",
    "Inbox",
    "MqttClient",
    "NetworkDemo",
    "Packet",
    "UnsealedPackets",
    "Walker",
    "WireLoss",
    "WireWindow",
    "decode",
    "demo_lines",
    "demo_site",
    "device_of",
    "embedded_broker",
    "encode",
    "free_port",
    "is_checked",
    "is_signed",
    "level_of",
    "listen_to",
    "read_inbox",
    "read_packets",
    "readings_filter",
    "readings_topic",
    "run_network_demo",
    "sealed",
    "started_at",
    "status_of",
    "unseal_packets",
]
