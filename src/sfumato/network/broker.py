"""A broker in this process, for demonstrations: it listens on this machine alone, and lets everybody in."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sfumato.errors import InvalidInput, MissingPackage
from sfumato.network.mqtt import BrokerConfig

HOST = "127.0.0.1"


@contextmanager
def embedded_broker(port: int = 0) -> Iterator[BrokerConfig]:
    """A broker of MQTT 3.1.1 while the block runs, in a thread of its own.

    Anybody on this machine may read and write everything: a network that counts has a broker with
    passwords, TLS and an access list (docs/how-to/network.md).

    Args:
        port: Where it listens; 0 for a port that is free.

    Yields:
        How it is reached.

    Raises:
        MissingPackage: There is no amqtt.
        InvalidInput: The port is taken.
    """
    chosen = port or free_port()
    running = _Running(chosen)
    running.start()
    try:
        yield BrokerConfig(HOST, chosen, protocol="3.1.1")
    finally:
        running.stop()


def free_port() -> int:
    """A port of this machine that nobody listens on now.

    Returns:
        Its number.
    """
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


class _Running:
    """amqtt with an event loop of its own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._broker: Any = None

    def start(self) -> None:
        self._thread.start()
        try:
            self._run(self._started())
        except ImportError:
            self._end()
            raise MissingPackage("pip install 'sfumato[network]'") from None
        except Exception:
            # It wraps what the system says in errors of its own.
            self._end()
            raise InvalidInput(
                f"cannot listen on {HOST}:{self._port}; nothing was started"
            ) from None

    def stop(self) -> None:
        self._run(self._broker.shutdown())
        self._run(_cancelled())
        self._end()

    async def _started(self) -> None:
        from amqtt.broker import Broker

        logging.getLogger("amqtt").setLevel(logging.CRITICAL)
        logging.getLogger("transitions").setLevel(logging.CRITICAL)
        listener = {"type": "tcp", "bind": f"{HOST}:{self._port}", "max_connections": 10_000}
        plugins = {
            "amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}
        }  # fmt: skip
        self._broker = Broker({"listeners": {"default": listener}, "plugins": plugins})
        await self._broker.start()

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=60)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=60)
        self._loop.close()


async def _cancelled() -> None:
    """End what the broker has left running, so that nothing is heard of it later."""
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
