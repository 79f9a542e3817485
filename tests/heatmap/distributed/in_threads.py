"""Parties in threads, by barriers in the place of MPyC, so that one can be made to stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import SessionStopped
from sfumato.heatmap.distributed import JointPlan, JointResult, Traffic, plan_joint, read_parties
from sfumato.privacy import Joint, Ledger, PureDP

NAMES = ("ticino", "uri", "vaud")
WAIT = 600  # seconds; only a broken test waits so long
Outcome = JointResult | BaseException


class Together:
    """All parties of one attempt: `opened` keeps every sum, `stops` says who stops before which call."""

    def __init__(self, stops: Callable[[int, str, int], bool] = lambda *_: False) -> None:
        self.barrier, self.lock = Barrier(len(NAMES)), Lock()
        self.told: dict[int, Any] = {}
        self.opened: list[Any] = []
        self.stops, self.who = stops, ""

    def end(self, me: int) -> End:
        return End(self, me)

    def exchange(self, me: int, values: Any) -> list[Any]:
        with self.lock:
            self.told[me] = values
        self._wait()
        found = [self.told[at] for at in range(len(NAMES))]
        # Whoever stops next has handed over what it told; so it is with sockets.
        with suppress(SessionStopped):
            self._wait()
        return found

    def _wait(self) -> None:
        try:
            self.barrier.wait(WAIT)
        except BrokenBarrierError:
            raise SessionStopped(f"{self.who} stopped") from None


class End:
    """One party's end."""

    def __init__(self, together: Together, me: int) -> None:
        self.together, self.me, self.traffic = together, me, Traffic(1, 1)
        self.calls = {"tell": 0, "compare": 0, "sum": 0}

    def __enter__(self) -> End:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is not None:
            self.together.who = self.together.who or NAMES[self.me]
            self.together.barrier.abort()

    def tell(self, values: Any) -> Any:
        # Three numbers are what a round asks for.
        self._stop("compare" if len(values) == 3 else "tell")
        return np.stack(self.together.exchange(self.me, values))

    def sum(self, values: Any) -> Any:
        self._stop("sum")
        found = np.sum(self.together.exchange(self.me, values), axis=0)
        if self.me == 0:
            self.together.opened.append(found)
        return found

    def _stop(self, what: str) -> None:
        self.calls[what] += 1
        if self.together.stops(self.me, what, self.calls[what]):
            self.together.who = NAMES[self.me]
            self.together.barrier.abort()
            raise RuntimeError("the machine is gone")


def rows_of(party: int, users: int = 40) -> pa.Table:
    """People of one party at one place."""
    x = [0.1 + 0.3 * party] * users
    return pa.table({"who": [f"{party}-{one}" for one in range(users)], "x": x, "y": x})


def plan_of(folder: Path, party: int, **changed: Any) -> JointPlan:
    """One party's plan; the ledger is made where it is not there."""
    ledger = folder / f"{NAMES[party]}.ledger"
    budget, model = PureDP(changed.pop("budget", 1)), Joint(len(NAMES))
    if not ledger.exists():
        Ledger.create(ledger, budget, unit="user", source=NAMES[party], model=model)
    asked: dict[str, Any] = {
        "user": "who",
        "x": "x",
        "y": "y",
        "bounds": (0, 0, 1, 1),
        "plane": True,
        "levels": 3,
        "epsilon": 1,
        "parties": read_parties(folder / "parties.toml"),
        "me": party + 1,
        "ledger": ledger,
    }
    return plan_joint(changed.pop("source", rows_of(party)), **{**asked, **changed})


def run_all(plans: Sequence[JointPlan], together: Together) -> list[Outcome]:
    """Run all parties at once: what each returned, or raised."""

    def one(at: int) -> Outcome:
        try:
            return plans[at].run(sums=together.end(at))
        except BaseException as problem:
            return problem

    with ThreadPoolExecutor(len(plans)) as pool:
        return list(pool.map(one, range(len(plans))))


def charged(folder: Path) -> list[int]:
    """How many entries each party's ledger has."""
    return [Ledger(folder / f"{name}.ledger").statement().count for name in NAMES]


def counts_of(result: Outcome) -> Any:
    """The noisy counts of a result, level by level."""
    assert isinstance(result, JointResult), result
    return result.map.receipt.value.to_json()


def count_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parties are processes, and these are threads: what one process holds of DuckDB is for one of them."""
    count, lock = JointPlan._counted, Lock()

    def counted(self: Any, say: Any) -> Any:
        with lock:
            return count(self, say)

    monkeypatch.setattr(JointPlan, "_counted", counted)
