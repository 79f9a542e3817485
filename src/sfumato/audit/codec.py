"""Results of audits as JSON, whole in themselves, so that anybody can read them and run a witness again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import numpy as np

from sfumato.audit.boxes.box import Pair
from sfumato.audit.boxes.samples import Encoder
from sfumato.audit.claims import EpsilonDelta, decode_loss, encode_loss
from sfumato.audit.fixed.events import Candidate
from sfumato.audit.packing import KINDS, pack, unpack
from sfumato.audit.results import AuditPlan, AuditResult
from sfumato.audit.verdict import DeltaBand, Event, Kind, LowerBound, Replay, Verdict, Witness
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.privacy import Claim
from sfumato.privacy.accounting import decode_neighbors, encode

FORMAT = "sfumato-verdict/1"


def encode_result(result: AuditResult) -> dict[str, Any]:
    """Everything that reading a result and running its witness again need."""
    found = result.verdict
    evidence = None if found.evidence is None else [found.evidence[0], _number(found.evidence[1])]
    return {
        "format": FORMAT,
        "version": result.version,
        "target": result.target,
        "verdict": found.kind,
        "claim": encode_claim(found.claim),
        "confidence": found.confidence,
        "runs": found.runs,
        "total_runs": result.total_runs,
        "seconds": found.seconds,
        "evidence": evidence,
        "excluded": _number(found.excluded),
        "needed": found.required_runs,
        "proximity": found.proximity,
        "gamma": found.gamma,
        "certified": None if found.certified is None else encode_loss(found.certified),
        "notes": list(found.notes),
        "diagnostics": list(result.diagnostics),
        "pairs": [_pair(pair) for pair in found.pairs],
        "witness": None if found.witness is None else encode_witness(found.witness),
        "confirmed": None if found.confirmed is None else found.confirmed.to_json(),
        "bound": None if result.bound is None else _bound(result.bound),
        "band": None if result.band is None else _band(result.band),
        "wealth": pack(found.wealth),
    }


def decode_result(data: Any) -> AuditResult:
    """The result that a JSON object states, of this version or an older one."""
    with whole("verdict"):
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        if data["verdict"] not in get_args(Kind):
            raise ValueError(f"no verdict {data['verdict']!r}")
        evidence = data["evidence"]
        runs = _count(data["runs"])
        verdict = Verdict(
            data["verdict"],
            decode_claim(data["claim"]),
            _share(data["confidence"]),
            runs,
            float(data["seconds"]),
            evidence=None if evidence is None else (str(evidence[0]), float(evidence[1])),
            witness=_maybe(decode_witness, data["witness"]),
            confirmed=_maybe(decode_replay, data["confirmed"]),
            excluded=_maybe(float, data["excluded"]),
            required_runs=_maybe(int, data["needed"]),
            pairs=tuple(_read_pair(pair) for pair in data["pairs"]),
            proximity=_maybe(float, data["proximity"]),
            gamma=_maybe(float, data["gamma"]),
            certified=_maybe(decode_loss, data["certified"]),
            wealth=unpack(data["wealth"]),
            notes=tuple(str(note) for note in data["notes"]),
        )
        return AuditResult(
            verdict,
            str(data["target"]),
            _maybe(_read_bound, data["bound"]),
            _maybe(_read_band, data["band"]),
            _count(data.get("total_runs", runs)),
            tuple(str(one) for one in data.get("diagnostics", ())),
            str(data["version"]),
        )


def encode_plan(plan: AuditPlan) -> dict[str, Any]:
    """A plan as JSON."""
    asked = {
        "claim": str(plan.claim.loss),
        "loss": encode_loss(plan.claim.loss),
        "neighbors": encode(plan.claim.neighbors),
        "outputs": plan.outputs,
        "proximity": plan.proximity,
        "confidence": plan.confidence,
        "weight": plan.weight,
        "min_mass": plan.min_mass,
        "verifiable": plan.verifiable,
    }
    if not plan.verifiable:
        return {**asked, "why": plan.unverifiable, "instead": plan.instead_runs}
    return {
        **asked,
        "least": plan.min_runs,
        "enough": plan.enough_runs,
        "pairs": plan.pairs,
        "total": plan.total_runs,
        "reasons": list(plan.reasons),
    }


def decode_plan(data: Any) -> AuditPlan:
    """The plan that a JSON object states."""
    with whole("plan"):
        return AuditPlan(
            decode_claim(data),
            int(data["outputs"]),
            float(data["proximity"]),
            _share(data["confidence"]),
            float(data["weight"]),
            _maybe(float, data["min_mass"]),
            str(data.get("why", "")),
            _count(data.get("least", 0)),
            _count(data.get("enough", 0)),
            _count(data.get("pairs", 0)),
            tuple(str(one) for one in data.get("reasons", ())),
            _maybe(int, data.get("instead")),
        )


@contextmanager
def whole(what: str) -> Iterator[None]:
    """Whatever is wrong with a JSON object, said in one sentence."""
    try:
        yield
    except KeyError as problem:
        raise InvalidInput(f"not a whole {what}: it has no {problem}") from None
    except RecursionError:
        raise InvalidInput(f"not a whole {what}: it is nested too deeply") from None
    except (SfumatoError, ArithmeticError, LookupError, TypeError, ValueError) as problem:
        raise InvalidInput(f"not a whole {what}: {problem}") from None


def read_verdict(path: str | Path) -> AuditResult:
    """A result saved as .json, of this version or an older one.

    Args:
        path: A file that `AuditResult.write` or `sfumato audit run --out` wrote.

    Returns:
        The result; nothing in the file is run or believed.

    Raises:
        InvalidInput: If the file cannot be read or holds no whole verdict.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror}") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is not a whole verdict: it is no JSON") from None
    try:
        return decode_result(data)
    except InvalidInput as problem:
        raise InvalidInput(f"{path} is {problem}") from None


