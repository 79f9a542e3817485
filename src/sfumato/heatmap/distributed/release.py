"""A joint map, from one party's table to the map of all: plan, meet, compare, charge, add up, keep, write."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Unpack

from sfumato.errors import InvalidParameter, LedgerMismatch
from sfumato.heatmap.distributed.joint_plan import JointPlan
from sfumato.heatmap.distributed.parties import Parties, read_parties
from sfumato.heatmap.distributed.receipts import Receipts, sessions_beside
from sfumato.heatmap.distributed.request import PROTOCOL, JointRequest, joint_request, measure_of
from sfumato.heatmap.distributed.results import JointResult, PlannedJoint
from sfumato.heatmap.distributed.secure_sum import (
    MODULUS,
    TIMEOUT,
)
from sfumato.heatmap.export.output_names import Outputs
from sfumato.heatmap.inference.prior import Prior
from sfumato.heatmap.methods.joint import JointMethod
from sfumato.heatmap.methods.registry import as_method
from sfumato.heatmap.pipeline.charging import DEFAULT, Method
from sfumato.heatmap.pipeline.mistakes import check_release
from sfumato.heatmap.pipeline.options import HeatmapOptions, is_private, rows_of
from sfumato.heatmap.pipeline.outputs import Watch
from sfumato.heatmap.pipeline.release import plan_release
from sfumato.heatmap.pipeline.release_plan import ReleasePlan
from sfumato.heatmap.pipeline.requests import HeatmapRequest
from sfumato.privacy import UNITS, Joint, Ledger
from sfumato.privacy.accounting import Number, model_name
from sfumato.privacy.noise import PolyaLaw, wrap_chance
from sfumato.privacy.runs import kept_runs
from sfumato.records import Columns
from sfumato.spaces import Area

MOST_USERS = 2**34
"""More people than there are: what sums of all parties are at most, for the chance that one wraps."""
LARGEST_SCALE = 2**40


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
    # A helper says what rows count as all do, and has none.
    if own.helper and columns is None:
        options = _named_columns(options)
    measure = measure_of(rows_of(None, columns, options).columns)
    if own.helper:
        columns, options = None, _without_rows(options)

    def unfinished(asked: HeatmapRequest) -> str:
        return (
            ""
            if anew
            else _unfinished(budget, joint_request(asked, inner, group, budget, measure=measure))
        )

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
        paid_for=lambda asked: bool(unfinished(asked)),
        **options,
    )
    request = joint_request(planned.asked, inner, group, budget, measure=measure)
    chance = _chance(planned, group.trust)
    result = PlannedJoint(
        planned.result,
        request.digest,
        own.name,
        group.names,
        group.trust,
        chance,
        request.terms,
        unfinished(planned.asked),
    )
    given_up = _unfinished(budget, request) if anew else ""
    return JointPlan(planned, group, number, request, result, anew, given_up)


def _unfinished(ledger: Ledger, request: JointRequest) -> str:
    """The last session of the same request that this ledger has paid for and that is not over, or "".

    One is over when it was delivered here and all parties have what was opened, or when another was
    begun in its place.
    """
    found = [
        str(run.asked["session"])
        for run in kept_runs([ledger])
        if run.kind == PROTOCOL and run.asked.get("digest") == request.digest
    ]
    beside = sessions_beside(ledger.path)
    found += [one for one in beside if one.startswith(request.digest[:16]) and one not in found]
    going = [one for one in found if not Receipts(ledger.path, one).abandoned]
    return going[-1] if going else ""


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


def check_joint_release(
    source: Any,
    *,
    ledger: Ledger | str | Path,
    epsilon: Number,
    outputs: Outputs = (),
    note: str = "",
    **options: Unpack[HeatmapOptions],
) -> None:
    """Find what is wrong with a party's request by its words alone, all of it at once.

    Args:
        source: This party's rows; None for a helper, which names no columns.
        ledger: As for `release_joint`.
        epsilon: As for `release_joint`.
        outputs: As for `release_joint`.
        note: As for `release_joint`.
        **options: As for `release_joint`.

    Raises:
        SfumatoError: What is wrong; nothing was read or charged.

    """
    own = options if source is not None else _named_columns(options)
    check_release(
        source if source is not None else "",
        ledger=ledger,
        epsilon=epsilon,
        outputs=outputs,
        note=note,
        **own,
    )


def _named_columns(options: HeatmapOptions) -> HeatmapOptions:
    """The options of a helper, which has no columns to name: users are told by one, unless each row is."""
    if options.get("user") or options.get("one_row_one_user"):
        return options
    return {**options, "user": "user"}


def _without_rows(options: HeatmapOptions) -> HeatmapOptions:
    """The options of a helper: columns are those of its empty table, rows per user those of all."""
    found = dict(options)
    for name in ("weight", "weight_step", "weight_cap", "one_row_one_user", "connection"):
        found.pop(name, None)
    found |= {"user": "user", "x": "lon", "y": "lat", "engine": "duckdb"}
    kept: HeatmapOptions = {**found}  # type: ignore[typeddict-item]
    return kept
