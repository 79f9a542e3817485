"""Kill -9 of a collector at any moment, again and again; what was acknowledged must be in the store."""

from __future__ import annotations

import os
import pickle
import random
import signal
import struct
from collections import deque
from dataclasses import dataclass, field
from functools import partial

from tests.network.networks import PERIOD, Twin

from sfumato.network.collector import Collector, NetworkConfig

Message = tuple[str, bytes]


@dataclass
class Sender:
    """A broker's part: messages that nobody acknowledged are sent again, in their order."""

    unacknowledged: dict[int, Message] = field(default_factory=dict)
    accepted: set[int] = field(default_factory=set)
    number: int = 0

    def add(self, message: Message) -> None:
        self.unacknowledged[self.number] = message
        self.number += 1


def acknowledge(acks: int, key: int) -> None:
    """Say that a message is kept."""
    os.write(acks, struct.pack(">I", key))


def child(config: NetworkConfig, start: int, feed: int, acks: int) -> None:
    """A collector that reads messages from a pipe and acknowledges them on another, until it is killed."""
    now = start

    def clock() -> int:
        return now

    collector = Collector(config, clock=clock, threads=False)
    reader = os.fdopen(feed, "rb")
    while True:
        size = reader.read(4)
        if len(size) < 4:
            break
        now, messages = pickle.loads(reader.read(struct.unpack(">I", size)[0]))  # noqa: S301
        for key, (topic, payload) in messages:
            collector.take(topic, payload, partial(acknowledge, acks, key))
        collector.turn()
    collector.close()


def one_life(
    config: NetworkConfig,
    sender: Sender,
    now: int,
    devices: list[Twin],
    *,
    rounds: int,
    chance: random.Random,
    last: bool,
) -> int:
    """Start a collector, send what is there and some rounds more, and kill it somewhere; the time then."""
    feed, feeding = os.pipe()
    acked, acks = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(feeding)
            os.close(acked)
            child(config, now, feed, acks)
        finally:
            os._exit(0)
    os.close(feed)
    os.close(acks)
    told: deque[list[tuple[int, Message]]] = deque([list(sender.unacknowledged.items())])
    sent = 0
    try:
        for _ in range(rounds):
            if told:
                messages = told.popleft()
            else:
                now += PERIOD
                first = sender.number
                for twin in devices:
                    sender.add(twin.send(0, 0.2, round_ms=now // PERIOD * PERIOD))
                messages = [
                    (key, sender.unacknowledged[key]) for key in range(first, sender.number)
                ]
            sent += len(messages)
            whole = pickle.dumps((now, messages))
            os.write(feeding, struct.pack(">I", len(whole)) + whole)
        if not last:
            # Some acknowledgements are waited for, and then it dies in the middle of whatever it does.
            for _ in range(chance.randrange(0, sent + 1)):
                key = os.read(acked, 4)
                if len(key) < 4:
                    break
                sender.accepted.add(struct.unpack(">I", key)[0])
            os.kill(pid, signal.SIGKILL)
        os.close(feeding)
        while len(key := os.read(acked, 4)) == 4:
            sender.accepted.add(struct.unpack(">I", key)[0])
    finally:
        os.close(acked)
        os.waitpid(pid, 0)
    for done in sender.accepted & set(sender.unacknowledged):
        del sender.unacknowledged[done]
    return now


def cycles(
    config: NetworkConfig, devices: list[Twin], count: int, *, start: int, seed: int
) -> Sender:
    """So many lives, and a last one that ends in peace."""
    chance, sender, now = random.Random(seed), Sender(), start  # noqa: S311
    for _ in range(count):
        now = one_life(
            config, sender, now, devices, rounds=chance.randrange(2, 5), chance=chance, last=False
        )
    one_life(config, sender, now + 10 * PERIOD, devices, rounds=3, chance=chance, last=True)
    return sender
