"""A verdict comes back from its file as it was, its event too; what is not a verdict is refused."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato._types import FloatArray
from sfumato.audit.boxes.box import FunctionBox, Pair
from sfumato.audit.boxes.samples import Encoder, encoder_of
from sfumato.audit.claims import EpsilonDelta
from sfumato.audit.codec import can_replay, read_verdict
from sfumato.audit.fixed.bound import lower_bound
from sfumato.audit.fixed.events import Candidate
from sfumato.audit.fixed.fitting import fit_scorers
from sfumato.audit.fixed.scorers import Sign
from sfumato.audit.packing import pack, unpack
from sfumato.audit.property_testing.certificate import certify
from sfumato.audit.replay import enough_runs, replay
from sfumato.audit.results import AuditResult
from sfumato.audit.verdict import DeltaBand, Event, Kind, LowerBound, Replay, Verdict, Witness
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import (
    ZCDP,
    AddRemoveUser,
    ApproxDP,
    Claim,
    GaussianDP,
    MovedMass,
    PureDP,
    RandomApproxDP,
    RandomPureDP,
    ReplaceUser,
)

pytestmark = pytest.mark.unit

CLAIM = Claim(PureDP(1), AddRemoveUser())
SIGNS: tuple[Sign, Sign] = (1, -1)


def through(value: Any) -> Any:
    """A value that has been text in between, as strict JSON."""
    return unpack(json.loads(json.dumps(pack(value), allow_nan=False)))


def reread(saved: AuditResult) -> AuditResult:
    return AuditResult.from_json(json.loads(json.dumps(saved.to_json(), allow_nan=False)))


def outputs(rng: np.random.Generator, kind: str, shift: float, size: int) -> Any:
    """Outputs of several kinds, so that every kind of scorer is fitted."""
    noise = rng.laplace(size=size)
    match kind:
        case "number":
            return (shift + noise).tolist()
        case "count":
            return np.round(shift + noise).astype(int).tolist()
        case "vector":
            return np.column_stack(
                [shift + noise, rng.integers(0, 3, size), noise.cumsum()]
            ).tolist()
        case _:
            return ["yes" if value > 0 else "no" for value in shift + noise]


def candidates(rng: np.random.Generator, kind: str) -> tuple[list[Candidate], FloatArray, Encoder]:
    """Events by every scorer, in both directions, and rows that were not seen in fitting."""
    first, second, fresh = (outputs(rng, kind, shift, 600) for shift in (0.0, 1.5, 0.7))
    encoder = encoder_of(first)
    rows = encoder(first), encoder(second)
    found = [
        Candidate(scorer, float(np.median(scorer.score(rows[0]))), sign, 0.5, 0.25, 0.1)
        for scorer in fit_scorers(*rows)
        for sign in SIGNS
    ]
    return found, encoder(fresh), encoder


def nested(depth: int) -> Any:
    """Lists in lists."""
    found: Any = []
    for _ in range(depth):
        found = [found]
    return found


def witness(rng: np.random.Generator, kind: str = "number") -> Witness:
    found, _, encoder = candidates(rng, kind)
    pair = Pair(np.array([0.0, 1.0]), np.array([1.0, 1.0]), "one up")
    return Witness(
        pair, found[0].event, EpsilonDelta(1.0, 0.0), (57, 12), (10_000, 10_000), encoder
    )


def verdict(rng: np.random.Generator, kind: Kind = "REFUTED", claim: Claim = CLAIM) -> Verdict:
    return Verdict(
        kind,
        claim,
        0.99,
        12_345,
        1.5,
        evidence=("e-value", 512.0),
        witness=witness(rng),
        pairs=(Pair([1, 2], [1, 3], "a list"), Pair("a", (1, "b"), "odd ones")),
        wealth=np.linspace([0.0, 1.0], [12_345.0, 512.0], 100),
        notes=("a note",),
    )


# events


@pytest.mark.parametrize("kind", ["number", "count", "vector", "word"])
def test_every_event_comes_back_to_the_bit(kind: str, rng: np.random.Generator) -> None:
    events, rows, _ = candidates(rng, kind)
    names = {one.scorer.name for one in events}
    assert names >= {"number": {"column", "stepwise additive"}, "count": {"count table", "rare bins"},
                     "vector": {"linear", "rare values"}, "word": {"count table"}}[kind]  # fmt: skip
    for event in events:
        again = through(event)
        assert np.array_equal(again.contains(rows), event.contains(rows))
        assert np.array_equal(again.scorer.score(rows), event.scorer.score(rows))
        assert again.event.words == event.event.words


@pytest.mark.parametrize("kind", ["number", "count", "vector", "word"])
def test_a_lower_bound_comes_back_and_counts_alike(kind: str, rng: np.random.Generator) -> None:
    box = FunctionBox(lambda data, runs: outputs(rng, kind, data, runs), "box")
    found = lower_bound(box, Pair(0.0, 1.5), runs=4000)
    saved = AuditResult(verdict(rng, "NOT_REFUTED"), "box", bound=found)
    again = reread(saved).bound
    assert isinstance(again, LowerBound)
    assert (again.epsilon, again.delta, again.runs) == (found.epsilon, found.delta, found.runs)
    assert again.witness.hits == found.witness.hits
    rows = found.witness.encoder(outputs(rng, kind, 0.7, 500))
    assert np.array_equal(again.witness.event.contains(rows), found.witness.event.contains(rows))


@pytest.mark.property
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inside: (
            st.lists(inside) | st.tuples(inside, inside) | st.dictionaries(st.text(), inside)
        ),
        max_leaves=20,
    )
)
def test_any_plain_input_comes_back(value: Any) -> None:
    again = through(value)
    assert again == value
    assert repr(again) == repr(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(3), np.zeros((0, 2)), np.full((70, 2), np.pi), np.array([np.inf, np.nan, -0.0]),
        np.array([2**64 - 1, 1], dtype=np.uint64), np.array([True, False]), np.array(["a", "bcd"]),
        np.float32(0.1), np.int64(3), np.arange(6.0).reshape(2, 3).T,
    ],
    ids=str,
)  # fmt: skip
def test_arrays_keep_their_bits_and_types(array: Any) -> None:
    again = through(array)
    assert type(again) is type(array)
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()
    assert again.shape == array.shape


# the whole


@pytest.mark.parametrize(
    "loss",
    [PureDP("1/3"), ApproxDP(1, "1e-6"), ZCDP("1/2"), GaussianDP(1), RandomPureDP(1, "0.05"),
     RandomApproxDP(1, "1e-6", "0.05")],
    ids=str,
)  # fmt: skip
def test_every_claim_comes_back(loss: Any, rng: np.random.Generator) -> None:
    for neighbors in (AddRemoveUser(), ReplaceUser(), MovedMass("1/3", "line")):
        claim = Claim(loss, neighbors)
        assert reread(AuditResult(verdict(rng, claim=claim), "x")).verdict.claim == claim


@pytest.mark.parametrize("kind", ["REFUTED", "NOT_REFUTED", "CERTIFIED", "INCONCLUSIVE"])
def test_a_verdict_comes_back_from_its_file(
    kind: Kind, rng: np.random.Generator, tmp_path: Path
) -> None:
    found = replace(
        verdict(rng, kind), excluded=math.inf, required_runs=7, proximity=0.01, gamma=0.05
    )
    band = DeltaBand((0.0, 1.0), (0.4, 0.0), (0.5, 1.0), 0.95, 200_000, ())
    confirmed = Replay(EpsilonDelta(1.0, 0.25), (7, 3), 1000, 0.002, 0.01)
    found = replace(found, confirmed=confirmed, certified=RandomApproxDP(1, "0.02", "0.06"))
    saved = AuditResult(found, "module:function", band=band)
    saved.write(tmp_path / "v.json")
    again = read_verdict(tmp_path / "v.json")
    assert again.to_json() == saved.to_json()
    assert (again.target, again.band, again.version) == ("module:function", band, saved.version)
    for name in ("kind", "claim", "confidence", "runs", "seconds", "evidence", "excluded", "required_runs",
                 "proximity", "gamma", "certified", "confirmed", "notes"):  # fmt: skip
        assert getattr(again.verdict, name) == getattr(found, name)
    assert np.array_equal(np.asarray(again.verdict.wealth), np.asarray(found.wealth))
    assert [pair.name for pair in again.verdict.pairs] == ["a list", "odd ones"]
    assert again.verdict.pairs[1].second == (1, "b")
    with pytest.raises(InvalidInput, match="exists already and is kept"):
        saved.write(tmp_path / "v.json")
    saved.write(tmp_path / "v.json", overwrite=True)


def test_an_event_of_another_kind_is_saved_in_words_only(rng: np.random.Generator) -> None:
    box = FunctionBox(lambda data, runs: rng.random(runs) < 0.5 + 0.45 * data, "leaky")
    found = certify(
        box, Claim(ApproxDP(0, 0), AddRemoveUser()), proximity=0.1, outputs=2, pairs=[Pair(0, 1)]
    )
    assert found.kind == "REFUTED"
    assert found.witness is not None
    assert not can_replay(found.witness.event)
    again = reread(AuditResult(found, "leaky")).verdict.witness
    assert again is not None
    assert again.event.words == found.witness.event.words
    with pytest.raises(InvalidInput, match="saved in words only"):
        replay(again, box, runs=10)


# what is refused


def test_what_cannot_be_written_is_refused() -> None:
    for thing in (
        object(),
        {1, 2},
        np.array([object()]),
        Event("x", lambda rows: rows[:, 0] > 0),
        1j,
    ):
        with pytest.raises(InvalidInput, match="nothing was written"):
            pack(thing)


def whole(rng: np.random.Generator) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(AuditResult(verdict(rng), "x").to_json()))
    return found


def test_every_missing_part_is_named(rng: np.random.Generator) -> None:
    data = whole(rng)
    AuditResult.from_json(data)
    # Files of before November 2026 do not have these two.
    for name in data.keys() - {"total_runs", "diagnostics"}:
        part = {key: value for key, value in data.items() if key != name}
        with pytest.raises(InvalidInput, match=name if name != "format" else "its format is not"):
            AuditResult.from_json(part)


def damaged(data: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    found = copy.deepcopy(data)
    *way, last = path.split(".")
    place: Any = found
    for step in way:
        place = place[step]
    place[last] = value
    return found


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("verdict", "VERIFIED", "no verdict 'VERIFIED'"),
        ("claim.loss", {"kind": "Trust", "epsilon": "1"}, "no claim is called 'Trust'"),
        ("claim.loss", {"kind": "PureDP", "epsilon": "-1"}, "epsilon must be at least 0"),
        ("witness.hits", [20_000, 3], "hits are between 0 and runs"),
        ("witness.hits", [1], "hits are between 0 and runs"),
        ("witness.encoder.width", 0, "outputs have 1 to 1,000,000 numbers"),
        ("witness.event.test.kind", "Pickle", "this version knows no 'Pickle', only Candidate"),
        ("witness.event.test.fields.more", {"what": 1}, "of no known kind"),
        ("witness.event.test.fields", {}, "a Candidate has other parts"),
        ("witness.event.test.fields.scorer", 3, "its event is no test of such outputs"),
        ("witness.event.test", {"tuple": []}, "an event is a Candidate, got tuple"),
        ("witness.event.test.fields.threshold", "high", "its event is no test of such outputs"),
        (
            "wealth",
            {"array": "|O", "shape": [1], "bytes": "gASVAgAAAAAAAABLAS4="},
            "hold numbers or text",
        ),
        ("wealth", {"array": "<f8", "shape": [3], "bytes": "AAAA"}, "not a whole verdict"),
        ("wealth", {"array": "<f8", "shape": [3], "values": [1]}, "not a whole verdict"),
        ("runs", "many", "not a whole verdict"),
        ("pairs", 3, "not a whole verdict"),
        ("runs", -5, "runs are at least 0 and hits among them, got -5"),
        ("confidence", 7, "a confidence is between 0 and 1, got 7"),
        ("confidence", "nan", "a confidence is between 0 and 1, got nan"),
        ("wealth", nested(100_000), "nested too deeply"),
    ],
)
def test_a_damaged_verdict_is_refused_in_one_sentence(
    path: str, value: Any, sentence: str, rng: np.random.Generator
) -> None:
    with pytest.raises(InvalidInput, match=sentence) as caught:
        AuditResult.from_json(damaged(whole(rng), path, value))
    assert str(caught.value).startswith("not a whole verdict: ")


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "no JSON", '{"format": "sfumato-verdict/2"}', "\ud800"]
)
def test_a_file_that_is_no_verdict_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "v.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InvalidInput, match=r"v\.json is not a whole verdict"):
        read_verdict(tmp_path / "v.json")
    with pytest.raises(InvalidInput, match="cannot read"):
        read_verdict(tmp_path / "none.json")


# replay


@pytest.mark.statistical
def test_a_witness_shows_itself_again_on_a_leak_and_not_on_a_private_box(
    rng: np.random.Generator,
) -> None:
    """Two arms: noise of epsilon 2 breaks epsilon 1 by the event {x >= 0.5}, noise of epsilon 1 does not.

    With scale 1/2 the shares are 1 - 1/(2e) = 0.816 and 1/(2e) = 0.184, of which epsilon 1 allows
    0.5: 18 standard deviations in 4,000 runs. With scale 1 a p-value of at most 1e-6 has chance at
    most 1e-6.
    """
    rows = np.column_stack([np.array([0.0, 1.0]), np.zeros(2)])
    (column,) = (s for s in fit_scorers(rows[1:], rows[:1]) if s.name == "column")
    event = Candidate(column, 0.5, 1, 0.8, 0.2, 1.0).event
    found = Witness(
        Pair(1.0, 0.0),
        event,
        EpsilonDelta(1.0, 0.0),
        (800, 200),
        (1000, 1000),
        Encoder(1, words=False),
    )

    def noisy(scale: float) -> FunctionBox:
        return FunctionBox(lambda data, runs: data + rng.laplace(scale=scale, size=runs), "noisy")

    leaky = replay(found, noisy(0.5), runs=4000, level=1e-6)
    private = replay(found, noisy(1.0), runs=4000, level=1e-6)
    assert leaky.refuted
    assert leaky.p_value <= 1e-6
    assert not private.refuted
    assert leaky.hits[0] > math.e * leaky.hits[1]
    assert (leaky.runs, leaky.statement) == (4000, found.statement)


def test_a_replay_needs_runs(rng: np.random.Generator) -> None:
    found = witness(rng)
    # 57 against 12 of 10,000 is an excess of 0.0024 with a standard deviation of 0.0012: all but
    # nothing.
    assert enough_runs(found) > 100_000
    plain = replace(found, hits=(9000, 100))
    assert enough_runs(plain) == 1024
    assert (
        enough_runs(found, Replay(EpsilonDelta(1.0, 0.0), (9000, 100), 10_000, 0.0, 0.01)) == 1024
    )
    endless = replace(found, hits=(10**14, 10**14), runs=(10**15, 10**15))
    assert enough_runs(endless) == 10_000_000, "whatever a file says"
    for runs in (0, 10**15):
        with pytest.raises(
            InvalidParameter, match=f"runs must be from 1 to 10,000,000, got {runs}"
        ):
            replay(found, FunctionBox(lambda data: 0.0, "box"), runs=runs)