def can_replay(event: Event) -> bool:
    """Whether an event is more than words: its test is the method of a value that can be written down."""
    return _test(event) is not None


def decode_replay(data: Any) -> Replay:
    """The test that a JSON object states."""
    first, second = data["hits"]
    stated = EpsilonDelta(float(data["epsilon"]), float(data["delta"]))
    runs = _count(data["runs"])
    hits = _count(first, runs), _count(second, runs)
    return Replay(stated, hits, runs, float(data["p_value"]), float(data["level"]))


def _test(event: Event) -> Any:
    owner = getattr(event.contains, "__self__", None)
    return owner if KINDS.get(type(owner).__name__) is type(owner) else None


def _event(event: Event) -> dict[str, Any]:
    return {"words": event.words, "test": pack(_test(event))}


def _read_event(data: Any, encoder: Encoder) -> Event:
    test = unpack(data["test"])
    if test is None:
        return Event(str(data["words"]), _words_only)
    if not isinstance(test, Candidate):
        raise InvalidInput(f"an event is a Candidate, got {type(test).__name__}; nothing was run")
    try:
        tried = test.contains(np.zeros((2, encoder.width + 1)))
    except (
        Exception
    ) as problem:  # parts that do not fit each other fail in as many ways as there are parts
        raise InvalidInput(f"its event is no test of such outputs ({problem})") from None
    if np.shape(tried) != (2,) or np.asarray(tried).dtype != np.bool_:
        raise InvalidInput("its event does not say yes or no for every output")
    return Event(str(data["words"]), test.contains)


def _words_only(_: Any) -> Any:
    raise InvalidInput(
        "this event was saved in words only and cannot be tested again; nothing was run"
    )


def _pair(pair: Pair) -> dict[str, Any]:
    return {"name": pair.name, "first": pack(pair.first), "second": pack(pair.second)}


