"""A network of real processes: Mosquitto, `sfumato sensor run` for each sensor, and `sfumato collect`."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from tests.network.mosquitto import PROGRAM

from sfumato.network import Packet, decode, free_port
from sfumato.network.collector import open_store
from sfumato.network.sensors import plan_sensor, read_sensor_config
from sfumato.privacy import Ledger, MovedMass
from sfumato.sensing import Site, heat_line
from sfumato.sensing.pipeline import make_check_keys, make_device_key, make_master_key

PATIENCE = 600.0
"""Seconds that a busy machine may take."""
# Persistent, as docs/how-to/network.md says: else what waits for the collector dies with the broker.
BROKER = """
listener {port} 127.0.0.1
allow_anonymous true
persistence true
persistence_location {folder}/
autosave_interval 1
autosave_on_changes false
max_queued_messages 0
max_inflight_messages 1000
log_type error
"""
SENSOR = """
site = "site.json"
noise_plan = "plan.json"
device_key = "{device}.key"
state = "{state}"
sensors = ["{sensor}"]
period = "{period}ms"
[budget]
window = "1d"
epsilon = "1000"
delta = "1e-6"
[input]
{read}
[broker]
host = "127.0.0.1"
port = {port}
protocol = "3.1.1"
"""
COLLECTOR = """
site = "site.json"
period = "{period}ms"
check_keys = "check.key"
store = "rounds.sqlite"
serve = {serve}
estimator = "least"
track = 0
{more}
[broker]
host = "127.0.0.1"
port = {port}
"""


class Network:
    """The files and the processes of a network; a process has the name of its sensor, or says what it is."""

    def __init__(
        self,
        folder: Path,
        *,
        sensors: int = 4,
        period_ms: int = 500,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.folder, self.period_ms = folder, period_ms
        self.port, self.serve = free_port(), free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        ours = {
            name: value for name, value in os.environ.items() if not name.startswith("SFUMATO_")
        }
        self._environment = ours | (environment or {})
        line = heat_line(sources=20, sensors=sensors, diffusion_time=0.05)
        self.site = Site(
            "hall", line, MovedMass("1/10", "line"), unit="mass", per_source=Fraction(1)
        )
        self.sensors = list(self.site.sensors.names)
        self.site.write(folder / "site.json")
        (folder / "reading").write_text("0.5\n")
        (folder / "mosquitto.conf").write_text(
            BROKER.format(port=self.port, folder=folder)
            + ("user root\n" if os.getuid() == 0 else "")
        )
        make_master_key(folder / "master.key")
        for name in self.sensors:
            make_device_key(folder / "master.key", folder / f"{name}.key", name=name)
            self.write_sensor(name)
        make_check_keys(folder / "master.key", folder / "check.key")
        plan_sensor(read_sensor_config(folder / f"{self.sensors[0]}.toml"))
        self.write_collector()

    def write_sensor(self, name: str, *, device: str = "", state: str = "", read: str = "") -> None:
        """The file of a sensor; its key may be a later one."""
        read = read or f'kind = "file"\npaths = {{ "{name}" = "reading" }}'
        text = SENSOR.format(
            device=device or name, state=f"state-{state or device or name}", sensor=name,
            period=self.period_ms, read=read, port=self.port,
        )  # fmt: skip
        (self.folder / f"{device or name}.toml").write_text(text)

    def write_collector(self, more: str = "") -> None:
        """The file of the collector."""
        text = COLLECTOR.format(period=self.period_ms, serve=self.serve, port=self.port, more=more)
        (self.folder / "network.toml").write_text(text)

    def start(self, *names: str) -> None:
        """Start processes; the broker listens when this returns."""
        for name in names:
            ours = [sys.executable, "-m", "sfumato"]
            command = {
                "broker": [PROGRAM, "-c", str(self.folder / "mosquitto.conf")],
                "collector": [*ours, "collect", "network.toml", "--json"],
            }.get(name, [*ours, "sensor", "run", f"{name}.toml", "--json"])
            with (self.folder / f"{name}.log").open("ab") as log:
                self.processes[name] = subprocess.Popen(
                    command, cwd=self.folder, env=self._environment, stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, stderr=log,
                )  # fmt: skip
            if name == "broker":
                eventually(self._listens)

    def start_all(self) -> None:
        """The broker, the collector, and then the sensors."""
        self.start("broker", "collector")
        eventually(lambda: self.state().get("connected") is True)
        self.start(*self.sensors)

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """End a process by a signal, and see that it did not end by itself before."""
        process = self.processes.pop(name)
        if process.poll() is not None:
            raise RuntimeError(f"{name} ended by itself: {self.log(name)}")
        process.send_signal(number)
        process.wait(PATIENCE)

    def log(self, name: str) -> str:
        """The last lines that a process said."""
        return (self.folder / f"{name}.log").read_text()[-2000:]

    def ended(self) -> list[str]:
        """Which processes are not there though nobody ended them."""
        return [name for name, process in self.processes.items() if process.poll() is not None]

    def close(self) -> None:
        """End all processes in order: sensors, collector, broker."""
        for name in sorted(
            self.processes, key=lambda name: (name == "broker", name == "collector")
        ):
            process = self.processes.pop(name)
            process.terminate()
            process.wait(PATIENCE)

    def state(self) -> dict[str, Any]:
        """What the collector says of itself; nothing while it is away."""
        link = HTTPConnection("127.0.0.1", self.serve, timeout=30)
        try:
            link.request("GET", "/state.json")
            found: dict[str, Any] = json.loads(link.getresponse().read())
        except (OSError, HTTPException, ValueError):
            return {}
        finally:
            link.close()
        return found

    def memory(self, name: str) -> float:
        """What a process holds now, in MB."""
        status = Path(f"/proc/{self.processes[name].pid}/statm").read_text()
        return int(status.split()[1]) * resource.getpagesize() / 2**20

    def limit_files(self, name: str, size: int) -> None:
        """Let a process write no file beyond a size: a disk that is full; -1 for one that is not."""
        _, hard = resource.prlimit(self.processes[name].pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.processes[name].pid, resource.RLIMIT_FSIZE, (size, hard))

    def whole_rounds(self) -> int:
        """How many rounds were recovered with all sensors."""
        store = open_store(self.folder / "rounds.sqlite", site=self.site.digest)
        found = sum(
            one.state == "recovered" and one.sensors.count("\t") == len(self.sensors) - 1
            for one in store.rounds_since(0)
        )
        store.close()
        return found

    def go_on(self, rounds: int = 2) -> float:
        """Wait until so many more rounds have all sensors and nothing waits anywhere; how long that took."""
        began, before = time.monotonic(), self.whole_rounds()
        eventually(lambda: self.whole_rounds() >= before + rounds, every=0.2)
        return time.monotonic() - began

    def finish(self) -> None:
        """Let sensors end in order, and the collector when it has everything."""
        for name in [name for name in self.processes if name not in ("broker", "collector")]:
            self.kill(name, signal.SIGTERM)
        quiet = [-1, time.monotonic()]

        def nothing_comes() -> bool:
            now = self.state().get("accepted", -1)
            if now != quiet[0]:
                quiet[:] = [now, time.monotonic()]
            return time.monotonic() - quiet[1] > 3

        eventually(nothing_comes, every=0.2)
        eventually(
            lambda: self.state()["waiting"] == 0, every=0.2
        )  # those who come back are waited for
        self.kill("collector", signal.SIGTERM)

    def waiting(self, device: str) -> list[bytes]:
        """The packets in a sensor's outbox."""
        folder = self.folder / f"state-{device}" / "outbox"
        return [file.read_bytes() for file in folder.glob("*.packet")]

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def running(folder: Path, **more: Any) -> Iterator[Network]:
    """A network whose processes are all there and recover rounds, until the block ends."""
    network = Network(folder, **more)
    try:
        network.start_all()
        network.go_on()
        yield network
    finally:
        network.close()


