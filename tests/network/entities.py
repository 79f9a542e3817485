"""Discovery payloads of a corridor as JSON, for `make entities`."""

from __future__ import annotations

import json

from tests.network.networks import corridor

from sfumato.network.collector import discovery

if __name__ == "__main__":
    print(json.dumps(discovery(corridor(), prefix="homeassistant", expire=30)))