def _read_pair(data: Any) -> Pair:
    return Pair(unpack(data["first"]), unpack(data["second"]), str(data["name"]))


def encode_witness(found: Witness) -> dict[str, Any]:
    """A witness as JSON: inputs, event, statement and counts."""
    return {
        "pair": _pair(found.pair),
        "event": _event(found.event),
        "statement": {"epsilon": _number(found.statement.epsilon), "delta": found.statement.delta},
        "hits": list(found.hits),
        "runs": list(found.runs),
        "encoder": {"width": found.encoder.width, "words": found.encoder.words},
    }


def decode_witness(data: Any) -> Witness:
    """The witness that a JSON object states."""
    encoder = Encoder(int(data["encoder"]["width"]), bool(data["encoder"]["words"]))
    if not 1 <= encoder.width <= 10**6:
        raise InvalidInput(f"outputs have 1 to 1,000,000 numbers, got {encoder.width}")
    hits, runs = [int(one) for one in data["hits"]], [int(one) for one in data["runs"]]
    if not (
        len(hits) == len(runs) == 2 and all(0 <= k <= n for k, n in zip(hits, runs, strict=True))
    ):
        raise InvalidInput(f"hits are between 0 and runs, for two inputs, got {hits} of {runs}")
    statement = EpsilonDelta(float(data["statement"]["epsilon"]), float(data["statement"]["delta"]))
    return Witness(
        _read_pair(data["pair"]),
        _read_event(data["event"], encoder),
        statement,
        (hits[0], hits[1]),
        (runs[0], runs[1]),
        encoder,
    )


def _bound(found: LowerBound) -> dict[str, Any]:
    return {
        "epsilon": _number(found.epsilon),
        "delta": found.delta,
        "confidence": found.confidence,
        "runs": found.runs,
        "witness": encode_witness(found.witness),
    }


def _read_bound(data: Any) -> LowerBound:
    epsilon, delta, confidence = (
        float(data["epsilon"]),
        float(data["delta"]),
        _share(data["confidence"]),
    )
    return LowerBound(
        epsilon, delta, confidence, decode_witness(data["witness"]), _count(data["runs"])
    )


def _band(found: DeltaBand) -> dict[str, Any]:
    """The curves; one event for each epsilon would be most of the file, and says little more."""
    return {
        "epsilons": list(found.epsilons),
        "lower": list(found.lower),
        "upper": list(found.upper),
        "confidence": found.confidence,
        "runs": found.runs,
    }


def _read_band(data: Any) -> DeltaBand:
    curves = [
        tuple(float(value) for value in data[name]) for name in ("epsilons", "lower", "upper")
    ]
    if len({len(curve) for curve in curves}) > 1:
        raise InvalidInput("a band has as many lower and upper ends as epsilons")
    return DeltaBand(
        curves[0], curves[1], curves[2], _share(data["confidence"]), _count(data["runs"]), ()
    )


def encode_claim(claim: Claim) -> dict[str, Any]:
    """A claim as JSON."""
    return {"loss": encode_loss(claim.loss), "neighbors": encode(claim.neighbors)}


def decode_claim(data: Any) -> Claim:
    """The claim that a JSON object states."""
    return Claim(decode_loss(data["loss"]), decode_neighbors(data["neighbors"]))


def _share(value: Any) -> float:
    """A confidence."""
    if not 0 < float(value) < 1:
        raise InvalidInput(f"a confidence is between 0 and 1, got {value}")
    return float(value)


def _count(value: Any, max_count: float = math.inf) -> int:
    """A number of runs or hits."""
    if not 0 <= int(value) <= max_count:
        raise InvalidInput(f"runs are at least 0 and hits among them, got {value}")
    return int(value)


def _number(value: float | None) -> float | str | None:
    """JSON has no infinity; `float` reads the word."""
    return value if value is None or math.isfinite(value) else repr(value)


def _maybe(kind: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else kind(value)
