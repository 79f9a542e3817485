"""The ledger charges first and samples second, keeps a chain anyone can recompute, and knows its releases."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sfumato.errors import (
    BudgetExceeded,
    InvalidInput,
    InvalidParameter,
    LedgerDamaged,
    LedgerMismatch,
    NotComparable,
)
from sfumato.privacy import (
    REHEARSAL,
    ZCDP,
    AddRemoveUser,
    ApproxDP,
    Bound,
    DiscreteGaussian,
    DiscreteLaplace,
    FlippedEdge,
    Guarantee,
    Guarded,
    KeyedNoise,
    Ledger,
    Loss,
    Mechanism,
    MovedMass,
    Neighbors,
    PermuteAndFlip,
    PureDP,
    RandomisedResponse,
    Release,
    ReplaceUser,
    RoundedGaussian,
    SwappedCells,
    SystemNoise,
    guard,
    histogram,
    read_release,
)
from sfumato.privacy.accounting.codec import decode_loss, decode_neighbors, encode
from sfumato.privacy.ledger import Entry, Spent
from sfumato.privacy.ledger import ledger as ledger_module
from sfumato.privacy.ledger.guarded import Source, open_for_release
from sfumato.privacy.ledger.storage import book as ledger_file
from sfumato.privacy.ledger.storage.rows import FIRST, GENESIS, START
from sfumato.privacy.noise.tables import MAX_DISTANCE

HALF = DiscreteLaplace(2)  # costs 1/2 on a histogram
TENTH = DiscreteLaplace(10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "city.ledger"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger.create(path, PureDP(1), unit="user", source="city")


def city(*cells: int, source: Source = "city") -> Guarded[Any]:
    return histogram(np.array(cells or (0, 1, 1), dtype=np.int64), 4, source=source)


def spy(
    log: list[str], epsilon: str = "1/2", *, fault: BaseException | None = None
) -> Mechanism[Any, Any]:
    """A mechanism that writes down what is asked of it, and may break while it samples."""

    @dataclass(frozen=True)
    class Spy:
        epsilon: Fraction
        name: ClassVar[str] = "spy/1"
        additive: ClassVar[bool] = True

        def cost(self, bound: Bound) -> Loss:
            log.append("cost")
            return PureDP(self.epsilon * bound.required("l1", by="a spy"))

        def draws(self, bound: Bound) -> int:
            return bound.size

        def sample(self, exact: Any, noise: Any) -> Any:
            log.append("sample")
            if fault is not None:
                raise fault
            return exact + noise.laplace(1, exact.size)

    return Spy(Fraction(epsilon))


class SpyNoise(SystemNoise):
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def laplace(self, scale: Any, size: int) -> Any:
        self.log.append("draw")
        return super().laplace(scale, size)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens in a release, step by step."""
    steps: list[str] = []
    append, locked = ledger_file.append, ledger_file.locked

    def logged_open(guarded: Guarded[Any]) -> Any:
        steps.append("open")
        return open_for_release(guarded)

    def logged_append(*args: Any) -> str:
        steps.append("entry")
        return append(*args)

    @contextmanager
    def logged_lock(path: Path, **how: Any) -> Iterator[ledger_file.Held]:
        with locked(path, **how) as held:
            steps.append("lock")
            yield held
        steps.append("commit")

    monkeypatch.setattr(ledger_module, "open_for_release", logged_open)
    monkeypatch.setattr(ledger_file, "append", logged_append)
    monkeypatch.setattr(ledger_file, "locked", logged_lock)
    return steps


def raw_rows(path: Path) -> list[tuple[int, str, str]]:
    """Number, body and hash of every row, without our reader."""
    lines = path.read_bytes()[START:].decode("ascii").splitlines()
    return [(number, line[65:], line[:64]) for number, line in enumerate(lines)]


# making and opening


