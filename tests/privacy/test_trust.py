"""Who had to be trusted is part of a guarantee: said in words, kept in ledgers, and paid for by no other."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.errors import InvalidInput, InvalidParameter, LedgerError, LedgerMismatch
from sfumato.privacy import (
    REHEARSAL,
    AddRemoveUser,
    Bound,
    DiscreteLaplace,
    Guarantee,
    Joint,
    Ledger,
    PureDP,
    SharedLaplace,
    Shuffled,
    SystemNoise,
    guard,
    read_release,
)
from sfumato.privacy.accounting import (
    Model,
    decode_guarantee,
    decode_model,
    encode_guarantee,
    encode_model,
    model_name,
    who_is_trusted,
)
from sfumato.privacy.ledger import LedgerStatement, render_statement
from sfumato.privacy.mechanisms import noisy_sum
from sfumato.privacy.noise import SharedNoise, SimulatedShares, draw_shares

pytestmark = pytest.mark.unit

TRUST = Joint(3)
BOUND = Bound(AddRemoveUser(), 4, l1=1)
OWN = guard([1, 2, 3, 4], BOUND, source="city")


class Session(SharedNoise):
    """One party's session: the others have the same values as it."""

    distance: Fraction | None = None
    known = False

    def __init__(self, trust: Joint = TRUST) -> None:
        self._trust, self.asked = trust, 0

    @property
    def trust(self) -> Joint:
        return self._trust

    def noisy_sum(self, values: Any, scales: Any, which: Any, trust: Any) -> Any:
        self.asked += 1
        return sum(values + draw_shares(trust, scales, which) for _ in range(self._trust.parties))


def made(folder: Path, model: Model) -> Ledger:
    name = model if isinstance(model, str) else type(model).__name__
    return Ledger.create(folder / f"{name}.ledger", 1, unit="user", source="city", model=model)


def test_a_party_pays_for_its_part(tmp_path: Path) -> None:
    ledger, session = made(tmp_path, TRUST), Session()
    paid = ledger.release(SharedLaplace(4, TRUST), OWN, noise=session)
    assert session.asked == 1
    assert paid.entry.cost == PureDP("1/4")
    assert paid.entry.parameters == {
        "scale": "4",
        "trust": {"kind": "joint", "parties": 3, "curious": 1},
    }
    assert paid.guarantee.model == TRUST
    paid.write(tmp_path / "sum.json")
    again = read_release(tmp_path / "sum.json")
    assert again.guarantee == paid.guarantee
    assert again.value.tolist() == paid.value.tolist()
    Ledger(ledger.path).check(again)


@pytest.mark.parametrize(
    ("model", "mechanism", "noise", "because"),
    [
        ("central", SharedLaplace(4, TRUST), Session(), "central model and pays for nothing else"),
        ("central", DiscreteLaplace(4), Session(), "Session is for the joint model"),
        (TRUST, DiscreteLaplace(4), SystemNoise(), "noise that one hand adds"),
        (TRUST, SharedLaplace(4, TRUST), SystemNoise(), "SystemNoise is noise that one hand adds"),
        (TRUST, SharedLaplace(4, Joint(3, 0)), Session(), "3 parties, none of them curious"),
        (TRUST, SharedLaplace(4, TRUST), Session(Joint(5)), "for the joint model of 5 parties"),
        (TRUST, SharedLaplace(4, TRUST), SimulatedShares(TRUST), "for rehearsals only"),
        (Shuffled(1000), SharedLaplace(4, TRUST), Session(), "shuffled model, 1000 devices"),
    ],
)
def test_a_ledger_pays_for_its_own_model_only(
    model: Model, mechanism: Any, noise: Any, because: str, tmp_path: Path
) -> None:
    ledger = made(tmp_path, model)
    with pytest.raises((LedgerMismatch, InvalidParameter), match=because) as refusal:
        ledger.release(mechanism, OWN, noise=noise)
    assert "nothing was charged" in str(refusal.value)
    assert ledger.statement().count == 0
    assert getattr(noise, "asked", 0) == 0


def test_a_party_alone_adds_no_noise_of_all(tmp_path: Path) -> None:
    """In a ledger of the central model: its promise would be of noise that others add."""
    ledger = made(tmp_path, "central")
    with pytest.raises(LedgerMismatch, match="pays for nothing else"):
        ledger.release(SharedLaplace(4, TRUST), OWN, noise=Session())


def test_what_others_may_have_seen_is_not_drawn_again(tmp_path: Path) -> None:
    """A party whose session broke pays anew: rounds may have been opened to the others."""

    class Broken(Session):
        def noisy_sum(self, *asked: Any) -> Any:
            raise OSError(f"a party is gone, asked for {len(asked)}")

    ledger = made(tmp_path, TRUST)
    with pytest.raises(OSError, match="gone"):
        ledger.release(SharedLaplace(4, TRUST), OWN, noise=Broken(), request={"kind": "sum"})
    assert ledger.statement().left == PureDP("3/4")
    with pytest.raises(LedgerMismatch, match="release anew; nothing was drawn again"):
        ledger.redraw(1, SharedLaplace(4, TRUST), OWN, noise=Session())


