"""A joint map, from one party's table to the map of all: plan, meet, compare, charge, add up, keep, write."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Unpack

from sfumato.errors import InvalidParameter, LedgerMismatch, SfumatoError
from sfumato.heatmap.distributed.parties import Parties, read_parties
from sfumato.heatmap.distributed.receipts import Receipts
from sfumato.heatmap.distributed.request import PROTOCOL, JointRequest, joint_request
from sfumato.heatmap.distributed.results import JointResult, PlannedJoint
from sfumato.heatmap.distributed.secure_sum import (
    MODULUS,
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
    Standing,
    agree,
    compare_standings,
)
from sfumato.heatmap.export.output_names import Outputs
from sfumato.heatmap.inference.prior import Prior
from sfumato.heatmap.methods.joint import JointMethod
from sfumato.heatmap.methods.registry import as_method
from sfumato.heatmap.pipeline.charging import DEFAULT, Method, maps_of_receipt
from sfumato.heatmap.pipeline.options import HeatmapOptions, is_private, open_rows
from sfumato.heatmap.pipeline.outputs import Watch, sharpened_maps, write_maps
from sfumato.heatmap.pipeline.release import plan_release
from sfumato.heatmap.pipeline.release_plan import ReleasePlan
from sfumato.heatmap.results import ReleaseResult
from sfumato.privacy import UNITS, Guarded, Joint, Ledger, PureDP
from sfumato.privacy.accounting import Number, model_name
from sfumato.privacy.noise import PolyaLaw, wrap_chance
from sfumato.privacy.runs import Request, Run, kept_runs
from sfumato.records import CellSums, Columns, check_source, sum_cells
from sfumato.spaces import Area

MOST_USERS = 2**34
"""More people than there are: what sums of all parties are at most, for the chance that one wraps."""
LARGEST_SCALE = 2**40
AGAIN = "run the same command again at all parties, which costs nothing more"


class Connected(PartySums, Protocol):
    """Secure sums that say how much they have sent."""

    @property
    def traffic(self) -> Traffic:
        """Bytes so far."""


def release_joint(
    source: Any,
    columns: Columns | None = None,
    area: Area | Sequence[float] | None = None,
    *,
    parties: Parties | str | Path,
    me: str | int,
    ledger: Ledger | str | Path,
    epsilon: Number,
    method: Method = DEFAULT,
    prior: Prior | str | Path | None = None,
    outputs: Outputs = (),
    title: str = "",
    note: str = "",
    anew: bool = False,
    timeout: float = TIMEOUT,
    watch: Watch | None = None,
    warn: Watch | None = None,
    **options: Unpack[HeatmapOptions],
) -> JointResult:
    """Release one map of the rows of several parties; each party calls it with its own table and ledger.

    Parties compare a digest of what they ask for before anything is charged; each charges its own
    ledger; counts of each round are opened by a secure sum, with a share of the noise from each. A party
    that stops, is late or asks for something else stops all. What was charged then stands, and the same
    call at all parties goes on with the session, at no cost.

    Privacy: epsilon for each `unit` added or removed at one party, for outsiders and for as many curious
    parties together as the parties' file says. Proof: docs/proofs/shared-noise.md

    Args:
        source: This party's rows, as for `release_heatmap`; None for a helper, which has none.
        columns: What its columns mean; or keywords.
        area: The public area, the same at all parties.
        parties: The parties, or the file that states them.
        me: Which of them this is: its number, from 1, or its name.
        ledger: This party's ledger, of the joint model of these parties.
        epsilon: What the map may cost, the same at all parties.
        method: "zoom" or "pyramid", with the same parameters at all parties.
        prior: A file declared public that the map follows, for free.
        outputs: Files to write.
        title: What the map is called.
        note: A line for the ledger.
        anew: Begin another session, though one was charged and not finished: it is charged again.
        timeout: How many seconds to wait for the others at each step.
        watch: Told of each step.
        warn: Told what went wrong after the charge; a warning of Python, if none is given.
        **options: As for `release_heatmap`.

    Returns:
        The map, which is the same at all parties, what this one paid, and bytes exchanged.

    Raises:
        SessionStopped: A party stopped, was late, or asks for something else; it says what was charged.
        BudgetExceeded: This ledger has not enough left; nothing was charged.
        InvalidParameter: A parameter is out of range; nothing was charged.
        InvalidInput: Rows, parties or certificates could not be read; nothing was charged.

    """
    plan = plan_joint(
        source,
        columns,
        area,
        parties=parties,
        me=me,
        ledger=ledger,
        epsilon=epsilon,
        method=method,
        prior=prior,
        outputs=outputs,
        title=title,
        note=note,
        anew=anew,
        **options,
    )
    return plan.run(timeout=timeout, watch=watch, warn=warn)


def plan_joint(
    source: Any,
    columns: Columns | None = None,
    area: Area | Sequence[float] | None = None,
    *,
    parties: Parties | str | Path,
    me: str | int,
    ledger: Ledger | str | Path,
    epsilon: Number,
    method: Method = DEFAULT,
    prior: Prior | str | Path | None = None,
    outputs: Outputs = (),
    title: str = "",
    note: str = "",
    anew: bool = False,
    **options: Unpack[HeatmapOptions],
) -> JointPlan:
    """Check and price a joint release at one party, without reading a row or asking the others.

    Args:
        source: As for `release_joint`; it is not opened.
        columns: As for `release_joint`.
        area: As for `release_joint`.
        parties: As for `release_joint`.
        me: As for `release_joint`.
        ledger: As for `release_joint`.
        epsilon: As for `release_joint`.
        method: As for `release_joint`.
        prior: As for `release_joint`.
        outputs: As for `release_joint`.
        title: As for `release_joint`.
        note: As for `release_joint`.
        anew: As for `release_joint`.
        **options: As for `release_joint`.

    Returns:
        The plan: `result` has the digest that all parties must have, `run` carries it out.

    Raises:
        BudgetExceeded: This ledger has not enough left.
        InvalidParameter: A parameter is out of range.
        InvalidInput: Parties or certificates could not be read.
        LedgerMismatch: The ledger is not of the joint model of these parties.

    """
    group = parties if isinstance(parties, Parties) else read_parties(parties)
    number = group.number(me)
    own = group.parties[number]
    if own.helper and source is not None:
        raise InvalidParameter(
            f"{own.name} is a helper, which has no rows, got {source}; nothing was charged"
        )
    if not own.helper and source is None:
        raise InvalidParameter(
            f"{own.name} has rows: name their table (a helper is said to be one in {group.file}); nothing was "
            "charged"
        )
    if is_private(options):
        raise InvalidParameter(
            "parties agree on a public area: `bounds='private'` is for one table; nothing was charged"
        )
    budget = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    if budget.header.model != group.trust:
        raise LedgerMismatch(
            f"{budget.path} is of the {model_name(budget.header.model)}, the parties are of the "
            f"{model_name(group.trust)}; nothing was charged"
        )
    group.check_key(number)
    inner = as_method(method)
    if own.helper:
        columns, options = None, _without_rows(options)
    planned = plan_release(
        _nobody() if own.helper else source,
        columns,
        area,
        ledger=budget,
        epsilon=epsilon,
        method=JointMethod(inner, group.trust),
        prior=prior,
        outputs=outputs,
        title=title,
        note=note,
        **options,
    )
    request = joint_request(planned.asked, inner, group, budget)
    chance = _chance(planned, group.trust)
    unfinished = "" if anew else _unfinished(budget, request)
    result = PlannedJoint(
        planned.result,
        request.digest,
        own.name,
        group.names,
        group.trust,
        chance,
        request.told,
        unfinished,
    )
    return JointPlan(planned, group, number, request, result, anew)


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
        with _nothing_charged(), sums as connected:
            agreed = agree(
                connected, self.request, self.result.resumes, names=names, anew=self.anew
            )
            resumed = ", which was begun before, goes on" if agreed.resumed else ""
            say(f"all parties ask for the same; session {agreed.session}{resumed}")
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
        plan, ledger, price = self.planned, self.planned.ledger, self.planned.price
        told = plan.asked.request
        asked = {**told.asked, **self._asked(agreed.session)}
        key = f"{PROTOCOL} {agreed.session}"
        run = Run(Request(PROTOCOL, "joint", asked, told.delivery, finish=AGAIN), once=key)
        with run.on(ledger):
            kept, opens = run.drawn(ledger), True
            if agreed.resumed:
                standing = Standing(run.made(ledger), kept, session.begun())
                opens = compare_standings(connected, standing, names=self.parties.names)
            guarded = None if kept else self._counted(say)
            session.meet(READY, "has counted its rows")
            if kept and opens:
                session.replay()
            receipt, _ = run.release(
                ledger,
                price.mechanism,
                partial(_ready, guarded),
                noise=session,
                pay=price.loss if isinstance(price.loss, PureDP) else None,
                note=plan.asked.note,
                team=plan.asked.team,
                other_table=plan.asked.other_table,
            )
            say("waiting until all parties have kept what was opened")
            session.finish()
            maps = maps_of_receipt(
                receipt,
                plan.asked.area,
                method=plan.asked.method,
                price=price,
                groups=("",),
                columns=plan.asked.rows.columns,
                title=plan.asked.title or self.parties.title,
            )
            maps = sharpened_maps(maps, plan.prior, warn=warn)
            written = write_maps(maps, plan.outputs, watch=say)
            run.delivered()
        first = maps[0]
        released = ReleaseResult(
            first.statement,
            first.method,
            first.parameters,
            first.receipt.entry,
            first.guarantee.loss,
            ledger.left(bound=plan.bound, team=plan.asked.team),
            first.area.bounds,
            str(ledger.path),
            written,
            maps,
            made_before=run.made_before,
        )
        return JointResult(
            released,
            self.request.digest,
            agreed.session,
            self.result.me,
            self.parties.names,
            session.rounds,
            session.counts,
            connected.traffic,
            self.result.wrap_chance,
            agreed.resumed,
        )

    def _asked(self, session: str) -> dict[str, Any]:
        return {"joint": dict(self.request.told), "digest": self.request.digest, "session": session}

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


class _nothing_charged:  # noqa: N801 - read as a phrase
    """Whatever stops a session says what was charged; where nobody said so, nothing was."""

    def __enter__(self) -> None:
        """Nothing is done."""

    def __exit__(self, kind: Any, problem: BaseException | None, trace: Any) -> None:
        """What a run has said of charges stands."""
        if isinstance(problem, SfumatoError) and "charged" not in str(problem):
            problem.args = (f"{problem}; nothing was charged", *problem.args[1:])


def _ready(guarded: Guarded[CellSums] | None) -> Guarded[CellSums]:
    if guarded is None:
        raise LedgerMismatch("what was kept of the session is gone; nothing was drawn")
    return guarded


def session_of(key: str) -> str:
    """The session that an entry's key names; "" where it is of no joint release."""
    return key.removeprefix(f"{PROTOCOL} ") if key.startswith(f"{PROTOCOL} ") else ""


