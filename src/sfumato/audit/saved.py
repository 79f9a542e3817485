"""A verdict in a file: whole in itself, so that anybody can read it, and run its witness again.

What is computed with (the event, the inputs) is written as data of known kinds, never as code:
reading a file runs nothing, and a kind that is not known is refused.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args

import numpy as np

from sfumato import __version__
from sfumato.audit.boxes.box import Pair
from sfumato.audit.boxes.samples import Encoder
from sfumato.audit.claims import EpsilonDelta
from sfumato.audit.fixed.bound import LowerBound
from sfumato.audit.fixed.delta_profile import DeltaBand
from sfumato.audit.fixed.events import Candidate
from sfumato.audit.fixed.features import Features
from sfumato.audit.fixed.scorers import Column, ColumnTable, Logistic, RowTable
from sfumato.audit.results import Event, Kind, Replay, Verdict, Witness
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.files import write_file
from sfumato.privacy import Claim, GaussianDP, RandomApproxDP, RandomPureDP
from sfumato.privacy.accounting import LOSSES, decode_neighbors, encode, parameters

FORMAT = "sfumato-verdict/1"
KINDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Candidate, Column, RowTable, ColumnTable, Logistic, Features)
}
"""What an event may be made of."""
CLAIMED: dict[str, Callable[..., Any]] = {
    **LOSSES,
    **{kind.__name__: kind for kind in (GaussianDP, RandomPureDP, RandomApproxDP)},
}
SMALL = 64
"""Arrays up to this size are written as numbers that people can read, larger ones as their bytes."""


@dataclass(frozen=True, slots=True)
class SavedVerdict:
    """A verdict with the name of what was audited, and what else was found out about it."""

    verdict: Verdict
    target: str
    bound: LowerBound | None = None
    band: DeltaBand | None = None
    version: str = __version__

    def to_json(self) -> dict[str, Any]:
        """Everything that reading and running it again need; doubles are kept to the bit."""
        found = self.verdict
        evidence = (
            None if found.evidence is None else [found.evidence[0], _number(found.evidence[1])]
        )
        return {
            "format": FORMAT,
            "version": self.version,
            "target": self.target,
            "verdict": found.kind,
            "claim": {
                "loss": _loss(found.claim.loss),
                "neighbors": encode(found.claim.neighbors),
            },
            "confidence": found.confidence,
            "runs": found.runs,
            "seconds": found.seconds,
            "evidence": evidence,
            "excluded": _number(found.excluded),
            "needed": found.needed,
            "proximity": found.proximity,
            "gamma": found.gamma,
            "certified": None if found.certified is None else _loss(found.certified),
            "notes": list(found.notes),
            "pairs": [_pair(pair) for pair in found.pairs],
            "witness": None if found.witness is None else _witness(found.witness),
            "confirmed": None if found.confirmed is None else _replay(found.confirmed),
            "bound": None if self.bound is None else _bound(self.bound),
            "band": None if self.band is None else _band(self.band),
            "wealth": pack(found.wealth),
        }

    @staticmethod
    def from_json(data: Any) -> SavedVerdict:
        """The verdict that a JSON object states; nothing is recomputed or believed."""
        try:
            if not isinstance(data, dict) or data.get("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            if data["verdict"] not in get_args(Kind):
                raise ValueError(f"no verdict {data['verdict']!r}")
            evidence = data["evidence"]
            verdict = Verdict(
                data["verdict"],
                _read_claim(data["claim"]),
                _share(data["confidence"]),
                _count(data["runs"]),
                float(data["seconds"]),
                evidence=None if evidence is None else (str(evidence[0]), float(evidence[1])),
                witness=None if data["witness"] is None else _read_witness(data["witness"]),
                confirmed=None if data["confirmed"] is None else _read_replay(data["confirmed"]),
                excluded=_maybe(float, data["excluded"]),
                needed=_maybe(int, data["needed"]),
                pairs=tuple(_read_pair(pair) for pair in data["pairs"]),
                proximity=_maybe(float, data["proximity"]),
                gamma=_maybe(float, data["gamma"]),
                certified=_maybe(_read_loss, data["certified"]),
                wealth=unpack(data["wealth"]),
                notes=tuple(str(note) for note in data["notes"]),
            )
            return SavedVerdict(
                verdict,
                str(data["target"]),
                None if data["bound"] is None else _read_bound(data["bound"]),
                None if data["band"] is None else _read_band(data["band"]),
                str(data["version"]),
            )
        except KeyError as problem:
            raise InvalidInput(f"not a whole verdict: it has no {problem}") from None
        except RecursionError:
            raise InvalidInput("not a whole verdict: it is nested too deeply") from None
        except (SfumatoError, ArithmeticError, LookupError, TypeError, ValueError) as problem:
            raise InvalidInput(f"not a whole verdict: {problem}") from None

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save as .json, a new file unless told otherwise."""
        text = json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n"
        write_file(path, text, overwrite=overwrite)


