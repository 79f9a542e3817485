"""Validate discovery payloads on stdin with homeassistant itself; run by its own Python (`make entities`)."""

from __future__ import annotations

import json
import sys


def main() -> None:
    """One JSON list of pairs (topic, payload); prints how many its MQTT schemas take."""
    from homeassistant.components.mqtt.binary_sensor import DISCOVERY_SCHEMA as BINARY
    from homeassistant.components.mqtt.sensor import DISCOVERY_SCHEMA as SENSOR
    from homeassistant.const import __version__

    pairs = json.load(sys.stdin)
    for topic, payload in pairs:
        schema = SENSOR if topic.split("/")[1] == "sensor" else BINARY
        schema(payload)
    print(f"homeassistant {__version__} takes all {len(pairs)} entities")


if __name__ == "__main__":
    main()
