"""The adder's side of a session: rounds that are asked for, opened, added up and topped up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato._types import BoolArray, IntArray
from sfumato.errors import InvalidInput, InvalidParameter, SessionStopped
from sfumato.heatmap.measure import amount_of
from sfumato.heatmap.shuffled.plan import ShufflePlan
from sfumato.heatmap.shuffled.rounds import OVER, Round, added_up
from sfumato.heatmap.shuffled.sealing import Keys
from sfumato.heatmap.shuffled.wire import ask
from sfumato.privacy import UNITS
from sfumato.privacy.accounting import InShares
from sfumato.privacy.noise import SharedNoise, centred, draw_shares
from sfumato.records import CellSums
from sfumato.spaces import Area, Grid

Watch = Callable[[str], None]
_AT_ONCE = 2**20
MIX_SECONDS = 60.0
"""So much longer than a round waits for devices the adder waits at least, while they are mixed."""


@dataclass(frozen=True, slots=True)
class OpenedRound:
    """One round as it went.

    Attributes:
        level: The level that was counted.
        cells: How many counts were opened.
        arrived: How many devices reported.
        spoilt: How many of their messages could not be read: devices that lie.
        received: Bytes that came from the shuffler.

    """

    level: int
    cells: int
    arrived: int
    spoilt: int
    received: int


class CellsAsked:
    """In the place of sums: whoever adds up has none, and asks devices for the cells that a pyramid wants."""

    groups = 1

    def __init__(self, area: Area) -> None:
        none = np.zeros(0, dtype=np.int64)
        self._nobody = CellSums(area.grid, none, none, 1, area)
        self.asked: Round | None = None

    @property
    def grid(self) -> Grid:
        """The grid of the area."""
        return self._nobody.grid

    def can_hold(self, level: int, codes: IntArray) -> BoolArray:
        """As sums of anybody."""
        return self._nobody.can_hold(level, codes)

    def of_cells(self, level: int, codes: IntArray) -> IntArray:
        """0 for each: what they hold, the next round says."""
        self.asked = Round(level, codes.copy())
        return np.zeros(codes.size, dtype=np.int64)


class ShuffleSession(SharedNoise):
    """Noise in shares of devices behind a shuffler: every call of `noisy_sum` is one round."""

    distance: Fraction | None = None
    known = False

    def __init__(
        self,
        plan: ShufflePlan,
        keys: Keys,
        address: tuple[str, int],
        *,
        timeout: float,
        watch: Watch | None = None,
    ) -> None:
        if keys.public != plan.adder:
            raise InvalidInput("the key is not that of the plan's adder; nothing was charged")
        self.plan, self._keys, self._address, self._timeout = plan, keys, address, timeout
        self._say = watch or (lambda _: None)
        self.values = CellsAsked(plan.area)
        self.rounds: list[OpenedRound] = []
        self.begun, self.enrolled = False, False

    @property
    def trust(self) -> InShares:
        """That of the plan."""
        return self.plan.trust

    def meet(self) -> None:
        """Ask the shuffler for its plan; SessionStopped where it is another, or no session can be had of it."""
        told, _ = ask(self._address, {"do": "plan"}, timeout=self._timeout)
        if told.get("digest") != self.plan.digest.hex():
            raise SessionStopped("the shuffler has another plan; nothing was charged")
        if told.get("fresh") is not True:
            raise SessionStopped(
                "levels of this session were asked for: start the shuffler again; nothing was charged"
            )
        self.enrolled, wait = told.get("enrolled") is True, told.get("wait")
        if not isinstance(wait, int | float) or not self._timeout >= wait + MIX_SECONDS:
            raise InvalidParameter(
                f"a round waits {wait} s for devices: `timeout` must be at least {MIX_SECONDS:g} s more, got "
                f"{self._timeout:g}; nothing was charged"
            )

    def noisy_sum(
        self, values: IntArray, scales: Sequence[Fraction], which: IntArray, trust: InShares
    ) -> IntArray:
        """One round: announce, wait, open, add up; shares of devices that did not come are drawn here."""
        plan, asked = self.plan, self.values.asked
        if trust != plan.trust or asked is None or asked.cells.size != values.size:
            raise InvalidParameter("the round is not of this session; nothing was asked")
        if {scales[one] for one in which.tolist()} != {plan.scales[asked.level - plan.first_level]}:
            raise InvalidParameter("the noise is not that of the plan; nothing was asked")
        self.begun = True
        self._say(f"level {asked.level}: asking devices for {asked.cells.size} cells")
        told, mixed = ask(
            self._address, {"do": "open"}, asked.signed(plan, self._keys), timeout=self._timeout
        )
        arrived = int(told.get("arrived", 0))
        if not plan.trust.batch <= arrived <= plan.trust.devices or len(mixed) != (
            arrived * asked.cells.size * plan.messages * plan.record
        ):
            raise SessionStopped(
                f"the shuffler sent {len(mixed)} bytes of {arrived} devices, which is no batch"
            )
        self._say(f"level {asked.level}: opening the messages of {amount_of(arrived, 'devices')}")
        sums, spoilt = added_up(plan, asked, memoryview(mixed), self._keys)
        found = centred(sums, bits=plan.bits)
        found = found + missing_shares(plan, asked, plan.trust.devices - arrived)
        self.rounds.append(OpenedRound(asked.level, asked.cells.size, arrived, spoilt, len(mixed)))
        return np.asarray(values + found * (UNITS // plan.units), dtype=np.int64)

    def finish(self) -> None:
        """Tell the shuffler, and through it all devices, that the map is done, or will not be."""
        ask(
            self._address,
            {"do": "over"},
            self._keys.sign(self.plan.digest + OVER),
            timeout=min(self._timeout, MIX_SECONDS),
        )


def missing_shares(plan: ShufflePlan, asked: Round, missing: int) -> IntArray:
    """The shares of devices that did not come, so that the noise has the law that the map says [cell]."""
    found, size = np.zeros(asked.cells.size, dtype=np.int64), asked.cells.size
    while missing:
        many = min(missing, max(1, _AT_ONCE // size))
        zeros = np.zeros(many * size, dtype=np.int64)
        drawn = draw_shares(plan.trust, [plan.level_scale(asked.level)], zeros)
        found += drawn.reshape(many, size).sum(axis=0)
        missing -= many
    return found
