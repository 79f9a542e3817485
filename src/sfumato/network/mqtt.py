"""A thin client of MQTT: it reconnects, sends at least once, and says when the broker has it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sfumato.errors import InvalidInput, InvalidParameter, MissingPackage
from sfumato.files import check_private

if TYPE_CHECKING:
    import ssl

    from paho.mqtt.client import Client

Protocol = Literal["3.1.1", "5", "auto"]
OnMessage = Callable[[str, bytes], None]
AT_LEAST_ONCE = 1
MAX_WAIT = 30  # seconds between two attempts to connect


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """How a broker is reached.

    Attributes:
        host: Its name or address.
        port: Its port; 1883 without TLS and 8883 with it, unless said.
        username: The user; "" for the name that whoever connects has.
        password_file: A file of mode 0600 whose first line is the password; None for none.
        tls: Whether to speak TLS, with certificates that the system trusts or `ca_file` signed; None for no,
            which a password for another machine does not allow.
        ca_file: The certificate of the authority that signed the broker's.
        protocol: "3.1.1", "5", or "auto": 5 where the broker offers it.
    """

    host: str = "localhost"
    port: int = 0
    username: str = ""
    password_file: Path | None = None
    tls: bool | None = None
    ca_file: Path | None = None
    protocol: Protocol = "auto"

    def __post_init__(self) -> None:
        if not self.host or not 0 <= self.port < 2**16:
            raise InvalidParameter(
                f"a broker has a `host` and a `port` below 65536, got {self.host!r} and {self.port}"
            )
        if self.protocol not in ("3.1.1", "5", "auto"):
            raise InvalidParameter(f"`protocol` is 3.1.1, 5 or auto, got {self.protocol!r}")
        unsaid = self.tls is None and not self.is_tls
        if self.password_file is not None and unsaid and not _is_loopback(self.host):
            raise InvalidParameter(
                f"a password for {self.host} goes over the network: say `tls` = true or a `ca_file`, or "
                "`tls` = false if everybody on the way may read it"
            )

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return self.host, self.port or (8883 if self.is_tls else 1883)

    @property
    def is_tls(self) -> bool:
        """Whether TLS is spoken."""
        return bool(self.tls) or self.ca_file is not None

    def context(self) -> ssl.SSLContext:
        """What TLS checks: the broker's name and who signed its certificate."""
        import ssl

        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError):
            raise InvalidInput(f"cannot read a certificate from {self.ca_file}") from None

    def password(self) -> str | None:
        """The password, from its file; refused where others may read that."""
        if self.password_file is None:
            return None
        try:
            check_private(self.password_file)
            return self.password_file.read_text(encoding="utf-8").partition("\n")[0]
        except (OSError, UnicodeDecodeError):
            raise InvalidInput(f"cannot read the password in {self.password_file}") from None


