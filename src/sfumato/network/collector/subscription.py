"""The collector's connection to a broker: a lasting session, acknowledged when packets are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfumato.errors import MissingPackage
from sfumato.network.mqtt import AT_LEAST_ONCE, MAX_WAIT, BrokerConfig

OnMessage = Callable[[str, bytes, Callable[[], None]], object]


class Subscription:
    """A client of MQTT 3.1.1 with a lasting session: what nobody acknowledged comes again, also after a crash.

    Every message is handed on with a function that acknowledges it.
    """

    def __init__(
        self,
        broker: BrokerConfig,
        *,
        client_id: str,
        topics: tuple[str, ...],
        on_message: OnMessage,
        on_connected: Callable[[bool], None],
        on_problem: Callable[[str], None],
    ) -> None:
        try:
            import paho.mqtt.client as paho
            from paho.mqtt.enums import CallbackAPIVersion
        except ImportError:
            raise MissingPackage(
                "a collector needs paho-mqtt: pip install 'sfumato[network]'; nothing was collected"
            ) from None
        self._broker, self._topics = broker, topics
        self._on_message, self._on_connected = on_message, on_connected
        self._on_problem = on_problem
        self._client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id=client_id,
            protocol=paho.MQTTv311,
            clean_session=False,
            manual_ack=True,
        )
        password = broker.password()
        if password is not None:
            self._client.username_pw_set(broker.username or client_id, password)
        if broker.is_tls:
            self._client.tls_set_context(broker.context())
        self._client.reconnect_delay_set(min_delay=1, max_delay=MAX_WAIT)
        self._client.on_connect = self._connected
        self._client.on_subscribe = self._ready
        self._client.on_disconnect = self._gone
        self._client.on_message = self._message

    def start(self) -> None:
        """Connect, now or as soon as the broker is there."""
        self._client.connect_async(*self._broker.address, keepalive=30)
        self._client.loop_start()

    def publish(self, topic: str, payload: bytes | str, *, retain: bool = False) -> None:
        """Send at least once."""
        self._client.publish(topic, payload, qos=AT_LEAST_ONCE, retain=retain)

    def stop(self) -> None:
        """Disconnect; the broker keeps the session."""
        self._client.disconnect()
        self._client.loop_stop()

    def _connected(self, client: Any, _: Any, __: Any, reason: Any, ___: Any) -> None:
        if reason.is_failure:
            self._on_connected(False)
            return
        client.subscribe([(topic, AT_LEAST_ONCE) for topic in self._topics])

    def _ready(self, *_: Any) -> None:
        """Connected, and what is published from now on is heard."""
        self._on_connected(True)

    def _gone(self, *_: Any) -> None:
        self._on_connected(False)

    def _message(self, client: Any, _: Any, message: Any) -> None:
        mid, qos = message.mid, message.qos

        def acknowledge() -> None:
            client.ack(mid, qos)

        try:
            self._on_message(message.topic, bytes(message.payload), acknowledge)
        except Exception as problem:  # it would end the thread of the connection
            self._on_problem(
                f"a message could not be taken ({type(problem).__name__}); it was not acknowledged"
            )