@pytest.mark.unit
def test_a_new_ledger_states_what_it_accounts_for(path: Path) -> None:
    made = Ledger.create(
        path,
        ApproxDP(1, "1e-6"),
        unit="household",
        source="city",
        neighbors=ReplaceUser(),
        model="local",
    )
    header = Ledger(path).statement().header
    assert header == made.header
    assert (header.budget, header.neighbors) == (ApproxDP(1, "1e-6"), ReplaceUser())
    assert (header.unit, header.source, header.model, header.rehearsal) == (
        "household",
        "city",
        "local",
        False,
    )
    assert len(bytes.fromhex(header.id)) == 16
    assert abs(datetime.fromisoformat(header.created) - datetime.now(UTC)).total_seconds() < 3600
    statement = made.statement()
    assert (statement.entries, statement.spent, statement.left) == (
        (),
        Spent(),
        ApproxDP(1, "1e-6"),
    )


@pytest.mark.unit
def test_no_two_ledgers_share_a_name(tmp_path: Path) -> None:
    names = {
        Ledger.create(tmp_path / str(i), PureDP(1), unit="u", source="s").header.id
        for i in range(5)
    }
    assert len(names) == 5


@pytest.mark.unit
def test_an_existing_file_is_never_touched(path: Path) -> None:
    path.write_text("my thesis")
    with pytest.raises(
        InvalidInput, match=r"exists already and is kept as it is; open it, or choose another name$"
    ):
        Ledger.create(path, PureDP(1), unit="user", source="city")
    assert path.read_text() == "my thesis"
    assert [file.name for file in path.parent.iterdir()] == ["city.ledger"]


@pytest.mark.unit
def test_making_a_ledger_leaves_one_file(ledger: Ledger, path: Path) -> None:
    assert [file.name for file in path.parent.iterdir()] == ["city.ledger"]
    assert path.stat().st_nlink == 1
    assert path.read_bytes().startswith(b"sfumato-ledger/2\n")
    assert path.read_bytes()[: len(FIRST)] == FIRST
    path.read_bytes().decode("ascii")


@pytest.mark.unit
@pytest.mark.parametrize(
    "name", ["a b.ledger", "?x=1#y%20z", "[b]", "é☃.ledger", "x" * 200, ":memory:", "file:x"]
)
def test_any_file_name_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    made = Ledger.create(name, PureDP(1), unit="user", source="city")
    made.release(HALF, city())
    assert len(Ledger(tmp_path / name).statement().entries) == 1
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.unit
def test_a_ledger_needs_a_place(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^there is no folder .*; nothing was made"):
        Ledger.create(tmp_path / "no" / "city.ledger", PureDP(1), unit="user", source="city")
    for folder in (tmp_path, Path("/")):
        with pytest.raises(InvalidInput, match=r"exists already|is a folder"):
            Ledger.create(folder, PureDP(1), unit="user", source="city")
        with pytest.raises(InvalidInput, match=r" is a folder, not a ledger"):
            Ledger(folder)


@pytest.mark.unit
def test_what_is_no_ledger_is_met_with_the_call_that_makes_one() -> None:
    said = r"made once by Ledger\.create\(.*got None; nothing was charged"
    with pytest.raises(InvalidParameter, match=said):
        Ledger(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match=said):
        Ledger.create(None, 1, unit="user", source="city")  # type: ignore[arg-type]


@pytest.mark.unit
def test_a_missing_ledger_is_met_with_the_line_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput,
        match=r"make one with `Ledger\.create\('.*no\.ledger', 1, unit='user', source='NAME'\)`$",
    ):
        Ledger(tmp_path / "no.ledger")
    assert not list(tmp_path.iterdir())


@pytest.mark.unit
@pytest.mark.parametrize(
    ("unit", "source", "model"),
    [("", "city", "central"), ("user", "", "central"), ("user", "city", "us")],
)
def test_a_nameless_budget_is_refused(path: Path, unit: str, source: str, model: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"must be|needs the name"):
        Ledger.create(path, PureDP(1), unit=unit, source=source, model=model)
    assert not path.exists()