class MqttClient:
    """A connection that comes back by itself; what was not acknowledged is sent again, the same bytes.

    Nothing in it depends on what is sent: it sends when it is told to, and again when the broker is
    back.
    """

    def __init__(
        self,
        broker: BrokerConfig,
        *,
        client_id: str,
        username: str = "",
        on_acked: Callable[[int], None] | None = None,
        subscribe: tuple[str, ...] = (),
        on_message: OnMessage | None = None,
        on_connected: Callable[[bool], None] | None = None,
        on_refused: Callable[[str], None] | None = None,
    ) -> None:
        self.broker = broker
        self.connected = threading.Event()
        self._on_acked, self._on_message = on_acked, on_message
        self._on_connected, self._on_refused = on_connected, on_refused
        self._is_refusing = False
        self._subscribe = subscribe
        self._lock = threading.Lock()
        self._tags: dict[int, int] = {}
        self._early: dict[int, bool] = {}
        self.protocol = protocol_of(broker) if broker.protocol == "auto" else broker.protocol
        self._client = self._made(client_id, username)

    def start(self) -> None:
        """Connect, now or as soon as the broker is there."""
        self._client.connect_async(*self.broker.address, keepalive=30)
        self._client.loop_start()

    def publish(self, topic: str, payload: bytes, *, tag: int = 0, retain: bool = False) -> None:
        """Send at least once; `on_acked(tag)` is called when the broker has it.

        A broker of MQTT 5 may refuse it instead: `on_refused` is told why, once until it takes something.
        """
        # Not under our lock: the client calls `_acked` under one of its own, which it takes here too.
        sent = self._client.publish(topic, payload, qos=AT_LEAST_ONCE, retain=retain)
        with self._lock:
            taken = self._early.pop(sent.mid, None)
            if taken is None:
                self._tags[sent.mid] = tag
        if taken and self._on_acked is not None:
            self._on_acked(tag)

    @property
    def unacknowledged(self) -> int:
        """How many messages the broker has not acknowledged."""
        with self._lock:
            return len(self._tags)

    def stop(self) -> None:
        """Disconnect."""
        self._on_connected = None  # it is meant
        self._client.disconnect()
        self._client.loop_stop()

    def _made(self, client_id: str, username: str) -> Client:
        paho = _paho()
        version = paho.MQTTv5 if self.protocol == "5" else paho.MQTTv311
        client: Client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, client_id=client_id, protocol=version
        )
        user, password = self.broker.username or username, self.broker.password()
        if password is not None:
            client.username_pw_set(user, password)
        if self.broker.is_tls:
            client.tls_set_context(self.broker.context())
        client.reconnect_delay_set(min_delay=1, max_delay=MAX_WAIT)
        client.on_connect = self._connected
        client.on_disconnect = self._disconnected
        client.on_subscribe = self._ready
        client.on_publish = self._acked
        client.on_message = self._message
        return client

    def _connected(self, client: Client, _: Any, __: Any, reason: Any, ___: Any) -> None:
        if reason.is_failure:
            self._told(False)
            return
        if self._subscribe:
            client.subscribe([(topic, AT_LEAST_ONCE) for topic in self._subscribe])
        else:
            self._ready()

    def _ready(self, *_: Any) -> None:
        """Connected, and what is published from now on is heard."""
        self.connected.set()
        self._told(True)

    def _disconnected(self, *_: Any) -> None:
        if self.connected.is_set():
            self._told(False)
        self.connected.clear()

    def _told(self, connected: bool) -> None:
        if self._on_connected is not None:
            self._on_connected(connected)

    def _acked(self, _: Client, __: Any, mid: int, reason: Any, ____: Any) -> None:
        taken = not reason.is_failure
        with self._lock:
            tag = self._tags.pop(mid, None)
            if tag is None:  # an answer that comes before `publish` has noted what it asked
                self._early[mid] = taken
        if tag is not None and taken and self._on_acked is not None:
            self._on_acked(tag)
        if not taken and not self._is_refusing and self._on_refused is not None:
            self._on_refused(str(reason))
        self._is_refusing = not taken

    def _message(self, _: Client, __: Any, message: Any) -> None:
        if self._on_message is not None:
            self._on_message(message.topic, bytes(message.payload))


def protocol_of(broker: BrokerConfig) -> Literal["3.1.1", "5"]:
    """What a broker speaks: 5 if it says so itself, else 3.1.1, also where nobody answers."""
    import socket

    host, port = broker.address
    # CONNECT of MQTT 5 with a clean start, no properties and no client id: [mqtt5, 3.1].
    hello = bytes.fromhex("100d00044d5154540502003c000000")
    try:
        with ExitStack() as open_:
            held = open_.enter_context(socket.create_connection((host, port), timeout=3))
            if broker.is_tls:
                told = broker.context().wrap_socket(held, server_hostname=host)
                held = open_.enter_context(told)
            held.sendall(hello)
            answer = held.recv(4)
    except OSError:
        return "3.1.1"
    # 0 is welcome; 0x86 and 0x87 are about the user, whom a broker of MQTT 5 asks for.
    known = len(answer) == 4 and answer[0] == 0x20 and answer[3] in (0x00, 0x85, 0x86, 0x87)
    return "5" if known and answer[1] > 2 else "3.1.1"


def _is_loopback(host: str) -> bool:
    import ipaddress

    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _paho() -> Any:
    try:
        import paho.mqtt.client
    except ImportError:
        raise MissingPackage("pip install 'sfumato[network]'") from None
    return paho.mqtt.client
