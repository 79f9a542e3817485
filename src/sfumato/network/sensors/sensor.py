"""One device: what it makes of the readings of a round, once, and never again.

    clock -> round -> [held or new readings] -> ledger of the window charged -> noise, codes
          -> on the disk -> sent at a fixed time -> acknowledged, forgotten

The ledger's entry names the round, so that a round which was paid for is not made again after a
crash: it is sent if its packet was on the disk, and else it is lost. The step of the device's key,
taken at every start, keeps the noise of two starts apart.
"""

from __future__ import annotations

import fcntl
import math
import os
import re
import time
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

from sfumato.errors import InvalidInput, InvalidParameter, LedgerBusy
from sfumato.network.sensors.config import SensorConfig
from sfumato.network.sensors.outbox import Outbox
from sfumato.network.sensors.starts import note_start
from sfumato.network.topics import COLLECTOR
from sfumato.network.wire import (
    MAX_LOSS,
    MIN_DELTA,
    LawName,
    Packet,
    Status,
    WireLoss,
    WireWindow,
    encode,
    sealed,
)
from sfumato.privacy import ZCDP, ApproxDP, DiscreteGaussian, Ledger, Loss, PureDP
from sfumato.privacy.accounting import double_above
from sfumato.sensing.model import Site, read_site
from sfumato.sensing.release import (
    Device,
    NoisePlan,
    Snapshot,
    describe_window,
    device_step,
    read_noise_plan,
    release_snapshot,
    window_ledger,
    window_of,
    window_start,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROUND = re.compile(r"round ([0-9]{1,15})")


class Sensor:
    """A device with its key, its ledgers and its outbox; one process at a time may have it.

    Attributes:
        begin: The first moment a round may be of, in ms since 1970: the next window's where the ledgers of
            this one may be in another `state` folder, else 0.
    """

    def __init__(self, config: SensorConfig, *, now_ms: int | None = None) -> None:
        """Take the next step of the key; `now_ms` is the system's time unless given."""
        self.config = config
        self.site, self.plan = checked(config)
        if device_step(config.device_key)[0].partition("~")[0] == COLLECTOR:
            raise InvalidInput(
                f"no device may be called {COLLECTOR!r}, which is the collector's user at the broker; nothing "
                "was started"
            )
        config.state.mkdir(parents=True, exist_ok=True)
        self._locks = ExitStack()
        try:
            key = config.device_key.resolve()
            self._hold(config.state, of=config.state)
            self._hold(key.with_name(f".{key.name}.lock"), of=config.device_key, made=True)
            self.outbox = Outbox(config.state / "outbox", limit=config.outbox)
            self.begin = note_start(
                config.state,
                config.device_key,
                now_ms=time.time_ns() // 1_000_000 if now_ms is None else now_ms,
                window=config.window_length,
            )
            self.device = Device(config.device_key)
            self._check_key = self.device.check_key
        except BaseException:
            self.close()
            raise
        self._places = [self.site.sensors.names.index(name) for name in config.sensors]
        self._held: dict[str, float] = {}
        self._held_in: datetime | None = None
        self._book: tuple[datetime, Ledger] | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """What must be read for a round: the sensors, and the public baseline if the site has one."""
        return required_names(self.config, self.site)

    def last_round(self) -> int:
        """The last round that was paid for or waits, or lies before `begin`; 0 if there is none."""
        books = sorted(
            (start, file)
            for file in (self.config.state / "windows").glob("*.ledger")
            if (start := window_start(file))
        )
        paid = [0, self.begin - 1]
        for _, file in reversed(books):  # the newest may have no entry yet
            found = [_ROUND.fullmatch(entry.note) for entry in Ledger(file).recent(1).entries]
            paid += [int(one[1]) for one in found if one]
            if found:
                break
        return max(paid + self.outbox.rounds())

    def make(self, round_ms: int, new: Mapping[str, float]) -> bytes:
        """The packet of a round: paid for, sealed, and on the disk.

        Args:
            round_ms: The round, in milliseconds since 1970.
            new: The readings that are new; for others the last ones of this window are held.

        Returns:
            The bytes to send, now or again.

        Raises:
            BudgetExceeded: The window has no budget left; nothing was charged.
            InvalidInput: A file cannot be written, or too many packets wait; what was charged is lost.
        """
        if self.outbox.is_full:
            raise InvalidInput(
                f"{self.outbox.limit} packets wait for the broker in {self.outbox.folder}; "
                "the round was not made and nothing was charged"
            )
        moment = _EPOCH + timedelta(milliseconds=round_ms)
        start = window_of(moment, self.config.window_length)
        if start != self._held_in:
            # One reading under the budgets of many windows would be told by their average.
            self._held, self._held_in = {}, start
        values, status = self._values(new)
        book = self._ledger(start)
        snapshot = release_snapshot(
            values,
            self.site,
            self.plan,
            ledger=book,
            device=self.device,
            window=describe_window(start, self.config.window_length),
            time=moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            note=f"round {round_ms}",
        )
        blank = self._packet(snapshot, round_ms, start, book.left())
        payload = encode(sealed(blank, self.device.sign, check_key=self._check_key, status=status))
        self.outbox.put(round_ms, payload)
        return payload

    def close(self) -> None:
        """Let another process have it."""
        self._locks.close()

    def _hold(self, path: Path, *, of: Path, made: bool = False) -> None:
        """Lock a folder or a file for as long as this lives."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (os.O_CREAT if made else 0), 0o600)
        except OSError as problem:
            raise InvalidInput(
                f"cannot lock {path}: {problem.strerror}; nothing was started"
            ) from None
        self._locks.callback(os.close, handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LedgerBusy(
                f"another process has the sensor of {of}; nothing was started"
            ) from None

    def _values(self, new: Mapping[str, float]) -> tuple[dict[str, float], Status]:
        """A reading of every sensor: new, the last one of the window, or what an empty place reads."""
        names = self.inputs
        self._held |= {name: new[name] for name in names if name in new}
        never = [name for name in names if name not in self._held]
        status: Status = "none" if never else "read" if set(names) <= set(new) else "held"
        level = self.site.level
        running = "" if level is None else level.running
        base = self._held.get(running, 0.0)
        empty = dict.fromkeys(names, 0.0)
        if level is not None:
            reference = base if running else None
            off = level.of(self.config.sensors, reference)
            empty |= {name: float(one) for name, one in zip(self.config.sensors, off, strict=True)}
        return {name: self._held.get(name, empty[name]) for name in names}, status

    def _ledger(self, start: datetime) -> Ledger:
        if self._book is None or self._book[0] != start:
            ledger = window_ledger(
                self.config.state / "windows",
                start,
                length=self.config.window_length,
                budget=self.config.budget,
                sensors=self.site.sensors,
                source=self.site.name,
                neighbors=self.site.neighbors,
            )
            self._book = start, ledger
        return self._book[1]

    def _packet(self, snapshot: Snapshot, round_ms: int, start: datetime, left: Loss) -> Packet:
        seal = snapshot.seal
        if seal is None or snapshot.names != tuple(
            self.site.sensors.names[place] for place in sorted(self._places)
        ):
            raise InvalidParameter("a packet is of a seal of the sensors that it names")
        minutes = timedelta(minutes=1)
        return Packet(
            key_id=seal.key_id,
            device=seal.device,
            site=self.site.digest[:32],
            epoch=bytes.fromhex(seal.epoch),
            first=seal.first,
            round_ms=round_ms,
            period_ms=self.config.period_ms,
            law=law_name(self.plan),
            sigma=float(double_above(self.plan.width)),
            exponent=snapshot.release.exponent,
            cost=wire_loss(self.plan.cost, up=True),
            left=wire_loss(left, up=False),
            window=WireWindow((start - _EPOCH) // minutes, self.config.window_length // minutes),
            sensors=tuple(sorted(self._places)),
            values=tuple(int(value) for value in snapshot.release.value),
        )


def checked(config: SensorConfig) -> tuple[Site, NoisePlan]:
    """The site and the noise that a configuration names, of one site; nothing is written.

    Args:
        config: The configuration.

    Returns:
        The site and the plan.

    Raises:
        InvalidInput: A file cannot be read, the site lacks a sensor, or the plan is of another site or costs
            more than a packet can state; nothing was charged. Whether a window can pay for all of its
            rounds is not asked here: `describe_sensor` says it, and the ledger refuses what it cannot.
    """
    site = read_site(config.site)
    unknown = [name for name in config.sensors if name not in site.sensors.names]
    if unknown:
        raise InvalidInput(f"site {site.name!r} has no sensor {unknown[0]!r}; nothing was started")
    if not config.noise_plan.exists():
        raise InvalidInput(
            f"there is no noise plan at {config.noise_plan}; `sfumato sensor plan` makes it; "
            "nothing was started"
        )
    off = [name for name in config.sensors if name in site.off]
    if off:
        raise InvalidInput(
            f"sensor {off[0]!r} of site {site.name!r} is switched off: its noise for each sensor tells nothing "
            "by it; leave it out of the device; nothing was started"
        )
    plan = read_noise_plan(config.noise_plan)
    if not plan.is_of(site):
        raise InvalidInput(
            f"{config.noise_plan} was made for another site than {config.site}; nothing was started"
        )
    wire_loss(
        plan.cost, up=True
    )  # what a packet cannot state is refused before anything is charged
    return site, plan


def law_name(plan: NoisePlan) -> LawName:
    """How packets name the law of a plan's noise.

    Args:
        plan: The noise.

    Returns:
        The name.
    """
    if plan.pure:
        return "laplace"
    return "gaussian" if isinstance(plan.mechanism, DiscreteGaussian) else "rounded-gaussian"


def required_names(config: SensorConfig, site: Site) -> tuple[str, ...]:
    """What must be read for a round: the sensors, and the public baseline if the site has one."""
    running = "" if site.level is None else site.level.running
    return (*config.sensors, running) if running else config.sensors


def wire_loss(loss: Loss, *, up: bool) -> WireLoss:
    """A loss in doubles: rounded up for what is paid, down for what is left.

    >>> from sfumato.privacy import ZCDP
    >>> wire_loss(ZCDP("1/3"), up=True).amount > wire_loss(ZCDP("1/3"), up=False).amount
    True
    """
    match loss:
        case ZCDP(rho):
            return WireLoss("rho", _amount(rho, up=up))
        case ApproxDP(epsilon, delta):
            told = _double(delta, up=up)
            if 0 < told < MIN_DELTA:
                told = MIN_DELTA if up else 0.0
            return WireLoss("epsilon", _amount(epsilon, up=up), told)
        case PureDP(epsilon):
            return WireLoss("epsilon", _amount(epsilon, up=up))
        case _:
            raise InvalidParameter(f"a packet states epsilon and delta, or rho, got {loss}")


def _amount(number: Fraction, *, up: bool) -> float:
    if number <= MAX_LOSS:
        return _double(number, up=up)
    if not up:
        return MAX_LOSS
    raise InvalidInput(f"a round costs at most {MAX_LOSS:g}, this plan's more; nothing was charged")


def _double(number: Fraction, *, up: bool) -> float:
    above = float(double_above(number))
    return above if up or Fraction(above) == number else math.nextafter(above, 0.0)