@pytest.mark.unit
def test_another_database_is_not_a_ledger(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE chain (number, body, hash)")
    connection.close()
    with pytest.raises(LedgerDamaged, match=r"is not a sfumato ledger$"):
        Ledger(path)
    path.write_bytes(b"GIF89a" * 1000)
    with pytest.raises(LedgerDamaged, match="is damaged or not a ledger"):
        Ledger(path)


# releasing


@pytest.mark.unit
def test_a_release_carries_what_was_promised_and_who_paid(ledger: Ledger, path: Path) -> None:
    data = guard(np.arange(4), Bound(AddRemoveUser(), 4, l1=3), source="city", exponent=-2)
    release = ledger.release(DiscreteLaplace(12), data, note="first")
    assert release.value.shape == (4,)
    assert release.value.dtype == np.int64
    assert release.exponent == -2
    assert release.numbers().tolist() == (release.value / 4).tolist()
    assert release.guarantee == Guarantee(PureDP("1/4"), AddRemoveUser(), "user", "central", None)
    assert release.ledger == ledger.header.id
    assert not release.rehearsal
    entry = release.entry
    assert (entry.number, entry.mechanism, entry.parameters) == (
        1,
        "discrete-laplace/1",
        {"scale": "12"},
    )
    assert (entry.cost, entry.computational, entry.note) == (PureDP("1/4"), None, "first")
    statement = Ledger(path).statement()
    assert statement.entries == (entry,)
    assert statement.head == entry.hash
    assert statement.spent == Spent(epsilon=Fraction(1, 4))
    assert statement.left == PureDP("3/4")
    with pytest.raises(ValueError, match="read-only"):
        release.value[0] = 0
    assert release.then(lambda value: value.sum().item()).entry == entry


@pytest.mark.unit
def test_a_release_is_charged_and_committed_before_the_data_is_opened(
    ledger: Ledger, log: list[str]
) -> None:
    ledger.release(spy(log), city(), noise=SpyNoise(log))
    assert log == ["cost", "lock", "entry", "commit", "open", "sample", "draw"]


@pytest.mark.unit
def test_a_refused_release_reads_nothing(ledger: Ledger, log: list[str]) -> None:
    with pytest.raises(BudgetExceeded):
        ledger.release(spy(log, "3/2"), city(), noise=SpyNoise(log))
    assert log == ["cost", "lock"]
    assert ledger.statement().spent == Spent()


@pytest.mark.unit
def test_a_charge_stands_when_sampling_fails(ledger: Ledger, log: list[str]) -> None:
    with pytest.raises(RuntimeError, match="out of luck"):
        ledger.release(spy(log, fault=RuntimeError("out of luck")), city())
    assert ledger.statement().spent.epsilon == Fraction(1, 2)
    ledger.release(spy(log), city())
    assert ledger.statement().spent.epsilon == 1


@pytest.mark.unit
def test_the_entry_is_on_the_disk_when_sampling_begins(ledger: Ledger, path: Path) -> None:
    seen: list[int] = []

    class Witness(SystemNoise):
        def laplace(self, scale: Any, size: int) -> Any:
            seen.append(len(raw_rows(path)) - 1)
            return super().laplace(scale, size)

    for _ in range(2):
        ledger.release(HALF, city(), noise=Witness())
    assert seen == [1, 2]


@dataclass(frozen=True)
class Misfit:
    """A mechanism with a parameter that no ledger can write down."""

    parameter: Any
    name: ClassVar[str] = "misfit/1"
    additive: ClassVar[bool] = True

    def cost(self, bound: Bound) -> Loss:
        return PureDP(bound.required("l1", by="a misfit") / 2)

    def draws(self, bound: Bound) -> int:
        return bound.size

    def sample(self, exact: Any, noise: Any) -> Any:
        raise AssertionError(f"sampled {exact} with {noise} and without a charge")


OTHER_RELATION = guard([1, 2], Bound(ReplaceUser(), 2, l1=2), source="city")
ROUND = guard([1, 2], Bound(AddRemoveUser(), 2, l2_squared=2), source="city")
FLAT = guard([1, 2], Bound(AddRemoveUser(), 2, linf=2), source="city")
KNOWN = KeyedNoise(bytes(32), epoch=bytes(12))
REFUSALS: list[tuple[Any, Any, Any, type[Exception], str]] = [
    (HALF, OTHER_RELATION, None, LedgerMismatch,
     "accounts for 'one user added or removed', the data is bounded for 'one user's data replaced'"),
    (HALF, city(source="town"), None, LedgerMismatch, "accounts for the source 'city', the data is 'town'"),
    (HALF, np.arange(4), None, InvalidParameter, "release takes guarded data, got ndarray"),
    (HALF, [1, 2], None, InvalidParameter, "release takes guarded data, got list"),
    (HALF, ROUND, None, InvalidParameter, "discrete Laplace noise needs a bound on l1, and the data carries"),
    (DiscreteGaussian(2), FLAT, None, InvalidParameter, "discrete Gaussian noise needs a bound on l2_sq"),
    (RoundedGaussian(2), FLAT, None, InvalidParameter, "rounded Gaussian noise needs a bound on l2_squared"),
    (PermuteAndFlip(2), ROUND, None, InvalidParameter, "permute-and-flip needs a bound on linf"),
    (RandomisedResponse(1), city(), None, InvalidParameter, "randomised response shows how many answers"),
    (HALF, city(), KNOWN, InvalidParameter, "noise that can be drawn again is for rehearsals only"),
]  # fmt: skip


@pytest.mark.unit
@pytest.mark.parametrize(
    ("mechanism", "data", "noise", "kind", "words"), REFUSALS, ids=range(len(REFUSALS))
)
def test_what_does_not_fit_is_refused_and_nothing_is_charged(
    ledger: Ledger,
    path: Path,
    mechanism: Any,
    data: Any,
    noise: Any,
    kind: type[Exception],
    words: str,
) -> None:
    before = path.read_bytes()
    with pytest.raises(kind) as refusal:
        ledger.release(mechanism, data, noise=noise)
    assert words in str(refusal.value)
    assert str(refusal.value).endswith("; nothing was charged")
    assert path.read_bytes() == before


@pytest.mark.unit
@pytest.mark.parametrize("parameter", [object(), float("nan"), {1, 2}])
def test_parameters_that_cannot_be_written_down_charge_nothing(
    ledger: Ledger, path: Path, parameter: Any
) -> None:
    before = path.read_bytes()
    with pytest.raises((TypeError, ValueError)):
        ledger.release(Misfit(parameter), city())
    assert path.read_bytes() == before
    assert ledger.statement().spent == Spent()


@pytest.mark.unit
def test_a_ledger_that_was_replaced_is_noticed(ledger: Ledger, path: Path) -> None:
    path.unlink()
    other = Ledger.create(path, PureDP(100), unit="user", source="town", neighbors=ReplaceUser())
    with pytest.raises(
        LedgerMismatch, match=r"was replaced since it was opened; nothing was charged$"
    ):
        ledger.release(HALF, city())
    assert other.statement().entries == ()


@pytest.mark.unit
def test_nobody_one_user_and_an_outlier_leave_the_same_traces(tmp_path: Path) -> None:
    """S15: shape, bounds, keys and metadata of a release say nothing about the data."""
    traces = []
    for number, cells in enumerate([[], [3], [0] * 10_000, [-(2**40), 2**40]]):
        ledger = Ledger.create(tmp_path / f"{number}.ledger", PureDP(1), unit="user", source="city")
        release = ledger.release(HALF, histogram(np.array(cells, dtype=np.int64), 4, source="city"))
        found = release.to_json()
        found.update(value=len(found["value"]), ledger=None)
        found["entry"].update(hash=None, time=None)
        traces.append((found, (tmp_path / f"{number}.ledger").stat().st_size))
    assert all(trace == traces[0] for trace in traces)


@pytest.mark.unit
def test_a_promise_is_charged_and_written_down(path: Path) -> None:
    ledger = Ledger.create(path, ApproxDP(1, "1e-6"), unit="user", source="city")
    promise = ApproxDP("1/2", "1e-7")
    release = ledger.release(RoundedGaussian.within(promise, city().bound), city())
    assert release.guarantee.loss == release.entry.cost == promise
    assert release.entry.parameters["promise"] == encode(promise)
    assert ledger.statement().left == ApproxDP("1/2", "9e-7")
    release.write(path.with_suffix(".json"))
    Ledger(path).check(read_release(path.with_suffix(".json")))


# the chain


@pytest.mark.unit
def test_the_chain_can_be_recomputed_by_anyone(ledger: Ledger, path: Path) -> None:
    releases = [ledger.release(TENTH, city(), note=f"number {i}, ☃") for i in range(3)]
    previous = GENESIS[2]
    rows = raw_rows(path)
    for number, body, stored in rows:
        computed = hashlib.sha256(previous.encode() + b"\n" + body.encode()).hexdigest()
        assert stored == computed, f"row {number}"
        previous = stored
    assert [number for number, _, _ in rows] == [0, 1, 2, 3]
    assert ledger.statement().head == previous
    assert [release.entry.hash for release in releases] == [stored for _, _, stored in rows[1:]]
    for _, body, _ in rows:
        assert body == json.dumps(json.loads(body), sort_keys=True, separators=(",", ":"))
    assert json.loads(rows[1][1])["cost"] == {"kind": "PureDP", "epsilon": "1/10"}


@pytest.mark.unit
def test_money_is_never_written_as_a_float(path: Path) -> None:
    ledger = Ledger.create(path, ApproxDP("1/3", "1/3000000"), unit="user", source="city")
    ledger.release(DiscreteLaplace(Fraction(7)), city())
    ledger.release(DiscreteGaussian(100), city(), noise=KeyedNoise(bytes(32)))

    def refuse_float(text: str) -> Any:
        raise AssertionError(f"{text} is a float")

    for _, body, _ in raw_rows(path):
        json.loads(body, parse_float=refuse_float)
    assert ledger.statement().spent.epsilon == Fraction(1, 7)


# checking releases


@pytest.fixture
def published(ledger: Ledger) -> Release[Any]:
    ledger.release(TENTH, city())
    return ledger.release(TENTH, city(), note="published")


@pytest.mark.unit
def test_a_release_is_known_to_its_ledger(
    ledger: Ledger, path: Path, published: Release[Any]
) -> None:
    Ledger(path).check(published)
    published.write(path.with_suffix(".json"))
    Ledger(path).check(read_release(path.with_suffix(".json")))
    ledger.check(published.then(lambda value: value.tolist()))


@pytest.mark.unit
def test_a_missing_entry_is_noticed(ledger: Ledger, path: Path) -> None:
    ledger.release(TENTH, city())
    backup = path.read_bytes()
    published = ledger.release(TENTH, city())
    path.write_bytes(backup)
    with pytest.raises(
        LedgerMismatch, match=r"^entry 2 of the release is missing in .*city\.ledger$"
    ):
        ledger.check(published)


@pytest.mark.unit
def test_an_entry_spent_twice_is_noticed(ledger: Ledger, path: Path) -> None:
    backup = path.read_bytes()
    published = ledger.release(TENTH, city())
    path.write_bytes(backup)
    ledger.release(TENTH, city(), note="as if nothing had happened")
    with pytest.raises(
        LedgerMismatch, match=r"^entry 1 in .*city\.ledger differs from the one of the release$"
    ):
        ledger.check(published)


@pytest.mark.unit
@pytest.mark.parametrize(
    "change",
    [
        {"cost": PureDP("1/100")},
        {"mechanism": "discrete-laplace/2"},
        {"parameters": {"scale": "11"}},
        {"note": ""},
        {"time": "2001-01-01T00:00:00+00:00"},
        {"hash": "0" * 64},
        {"computational": Fraction(1, 2)},
    ],
)
def test_an_edited_entry_is_noticed(
    ledger: Ledger, published: Release[Any], change: dict[str, Any]
) -> None:
    with pytest.raises(LedgerMismatch, match="differs from the one of the release"):
        ledger.check(replace(published, entry=replace(published.entry, **change)))


@pytest.mark.unit
@pytest.mark.parametrize(
    "change",
    [
        {"loss": PureDP("1/100")},
        {"loss": ZCDP("1/10")},
        {"neighbors": FlippedEdge()},
        {"unit": "user-day"},
        {"model": "local"},
        {"computational": Fraction(1, 2)},
    ],
)
def test_a_promise_that_was_not_paid_for_is_noticed(
    ledger: Ledger, published: Release[Any], change: dict[str, Any]
) -> None:
    tampered = replace(published, guarantee=replace(published.guarantee, **change))
    with pytest.raises(
        LedgerMismatch, match=r"^the release promises '.*', but entry 2 paid for epsilon 0\.1$"
    ):
        ledger.check(tampered)


@pytest.mark.unit
def test_a_release_of_another_ledger_is_noticed(tmp_path: Path, published: Release[Any]) -> None:
    other = Ledger.create(tmp_path / "other", PureDP(1), unit="user", source="city")
    other.release(TENTH, city())
    other.release(TENTH, city(), note="published")
    with pytest.raises(
        LedgerMismatch,
        match=rf"^the release is of ledger {published.ledger}, .*other is {other.header.id}$",
    ):
        other.check(published)


@pytest.mark.unit
def test_a_ledger_does_not_vouch_for_the_values(ledger: Ledger, published: Release[Any]) -> None:
    """It never sees them after they are drawn; threat model: sign what you publish."""
    ledger.check(published.then(lambda value: value + 1))


# rehearsals


@pytest.mark.unit
def test_a_rehearsal_is_marked_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.rehearsal(PureDP(1))
    release = ledger.release(HALF, city(source=REHEARSAL))
    assert release.rehearsal
    assert release.to_json()["rehearsal"] is True
    assert ledger.statement().header.rehearsal
    ledger.check(release)
    ledger.release(HALF, city(source=REHEARSAL))
    with pytest.raises(
        BudgetExceeded, match=r"^asked epsilon 0\.5, 0 left in rehearsal; nothing was released$"
    ):
        ledger.release(HALF, city(source=REHEARSAL))
    assert len(ledger.statement().entries) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.unit
def test_a_rehearsal_refuses_data_of_a_real_source() -> None:
    ledger = Ledger.rehearsal(PureDP(1))
    with pytest.raises(
        LedgerMismatch, match="rehearsal accounts for the source REHEARSAL, the data is 'city'"
    ):
        ledger.release(HALF, city())
    assert ledger.statement().entries == ()


@pytest.mark.unit
def test_known_noise_comes_again_in_rehearsals_only(ledger: Ledger) -> None:
    def known() -> KeyedNoise:
        return KeyedNoise(bytes(32), epoch=bytes(12))

    values = [
        Ledger.rehearsal(PureDP(1))
        .release(HALF, city(source=REHEARSAL), noise=known())
        .value.tolist()
        for _ in range(2)
    ]
    assert values[0] == values[1]
    with pytest.raises(InvalidParameter, match="for rehearsals only; nothing was charged"):
        ledger.release(HALF, city(), noise=known())
    assert ledger.statement().entries == ()


@pytest.mark.unit
def test_keyed_noise_is_told_in_the_guarantee_and_the_entry(ledger: Ledger) -> None:
    release = ledger.release(HALF, city(), noise=KeyedNoise(bytes(32)))
    assert release.guarantee.computational == 4 * MAX_DISTANCE
    assert release.entry.computational == 4 * MAX_DISTANCE
    assert "removable by whoever holds the key" in str(release.guarantee)
    ledger.check(release)


# releases as files


losses: st.SearchStrategy[Loss] = st.one_of(
    st.fractions(0).map(PureDP),
    st.fractions(0).map(ZCDP),
    st.builds(ApproxDP, st.fractions(0), st.fractions(0, Fraction(99, 100))),
)
relations: st.SearchStrategy[Neighbors] = st.one_of(
    st.just(AddRemoveUser()),
    st.just(ReplaceUser()),
    st.just(FlippedEdge()),
    st.builds(MovedMass, st.fractions(Fraction(1, 10**9)), st.text(min_size=1)),
    st.builds(SwappedCells, st.fractions(Fraction(1, 10**9))),
)


@pytest.mark.property
@given(loss=losses, relation=relations)
def test_losses_and_relations_come_back_from_json(loss: Loss, relation: Neighbors) -> None:
    assert decode_loss(json.loads(json.dumps(encode(loss)))) == loss
    assert decode_neighbors(json.loads(json.dumps(encode(relation)))) == relation


@pytest.mark.unit
@pytest.mark.parametrize(
    "data",
    [
        None,
        1,
        [],
        {},
        {"kind": []},
        {"kind": "FreeDP"},
        {"kind": "PureDP"},
        {"kind": "PureDP", "rho": 1},
        {"kind": "PureDP", "epsilon": None},
        {"kind": "PureDP", "epsilon": "-1"},
        {"kind": "PureDP", "epsilon": "1/0"},
    ],
)
def test_what_is_no_loss_is_refused(data: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^not a loss: "):
        decode_loss(data)


@pytest.mark.property
@given(
    value=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5),
    exponent=st.integers(-2000, 2000),
    loss=losses,
    relation=relations,
    distance=st.none() | st.fractions(0, Fraction(1, 2)),
    note=st.text(),
    rehearsal=st.booleans(),
)
@settings(max_examples=50)
def test_a_release_comes_back_from_its_file(
    value: list[int],
    exponent: int,
    loss: Loss,
    relation: Neighbors,
    distance: Fraction | None,
    note: str,
    rehearsal: bool,
) -> None:
    entry = Entry(
        7,
        "2001-01-01T00:00:00+00:00",
        "spy/1",
        {"scale": "1/3", "size": 2},
        loss,
        distance,
        None,
        note,
        "a",
    )
    promise = Guarantee(loss, relation, "user", "local", distance)
    release = Release(np.array(value, dtype=np.int64), exponent, promise, "id", entry, rehearsal)
    with tempfile.TemporaryDirectory() as folder:
        release.write(Path(folder) / "release.json")
        found = read_release(Path(folder) / "release.json")
    assert found.value.tolist() == value
    assert found.value.dtype == np.int64
    assert replace(found, value=None) == replace(release, value=None)  # type: ignore[arg-type]


BAD_FILES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "empty": lambda _: "",
    "not JSON": lambda _: "{'format': 1}",
    "a list": lambda _: "[]",
    "another format": lambda data: {**data, "format": "sfumato-release/9"},
    "no value": lambda data: {key: item for key, item in data.items() if key != "value"},
    "no entry": lambda data: {**data, "entry": None},
    "no cost": lambda data: {**data, "entry": {**data["entry"], "cost": {}}},
    "a division by zero": lambda data: {**data, "entry": {**data["entry"], "computational": "1/0"}},
    "a number beyond all integers": lambda data: {**data, "value": [2**70]},
    "words for values": lambda data: {**data, "value": ["many"]},
    "an endless exponent": lambda data: {**data, "exponent": float("inf")},
    "another model": lambda data: {**data, "guarantee": {**data["guarantee"], "model": "trust me"}},
}


