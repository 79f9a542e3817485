from .topics import device_of, readings_filter, readings_topic
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
    "Packet",
    "WireLoss",
    "WireWindow",
    "decode",
    "device_of",
    "encode",
    "is_checked",
    "is_signed",
    "readings_filter",
    "readings_topic",
    "sealed",
    "status_of",
]
