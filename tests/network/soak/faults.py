"""A broker that is away, clocks that jump, a disk that is full, a device replaced and one stolen."""

from __future__ import annotations

import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

from tests.network.networks import Twin
from tests.network.soak.system import Network, books, eventually, running

from sfumato.network import BrokerConfig, MqttClient
from sfumato.network.collector import open_store
from sfumato.sensing.release import read_check_keys

THEFTS = 10


def broker_away(network: Network, seconds: float) -> tuple[bool, str]:
    """The broker ends in order, and is back after so long."""
    network.kill("broker", signal.SIGTERM)
    time.sleep(seconds)
    waited = sum(len(network.waiting(device)) for device in network.sensors)
    network.start("broker")
    back = network.go_on()
    eventually(lambda: not any(len(network.waiting(device)) > 2 for device in network.sensors))
    eventually(lambda: network.state()["waiting"] <= 1)
    network.finish()
    late, found = _late(network), books(network)
    told = (
        f"{waited} packets waited in outboxes; whole rounds again {back:.0f} s after it was back; "
        f"{found.words()}; {late} packets came too late for their rounds"
    )
    return found.is_sound and not (found.gone or found.skipped), told


def clocks_jump(folder: Path, jumps: tuple[int, ...]) -> tuple[bool, str]:
    """The clocks of sensors and collector jump together by so many seconds, one jump after the other."""
    offset, library = folder / "clock", folder / "clock.so"
    offset.write_bytes(struct.pack("=q", 0))
    source = Path(__file__).with_name("clock.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    now, waits = 0, []
    environment = {"LD_PRELOAD": str(library), "SOAK_CLOCK": str(offset)}
    with running(folder, environment=environment) as network:
        for jump in jumps:
            now += jump
            offset.write_bytes(struct.pack("=q", now * 1_000_000_000))
            waits.append(f"{jump:+d} s: {network.go_on():.0f} s")
        network.finish()
        found = books(network)
    return (
        found.is_sound,
        f"until there were whole rounds again: {', '.join(waits)}; {found.words()}",
    )


def disk_full(network: Network, seconds: float) -> tuple[bool, str]:
    """No file of the collector, and then none of a sensor, grows any more; and then they may again."""
    before = network.state()["accepted"]
    network.limit_files("collector", 1)
    time.sleep(seconds)
    said, kept = network.state()["store_problem"], network.state()["accepted"] - before
    network.limit_files("collector", -1)
    first = network.go_on()
    victim = network.sensors[0]
    # Somewhere in an entry of the ledger: what was written of it must count for nothing.
    (ledger,) = (network.folder / f"state-{victim}" / "windows").glob("*.ledger")
    network.limit_files(victim, ledger.stat().st_size + 600)
    time.sleep(seconds)
    network.limit_files(victim, -1)
    second = network.go_on()
    ended = network.ended()
    network.finish()
    found = books(network)
    told = (
        f"collector: says `{said.rpartition(': ')[2]}`, whole rounds again {first:.0f} s after; sensor: "
        f"{second:.0f} s after; {len(ended)} processes ended by it; {found.words()}"
    )
    return found.is_sound and bool(said) and not ended and not found.gone and kept <= len(
        network.sensors
    ) * 2, told


def replaced_and_stolen(network: Network) -> tuple[bool, str]:
    """A sensor gets a new key while all run, and its old one is used on; the key of another is revoked."""
    replaced, stolen = network.sensors[:2]
    later = f"{replaced}~2"
    old = read_check_keys(network.folder / "check.key")
    thief = Twin(network.site, 0, replaced, step=1000, check_key=old.devices[replaced])
    network.kill(replaced, signal.SIGTERM)
    _sfumato(network.folder, "keys", "rotate", "master.key", f"{later}.key", "--name", replaced)
    _sfumato(network.folder, "keys", "check", "master.key", "check.key", "--overwrite")
    network.write_sensor(replaced, device=later, state=replaced)
    network.start(later)
    new = network.go_on()
    client = MqttClient(
        BrokerConfig("127.0.0.1", network.port, protocol="3.1.1"), client_id="thief"
    )
    client.start()
    known = _refused(network, "unknown-device")
    for _ in range(THEFTS):
        now = time.time_ns() // 1_000_000 // network.period_ms * network.period_ms
        changed = {"key_id": old.key_id, "round_ms": now, "period_ms": network.period_ms}
        client.publish(*thief.send(0, 0.5, **changed))
    eventually(lambda: _refused(network, "unknown-device") == known + THEFTS)
    client.stop()
    before = _refused(network, "revoked")
    network.write_collector(f'revoked = ["{stolen}"]')
    began = time.monotonic()
    eventually(lambda: _refused(network, "revoked") > before)
    shut = time.monotonic() - began
    accepted = _device(network, stolen)["accepted"]
    rounds = network.state()["rounds"]["recovered"]
    eventually(lambda: network.state()["rounds"]["recovered"] >= rounds + 4)
    taken = _device(network, stolen)["accepted"] - accepted
    ended = network.ended()
    network.finish()
    found = books(network)
    told = (
        f"whole rounds with the new key after {new:.0f} s, without a restart; {THEFTS} packets of the "
        f"old key refused; the stolen key refused {shut:.1f} s after it was revoked, "
        f"{taken} packets of it taken "
        f"since, rounds go on; draws repeated {found.repeats}, charged or sent twice {found.twice}"
    )
    return found.is_sound and not taken and not ended, told


def _refused(network: Network, why: str) -> int:
    return int(network.state().get("refused", {}).get(why, 0))


def _device(network: Network, name: str) -> dict[str, int]:
    return next(one for one in network.state()["devices"] if one["name"] == name)


def _late(network: Network) -> int:
    store = open_store(network.folder / "rounds.sqlite", site=network.site.digest)
    late = sum(one.late for one in store.packets_since(0))
    store.close()
    return late


def _sfumato(folder: Path, *words: str) -> None:
    command = [sys.executable, "-m", "sfumato", *words, "--quiet"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