@pytest.mark.parametrize("odd", [np.int64(7), np.zeros(3, np.int64), np.zeros(4)])
def test_what_a_session_opens_is_checked(odd: Any, tmp_path: Path) -> None:
    """A single number would be that of every entry."""

    class Odd(Session):
        def noisy_sum(self, *asked: Any) -> Any:
            return odd if asked else None

    with pytest.raises(InvalidInput, match="a session opens 4 whole numbers"):
        made(tmp_path, TRUST).release(SharedLaplace(4, TRUST), OWN, noise=Odd())


def test_a_simulation_is_a_rehearsal() -> None:
    ledger = Ledger.rehearsal(PureDP(1), model=TRUST)
    public = guard([0] * 4, BOUND, source=REHEARSAL)
    drawn = ledger.release(SharedLaplace(4, TRUST), public, noise=SimulatedShares(TRUST))
    assert drawn.rehearsal
    none = np.zeros(1, dtype=np.int64)
    with pytest.raises(InvalidParameter, match="of 5 parties, 1 of them curious, not of the joint"):
        noisy_sum(none, (), none, trust=TRUST, noise=SimulatedShares(Joint(5)))
    with pytest.raises(InvalidParameter, match="in shares"):
        SimulatedShares(TRUST).laplace(1, 1)


def test_statements_say_who_was_trusted() -> None:
    said = str(Guarantee(PureDP(1), AddRemoveUser(), "user", TRUST))
    assert said == (
        "epsilon 1 for each user (one user added or removed), joint model: 3 parties keep their own rows, "
        "add their own shares of the noise and are trusted to keep to the protocol (honest but curious): "
        "any 1 of them may use all that it sees; a user whom several parties know has mass 1 in each "
        "and loses so much once for each; not covered: a party that lies about its rows, or stops"
    )
    assert "any 2 of them may pool all that they see" in who_is_trusted(Joint(5, 2), "user")
    assert "protects against outsiders only" in who_is_trusted(Joint(5, 0), "user")
    mixed = who_is_trusted(Shuffled(500, 600, 50), "user")
    assert "500 to 600 devices add their own shares of the noise, at most 50 of a batch" in mixed
    assert "not to work with whoever adds them up" in mixed
    assert "a user removed is a device that sends noise and no place" in mixed
    assert "devices that lie about places" in mixed
    # What was said before is said as before: files hold these words.
    assert str(Guarantee(PureDP(1), AddRemoveUser(), "user")).endswith("removed), central model")
    assert model_name("local") == "local model"


def test_ledgers_show_their_model(tmp_path: Path) -> None:
    from rich.console import Console

    ledger = made(tmp_path, TRUST)
    console = Console(width=300)
    with console.capture() as shown:
        console.print(render_statement(ledger.statement(), "city.ledger"))
    assert "joint model of 3 parties, 1 of them curious" in shown.get()
    told = json.loads(json.dumps(ledger.statement().to_json()))
    assert LedgerStatement.from_json(told).header == ledger.header
    assert Ledger(ledger.path).header.model == TRUST


def test_the_central_model_is_written_as_before(tmp_path: Path) -> None:
    header = made(tmp_path, "central").header
    assert header.to_json()["model"] == "central"
    told = encode_guarantee(Guarantee(PureDP(1), AddRemoveUser(), "user"))
    assert told["model"] == "central"


MODELS: list[Model] = [
    "central",
    "local",
    Joint(3),
    Joint(7, 3),
    Shuffled(100),
    Shuffled(100, 120, 9),
]


@pytest.mark.parametrize("model", MODELS)
def test_models_read_as_they_are_written(model: Model) -> None:
    assert decode_model(json.loads(json.dumps(encode_model(model)))) == model
    told = Guarantee(PureDP(1), AddRemoveUser(), "user", model)
    assert decode_guarantee(json.loads(json.dumps(encode_guarantee(told)))) == told


@pytest.mark.parametrize(
    "bad", ["ours", {"kind": "joint"}, {"kind": "joint", "parties": 1, "curious": 0}, {}, 3, None]
)
def test_no_other_model_is_read(bad: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not a trust model"):
        decode_model(bad)
    from sfumato.privacy.ledger.statement import Header

    data = made(tmp_path, "central").header.to_json() | {"model": bad}
    with pytest.raises(LedgerError, match="later version"):
        Header.from_json(data)


@pytest.mark.parametrize(
    ("make", "because"),
    [
        (lambda: Joint(1), "parties must be 2 to"),
        (lambda: Joint(3, 3), "curious must lie in 0..2"),
        (lambda: Joint(3, -1), "curious must lie in"),
        (lambda: Joint(21, 20), "21 times the variance of a central map; at most 16"),
        (lambda: Joint(3.0), "whole number"),  # type: ignore[arg-type]
        (lambda: Shuffled(1), "batch must be"),
        (lambda: Shuffled(9, 8), "devices must be a whole number of 9"),
        (lambda: Shuffled(9, curious=8), "two devices at least must be mixed"),
        (lambda: Shuffled(20, 330), "16.5 times the variance"),
    ],
)
def test_models_that_protect_nobody_are_refused(make: Any, because: str) -> None:
    with pytest.raises(InvalidParameter, match=because):
        make()
