"""Kill -9 of sensors, broker and collector at random moments, and what is right afterwards."""

from __future__ import annotations

import random
import time

from tests.network.soak.system import Network, books

from sfumato.network import BrokerConfig, MqttClient


def kill_cycles(network: Network, count: int, *, seed: int, wait: float = 2.0) -> tuple[bool, str]:
    """Kill a process of a network so many times, each at a random moment, and start it again at once."""
    chance = random.Random(seed)  # noqa: S311
    tapped: list[bytes] = []
    tap = MqttClient(
        BrokerConfig("127.0.0.1", network.port, protocol="3.1.1"), client_id="tap",
        subscribe=("sfumato/1/hall/+/readings",), on_message=lambda _, payload: tapped.append(payload),
    )  # fmt: skip
    tap.start()
    killed = dict.fromkeys(("sensor", "broker", "collector"), 0)
    kinds: list[str] = []
    try:
        for _ in range(count):
            if not kinds:  # each kind once in three, in any order
                kinds = chance.sample(sorted(killed), 3)
            kind = kinds.pop()
            time.sleep(chance.uniform(0, wait))
            victim = chance.choice(network.sensors) if kind == "sensor" else kind
            network.kill(victim)
            killed[kind] += 1
            network.start(victim)
        recovered = network.go_on()
        network.finish()
    finally:
        tap.stop()
    told = ", ".join(f"{kind} {many}" for kind, many in sorted(killed.items()))
    found = books(network, tapped)
    return (
        found.is_sound,
        f"{told}; {found.words()}; whole rounds again {recovered:.0f} s after the last",
    )
