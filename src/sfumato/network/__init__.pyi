from .broker import embedded_broker, free_port
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
    "MqttClient",
    "Packet",
    "UnsealedPackets",
    "WireLoss",
    "WireWindow",
    "decode",
    "device_of",
    "embedded_broker",
    "encode",
    "free_port",
    "is_checked",
    "is_signed",
    "level_of",
    "read_packets",
    "readings_filter",
    "readings_topic",
    "sealed",
    "status_of",
    "unseal_packets",
]
