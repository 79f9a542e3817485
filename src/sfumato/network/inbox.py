"""An inbox at a broker: messages of a topic, each acknowledged once whoever takes it has kept it.

The session lasts: what came while nobody listened, and what could not be kept, the broker sends again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sfumato.errors import InvalidParameter
from sfumato.network.collector.subscription import Subscription
from sfumato.network.mqtt import BrokerConfig
from sfumato.network.topics import level_of

PORTS = {"mqtt": False, "mqtts": True}
"""What the two schemes say of TLS."""


@dataclass(frozen=True, slots=True)
class Inbox:
    """A topic at a broker.

    Attributes:
        broker: How it is reached.
        topic: The topic; at most one level of it may be +, the name of the sender.
    """

    broker: BrokerConfig
    topic: str

    def sender_of(self, topic: str) -> str | None:
        """Who sent a message, by its topic; None where the inbox does not say.

        A name has one spelling, `level_of` it: of two users at the broker none is the other. In another
        spelling it is nobody, "".
        """
        levels = self.topic.split("/")
        if "+" not in levels:
            return None
        level = topic.split("/")[levels.index("+")]
        name = unquote(level)
        return name if name and level_of(name) == level else ""


def read_inbox(
    address: str, *, password_file: Path | None = None, ca_file: Path | None = None
) -> Inbox:
    """An inbox from its address.

    Args:
        address: mqtt://HOST:PORT/TOPIC, or mqtts:// for TLS; USER@ before the host.
        password_file: A file of mode 0600 whose first line is the password of the user.
        ca_file: The certificate of the authority that signed the broker's.

    Returns:
        The inbox.

    Raises:
        InvalidParameter: The address has another form.

    >>> found = read_inbox("mqtt://localhost:1883/spring/+/answers")
    >>> found.topic, found.sender_of("spring/phone%201/answers")
    ('spring/+/answers', 'phone 1')
    """
    try:
        parts = urlsplit(address)
        port = parts.port or 0
    except ValueError:
        parts, port = urlsplit(""), 0
    topic = parts.path[1:]
    levels = topic.split("/")
    whole = all(one == "+" or not set(one) & set("+#") for one in levels)
    if (
        parts.scheme not in PORTS
        or not (parts.hostname and topic and whole and levels.count("+") <= 1)
        or parts.password is not None
        or set(address) & set("?#")
    ):
        raise InvalidParameter(
            "an inbox is mqtt://HOST:PORT/TOPIC or mqtts://USER@HOST:PORT/TOPIC, with at most one level + "
            "for the sender and the password in a file; not listening"
        )
    broker = BrokerConfig(
        host=parts.hostname,
        port=port,
        username=parts.username or "",
        password_file=password_file,
        tls=PORTS[parts.scheme],
        ca_file=ca_file,
        protocol="3.1.1",
    )
    return Inbox(broker, topic)


def listen_to(
    inbox: Inbox,
    take: Callable[[bytes, str | None], object],
    *,
    client_id: str,
    tell: Callable[[str], None],
    stop: threading.Event | None = None,
) -> None:
    """Hand on every message of an inbox until interrupted.

    A message is acknowledged when `take` has returned. If it raises, that is told, and the broker sends
    the message again at the next connection.

    Args:
        inbox: Where messages come from.
        take: Told the message, and who sent it where the topic says so.
        client_id: The name of the lasting session; another listener of the same name ends this one.
        tell: Told of every connection, and of what could not be taken.
        stop: Ends it, besides an interrupt.

    Raises:
        MissingPackage: There is no client of MQTT here.

    """
    host, port = inbox.broker.address
    last: list[bool] = []

    def connected(now: bool) -> None:
        if last[-1:] != [now]:
            last[:] = [now]
            tell(
                f"listening to {inbox.topic} at {host}:{port}; interrupt to end"
                if now
                else f"no connection to {host}:{port}; it is tried again"
            )

    def message(topic: str, payload: bytes, acknowledge: Callable[[], None]) -> None:
        take(payload, inbox.sender_of(topic))
        acknowledge()

    subscription = Subscription(
        inbox.broker,
        client_id=client_id,
        topics=(inbox.topic,),
        on_message=message,
        on_connected=connected,
        on_problem=tell,
    )
    subscription.start()
    try:
        end = stop or threading.Event()
        while not end.wait(0.2):
            pass
    finally:
        last[:] = [False]  # it is meant
        subscription.stop()
