"""A collector as a service: connected, serving its state, told of changes of its file, until it is stopped."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from sfumato.errors import SfumatoError
from sfumato.network.collector.closed_rounds import RoundLines
from sfumato.network.collector.collector import Collector, Output
from sfumato.network.collector.config import NetworkConfig, read_network
from sfumato.network.collector.home_assistant import HomeAssistant
from sfumato.network.collector.recoveries import Recovered
from sfumato.network.collector.render import SHOWN
from sfumato.network.collector.state import CollectorState
from sfumato.network.collector.state_server import serve_state
from sfumato.network.collector.subscription import Subscription
from sfumato.network.topics import level_of, readings_filter

LOOK_EVERY = 40
"""Turns between two looks at whether the file of the network changed."""
DAY_MS = 86_400_000

Watch = Callable[[str], None]


class LastRounds:
    """The last rounds, for who shows them."""

    def __init__(self, size: int = SHOWN) -> None:
        self.rounds: deque[Recovered] = deque(maxlen=size)
        self.fresh = 0

    def round(self, done: Recovered, _: CollectorState) -> None:
        """Remember a round."""
        self.rounds.append(done)
        self.fresh += 1

    def close(self) -> None:
        """Nothing to let go of."""


def run_collector(
    config: NetworkConfig,
    *,
    stop: threading.Event,
    file: Path | None = None,
    outputs: Sequence[Output] = (),
    shown: Callable[[Collector], None] | None = None,
    watch: Watch | None = None,
    rounds: int | None = None,
) -> CollectorState:
    """Collect until somebody says stop: take packets, recover rounds, serve state, tell Home Assistant.

    Args:
        config: The network.
        stop: Set it to stop; the rounds that are closed by then are finished.
        file: The file of the network: devices, check keys and revocations are read anew when it changes.
        outputs: Who else is told of every round.
        shown: Called after every turn.
        watch: Called with sentences about what happens.
        rounds: Stop after so many rounds; None to go on.

    Returns:
        The network at the end.

    Raises:
        InvalidInput: A file, the store or the port is not as it should be; nothing was collected.
        MissingPackage: There is no client of MQTT.
    """
    tell = watch or (lambda _: None)
    with ExitStack() as stack:
        told = list(outputs)
        if config.lines is not None:
            told.append(RoundLines(config.lines))
        link: list[Subscription] = []
        ended: list[bool] = []
        entities = None
        if config.home_assistant:
            entities = HomeAssistant(
                config.site,
                lambda topic, payload, retain: link[0].publish(topic, payload, retain=retain),
                period_ms=config.period_ms,
                prefix=config.home_assistant,
            )
            told.append(entities)
        collector = Collector(config, outputs=told)
        closing = stack.enter_context(ExitStack())

        def connected(there: bool) -> None:
            if there != collector.connected and not ended:
                host, port = config.broker.address
                tell(
                    f"connected to {host}:{port}"
                    if there
                    else f"the broker at {host}:{port} is away or refuses; trying again"
                )
            collector.connected = there
            if there and entities is not None:
                entities.announce()

        link.append(
            Subscription(
                config.broker,
                client_id=f"sfumato-collector-{level_of(config.site.name)}",
                topics=(readings_filter(config.site.name),),
                on_message=collector.take,
                on_connected=connected,
                on_problem=tell,
            )
        )
        if config.serve is not None:
            port = closing.enter_context(
                serve_state(lambda: collector.state, config.serve, site=config.site)
            )
            tell(
                f"state on http://127.0.0.1:{port}/state.json, as it changes on /events, "
                "metrics on /metrics"
            )
        link[0].start()
        try:
            _turns(collector, config, stop, file=file, shown=shown, tell=tell, rounds=rounds)
        finally:
            collector.close()
            state = collector.state
            ended.append(True)
            link[0].stop()
        return state


def _turns(
    collector: Collector,
    config: NetworkConfig,
    stop: threading.Event,
    *,
    file: Path | None,
    shown: Callable[[Collector], None] | None,
    tell: Watch,
    rounds: int | None,
) -> None:
    watched, turn = (file, config.check_keys), 0
    seen = _changes(watched)
    while not stop.is_set():
        collector.wait(0.05)
        collector.turn()
        turn += 1
        if shown is not None:
            shown(collector)
        if rounds is not None and sum(collector.state.rounds.values()) >= rounds:
            return
        if turn % LOOK_EVERY:
            continue
        now = _changes(watched)
        if file is not None and now != seen:
            before, watched = watched, (file, _reload(collector, file, tell) or watched[1])
            seen = now if watched == before else []  # what is new to us may have changed meanwhile
        if config.keep_days is not None and turn % (LOOK_EVERY * 1000) == LOOK_EVERY:
            oldest = collector.now_ms() - config.keep_days * DAY_MS
            collector.forget_before(oldest // config.period_ms)


def _changes(files: tuple[Path | None, ...]) -> list[int]:
    found = []
    for one in files:
        try:
            found.append(0 if one is None else one.stat().st_mtime_ns)
        except OSError:
            found.append(-1)
    return found


def _reload(collector: Collector, file: Path, tell: Watch) -> Path | None:
    """Read the file of the network again; the file of check keys that it names now."""
    try:
        config = read_network(file)
        collector.reload(config)
    except SfumatoError as problem:
        tell(f"{problem}; it goes on as before")
        return None
    tell(f"{file} was read again: devices, check keys and revocations are as it says now")
    return config.check_keys
