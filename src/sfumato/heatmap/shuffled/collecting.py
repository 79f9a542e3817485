"""A shuffled map from the adder's side: check, charge, ask devices round by round, add up, write."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from sfumato.errors import LedgerMismatch, ReleasedAlready, SessionStopped
from sfumato.heatmap.export.output_names import Outputs
from sfumato.heatmap.pipeline.charging import SUMS_REQUEST, Price, check_affordable, release_sums
from sfumato.heatmap.pipeline.outputs import Watch, plan_outputs, tell_of_trouble, write_maps
from sfumato.heatmap.results import ReleaseResult
from sfumato.heatmap.shuffled.plan import ShufflePlan, read_plan
from sfumato.heatmap.shuffled.planning import mechanism_of, method_of
from sfumato.heatmap.shuffled.results import ShuffledResult
from sfumato.heatmap.shuffled.sealing import Keys
from sfumato.heatmap.shuffled.session import ShuffleSession
from sfumato.heatmap.shuffled.wire import parse_address
from sfumato.privacy import Guarded, Ledger
from sfumato.privacy.accounting import model_name, parameters
from sfumato.records import CellSums, bound_of_groups


def collect_shuffled(
    plan: ShufflePlan | str | Path,
    *,
    key: Keys | str | Path,
    shuffler: str,
    ledger: Ledger | str | Path,
    outputs: Outputs = (),
    note: str = "",
    team: str = "",
    overwrite: bool = False,
    timeout: float = 1200.0,
    watch: Watch | None = None,
    warn: Watch | None = None,
) -> ShuffledResult:
    """Add up what devices send through a shuffler, and make the map of it.

    Everything that can be refused is refused before the charge; then each level is one round. Too few
    devices in a round stop the map: what was charged stands, and devices that have answered a level
    answer it for no other attempt of the same plan.

    Privacy: the plan's epsilon and delta for each `unit` of the ledger, in the model that the plan states.
    Proof: docs/proofs/shuffled-sums.md

    Args:
        plan: The plan, or its file.
        key: The adder's own keys, or their file.
        shuffler: HOST:PORT of the shuffler.
        ledger: The ledger that pays, of the model that the plan states.
        outputs: Files to write.
        note: A line for the ledger.
        team: Whose sub-budget pays, in a ledger with teams.
        overwrite: Whether files that exist are replaced.
        timeout: How many seconds to wait for each round: a minute more than the shuffler does, at least.
        watch: Told of each step.
        warn: Told what went wrong after the charge; a warning of Python, if none is given.

    Returns:
        The map, what was paid, and how the rounds went.

    Raises:
        SessionStopped: The shuffler does not answer, has another plan or a session that has begun, or too
            few devices came.
        ReleasedAlready: The ledger has paid for this plan; nothing was charged again.
        LedgerMismatch: The ledger is not of the model of the plan; nothing was charged.
        BudgetExceeded: The ledger has not enough left; nothing was charged.
        InvalidInput: The plan or the key is none that can be used; nothing was charged.

    """
    agreed = plan if isinstance(plan, ShufflePlan) else read_plan(plan)
    keys = key if isinstance(key, Keys) else Keys.read(key)
    budget = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    if budget.header.model != agreed.trust:
        raise LedgerMismatch(
            f"{budget.path} is of the {model_name(budget.header.model)}, the plan of the "
            f"{model_name(agreed.trust)}; nothing was charged"
        )
    targets = plan_outputs(outputs, None, overwrite=overwrite)
    read = [None if isinstance(one, ShufflePlan | Keys) else one for one in (plan, key)]
    targets.check(agreed.area, others=[budget.path, *read], rows=None)
    bound = bound_of_groups(agreed.area.grid, None, unit=budget.header.unit)
    mechanism = mechanism_of(agreed, bound)
    cost = mechanism.cost(bound)
    once = f"shuffled {agreed.digest.hex()}"
    paid = budget.made_once(once, SUMS_REQUEST)
    if paid is not None:
        raise ReleasedAlready(
            f"this plan was paid for as entry {paid.number} of {budget.path}, and devices answer a plan once: "
            "another map is another plan; nothing was charged again",
            paid.number,
        )
    check_affordable(budget, [cost], bound, agreed.epsilon, team=team)
    address = parse_address(shuffler)
    session = ShuffleSession(agreed, keys, address, timeout=timeout, watch=watch)
    session.meet()
    method = method_of(agreed)
    asked = cast(CellSums, session.values)
    try:
        maps = release_sums(
            Guarded(asked, bound, source=budget.header.source),
            agreed.area,
            ledger=budget,
            epsilon=agreed.epsilon,
            method=method,
            noise=session,
            title=agreed.title,
            note=note,
            price=Price(cast(Any, mechanism), cost, parameters(method.inner)),
            team=team,
            once=once,
        )
    except SessionStopped as problem:
        raise SessionStopped(
            f"{problem}; what was charged stands: no map was made, and another attempt is another plan"
        ) from problem
    finally:
        # A map that stopped is over too: the plan is paid for, and nobody will ask for more of it.
        if session.begun:
            try:
                session.finish()
            except SessionStopped as problem:
                tell_of_trouble(warn, f"{problem}: devices were not told that the map is over")
    written = write_maps(maps, targets, watch=watch or (lambda _: None))
    released = ReleaseResult.of(maps, budget, bound=bound, team=team, written=written)
    return ShuffledResult(released, agreed.digest.hex(), tuple(session.rounds), session.enrolled)
