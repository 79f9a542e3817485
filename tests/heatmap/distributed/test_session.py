"""Joint releases party by party: agreement before any charge, stops, receipts, and going on."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.heatmap.distributed.in_threads import (
    NAMES,
    Outcome,
    Together,
    charged,
    counts_of,
    plan_of,
    rows_of,
    run_all,
)

from sfumato.errors import (
    BudgetExceeded,
    InvalidParameter,
    LedgerBusy,
    LedgerMismatch,
    SessionStopped,
)
from sfumato.heatmap import PyramidMethod, ZoomMethod
from sfumato.heatmap.distributed import (
    check_joint,
    joint_text,
    make_certificates,
    read_parties,
)
from sfumato.heatmap.distributed.receipts import Receipts
from sfumato.heatmap.distributed.session import JointSession
from sfumato.privacy import Joint, Ledger, PureDP
from sfumato.privacy.mechanisms import noisy_sum


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The parties' file and certificates, made once."""
    folder = tmp_path_factory.mktemp("group")
    make_certificates(folder / "certificates", NAMES)
    text = "".join(
        f'[[party]]\nname = "{one}"\naddress = "127.0.0.1:71{i}0"\n' for i, one in enumerate(NAMES)
    )
    (folder / "parties.toml").write_text(text)
    return folder


@pytest.fixture
def folder(group: Path, tmp_path: Path) -> Path:
    shutil.copytree(group, tmp_path, dirs_exist_ok=True)
    return tmp_path


def plans(folder: Path, **changed: Any) -> list[Any]:
    return [plan_of(folder, party, **changed) for party in range(3)]


def told(outcomes: list[Outcome]) -> list[str]:
    assert all(isinstance(one, BaseException) for one in outcomes), outcomes
    return [str(one) for one in outcomes]


@pytest.mark.unit
@pytest.mark.parametrize("method", [ZoomMethod(blur=0.1), PyramidMethod()], ids=["zoom", "pyramid"])
def test_all_parties_have_one_map(folder: Path, method: Any) -> None:
    together = Together()
    made = run_all(plans(folder, method=method), together)
    assert counts_of(made[0]) == counts_of(made[1]) == counts_of(made[2])
    first: Any = made[0]
    assert first.rounds == len(together.opened) == len(counts_of(first)["levels"])
    assert first.counts == sum(one.size for one in together.opened)
    assert abs(first.map.tiles.total - 120) < 80
    assert charged(folder) == [1, 1, 1]
    assert not list(folder.glob("*.joint")), "receipts are kept though all have the map"
    assert "3 parties keep their own rows" in first.release.statement
    assert "not covered: a party that lies about its rows, or stops" in first.release.statement
    assert first.map.title == "ticino, uri, vaud"
    found = check_joint([folder / f"{name}.ledger" for name in NAMES])
    assert found.same
    assert found.sessions[0].session == first.session
    assert f"{first.counts:,} counts opened in {first.rounds} rounds" in joint_text(first)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"epsilon": "1/2"}, "epsilon"),
        ({"levels": 4}, "area"),
        ({"method": PyramidMethod()}, "method"),
        ({"method": ZoomMethod(blur=0.2)}, "method"),
        ({"rows_per_user": 2}, "measure"),
    ],
)
def test_parties_that_disagree_charge_nobody(
    folder: Path, changed: dict[str, Any], what: str
) -> None:
    asked = [plan_of(folder, 0), plan_of(folder, 1, **changed), plan_of(folder, 2)]
    assert asked[0].result.digest == asked[2].result.digest != asked[1].result.digest
    said = told(run_all(asked, Together()))
    expected = (
        f"uri asks for another {what} than ticino: compare what `dry_run` says; nothing was charged"
    )
    assert said == [expected] * 3
    assert charged(folder) == [0, 0, 0]


