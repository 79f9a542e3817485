"""A whole network on this machine, for a look: broker, sensors, a source that walks, a collector, a page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import ExistsAlready, InvalidInput
from sfumato.files import write_file, write_table
from sfumato.network.broker import embedded_broker
from sfumato.network.collector import (
    Collector,
    CollectorState,
    NetworkConfig,
    Recovered,
    promise_words,
    run_collector,
)
from sfumato.network.mqtt import BrokerConfig, MqttClient
from sfumato.network.sensors import InputConfig, Sensor, SensorConfig, SystemClock, keep_rounds
from sfumato.network.topics import level_of
from sfumato.privacy import ApproxDP
from sfumato.sensing import Sensors, Site, describe_site, plan
from sfumato.sensing.pipeline import (
    LiveRecovery,
    make_check_keys,
    make_device_key,
    make_master_key,
)
from sfumato.sensing.release import share_of
from sfumato.sensing.render import draw_rounds

SENSORS = 30
WINDOW = "10m"
BUDGET = ApproxDP(120, "1e-6")
"""What the rounds of a window cost: enough to see something, and far too much for people."""
TRACK = 12
ROADS = (10, 6)  # streets from west to east and from south to north
PACE = 0.5  # metres a second, or half a street
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


@dataclass(slots=True)
class Walker:
    """A source that goes to and fro, at places that follow from the clock: nobody in it exists."""

    site: Site
    cells: tuple[int, ...]
    period_ms: int
    start_ms: int
    _read: dict[int, tuple[float, ...]] = field(default_factory=dict)

    def cell_at(self, moment_ms: int) -> int:
        """The cell of the source in the round that holds a moment."""
        steps = moment_ms // self.period_ms - self.start_ms // self.period_ms
        there = 2 * (len(self.cells) - 1)
        at = steps % there
        return self.cells[min(at, there - at)]

    def truth(self, time: str) -> tuple[int, str]:
        """Where the source was at a time as rounds have it: its cell, and in words."""
        moment = datetime.fromisoformat(time).timestamp()
        cell = self.cell_at(round(moment * 1000))
        place = self.site.operator.space.places(np.array([cell]))[0]
        named = self.site.cells is not None
        return cell, self.site.cell(cell) if named else ", ".join(f"{one:.3g}" for one in place)

    def reading(self, place: int, moment_ms: int) -> float:
        """What a sensor reads: what it reads where nobody is, and what the source adds."""
        cell = self.cell_at(moment_ms)
        if cell not in self._read:
            column = self.site.operator.columns([cell])[:, 0]
            level = self.site.level
            base = [0.0] * len(column)
            if level is not None:
                base = [float(one) for one in level.of(self.site.sensors.names, None)]
            gain = float(self.site.per_source or 1)
            self._read[cell] = tuple(
                low + gain * float(one) for low, one in zip(base, column, strict=True)
            )
        return self._read[cell][place]


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


def demo_site(folder: Path, *, roads: bool = False) -> tuple[Site, tuple[int, ...], dict[str, Any]]:
    """The site of the demonstration, the cells that its source walks over, and where to draw nodes.

    Args:
        folder: Where its tables are written.
        roads: Streets instead of a corridor.

    Returns:
        The site, its cells in the order of the walk, and a layout for a graph.
    """
    common: dict[str, Any] = {"beside": "1C", "ambient": "20C", "step": "0.01"}
    if not roads:
        names = [f"s{number:02}" for number in range(1, SENSORS + 1)]
        places = Sensors([0.5 + number for number in range(SENSORS)], names)
        site = describe_site(
            "corridor", line=120, length=30.0, sensors=places, diffusion_time=2.0, radius="0.3",
            **common,
        ).site  # fmt: skip
        return site, tuple(range(6, 114, int(4 * PACE))), {}
    wide, high = ROADS
    node = {(x, y): f"{chr(65 + x)}{y + 1}" for x in range(wide) for y in range(high)}
    edges = [
        (node[x, y], node[other])
        for x, y in node
        for other in ((x + 1, y), (x, y + 1))
        if other in node
    ]
    write_table(folder / "roads.csv", ["u", "v"], edges)
    read = [name for (x, y), name in node.items() if (x + y) % 2 == 0]
    write_table(folder / "sensors.csv", ["sensor", "x"], [(name, name) for name in read])
    site = describe_site(
        "roads", graph=folder / "roads.csv", sensors=folder / "sensors.csv", rate=0.5, radius="1/20",
        **common,
    ).site  # fmt: skip
    cells = {site.cell(number): number for number in range(site.operator.space.size)}
    streets = [node[x, 2] for x in range(wide)] + [node[wide - 1, y] for y in range(3, high)]
    # Two rounds at every crossing.
    walk = tuple(cells[name] for name in streets for _ in range(2))
    return site, walk, {name: (float(x), float(y)) for (x, y), name in node.items()}


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
            client_id=f"sfumato-{name}",
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

    there = [done for done in rounds if done.found is not None][-MAX_PAGE:]
    if not there:
        return None
    found = [done.found for done in there if done.found is not None]
    costs = [live_round(done.closed).cost for done in there]
    together = LiveRecovery(site).together(found, costs)
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