def eventually(holds: Callable[[], bool], *, every: float = 0.05) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError("waited in vain")
        time.sleep(every)


@dataclass(frozen=True, slots=True)
class Books:
    """What ledgers, packets and the collector's store say together; all but the first four should be 0.

    Attributes:
        charged: Rounds that sensors paid for.
        kept: Packets that the collector has kept.
        recovered: Rounds that were recovered.
        gone: Rounds that were paid for, and whose packet neither the collector nor an outbox has: it
            went with the process or the broker that was killed.
        repeats: Draws of a key that two different packets have.
        twice: Rounds of a device that were charged twice, or that two different packets have.
        uncharged: Packets whose round is in no ledger.
        lost: Rounds that a packet was accepted for in time, and that the store does not have.
        skipped: Rounds that were not recovered, and said to be so.
    """

    charged: int
    kept: int
    recovered: int
    gone: int
    repeats: int
    twice: int
    uncharged: int
    lost: int
    skipped: int

    @property
    def is_sound(self) -> bool:
        """Whether nothing came twice, unpaid, or was lost after it was accepted."""
        return not (self.repeats or self.twice or self.uncharged or self.lost)

    def words(self) -> str:
        """For the table."""
        return (
            f"{self.charged} rounds charged, {self.kept} packets kept, {self.gone} gone with what was killed; "
            f"draws repeated {self.repeats}, rounds charged or sent twice {self.twice}, sent uncharged "
            f"{self.uncharged}; {self.recovered} rounds recovered, {self.skipped} skipped, accepted ones lost "
            f"{self.lost}"
        )


