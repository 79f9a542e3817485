"""A flood of forged packets, and payloads that are no packets, through the broker."""

from __future__ import annotations

import itertools
import random
import socket
import struct
import threading
import time
from collections.abc import Iterable

from tests.network.networks import Twin
from tests.network.soak.system import Network, books, charged_rounds, eventually

from sfumato.network import decode
from sfumato.network.collector import open_store

Message = tuple[str, bytes]


class Pipe:
    """MQTT 3.1.1 with nothing that waits: messages of at least once, as fast as they are told."""

    def __init__(self, port: int, name: str) -> None:
        self._link = socket.create_connection(("127.0.0.1", port))
        self._identifiers = itertools.cycle(range(1, 2**16))
        client = name.encode()
        hello = b"\x00\x04MQTT\x04\x02\x00\x00" + struct.pack(">H", len(client)) + client
        self._link.sendall(b"\x10" + _length(len(hello)) + hello)
        if self._link.recv(4)[3:] != b"\x00":
            raise ConnectionError("the broker did not welcome us")
        self.acknowledged = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, messages: Iterable[Message]) -> None:
        """Messages, in one piece."""
        self._link.sendall(b"".join(self._published(*one) for one in messages))

    def close(self) -> None:
        """Disconnect."""
        self._link.sendall(b"\xe0\x00")
        self._link.shutdown(socket.SHUT_WR)
        self._reader.join(30)
        self._link.close()

    def _published(self, topic: str, payload: bytes) -> bytes:
        name = topic.encode()
        body = (
            struct.pack(">H", len(name))
            + name
            + struct.pack(">H", next(self._identifiers))
            + payload
        )
        return b"\x32" + _length(len(body)) + body

    def _read(self) -> None:
        while got := self._link.recv(2**16):
            self.acknowledged += len(got) // 4  # nothing but acknowledgements of 4 bytes comes


def _length(size: int) -> bytes:
    found = b""
    while size >= 128:
        found += bytes([size % 128 | 128])
        size //= 128
    return found + bytes([size])


def flood(network: Network, *, rate: int, seconds: float) -> tuple[bool, str]:
    """So many forged packets a second, of all devices, while the sensors go on."""
    thieves = [
        Twin(network.site, place, check_key=b"?" * 32) for place in range(len(network.sensors))
    ]
    began = time.time_ns() // 1_000_000
    changed = {
        "round_ms": began // network.period_ms * network.period_ms,
        "period_ms": network.period_ms,
    }
    forged = [one.send(0, 0.5, **changed) for one in thieves]
    pipe, sent, most, queued = Pipe(network.port, "flood"), 0, 0.0, 0
    first = network.memory("collector")
    start = time.monotonic()
    looked = start
    while (now := time.monotonic() - start) < seconds:
        due = min(int(rate * now), int(rate * seconds)) - sent
        pipe.send(forged[number % len(forged)] for number in range(sent, sent + due))
        sent += due
        if time.monotonic() - looked > 2:
            looked, state = time.monotonic(), network.state()
            most, queued = max(most, network.memory("collector")), max(queued, state["queue"][0])
        time.sleep(0.01)
    took = time.monotonic() - start
    ended = time.time_ns() // 1_000_000
    eventually(lambda: network.state()["refused"].get("wrong-code", 0) >= sent, every=0.5)
    behind = time.monotonic() - start - took
    most = max(most, network.memory("collector"))
    pipe.close()
    again = network.go_on()
    network.finish()
    wanted = _rounds(network, began, ended)
    made, whole = _schedule(network, wanted)
    charged = sum(number in wanted for _, number in charged_rounds(network))
    found = books(network)
    told = (
        f"{sent} sent in {took:.0f} s, all refused {behind:.0f} s later; collector's memory {first:.0f} -> "
        f"{most:.0f} MB, its queue at most {queued}; meanwhile {charged} of "
        f"{len(wanted) * len(network.sensors)} packets of "
        f"{len(network.sensors)} sensors were made, {made} kept, {whole} of {len(wanted)} rounds had all "
        f"sensors; "
        f"whole rounds again {again:.0f} s after; sent twice {found.twice}, uncharged {found.uncharged}, "
        f"accepted rounds lost {found.lost}"
    )
    return found.is_sound and most - first < 100, told


def _rounds(network: Network, began: int, ended: int) -> range:
    """The rounds that lie in a span whole: made after it began, and sent before it ended."""
    period = network.period_ms
    return range(-(-began // period), (ended - period) // period + 1)


def _schedule(network: Network, wanted: range) -> tuple[int, int]:
    """How many packets of the rounds of a span were kept, and how many rounds had all sensors."""
    store = open_store(network.folder / "rounds.sqlite", site=network.site.digest)
    packets = [decode(one.payload) for one in store.packets_since(wanted.start)]
    rounds = [one for one in store.rounds_since(wanted.start) if one.round in wanted]
    store.close()
    made = sum(packet.round_ms // network.period_ms in wanted for packet in packets)
    return made, sum(one.sensors.count("\t") == len(network.sensors) - 1 for one in rounds)


def malformed(network: Network, count: int, *, seed: int) -> tuple[bool, str]:
    """So many payloads that are no packets: random bytes, packets with a bit flipped, wrong topics."""
    chance = random.Random(seed)  # noqa: S311
    good = Twin(network.site, 0).send(0, 0.5)

    def bad() -> Message:
        kind = chance.randrange(3)
        if kind == 0:
            payload = bytearray(good[1])
            payload[chance.randrange(len(payload))] ^= 1 << chance.randrange(8)
            return good[0], bytes(payload)
        topic = good[0] if kind == 1 else f"sfumato/1/hall/{chance.randrange(1000)}/readings"
        return topic, chance.randbytes(chance.randrange(400))

    pipe, sent, before, last = Pipe(network.port, "malformed"), 0, 0.0, 0.0
    known = _refused(network)
    for part in range(10):
        pipe.send([bad() for _ in range(count // 10)])
        sent += count // 10
        eventually(lambda: _refused(network) - known >= sent)  # noqa: B023
        last = network.memory("collector")
        before = before if part else last
    pipe.close()
    again, ended = network.go_on(), network.ended()
    network.finish()
    found = books(network)
    told = (
        f"{sent} sent, all refused, {len(ended)} processes ended by it; collector's memory "
        f"{before:.1f} MB after a tenth, {last:.1f} MB after all; whole rounds again {again:.0f} s "
        f"after; accepted rounds lost {found.lost}"
    )
    return found.is_sound and not ended and last - before < 10, told


def _refused(network: Network) -> int:
    return sum(network.state()["refused"].values())
