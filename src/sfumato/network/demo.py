"""A whole network on this machine, for a look: broker, sensors, a source that walks, a collector, a page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import ExistsAlready, InvalidInput
from sfumato.files import write_file
from sfumato.network.broker import embedded_broker
from sfumato.network.collector import (
    Collector,
    CollectorState,
    NetworkConfig,
    Recovered,
    promise_words,
    run_collector,
)
from sfumato.network.demo_walk import Walker, demo_site
from sfumato.network.mqtt import BrokerConfig, MqttClient
from sfumato.network.sensors import InputConfig, Sensor, SensorConfig, SystemClock, keep_rounds
from sfumato.network.topics import client_id_of, level_of
from sfumato.privacy import ApproxDP
from sfumato.sensing import Site, plan
from sfumato.sensing.pipeline import (
    LiveRecovery,
    make_check_keys,
    make_device_key,
    make_master_key,
)
from sfumato.sensing.release import share_of
from sfumato.sensing.render import draw_rounds

WINDOW = "10m"
BUDGET = ApproxDP(120, "1e-6")
"""What the rounds of a window cost: enough to see something, and far too much for people."""
TRACK = 12
MAX_PAGE = 600  # rounds on the page, the last ones


@dataclass(frozen=True, slots=True)
class NetworkDemo:
    """What a demonstration came to.

    Attributes:
        folder: Where its files are: site, keys, ledgers, rounds.
        page: The page with a slider over the rounds; None where no round was recovered.
        rounds: Rounds that were recovered.
        followed: Rounds in which the walking source was followed.
        held: How many of them had it within the radius that the track says holds it with 90 %.
        distance: How far off the track was on average, in the unit of the space; None where it never was.
        state: The collector's state at the end.
    """

    folder: Path
    page: Path | None
    rounds: int
    followed: int
    held: int
    distance: float | None
    state: CollectorState

    def to_json(self) -> dict[str, Any]:
        """As the command prints it."""
        return {
            "folder": str(self.folder),
            "page": None if self.page is None else str(self.page),
            "rounds": self.rounds,
            "followed": self.followed,
            "held": self.held,
            "distance": self.distance,
            "packets": self.state.accepted,
            "promise": None if self.state.promise is None else self.state.promise.to_json(),
        }


class _Sensed:
    """The input of one sensor."""

    def __init__(self, walker: Walker, name: str, clock: SystemClock) -> None:
        self._walker, self._name, self._clock = walker, name, clock
        self._place = walker.site.sensors.names.index(name)

    def take(self) -> Mapping[str, float]:
        return {self._name: self._walker.reading(self._place, self._clock.now_ms())}

    def close(self) -> None:
        pass


class _Kept:
    """All rounds of the demonstration, for the page and for the sum at the end."""

    def __init__(self) -> None:
        self.rounds: list[Recovered] = []

    def round(self, done: Recovered, _: CollectorState) -> None:
        self.rounds.append(done)

    def close(self) -> None:
        pass


def run_network_demo(
    folder: str | Path,
    *,
    stop: threading.Event,
    roads: bool = False,
    rounds: int | None = None,
    period_ms: int = 1000,
    sensors: int | None = None,
    estimator: str = "bayes-median",
    shown: Callable[[Collector, list[Recovered], Walker], None] | None = None,
    watch: Callable[[str], None] | None = None,
) -> NetworkDemo:
    """Run a broker, sensors, a source that walks and a collector, until somebody says stop.

    Everything is real but the source: each sensor has a key and a ledger, pays, seals and publishes over
    MQTT, and the collector checks, keeps and recovers. The budget is for a look, not for people.

    Args:
        folder: A new folder, or an empty one.
        stop: Set it to stop.
        roads: Streets instead of a corridor.
        rounds: Stop after so many rounds; None to go on.
        period_ms: How far apart rounds are.
        sensors: Run only so many of the sensors; all unless given.
        estimator: As for `recover_sources`.
        shown: Called after every turn with the collector, all rounds so far, and the walker.
        watch: Called with sentences about what happens.

    Returns:
        What came of it; the page is written.

    Raises:
        ExistsAlready: The folder has files.
        InvalidInput: It cannot be written.
        MissingPackage: There is no broker or client of MQTT: pip install 'sfumato[network]'.
    """
    tell = watch or (lambda _: None)
    where = Path(folder)
    try:
        where.mkdir(parents=True, exist_ok=True)
        if any(where.iterdir()):
            raise ExistsAlready(f"{where} has files and is kept; choose a new folder")
    except (FileExistsError, NotADirectoryError, PermissionError, OSError) as problem:
        raise InvalidInput(f"cannot write into {where}: {problem}; nothing was started") from None
    site, walk, layout = demo_site(where, roads=roads)
    site.write(where / "site.json")
    tell("making ready: the first recovery on a machine makes machine code")
    LiveRecovery(site, estimator=estimator).prepare()
    kept = _Kept()
    names = site.sensors.names[: sensors or len(site.sensors)]
    with ExitStack() as stack:
        broker = stack.enter_context(embedded_broker())
        tell(
            f"a broker on 127.0.0.1:{broker.port}, and {len(names)} sensors, each with its own key and ledger"
        )
        clock = SystemClock()
        walker = Walker(site, walk, period_ms, clock.now_ms())
        configs = _device_files(where, site, names, broker, period_ms)
        stack.enter_context(_running(configs, walker, clock))
        config = NetworkConfig(
            site,
            period_ms,
            broker=broker,
            store=str(where / "rounds.sqlite"),
            check_keys=where / "check-keys.json",
            estimator=estimator,
            track=TRACK,
            lines=where / "rounds.jsonl",
            serve=0,
        )
        state = run_collector(
            config,
            stop=stop,
            outputs=[kept],
            shown=None if shown is None else lambda made: shown(made, kept.rounds, walker),
            watch=tell,
            rounds=rounds,
        )
    page = _page(where, site, kept.rounds, layout)
    followed, held, distance = _followed(kept.rounds, walker)
    recovered = sum(done.found is not None for done in kept.rounds)
    return NetworkDemo(where, page, recovered, followed, held, distance, state)


def demo_lines(result: NetworkDemo) -> list[str]:
    """What is said at the end.

    Args:
        result: What came of the demonstration.

    Returns:
        Lines of text.
    """
    lines = []
    if result.followed and result.distance is not None:
        lines.append(
            f"followed in {result.followed} of {result.rounds} rounds, {result.distance:.2g} off on average; "
            f"within its 90 % radius in {result.held}"
        )
    if result.state.promise is not None:
        lines += [
            promise_words(result.state),
            f"epsilon {BUDGET.epsilon} in {WINDOW}: for a look, and far too much for people",
        ]
    return [*lines, f"page: {result.page}" if result.page else "no round was recovered"]


def _device_files(
    folder: Path, site: Site, names: tuple[str, ...], broker: BrokerConfig, period_ms: int
) -> list[SensorConfig]:
    """Keys, the noise plan, and the configuration of every device."""
    configs = []
    master = folder / "master.key"
    make_master_key(master)
    (folder / "devices").mkdir()
    for name in names:
        key = folder / "devices" / f"{name}.key"
        make_device_key(master, key, name=name)
        configs.append(
            SensorConfig(
                site=folder / "site.json",
                noise_plan=folder / "noise-plan.json",
                device_key=key,
                state=folder / "devices" / name,
                sensors=(name,),
                period_ms=period_ms,
                window=WINDOW,
                budget=BUDGET,
                input=InputConfig(),
                broker=broker,
            )
        )
    make_check_keys(master, folder / "check-keys.json")
    plan(site, share_of(BUDGET, configs[0].rounds_per_window)).write(folder / "noise-plan.json")
    return configs


@contextmanager
def _running(configs: list[SensorConfig], walker: Walker, clock: SystemClock) -> Iterator[None]:
    """Every sensor in a thread of its own, with a client of its own."""
    threads = []
    sensors = [Sensor(config) for config in configs]
    clients = []
    for sensor in sensors:
        name = level_of(sensor.device.name)
        client = MqttClient(
            sensor.config.broker,
            client_id=client_id_of(sensor.device.key_id, sensor.site.name, sensor.device.name),
            username=name,
            on_acked=sensor.outbox.sent,
        )
        client.start()
        clients.append(client)
        source = _Sensed(walker, sensor.config.sensors[0], clock)
        threads.append(
            threading.Thread(
                target=keep_rounds,
                args=(sensor, source, client),
                kwargs={"clock": clock},
                daemon=True,
            )
        )
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        clock.stop()
        for thread in threads:
            thread.join()
        for client in clients:
            client.stop()
        for sensor in sensors:
            sensor.close()


def _page(folder: Path, site: Site, rounds: list[Recovered], layout: dict[str, Any]) -> Path | None:
    """The rounds as a page with a slider."""
    from sfumato.network.collector.recoveries import live_round

    found = [done for done in rounds if done.found is not None]
    there = sorted(found, key=lambda done: done.closed.number)[-MAX_PAGE:]
    if not there:
        return None
    recovered = [done.found for done in there if done.found is not None]
    costs = [live_round(done.closed).cost for done in there]
    together = LiveRecovery(site).together(recovered, costs)
    page = folder / "timelapse.html"
    write_file(page, draw_rounds(together, layout=layout or None))
    return page


def _followed(rounds: list[Recovered], walker: Walker) -> tuple[int, int, float | None]:
    """In how many rounds the source was followed and held, and how far off that was on average."""
    space = walker.site.operator.space
    far, held = [], 0
    for done in rounds:
        if done.track is None or done.track.verdict.kind == "nothing":
            continue
        cell, _ = walker.truth(done.closed.time)
        one = done.track.rounds[-1].sources[0]
        off = float(
            space.distances_between(
                space.places(np.array([one.cell])), space.places(np.array([cell]))
            )[0, 0]
        )
        far.append(off)
        held += off <= one.radius + 1e-9
    return len(far), held, sum(far) / len(far) if far else None


def started_at() -> str:
    """A name for a new folder: the present, in UTC.

    Returns:
        The name.
    """
    return datetime.now(UTC).strftime("network-%Y%m%d-%H%M%S")