@pytest.mark.unit
@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_is_no_release_is_refused(
    tmp_path: Path, published: Release[Any], name: str
) -> None:
    content = BAD_FILES[name](published.to_json())
    file = tmp_path / "release.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(InvalidInput) as refusal:
        read_release(file)
    assert str(refusal.value).startswith(f"{file} is not a whole release: ")
    assert str(refusal.value).count("nothing was checked") == 1


@pytest.mark.unit
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for file in (tmp_path, tmp_path / "no.json"):
        with pytest.raises(InvalidInput, match=r"^cannot read .*; nothing was checked$"):
            read_release(file)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="is not a whole release"):
        read_release(tmp_path / "binary")


# any interleaving


@dataclass(frozen=True)
class Fixed:
    """A mechanism of a given cost that checks, when it samples, that its entry is on the disk."""

    number: int
    name: ClassVar[str] = "fixed/1"
    additive: ClassVar[bool] = True
    price: ClassVar[Loss] = PureDP(0)
    file: ClassVar[Path] = Path()
    broken: ClassVar[BaseException | None] = None

    def cost(self, bound: Bound) -> Loss:
        bound.required("l1", by="a fixed price")
        return Fixed.price

    def draws(self, bound: Bound) -> int:
        return bound.size

    def sample(self, exact: Any, noise: Any) -> Any:
        assert not noise.known
        last = json.loads(raw_rows(Fixed.file)[-1][1])
        assert last["parameters"] == {"number": self.number}, "sampled without an entry on the disk"
        if Fixed.broken is not None:
            raise Fixed.broken
        return exact.copy()


