"""A hall with four sensors, keys and a sensor.toml; a clock and a broker that do as they are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path

from sfumato.network.sensors import SensorConfig, plan_sensor, read_sensor_config
from sfumato.privacy import MovedMass
from sfumato.sensing import Site, heat_line
from sfumato.sensing.pipeline import make_check_keys, make_device_key, make_master_key

START = 1_795_000_000_000  # 2026-11-18T11:06:40Z
SITE = Site(
    "hall",
    heat_line(sources=20, sensors=4, diffusion_time=0.05),
    MovedMass("1/10", "line"),
    unit="mass",
    per_source=Fraction(1),
)
TOML = """
site = "site.json"
noise_plan = "plan.json"
device_key = "{device}.key"
state = "{device}"
sensors = {sensors}
period = "1s"
[budget]
window = "{window}"
epsilon = "{epsilon}"
delta = "{delta}"
[input]
kind = "csv"
path = "in.csv"
[broker]
host = "127.0.0.1"
port = {port}
"""


def make_site(folder: Path, *, devices: tuple[str, ...] = ("door",)) -> None:
    """A site, a master key, a key for each device and the check keys."""
    SITE.write(folder / "site.json")
    make_master_key(folder / "master.key")
    for device in devices:
        make_device_key(folder / "master.key", folder / f"{device}.key", name=device)
    make_check_keys(folder / "master.key", folder / "check.key")


def make_sensor(
    folder: Path,
    *,
    device: str = "door",
    sensors: tuple[str, ...] = ("0",),
    rows: tuple[tuple[float | str, ...], ...] = (),
    window: str = "1h",
    epsilon: str = "8",
    delta: str = "1e-6",
    port: int = 1,
    more: str = "",
) -> SensorConfig:
    """The configuration of one device, with the noise that every round of a window can pay."""
    text = TOML.format(
        device=device,
        sensors=str(list(sensors)).replace("'", '"'),
        window=window,
        epsilon=epsilon,
        delta=delta,
        port=port,
    )
    (folder / f"{device}.toml").write_text(text + more)
    lines = [",".join(sensors), *(",".join(map(str, row)) for row in rows)]
    (folder / "in.csv").write_text("\n".join(lines) + "\n")
    config = read_sensor_config(folder / f"{device}.toml")
    if not config.noise_plan.exists():
        plan_sensor(config)
    return config


class FakeClock:
    """A clock that jumps to where one waits for; it may be set, and stops after its last moment."""

    def __init__(self, now_ms: int = START + 300, *, end_ms: int = 2**60) -> None:
        self.now, self.end = now_ms, end_ms
        self.elapsed = 0
        self.waits: list[int] = []

    def now_ms(self) -> int:
        return self.now

    def elapsed_ms(self) -> int:
        return self.elapsed

    def wait_until(self, moment_ms: int) -> bool:
        self.waits.append(moment_ms)
        if moment_ms > self.end:
            return False
        self.elapsed += max(0, moment_ms - self.now)
        self.now = max(self.now, moment_ms)
        return True


class Kept:
    """A broker that keeps what it gets, and when; it acknowledges if asked to."""

    def __init__(self, clock: FakeClock, outbox: object = None) -> None:
        self.clock, self.outbox = clock, outbox
        self.sent: list[tuple[int, str, bytes]] = []

    def publish(self, topic: str, payload: bytes, *, tag: int = 0) -> None:
        self.sent.append((self.clock.now, topic, payload))
        if self.outbox is not None:
            self.outbox.sent(tag)  # type: ignore[attr-defined]


class Given:
    """An input that gives one mapping after another, and then nothing."""

    def __init__(self, *values: Mapping[str, float]) -> None:
        self._values: Iterator[Mapping[str, float]] = iter(values)

    def take(self) -> Mapping[str, float]:
        return next(self._values, {})

    def close(self) -> None:
        pass