def books(network: Network, tapped: list[bytes] | None = None) -> Books:
    """Hold the ledgers of all sensors against every packet that was seen, and the packets against rounds."""
    store = open_store(network.folder / "rounds.sqlite", site=network.site.digest)
    kept, rounds = store.packets_since(0), store.rounds_since(0)
    store.close()
    held = [payload for device in _states(network) for payload in network.waiting(device)]
    seen = {
        payload: decode(payload)
        for payload in [*(one.payload for one in kept), *held, *(tapped or [])]
    }
    notes = charged_rounds(network)
    sent = [_round_of(network, packet) for packet in seen.values()]
    draws = [(packet.device, packet.epoch, packet.first) for packet in seen.values()]
    there = {
        _round_of(network, decode(payload)) for payload in [*(one.payload for one in kept), *held]
    }
    done = {one.round: one.state for one in rounds}
    return Books(
        charged=len(set(notes)),
        kept=len(kept),
        recovered=sum(state == "recovered" for state in done.values()),
        gone=len(set(notes) - there),
        repeats=len(draws) - len(set(draws)),
        twice=len(notes) - len(set(notes)) + len(sent) - len(set(sent)),
        uncharged=len(set(sent) - set(notes)),
        lost=len({one.round for one in kept if not one.late} - set(done)),
        skipped=sum(state != "recovered" for state in done.values()),
    )


def charged_rounds(network: Network) -> list[tuple[str, int]]:
    """The sensor and the number of every round that was paid for, as ledgers have them."""
    return [
        (sensor, int(entry.note.removeprefix("round ")) // network.period_ms)
        for sensor in _states(network)
        for file in (network.folder / f"state-{sensor}" / "windows").glob("*.ledger")
        for entry in Ledger(file).statement().entries
    ]


def _states(network: Network) -> list[str]:
    return [folder.name.removeprefix("state-") for folder in network.folder.glob("state-*")]


def _round_of(network: Network, packet: Packet) -> tuple[str, int]:
    return packet.device.partition("~")[0], packet.round_ms // network.period_ms