def within(budget: Loss, spent: Spent) -> bool:
    match budget:
        case PureDP(epsilon):
            return spent.epsilon <= epsilon and spent.delta == spent.rho == 0
        case ZCDP(rho):
            return spent.rho <= rho and spent.epsilon == spent.delta == 0
        case ApproxDP(epsilon, delta):
            return (
                spent.epsilon <= epsilon
                and spent.delta <= delta
                and spent.rho <= (spent.account or 0)
            )


class Life(RuleBasedStateMachine):
    """Releases, refusals, crashes and reopenings in any order, through two handles on one file."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="ledger-life-"))
        Fixed.file = self.path = self.folder / "city.ledger"
        self.attempts = self.values = 0
        self.costs: list[Loss] = []
        self.spent = Spent()

    @initialize(budget=st.sampled_from([PureDP(1), ZCDP("1/2"), ApproxDP(1, "1e-6")]))
    def create(self, budget: Loss) -> None:
        self.budget = budget
        self.handles = [
            Ledger.create(self.path, budget, unit="user", source="city"),
            Ledger(self.path),
        ]

    def attempt(self, which: int, cost: Loss, broken: BaseException | None = None) -> None:
        self.attempts += 1
        Fixed.price, Fixed.broken = cost, broken
        self.handles[which].release(Fixed(self.attempts), city())

    prices = st.one_of(
        st.sampled_from(["1/10", "1/3", "1/2", "1e-30", "2"]).map(PureDP),
        st.sampled_from(["1/1000", "1/100", "1/4"]).map(ZCDP),
        st.sampled_from(["1e-7", "1e-6"]).map(lambda delta: ApproxDP("1/10", delta)),
    )

    @rule(which=st.integers(0, 1), cost=prices)
    def release(self, which: int, cost: Loss) -> None:
        try:
            self.attempt(which, cost)
        except (BudgetExceeded, NotComparable):
            if isinstance(self.budget, PureDP) and isinstance(cost, PureDP):
                assert (
                    sum((c.epsilon for c in self.costs if isinstance(c, PureDP)), cost.epsilon) > 1
                )
            return
        self.values += 1
        self.costs.append(cost)

    @rule(
        which=st.integers(0, 1),
        cost=prices,
        broken=st.sampled_from([RuntimeError("x"), KeyboardInterrupt()]),
    )
    def crash_while_sampling(self, which: int, cost: Loss, broken: BaseException) -> None:
        try:
            self.attempt(which, cost, broken)
        except (BudgetExceeded, NotComparable):
            return
        except type(broken):
            self.costs.append(cost)

    @rule(which=st.integers(0, 1), cost=prices)
    def crash_while_writing(self, which: int, cost: Loss) -> None:
        true = ledger_file.append

        def torn(*args: Any) -> str:
            true(*args)
            raise KeyboardInterrupt

        ledger_file.append = torn  # type: ignore[assignment]
        try:
            with pytest.raises((KeyboardInterrupt, BudgetExceeded, NotComparable)):
                self.attempt(which, cost)
        finally:
            ledger_file.append = true

    @rule(which=st.integers(0, 1), source=st.sampled_from(["town", ""]))
    def offer_other_data(self, which: int, source: str) -> None:
        with pytest.raises(LedgerMismatch, match="nothing was charged"):
            self.handles[which].release(Fixed(0), city(source=source))

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        self.handles[which] = Ledger(self.path)

    @rule()
    def make_again(self) -> None:
        with pytest.raises(InvalidInput, match="kept as it is"):
            Ledger.create(self.path, PureDP(100), unit="user", source="city")

    @invariant()
    def the_budget_holds_and_nothing_is_forgotten(self) -> None:
        if not hasattr(self, "budget"):
            return
        statement = Ledger(self.path).statement()
        now = statement.spent
        assert [entry.cost for entry in statement.entries] == self.costs
        assert self.values <= len(statement.entries)
        assert within(self.budget, now)
        assert now.epsilon >= self.spent.epsilon
        assert now.delta >= self.spent.delta
        assert now.rho >= self.spent.rho
        assert self.spent.account in (None, now.account)
        self.spent = now

    def teardown(self) -> None:
        shutil.rmtree(self.folder)


Life.TestCase.settings = settings(max_examples=60, stateful_step_count=20)
TestLife = pytest.mark.property(Life.TestCase)
