"""Entities of Home Assistant, by MQTT discovery: retained configurations, and a state for every round."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

from sfumato.network.collector.recoveries import Recovered
from sfumato.network.collector.state import CollectorState
from sfumato.network.topics import ROOT, level_of
from sfumato.sensing import Site
from sfumato.sensing.results import told_places

Publish = Callable[[str, str, bool], None]
"""Topic, payload, and whether the broker keeps it for who comes later."""

EXPIRE_ROUNDS = 5
"""Rounds without news after which an entity is unavailable."""
MIN_EXPIRE = 30


class HomeAssistant:
    """Tells Home Assistant of a network: total mass, the surest place, sensors that are missing or faulty."""

    def __init__(self, site: Site, publish: Publish, *, period_ms: int, prefix: str) -> None:
        self._site, self._publish, self._prefix = site, publish, prefix
        self._expire = max(MIN_EXPIRE, EXPIRE_ROUNDS * period_ms // 1000)
        self._newest = -1

    def announce(self) -> None:
        """Publish the configuration of every entity, retained; again whenever the broker is back."""
        for topic, payload in discovery(self._site, prefix=self._prefix, expire=self._expire):
            self._publish(topic, json.dumps(payload), True)
        self._publish(availability_topic(self._site), "online", True)

    def round(self, done: Recovered, state: CollectorState) -> None:
        """Publish what came of a round, unless that of a later one is published."""
        said = entity_state(self._site, done, state)
        if said is not None and done.closed.number > self._newest:
            self._newest = done.closed.number
            self._publish(state_topic(self._site), json.dumps(said), False)

    def close(self) -> None:
        """Say that nothing more comes."""
        self._publish(availability_topic(self._site), "offline", True)


def discovery(site: Site, *, prefix: str, expire: int) -> list[tuple[str, dict[str, Any]]]:
    """Topics and payloads that make Home Assistant show a site.

    Args:
        site: The site.
        prefix: The prefix of discovery, `homeassistant` unless somebody changed it.
        expire: Seconds without news after which an entity is unavailable.

    Returns:
        A pair for each entity: two for a site whose places have coordinates or names, two for its health.
    """
    key = entity_key(site)
    device = {
        "identifiers": [f"sfumato_{key}"],
        "name": site.name,
        "manufacturer": "sfumato",
        "model": f"private sensors, {len(site.sensors)} of them",
    }
    shared = {
        "state_topic": state_topic(site),
        "json_attributes_topic": state_topic(site),
        "json_attributes_template": "{{ value_json.privacy | tojson }}",
        "availability_topic": availability_topic(site),
        "expire_after": expire,
        "device": device,
    }
    entities: dict[str, dict[str, Any]] = {
        "mass": {
            "name": "Sources",
            "value_template": "{{ value_json.mass }}",
            "state_class": "measurement",
            "icon": "mdi:account-group",
            "suggested_display_precision": 2,
        },
        "place": {
            "name": "Place",
            "value_template": "{{ value_json.place }}",
            "icon": "mdi:map-marker-radius",
        },
        "missing": {
            "name": "Missing sensors",
            "value_template": "{{ value_json.missing }}",
            "state_class": "measurement",
            "entity_category": "diagnostic",
        },
        "left": {
            "name": "Privacy budget left",
            "value_template": "{{ value_json.privacy.left }}",
            "state_class": "measurement",
            "entity_category": "diagnostic",
        },
    }
    found: list[tuple[str, dict[str, Any]]] = [
        (
            f"{prefix}/sensor/sfumato_{key}/{name}/config",
            {
                **shared,
                **entity,
                "unique_id": f"sfumato_{key}_{name}",
                "object_id": f"{_slug(site)}_{name}",
            },
        )
        for name, entity in entities.items()
    ]
    problem = {
        **shared,
        "name": "Faulty sensors",
        "value_template": "{{ 'ON' if value_json.faulty else 'OFF' }}",
        "device_class": "problem",
        "entity_category": "diagnostic",
        "json_attributes_template": "{{ {'sensors': value_json.faulty} | tojson }}",
        "unique_id": f"sfumato_{key}_faulty",
        "object_id": f"{_slug(site)}_faulty",
    }
    found.append((f"{prefix}/binary_sensor/sfumato_{key}/faulty/config", problem))
    return found


def entity_state(site: Site, done: Recovered, state: CollectorState) -> dict[str, Any] | None:
    """What entities show of a round; None for one that was not recovered.

    Args:
        site: The site.
        done: What came of the round.
        state: The network then.

    Returns:
        A JSON object: mass, place, missing and faulty sensors, and `privacy` for the attributes.
    """
    found = done.found
    if found is None or found.recovery is None:
        return None
    from sfumato.sensing.render import place_words

    surest = [spot for spot in told_places(found.recovery) if spot.place is not None]
    promise = {} if state.promise is None else state.promise.to_json()
    return {
        "time": found.time,
        "mass": round(found.total, 4),
        "place": place_words(surest[0], site) if surest else "nothing can be told",
        "verdict": found.recovery.verdict.kind,
        "missing": len(found.missing),
        "faulty": [said for one in state.devices for said in one.faulty],
        "privacy": {
            "time": found.time,
            "verdict": found.recovery.verdict.message,
            "promise": found.recovery.statement,
            **promise,
        },
    }


def entity_key(site: Site) -> str:
    """What tells entities of one site from those of another, by the name of the site."""
    return hashlib.sha256(site.name.encode()).hexdigest()[:12]


def state_topic(site: Site) -> str:
    """Where the state of all entities of a site is."""
    return f"{ROOT}/{level_of(site.name)}/collector/state"


def availability_topic(site: Site) -> str:
    """Where it says whether the collector is there."""
    return f"{ROOT}/{level_of(site.name)}/collector/availability"


def _slug(site: Site) -> str:
    return re.sub(r"[^a-z0-9]+", "_", site.name.lower()).strip("_") or "sfumato"