def read_verdict(path: str | Path) -> SavedVerdict:
    """A verdict saved as .json."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise InvalidInput(f"cannot read {path}: {problem.strerror}") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is not a whole verdict: it is no JSON") from None
    try:
        return SavedVerdict.from_json(data)
    except InvalidInput as problem:
        raise InvalidInput(f"{path} is {problem}") from None


def pack(value: Any) -> Any:
    """A value as JSON that says of which kind it is: numbers, text, lists, arrays, and parts of events.

    >>> pack((1, [0.5, float("inf")]))
    {'tuple': [1, [0.5, {'float': 'inf'}]]}
    """
    match value:
        case np.ndarray() | np.generic():
            return _array(np.asarray(value))
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"float": repr(value)}
        case list():
            return [pack(part) for part in value]
        case tuple():
            return {"tuple": [pack(part) for part in value]}
        case dict():
            return {"dict": [[pack(key), pack(part)] for key, part in value.items()]}
        case _ if KINDS.get(type(value).__name__) is type(value):
            inside = {field.name: pack(getattr(value, field.name)) for field in fields(value)}
            return {"kind": type(value).__name__, "fields": inside}
        case _:
            raise InvalidInput(
                f"a verdict holds numbers, text, lists, arrays and events of known kinds, got a "
                f"{type(value).__name__}; nothing was written"
            )


def unpack(data: Any) -> Any:
    """The value that was packed; a kind that is not known is refused.

    >>> unpack(pack((1, [0.5, float("inf")])))
    (1, [0.5, inf])
    """
    match data:
        case None | bool() | int() | float() | str():
            return data
        case list():
            return [unpack(part) for part in data]
        case {"float": text}:
            return float(text)
        case {"tuple": parts}:
            return tuple(unpack(part) for part in parts)
        case {"dict": parts}:
            return {unpack(key): unpack(part) for key, part in parts}
        case {"array": dtype, "shape": shape}:
            return _read_array(dtype, shape, data)
        case {"kind": str(name), "fields": dict(inside)}:
            if name not in KINDS:
                raise InvalidInput(
                    f"this version knows no {name!r}, only {', '.join(KINDS)}; nothing was run"
                )
            if set(inside) != {field.name for field in fields(KINDS[name])}:
                raise InvalidInput(
                    f"a {name} has other parts than {', '.join(inside)}; nothing was run"
                )
            return KINDS[name](**{part: unpack(packed) for part, packed in inside.items()})
        case _:
            raise InvalidInput(
                f"this is of no known kind: {json.dumps(data)[:80]}; nothing was run"
            )


def can_replay(event: Event) -> bool:
    """Whether an event is more than words: its test is the method of a value that can be written down."""
    return _test(event) is not None


def _replay(found: Replay) -> dict[str, Any]:
    return {
        "epsilon": found.statement.epsilon,
        "delta": found.statement.delta,
        "hits": list(found.hits),
        "runs": found.runs,
        "p_value": found.p_value,
        "level": found.level,
    }


def _read_replay(data: Any) -> Replay:
    first, second = data["hits"]
    stated = EpsilonDelta(float(data["epsilon"]), float(data["delta"]))
    runs = _count(data["runs"])
    hits = _count(first, runs), _count(second, runs)
    return Replay(stated, hits, runs, float(data["p_value"]), float(data["level"]))


def _array(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    if array.dtype.kind not in "biufU":
        raise InvalidInput(
            f"arrays of a verdict hold numbers or text, got {array.dtype}; nothing was written"
        )
    head = {"array": array.dtype.str, "shape": list(array.shape)}
    if array.size <= SMALL and (array.dtype.kind != "f" or np.isfinite(array).all()):
        return {**head, "values": array.ravel().tolist()}
    return {**head, "bytes": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()}


def _read_array(dtype: Any, shape: Any, held: dict[str, Any]) -> Any:
    kind = np.dtype(str(dtype))
    if kind.kind not in "biufU":
        raise InvalidInput(f"arrays of a verdict hold numbers or text, got {kind}; nothing was run")
    if "values" in held:
        flat = np.array(held["values"], dtype=kind)
    else:
        flat = np.frombuffer(base64.b64decode(held["bytes"], validate=True), dtype=kind)
    found = flat.reshape(shape)
    return found[()] if found.ndim == 0 else found


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


def _witness(found: Witness) -> dict[str, Any]:
    return {
        "pair": _pair(found.pair),
        "event": _event(found.event),
        "statement": {"epsilon": _number(found.statement.epsilon), "delta": found.statement.delta},
        "hits": list(found.hits),
        "runs": list(found.runs),
        "encoder": {"width": found.encoder.width, "words": found.encoder.words},
    }


def _read_witness(data: Any) -> Witness:
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
        "witness": _witness(found.witness),
    }


def _read_bound(data: Any) -> LowerBound:
    epsilon, delta, confidence = (
        float(data["epsilon"]),
        float(data["delta"]),
        _share(data["confidence"]),
    )
    return LowerBound(
        epsilon, delta, confidence, _read_witness(data["witness"]), _count(data["runs"])
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


def _read_claim(data: Any) -> Claim:
    return Claim(_read_loss(data["loss"]), decode_neighbors(data["neighbors"]))


def _loss(loss: Any) -> dict[str, Any]:
    return {"kind": type(loss).__name__, **parameters(loss)}


def _read_loss(data: Any) -> Any:
    rest = dict(data)
    name = rest.pop("kind")
    if name not in CLAIMED:
        raise InvalidInput(f"no claim is called {name!r}")
    return CLAIMED[name](**rest)


def _share(value: Any) -> float:
    """A confidence."""
    if not 0 < float(value) < 1:
        raise InvalidInput(f"a confidence is between 0 and 1, got {value}")
    return float(value)


def _count(value: Any, most: float = math.inf) -> int:
    """A number of runs or hits."""
    if not 0 <= int(value) <= most:
        raise InvalidInput(f"runs are at least 0 and hits among them, got {value}")
    return int(value)


def _number(value: float | None) -> float | str | None:
    """JSON has no infinity; `float` reads the word."""
    return value if value is None or math.isfinite(value) else repr(value)


def _maybe(kind: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else kind(value)
