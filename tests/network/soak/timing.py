"""Whether when a packet comes, or how long it is, tells what was read."""

from __future__ import annotations

import math
import random
import signal
import time
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from tests.network.soak.system import Network, eventually

from sfumato._types import FloatArray
from sfumato.network import BrokerConfig, MqttClient, decode, unseal_packets


def correlations(network: Network, count: int, *, seed: int) -> tuple[bool, str]:
    """Values between 0 and 1,000 by one sensor, and when and how long its packets are at the broker."""
    chance, name = random.Random(seed), network.sensors[0]  # noqa: S311
    values = [round(10 ** chance.uniform(-3, 3), 3) for _ in range(2 * count)]
    table = Path(network.folder / "readings.csv")
    table.write_text(f"{name}\n" + "".join(f"{value}\n" for value in values))
    network.write_sensor(name, read='kind = "csv"\npath = "readings.csv"')
    heard: list[tuple[float, bytes]] = []
    tap = MqttClient(
        BrokerConfig("127.0.0.1", network.port, protocol="3.1.1"), client_id="tap",
        subscribe=(f"sfumato/1/hall/{name}/readings",),
        on_message=lambda _, payload: heard.append((time.time() * 1000, payload)),
    )  # fmt: skip
    network.start("broker")
    tap.start()
    tap.connected.wait(60)
    network.start(name)
    eventually(lambda: len(heard) >= count, every=1)
    network.kill(name, signal.SIGTERM)
    tap.stop()
    packets = [decode(payload) for _, payload in heard]
    found = unseal_packets(packets, network.folder / "master.key", site=network.site)
    read = np.array([row.value for row in found.rows])
    after = np.array([at - packet.round_ms for (at, _), packet in zip(heard, packets, strict=True)])
    sizes = {len(payload) for _, payload in heard}
    told = [correlation(read, after), correlation(np.abs(np.diff(read)), after[1:])]
    # Of nothing, the normal approximation says: in one of 10,000 runs of each.
    limit = 3.9 / math.sqrt(len(read) - 1)
    said = (
        f"{len(read)} packets, values of {read.min():.3g} to {read.max():.3g}; rank "
        f"correlation of the value with "
        f"when it came {told[0]:+.3f}, of its change {told[1]:+.3f}, of nothing below {limit:.3f}; "
        f"{len(sizes)} length"
    )
    return max(map(abs, told)) < limit and len(sizes) == 1, said


def correlation(one: FloatArray, other: FloatArray) -> float:
    """Spearman's rank correlation."""
    return float(spearmanr(one, other).statistic)