@pytest.mark.unit
def test_a_party_with_another_certificate_disagrees(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    make_certificates(other / "certificates", NAMES)
    shutil.copy(folder / "parties.toml", other)
    asked = plans(folder)
    asked[2] = plan_of(folder, 2, parties=read_parties(other / "parties.toml"))
    assert "vaud asks for another parties than ticino" in told(run_all(asked, Together()))[0]
    assert charged(folder) == [0, 0, 0]


@pytest.mark.fault
def test_a_party_that_cannot_read_its_rows_charges_nobody(folder: Path) -> None:
    missing = folder / "rows.parquet"
    missing.write_bytes(b"no rows")
    asked = plans(folder)
    asked[1] = plan_of(folder, 1, source=missing)
    said = told(run_all(asked, Together()))
    assert said[0] == said[2] == "uri stopped; nothing was charged"
    assert "rows.parquet" in said[1]
    assert charged(folder) == [0, 0, 0]


@pytest.mark.fault
@pytest.mark.parametrize(
    ("what", "call", "rounds"),
    [("tell", 3, 0), ("sum", 1, 0), ("sum", 3, 2)],
    ids=[
        "charged, before any round",
        "in the first round",
        "in the third round",
    ],
)
def test_a_session_that_stopped_goes_on_and_costs_nothing(
    folder: Path, what: str, call: int, rounds: int
) -> None:
    """Rounds that were opened are opened again, number for number: nobody sees a second draw."""
    first = Together(lambda me, doing, at: (me, doing, at) == (1, what, call))
    said = told(run_all(plans(folder), first))
    assert said[1] == "the machine is gone"
    for one, name in ((said[0], "ticino"), (said[2], "vaud")):
        assert one.startswith("uri stopped; entry 1 of ")
        assert f"{name}.ledger, epsilon 1, was charged" in one
        assert one.endswith(": run the same command again at all parties, which costs nothing more")
    assert charged(folder) == [1, 1, 1]
    assert len(first.opened) == rounds
    asked = plans(folder)
    assert "would go on, at no cost" in joint_text(asked[0].result)
    again = Together()
    made: list[Any] = run_all(asked, again)
    assert counts_of(made[0]) == counts_of(made[1]) == counts_of(made[2])
    assert all(one.resumed for one in made)
    assert charged(folder) == [1, 1, 1]
    for before, after in zip(first.opened, again.opened, strict=False):
        assert (before == after).all(), "a round was drawn again"
    assert not list(folder.glob("*.joint"))
    assert check_joint([folder / f"{name}.ledger" for name in NAMES]).same
    # What was finished does not go on: the next one is another release, which nobody can pay for.
    with pytest.raises(BudgetExceeded, match="0 left"):
        plan_of(folder, 0)


@pytest.mark.fault
@pytest.mark.filterwarnings("ignore:uri stopped, and may lack the map")
def test_who_has_kept_all_that_was_opened_has_the_map(folder: Path) -> None:
    """One party dies when all was opened: the others have the map, and help it to its own, for nothing."""
    made: list[Any] = run_all(plans(folder), Together(lambda *at: at == (1, "tell", 4)))
    assert str(made[1]) == "the machine is gone"
    assert counts_of(made[0]) == counts_of(made[2])
    assert len(list(folder.glob("*.joint/*"))) == 3, (
        "receipts are gone though a party may need them"
    )
    again: list[Any] = run_all(plans(folder), Together())
    assert counts_of(again[1]) == counts_of(made[0])
    assert charged(folder) == [1, 1, 1]
    assert not list(folder.glob("*.joint"))


@pytest.mark.fault
@pytest.mark.filterwarnings("ignore:.*and may lack the map")
def test_who_has_kept_all_that_was_opened_finishes_alone(folder: Path) -> None:
    run_all(plans(folder), Together(lambda *at: at == (1, "tell", 4)))
    nobody = Together()
    nobody.who = "vaud"
    nobody.barrier.abort()
    found = plan_of(folder, 1).run(sums=nobody.end(1))
    assert found.resumed
    assert found.map.tiles.total > 0
    assert charged(folder) == [1, 1, 1]


@pytest.fixture
def stopped(folder: Path) -> Path:
    """A session that stopped in its third round."""
    run_all(plans(folder, budget=2), Together(lambda *at: at == (1, "sum", 3)))
    return folder


@pytest.mark.fault
def test_a_party_without_receipts_does_not_go_on(stopped: Path) -> None:
    shutil.rmtree(stopped / "vaud.ledger.joint")
    said = told(run_all(plans(stopped), Together()))
    assert said[0].startswith(
        "vaud has no receipts of rounds that others have begun: begin with `anew`"
    )
    assert charged(stopped) == [1, 1, 1]


@pytest.mark.fault
def test_the_last_receipt_is_missed_too(stopped: Path) -> None:
    """Two rounds were opened, a third begun: without its second receipt a party would draw that round again."""
    (folder,) = (stopped / "vaud.ledger.joint").iterdir()
    for name in ("0003.round", "0002.round"):
        (folder / name).unlink(missing_ok=True)
    for other in ("ticino", "uri"):
        (theirs,) = (stopped / f"{other}.ledger.joint").iterdir()
        (theirs / "0003.round").unlink(missing_ok=True)
    said = told(run_all(plans(stopped), Together()))
    assert said[0].startswith("vaud has no receipts of rounds that others have begun")


@pytest.mark.fault
def test_other_rows_do_not_go_on(stopped: Path) -> None:
    """A user who moves from one cell to another between two rounds would pay on two paths."""
    asked = plans(stopped)
    asked[1] = plan_of(stopped, 1, source=rows_of(1, users=41))
    said = told(run_all(asked, Together()))
    assert "this party's rows have changed since the session was begun" in said[1]
    assert charged(stopped) == [1, 1, 1]


@pytest.mark.fault
def test_what_one_party_gave_up_does_not_go_on(stopped: Path) -> None:
    asked = plans(stopped)
    (folder,) = (stopped / "uri.ledger.joint").iterdir()
    Receipts(stopped / "uri.ledger", folder.name).abandon()
    said = told(run_all(asked, Together()))
    assert "this party has given up session" in said[1]
    assert [file.name for file in folder.iterdir()] == ["abandoned"]


@pytest.mark.fault
def test_a_ledger_with_receipts_is_not_moved(stopped: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerBusy, match="receipts of a joint session that is not over"):
        Ledger(stopped / "uri.ledger").move(tmp_path / "other.ledger")


@pytest.mark.unit
def test_parties_that_ask_for_other_counts_open_nothing(tmp_path: Path) -> None:
    """Cells are chosen by arithmetic of each party's own machine."""

    class Ends:
        def tell(self, values: Any) -> Any:
            return np.stack([values, values, values + (len(values) == 3)])

        def sum(self, values: Any) -> Any:
            raise AssertionError(f"{len(values)} values left")

    party = JointSession(
        Ends(), Joint(3), names=NAMES, receipts=Receipts(tmp_path / "a.ledger", "s")
    )
    with pytest.raises(SessionStopped, match="vaud asks for other counts in round 1"):
        party.noisy_sum(np.arange(5), [Fraction(8)], np.zeros(5, dtype=np.int64), Joint(3))
    assert not list(tmp_path.iterdir()), "a share was drawn"


@pytest.mark.unit
@pytest.mark.parametrize("other", [{"rows_per_user": 3}, {"weight": "w", "weight_step": 1}])
def test_what_rows_count_is_compared(folder: Path, other: dict[str, Any]) -> None:
    one, two = plan_of(folder, 0).request, plan_of(folder, 1, **other).request
    assert one.terms["measure"] != two.terms["measure"]


@pytest.mark.fault
def test_a_new_session_is_charged_again_and_at_all_parties(stopped: Path) -> None:
    asked = plans(stopped)
    asked[0] = plan_of(stopped, 0, anew=True)
    said = told(run_all(asked, Together()))
    assert said == ["ticino would begin `anew`, the others not; nothing was charged"] * 3
    made: list[Any] = run_all(plans(stopped, anew=True), Together())
    assert counts_of(made[0]) == counts_of(made[2])
    assert not made[0].resumed
    assert charged(stopped) == [2, 2, 2]
    # What was given up does not come back.
    with pytest.raises(BudgetExceeded, match="0 left"):
        plan_of(stopped, 0)


@pytest.mark.fault
def test_a_draft_was_never_sent_and_a_damaged_receipt_may_have_been(tmp_path: Path) -> None:
    found = Receipts(tmp_path / "a.ledger", "0" * 16 + "-" + "1" * 16)
    found.write(1, b"a" * 32, np.arange(3))
    found.write(2, b"b" * 32, np.arange(4))
    file = found.folder / "0002.round"
    assert file.stat().st_mode & 0o077 == 0, "others may read receipts"
    (found.folder / ".sfumato-0003.round").write_bytes(b"torn")
    assert found.begun() == 2
    assert found.sent(3, b"b" * 32, 4) is None
    found.write(3, b"c" * 32, np.arange(2))
    file.write_bytes(file.read_bytes()[:-1])
    for ask in (found.begun, lambda: found.sent(2, b"b" * 32, 4)):
        with pytest.raises(SessionStopped, match="is damaged, and what it told may have been sent"):
            ask()
    with pytest.raises(SessionStopped, match="asks for other counts than its receipt"):
        found.sent(1, b"c" * 32, 3)


@pytest.mark.unit
def test_every_round_has_fresh_shares(tmp_path: Path) -> None:
    """A share used twice is no noise: the difference of the two sums would be without it."""
    trust, sent = Joint(3), []

    class Ends:
        def tell(self, values: Any) -> Any:
            return np.stack([values] * 3)

        def sum(self, values: Any) -> Any:
            sent.append(values)
            return values

    party = JointSession(Ends(), trust, names=NAMES, receipts=Receipts(tmp_path / "a.ledger", "s"))
    values, scales = np.arange(50), [Fraction(2**20)]
    for _ in range(2):
        party.noisy_sum(values, scales, np.zeros(50, dtype=np.int64), trust)
    assert (sent[0] != sent[1]).mean() > 0.9, "two rounds share their noise"
    assert (sent[0] != values).mean() > 0.9
    with pytest.raises(InvalidParameter, match="not of the joint model of 3 parties, none of them"):
        noisy_sum(values, (scales[0],), 0 * values, trust=Joint(3, 0), noise=party)


@pytest.mark.unit
def test_a_helper_adds_a_share_and_has_no_rows(folder: Path) -> None:
    text = (folder / "parties.toml").read_text()
    (folder / "parties.toml").write_text(f"{text}helper = true\n")
    with pytest.raises(InvalidParameter, match="vaud is a helper, which has no rows"):
        plan_of(folder, 2)
    with pytest.raises(InvalidParameter, match="ticino has rows: name their table"):
        plan_of(folder, 0, source=None)
    asked = [plan_of(folder, 0), plan_of(folder, 1), plan_of(folder, 2, source=None)]
    made: list[Any] = run_all(asked, Together())
    assert counts_of(made[0]) == counts_of(made[2])
    assert abs(made[0].map.tiles.total - 80) < 80
    assert made[2].map.title == "ticino, uri"


@pytest.mark.unit
def test_a_helper_names_no_columns_and_asks_for_what_all_ask_for(folder: Path) -> None:
    """Also where each row is somebody: what rows count is then another request, the same at all."""
    text = (folder / "parties.toml").read_text()
    (folder / "parties.toml").write_text(f"{text}helper = true\n")
    digests = []
    for words in ({}, {"one_row_one_user": True}):
        own = {"user": ""} if words else {}
        with_rows = [plan_of(folder, party, **own, **words) for party in (0, 1)]
        helper = plan_of(folder, 2, source=None, user="", **words)
        assert len({one.result.digest for one in (*with_rows, helper)}) == 1
        digests.append(helper.result.digest)
    assert digests[0] != digests[1]
    made: list[Any] = run_all([*with_rows, helper], Together())
    assert counts_of(made[0]) == counts_of(made[2])


@pytest.mark.unit
def test_ledgers_and_keys_are_checked_before_anybody_is_asked(folder: Path) -> None:
    Ledger.create(folder / "own.ledger", PureDP(1), unit="user", source="own")
    with pytest.raises(
        LedgerMismatch, match="is of the central model, the parties are of the joint"
    ):
        plan_of(folder, 0, ledger=folder / "own.ledger")
    with pytest.raises(InvalidParameter, match="parties agree on a public area"):
        plan_of(folder, 0, bounds="private", outer=(0, 0, 1, 1))
    with pytest.raises(InvalidParameter, match="zoom and pyramid, got laplace"):
        plan_of(folder, 0, method="laplace")
    # A wrap costs accuracy and no privacy; at the largest noise there is it has no chance.
    assert plan_of(folder, 0, epsilon="1e-4").result.wrap_chance < 2**-40
    key = folder / "certificates" / "ticino.key"
    key.chmod(0o644)
    with pytest.raises(ValueError, match="may be read by others: chmod 600 it"):
        plan_of(folder, 0)
    key.unlink()
    with pytest.raises(ValueError, match="it is the key of ticino; nothing was charged"):
        plan_of(folder, 0)


@pytest.mark.unit
def test_a_ledger_that_tells_another_story_is_found(folder: Path, tmp_path: Path) -> None:
    made: list[Any] = run_all(plans(folder), Together())
    ledgers = [folder / f"{name}.ledger" for name in NAMES]
    made[0].map.write(folder / "one.json")
    made[1].map.write(folder / "two.json")
    assert check_joint([*ledgers, folder / "one.json", folder / "two.json"]).same
    # A party that charged nothing, and one that paid less than the others.
    other = Ledger.create(tmp_path / "x.ledger", PureDP(2), unit="user", source="x", model=Joint(3))
    found = check_joint([*ledgers[:2], other.path])
    assert not found.same
    assert found.sessions[0].problems == (f"{other.path} does not tell of it",)
    plan = plan_of(folder, 2, epsilon="1/4", ledger=other)
    key = f"joint/1 {made[0].session}"
    ends = Together(lambda *_: True).end(2)
    noise: Any = JointSession(ends, Joint(3), names=NAMES, receipts=Receipts(other.path, "s"))
    with pytest.raises(RuntimeError, match="gone"):
        other.release(
            plan.planned.price.mechanism,
            plan._counted(lambda _: None),
            noise=noise,
            request={"kind": "joint/1"},
            once=key,
        )
    said = check_joint([*ledgers[:2], other.path])
    assert not said.same
    assert f"{other.path} tells of another parameters and cost than" in joint_text(said)


@pytest.mark.unit
def test_maps_with_other_counts_are_found(folder: Path) -> None:
    made: list[Any] = run_all(plans(folder), Together())
    made[0].map.write(folder / "one.json")
    data = json.loads((folder / "one.json").read_text())
    data["counts"]["values"][0] += 1
    (folder / "two.json").write_text(json.dumps(data))
    found = check_joint([folder / "one.json", folder / "two.json"])
    assert found.sessions[0].problems == (
        f"{folder / 'two.json'} has other counts than {folder / 'one.json'}",
    )
    with pytest.raises(ValueError, match="two or more ledgers or maps"):
        check_joint([folder / "one.json"])