def _unfinished(ledger: Ledger, request: JointRequest) -> str:
    """The last session of the same request that this ledger has paid for and not delivered, or ""."""
    found = [
        str(run.asked["session"])
        for run in kept_runs([ledger])
        if run.kind == PROTOCOL and run.asked.get("digest") == request.digest
    ]
    return found[-1] if found else ""


def _chance(planned: ReleasePlan, trust: Joint) -> float:
    """How likely any of its sums leaves the field, at most: next to never, whatever epsilon is."""
    mechanism: Any = planned.price.mechanism
    # The most noise that epsilon can buy in parts, a 64th of it on one count; no law has a larger scale.
    scale = min(64 * UNITS / planned.asked.epsilon, Fraction(LARGEST_SCALE))
    return wrap_chance(
        MODULUS.bit_length() - 1,
        largest=MOST_USERS * UNITS,
        law=PolyaLaw(float(scale), trust.sum_shape),
        sums=mechanism.draws(planned.bound),
    )


def _nobody() -> Any:
    """The rows of a helper."""
    import pyarrow as pa

    return pa.table(
        {
            "user": pa.array([], pa.string()),
            "lon": pa.array([], pa.float64()),
            "lat": pa.array([], pa.float64()),
        }
    )


def _without_rows(options: HeatmapOptions) -> HeatmapOptions:
    """The options of a helper: columns are those of its empty table, rows per user those of all."""
    found = dict(options)
    for name in ("weight", "weight_step", "weight_cap", "one_row_one_user", "connection"):
        found.pop(name, None)
    found |= {"user": "user", "x": "lon", "y": "lat", "engine": "duckdb"}
    kept: HeatmapOptions = {**found}  # type: ignore[typeddict-item]
    return kept
