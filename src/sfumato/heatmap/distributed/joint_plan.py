"""A joint release that was checked at one party: carried out with the others, or finished where it stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from sfumato.errors import LedgerMismatch, SessionStopped, SfumatoError
from sfumato.heatmap.distributed.parties import Parties
from sfumato.heatmap.distributed.receipts import Receipts
from sfumato.heatmap.distributed.request import PROTOCOL, JointRequest
from sfumato.heatmap.distributed.results import JointResult, PlannedJoint
from sfumato.heatmap.distributed.secure_sum import (
    TIMEOUT,
    PartySums,
    SecureSums,
    Traffic,
    check_packages,
)
from sfumato.heatmap.distributed.session import (
    READY,
    Agreed,
    JointSession,
    agree,
    compare_standings,
)
from sfumato.heatmap.pipeline.charging import maps_of_receipt
from sfumato.heatmap.pipeline.options import open_rows
from sfumato.heatmap.pipeline.outputs import Watch, sharpened_maps, tell_of_trouble, write_maps
from sfumato.heatmap.pipeline.release_plan import ReleasePlan
from sfumato.heatmap.results import ReleaseResult
from sfumato.privacy import Guarded, PureDP, Release
from sfumato.privacy.runs import Request, Run
from sfumato.records import CellSums, check_source, sum_cells

AGAIN = "run the same command again at all parties, which costs nothing more"
LATER = (
    "and may lack the map; this party has all that was opened, and keeps its receipts: the same command at all "
    "parties goes on"
)


class Connected(PartySums, Protocol):
    """Secure sums that say how much they have sent."""

    @property
    def traffic(self) -> Traffic:
        """Bytes so far."""


@dataclass(frozen=True, slots=True, eq=False)
class JointPlan:
    """A joint release that was checked, priced and found affordable at one party.

    Attributes:
        result: What it would cost, and the digest that all parties must have: what a dry run shows.

    """

    planned: ReleasePlan
    parties: Parties
    me: int
    request: JointRequest
    result: PlannedJoint
    anew: bool = False
    given_up: str = ""

    def run(
        self,
        *,
        timeout: float = TIMEOUT,
        watch: Watch | None = None,
        warn: Watch | None = None,
        sums: AbstractContextManager[Connected] | None = None,
    ) -> JointResult:
        """Meet the others, compare, count, charge, add up, keep and write.

        Args:
            timeout: How many seconds to wait for the others at each step.
            watch: Told of each step.
            warn: Told what went wrong after the charge; a warning of Python, if none is given.
            sums: The connection; by MPyC with the parties of the plan, if none is given.

        Returns:
            The map, what this party paid, and bytes exchanged.

        Raises:
            SessionStopped: A party stopped, was late, or asks for something else.
            SfumatoError: Rows could not be read (nothing was charged), or a file not written.

        """
        say = watch or (lambda _: None)
        asked, names = self.planned.asked, self.parties.names
        own = self.parties.parties[self.me]
        if sums is None:
            check_packages()
            sums = SecureSums(self.parties, self.me, timeout=timeout, watch=watch)
        if not own.helper:
            check_source(asked.rows.source, connection=asked.rows.connection)
        say(f"{own.name}, party {self.me + 1} of {len(names)}: request {self.request.digest[:16]}")
        try:
            return self._together(sums, say, warn)
        except SessionStopped as problem:
            found = self._alone(problem, say, warn)
            if found is None:
                raise
            return found

    def _together(
        self, sums: AbstractContextManager[Connected], say: Watch, warn: Watch | None
    ) -> JointResult:
        names = self.parties.names
        with _nothing_charged(), sums as connected:
            agreed = agree(
                connected, self.request, self.result.resumes, names=names, anew=self.anew
            )
            resumed = ", which was begun before, goes on" if agreed.resumed else ""
            say(f"all parties ask for the same; session {agreed.session}{resumed}")
            if agreed.resumed and Receipts(self.planned.ledger.path, agreed.session).abandoned:
                raise SessionStopped(
                    f"this party has given up session {agreed.session}: begin with `anew` at all "
                    "parties, which is charged again"
                )
            if self.given_up:
                Receipts(self.planned.ledger.path, self.given_up).abandon()
            session = JointSession(
                connected,
                self.parties.trust,
                names=names,
                receipts=Receipts(self.planned.ledger.path, agreed.session),
                watch=say,
            )
            return self._released(connected, session, agreed, say, warn)

    def _released(
        self,
        connected: Connected,
        session: JointSession,
        agreed: Agreed,
        say: Watch,
        warn: Watch | None,
    ) -> JointResult:
        ledger, run = self.planned.ledger, self._run(agreed.session)
        with run.on(ledger):
            kept, opens = run.drawn(ledger), True
            if agreed.resumed:
                standing = session.standing(charged=run.made(ledger), drawn=kept)
                opens = compare_standings(connected, standing, names=self.parties.names)
            guarded = None if kept else self._counted(say)
            session.meet(READY, "has counted its rows")
            if kept and opens:
                session.replay()
            receipt = self._paid(run, guarded, session)
            say("waiting until all parties have kept what was opened")
            try:
                session.finish()
            except SessionStopped as problem:
                tell_of_trouble(warn, f"{problem}, {LATER}")
            return self._delivered(run, receipt, session, connected.traffic, agreed, say, warn)

    def _alone(self, problem: SessionStopped, say: Watch, warn: Watch | None) -> JointResult | None:
        """What this party makes of counts that it has kept, though the others do not answer; else None."""
        session = self.result.resumes
        run = self._run(session)
        if not session or not run.drawn(self.planned.ledger):
            return None
        said = str(problem).partition("; ")[0]
        with run.on(self.planned.ledger):
            receipt = self._paid(run, None, None)
            tell_of_trouble(warn, f"{said}, {LATER}")
            none, agreed = Traffic(), Agreed(session, resumed=True)
            return self._delivered(run, receipt, None, none, agreed, say, warn)

    def _run(self, session: str) -> Run:
        told = self.planned.asked.request
        asked = {**told.asked, **self._asked(session)}
        request = Request(PROTOCOL, "joint", asked, told.delivery, finish=AGAIN)
        return Run(request, once=f"{PROTOCOL} {session}")

    def _paid(
        self, run: Run, guarded: Guarded[CellSums] | None, session: JointSession | None
    ) -> Release[Any]:
        plan, price = self.planned, self.planned.price
        return run.release(
            plan.ledger,
            price.mechanism,
            partial(_ready, guarded),
            noise=session,
            pay=price.loss if isinstance(price.loss, PureDP) else None,
            note=plan.asked.note,
            team=plan.asked.team,
            other_table=plan.asked.other_table,
        )[0]

    def _delivered(
        self,
        run: Run,
        receipt: Release[Any],
        session: JointSession | None,
        traffic: Traffic,
        agreed: Agreed,
        say: Watch,
        warn: Watch | None,
    ) -> JointResult:
        plan, ledger = self.planned, self.planned.ledger
        maps = maps_of_receipt(
            receipt,
            plan.asked.area,
            method=plan.asked.method,
            price=plan.price,
            groups=("",),
            columns=plan.asked.rows.columns,
            title=plan.asked.title or self.parties.title,
        )
        maps = sharpened_maps(maps, plan.prior, warn=warn)
        written = write_maps(maps, plan.outputs, watch=say)
        run.delivered()
        released = ReleaseResult.of(
            maps,
            ledger,
            bound=plan.bound,
            team=plan.asked.team,
            written=written,
            made_before=run.made_before,
            drawn_with=plan.outputs.options,
        )
        return JointResult(
            released,
            self.request.digest,
            agreed.session,
            self.result.me,
            self.parties.names,
            0 if session is None else session.rounds,
            0 if session is None else session.counts,
            traffic,
            self.result.wrap_chance,
            agreed.resumed,
        )

    def _asked(self, session: str) -> dict[str, Any]:
        return {
            "joint": dict(self.request.terms),
            "digest": self.request.digest,
            "session": session,
        }

    def _counted(self, say: Watch) -> Guarded[CellSums]:
        asked, header = self.planned.asked, self.planned.ledger.header
        helper = self.parties.parties[self.me].helper
        named = asked.rows.source if isinstance(asked.rows.source, str | Path) else "rows"
        say(
            "a helper has no rows to count"
            if helper
            else f"counting {named} with {asked.rows.engine}"
        )
        return sum_cells(
            open_rows(asked.rows, asked.area),
            asked.rows.columns,
            asked.area,
            source=header.source,
            unit=header.unit,
            groups=None,
            identity=self.planned.table,
        )


@contextmanager
def _nothing_charged() -> Iterator[None]:
    """Whatever stops a session says what was charged; where nobody said so, nothing was."""
    try:
        yield
    except SfumatoError as problem:
        if "charged" not in str(problem):
            problem.args = (f"{problem}; nothing was charged", *problem.args[1:])
        raise


def _ready(guarded: Guarded[CellSums] | None) -> Guarded[CellSums]:
    if guarded is None:
        raise LedgerMismatch("what was kept of the session is gone; nothing was drawn")
    return guarded


def session_of(key: str) -> str:
    """The session that an entry's key names; "" where it is of no joint release."""
    return key.removeprefix(f"{PROTOCOL} ") if key.startswith(f"{PROTOCOL} ") else ""
