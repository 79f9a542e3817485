"""Names of MQTT topics: where a device publishes, and where Home Assistant looks for what is new.

A device writes one topic, sfumato/1/SITE/DEVICE/readings. Its user at the broker has the name DEVICE, so
that one line of an access list holds for all: `pattern write sfumato/1/+/%u/readings`.
"""

from __future__ import annotations

import hashlib
from urllib.parse import quote, unquote

from sfumato.errors import InvalidParameter

ROOT = "sfumato/1"
COLLECTOR = "collector"
"""No device is called so: it is the collector's user, and its level of topics."""
"""The first levels of all our topics: the name and the version of the wire format."""


def readings_topic(site: str, device: str) -> str:
    """The topic to which a device publishes its packets.

    Args:
        site: The name of the site.
        device: The name of the device, as its key file has it.

    Returns:
        The topic; what MQTT does not allow in a level is percent-encoded.

    >>> readings_topic("hall", "door 1")
    'sfumato/1/hall/door%201/readings'
    """
    return f"{ROOT}/{level_of(site)}/{level_of(device)}/readings"


def readings_filter(site: str) -> str:
    """What a collector subscribes to: the packets of all devices of a site.

    Args:
        site: The name of the site.

    Returns:
        The topic filter.

    >>> readings_filter("hall")
    'sfumato/1/hall/+/readings'
    """
    return f"{ROOT}/{level_of(site)}/+/readings"


def client_id_of(key_id: str, site: str, device: str) -> str:
    """What a device is called as a client of the broker: two sites on one broker may have a door each.

    Args:
        key_id: The public id of the master key.
        site: The name of the site.
        device: The name of the device.

    Returns:
        23 characters, as many as every broker of MQTT 3.1.1 takes.

    >>> client_id_of("7d7683c82dcb29a6", "hall", "door")
    'sfumato-abacac35345ae61'
    """
    whole = f"{key_id}/{level_of(site)}/{level_of(device)}"
    return "sfumato-" + hashlib.sha256(whole.encode()).hexdigest()[:15]


def device_of(topic: str) -> str | None:
    """The name of the device whose topic this is; None for another topic.

    Args:
        topic: The topic of a message.

    Returns:
        The name, decoded. A packet that names another device was sent by who may not.

    >>> device_of("sfumato/1/hall/door%201/readings")
    'door 1'
    """
    parts = topic.split("/")
    if len(parts) != 5 or not parts[2] or not parts[3]:
        return None
    site, device = unquote(parts[2]), unquote(parts[3])
    return device if topic == readings_topic(site, device) else None  # one spelling for each


def level_of(name: str) -> str:
    """A name as one level of a topic, and as the user name at the broker.

    Args:
        name: The name of a site or a device, not empty.

    Returns:
        The name, percent-encoded: letters, digits and `_ . - ~` stay as they are.

    Raises:
        InvalidParameter: It is empty.

    >>> level_of("Tür/1")
    'T%C3%BCr%2F1'
    """
    if not name:
        raise InvalidParameter("a level of a topic is not empty, got an empty name")
    return quote(name, safe="")
