"""A network on this machine: sensors at 1 Hz, a burst, a flood, and how many rounds a second are recovered.

Run with python benchmarks/network.py; --seconds 300 is the whole. Senders are processes of their own
that make packets as devices do, without ledgers; the collector is this process. The broker is Mosquitto
where it is installed.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import resource
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.network import (
    BrokerConfig,
    MqttClient,
    Packet,
    WireLoss,
    WireWindow,
    embedded_broker,
    encode,
    free_port,
    readings_topic,
    sealed,
)
from sfumato.network.collector import (
    Collector,
    CollectorState,
    NetworkConfig,
    read_rounds,
    run_collector,
)
from sfumato.privacy import ZCDP
from sfumato.sensing import Site, graph_diffusion, heat_line, heat_plane
from sfumato.sensing.pipeline import LiveReading, LiveRecovery, LiveRound, describe_site
from sfumato.sensing.planning import block_graph
from sfumato.sensing.release import CheckKeys, write_check_keys
from sfumato.spaces import Grid

PERIOD = 1000
SIGMA, EXPONENT = 50.0, -10  # a deviation of 0.05
KEY = bytes(range(32))
Plan = list[tuple[float, int]]
"""When a round is sent, in seconds from the start, and which one it is, from the first on."""
SENDERS = 2
QUIET = 8  # seconds without a packet after which none is left


def line_site(sensors: int) -> Site:
    """A corridor."""
    operator = heat_line(sources=100, sensors=sensors, diffusion_time=0.01)
    return _site("line", operator)


def plane_site(sensors: int) -> Site:
    """A floor of 32 by 32 cells."""
    side = round(sensors**0.5)
    places = [[(x + 0.5) / side, (y + 0.5) / side] for x in range(side) for y in range(side)]
    return _site("plane", heat_plane(sources=Grid(5), sensors=places, diffusion_time=0.01))


def graph_site(sensors: int) -> Site:
    """A network of two communities."""
    graph, _ = block_graph([sensors // 2, sensors - sensors // 2], inside=0.1, across=0.002,
                           rng=np.random.default_rng(1))  # fmt: skip
    return _site("graph", graph_diffusion(graph, 0.5))


def _site(name: str, operator: object) -> Site:
    radius = "1/8" if name == "graph" else "1/100"
    return describe_site(name, operator=operator, radius=radius, unit="mass", per_source=1).site  # type: ignore[arg-type]


class Device:
    """What a device sends, without a ledger: the check code is right, the key holder's is not."""

    def __init__(self, site: Site, place: int) -> None:
        self.name, self.place = site.sensors.names[place], place
        self.topic = readings_topic(site.name, self.name)
        self._site = site.digest[:32]
        self._epoch, self._draws = (1).to_bytes(4, "big") + os.urandom(8), itertools.count()

    def payload(self, round_ms: int, value: float, *, key: bytes = KEY) -> bytes:
        """The packet of a round."""
        packet = Packet(
            "00" * 8, self.name, self._site, self._epoch, next(self._draws), round_ms, PERIOD, "gaussian",
            SIGMA, EXPONENT, WireLoss("rho", 0.1), WireLoss("rho", 50.0),
            WireWindow(round_ms // 3_600_000 * 60, 60), (self.place,), (round(value / 2**EXPONENT),),
        )  # fmt: skip
        return encode(sealed(packet, lambda _: "00" * 32, check_key=key, status="read"))


def send(
    site: Site, places: range, broker: BrokerConfig, plan: Plan, key: bytes, start: Any
) -> None:
    """In a process of its own: the packets of a round of all these sensors, at every moment of a plan."""
    client = MqttClient(broker, client_id=f"sender-{places.start}-{os.getpid()}")
    client.start()
    client.connected.wait(60)
    devices = [Device(site, place) for place in places]
    rng = np.random.default_rng(places.start)
    column = site.operator.columns([20])[:, 0]
    ready, began = start
    ready.wait()  # all are there
    ready.wait()  # and were told when it begins
    for after, number in plan:
        read = column + rng.normal(0, SIGMA * 2**EXPONENT, column.size)
        round_ms = 1000 * (int(began.value) + number)
        payloads = [one.payload(round_ms, float(read[one.place]), key=key) for one in devices]
        time.sleep(max(0.0, began.value + after - time.time()))
        for one, payload in zip(devices, payloads, strict=True):
            client.publish(one.topic, payload)
    while client.unacknowledged:
        time.sleep(0.05)
    client.stop()


@contextmanager
def broker_here(folder: Path) -> Iterator[tuple[BrokerConfig, str]]:
    """Mosquitto, or the broker in this process."""
    program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
    if not Path(program).exists():
        with embedded_broker() as found:
            yield found, "amqtt in this process"
        return
    port = free_port()
    lines = [f"listener {port} 127.0.0.1", "allow_anonymous true", "persistence false",
             "max_queued_messages 0", "max_inflight_messages 1000", "log_type error",
             *(["user root"] if os.getuid() == 0 else [])]  # fmt: skip
    (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")
    with subprocess.Popen([program, "-c", str(folder / "mosquitto.conf")]) as process:  # noqa: S603
        try:
            time.sleep(1)
            yield BrokerConfig("127.0.0.1", port, protocol="3.1.1"), "Mosquitto"
        finally:
            process.terminate()


def network(
    site: Site, *, seconds: int, rate: int = 1, forged: int = 0, estimator: str = "bayes-median"
) -> tuple[CollectorState, NetworkConfig, float, int]:
    """Run sensors and a collector: its state at the end, its processor time, and the rounds it kept."""
    with tempfile.TemporaryDirectory() as told:
        folder = Path(told)
        keys = folder / "check-keys.json"
        write_check_keys(keys, CheckKeys("00" * 8, dict.fromkeys(site.sensors.names, KEY)))
        with broker_here(folder) as (broker, _):
            config = NetworkConfig(
                site, PERIOD, broker=broker, store=str(folder / "rounds.sqlite"), check_keys=keys,
                estimator=estimator, track=0,
            )  # fmt: skip
            LiveRecovery(site, estimator=estimator).recover(
                _made_up(site, 0)
            )  # compiled before it counts
            stop = threading.Event()
            # A burst has rounds that lie back in time, sent as fast as `rate` says.
            plan: Plan = [
                (number / rate, number if rate == 1 else number - seconds)
                for number in range(seconds)
            ]
            size = len(site.sensors)
            parts = [
                range(size * at // SENDERS, size * (at + 1) // SENDERS) for at in range(SENDERS)
            ]
            work = [(part, plan, KEY) for part in parts]
            if forged:
                flood: Plan = [(number / 100, 0) for number in range(100 * seconds)]
                work.append((range(min(size, forged // 100)), flood, b"?" * 32))
            context = multiprocessing.get_context("spawn")
            ready, began_at = context.Barrier(len(work) + 1), context.Value("d", 0.0)
            senders = [
                context.Process(
                    target=send, args=(site, part, broker, told, key, (ready, began_at))
                )
                for part, told, key in work
            ]
            state: list[CollectorState] = []
            there: list[Collector] = []

            def collect() -> None:
                state.append(
                    run_collector(
                        config,
                        stop=stop,
                        shown=lambda one: there.append(one) if not there else None,
                    )
                )

            thread = threading.Thread(target=collect, daemon=True)
            thread.start()
            for one in senders:
                one.start()
            ready.wait()
            began_at.value = float(int(time.time()) + 2)
            ready.wait()
            worked = time.process_time()
            for one in senders:
                one.join()
            _settled(there[0])
            stop.set()
            thread.join()
            share = time.process_time() - worked
            kept = len(read_rounds(config.store, site=site.digest))
            return state[0], config, share, kept


def _settled(collector: Collector) -> None:
    """Wait until nothing has come for some seconds: the broker has nothing left."""
    seen, since = -1, time.monotonic()
    while time.monotonic() - since < QUIET:
        now = collector.state.accepted
        if now != seen:
            seen, since = now, time.monotonic()
        time.sleep(0.5)


def _made_up(site: Site, number: int) -> LiveRound:
    rng = np.random.default_rng(number)
    sigma = SIGMA * 2**EXPONENT
    read = site.operator.columns([20 + number % 40])[:, 0] + rng.normal(0, sigma, len(site.sensors))
    return LiveRound(
        f"2026-11-18T09:{number // 60:02}:{number % 60:02}Z",
        {name: LiveReading(float(value), sigma, ZCDP("1/10"))
         for name, value in zip(site.sensors.names, read, strict=True)},
    )  # fmt: skip


def recoveries(site: Site, estimator: str, count: int) -> float:
    """Seconds of the processor for one round."""
    live = LiveRecovery(site, estimator=estimator)
    live.recover(_made_up(site, 0))
    start = time.process_time()
    for number in range(count):
        live.recover(_made_up(site, number + 1))
    return (time.process_time() - start) / count


def taking(site: Site, count: int) -> tuple[float, float]:
    """Packets a second of the processor that are checked and kept, and forged ones that are refused."""
    with tempfile.TemporaryDirectory() as told:
        keys = Path(told) / "keys.json"
        write_check_keys(keys, CheckKeys("00" * 8, dict.fromkeys(site.sensors.names, KEY)))
        config = NetworkConfig(
            site, PERIOD, store=f"{told}/a.sqlite", check_keys=keys, estimator="least", grace_ms=10**8
        )  # fmt: skip
        now = time.time_ns() // 1_000_000
        collector = Collector(config, clock=lambda: now, threads=False)
        devices = [Device(site, place) for place in range(len(site.sensors) - 1)]
        rounds = -(-count // len(devices))
        messages = [
            (one.topic, one.payload(now // 1000 * 1000 - 1000 * number, 0.2))
            for number in range(rounds)
            for one in devices
        ]
        forged = [
            (devices[0].topic, devices[0].payload(now, 0.2, key=b"?" * 32)) for _ in range(1000)
        ]
        start = time.process_time()
        for at, (topic, payload) in enumerate(messages):
            collector.take(topic, payload)
            if at % 20 == 0:
                collector.turn()
        collector.turn()
        taken = len(messages) / (time.process_time() - start)
        start = time.process_time()
        for _ in range(5):
            for topic, payload in forged:
                collector.take(topic, payload)
        refused = 5000 / (time.process_time() - start)
        collector.close()
        return taken, refused


def main() -> None:
    """Every measurement in turn."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=60, help="how long 500 sensors send")
    parser.add_argument("--sensors", type=int, default=500)
    options = parser.parse_args()
    print("\n## A network of sensors\n\n| what | number |\n|---|---|")
    line, count, seconds = line_site(options.sensors), options.sensors, options.seconds
    state, _, share, kept = network(line, seconds=seconds)
    row(
        f"{count} sensors at 1 Hz for {seconds} s: packets sent, accepted",
        count * seconds,
        state.accepted,
    )
    row(
        "rounds of them",
        ", ".join(f"{many} {how}" for how, many in state.rounds.items()),
        f"{kept} kept",
    )
    row("of these packets came late, were refused", state.refused.get("late", 0), _others(state))
    # On a machine that others use, what it could not get is no part of what it takes.
    told = "processor seconds for a second of all sensors, with a recovery with bands, where all fit in time"
    row(told, f"{share / max(state.accepted / count, 1):.2f}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row("its memory at most", f"{memory:.0f} MB")
    state, *_ = network(line, seconds=20, rate=10, estimator="least")
    row(
        f"a burst of {10 * count} packets a second for 2 s: sent, accepted",
        20 * count,
        state.accepted,
    )
    for name, site in (("plane, 49", plane_site(49)), ("graph, 200", graph_site(200))):
        began = time.monotonic()
        state, *_ = network(site, seconds=100, rate=10)
        told = f"100 rounds at 10 a second of a {name} sensors, in all"
        how = ", ".join(f"{many} {how}" for how, many in state.rounds.items())
        row(told, how, f"{time.monotonic() - began:.0f} s")
    state, *_ = network(line_site(50), seconds=20, forged=10_000)
    told = "50 sensors for 20 s beside a flood: accepted of 1000, forged ones refused"
    row(told, state.accepted, state.refused.get("wrong-code", 0))
    taken, refused = taking(line, 10_000)
    told = "packets a second of the processor: checked and kept, forged and refused"
    row(told, f"{taken:.0f}", f"{refused:.0f}")
    for name, site in (
        (f"line, {count}", line),
        ("plane, 49", plane_site(49)),
        ("graph, 200", graph_site(200)),
    ):
        for estimator, many in (("least", 10), ("bayes-median", 5)):
            each = recoveries(site, estimator, many)
            told = f"rounds a second of the processor, {name} sensors, {estimator}"
            row(told, f"{1 / each:.1f}")


def row(what: str, *numbers: object) -> None:
    """A row of the table."""
    print(f"| {what} | {', '.join(map(str, numbers))} |", flush=True)


def _others(state: CollectorState) -> int:
    return sum(many for why, many in state.refused.items() if why != "late")


if __name__ == "__main__":
    main()
