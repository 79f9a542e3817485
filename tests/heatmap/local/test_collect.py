"""From questions to a map by files and by HTTP: who counts, who does not, and how far liars get."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterable, Iterator
from fractions import Fraction
from http.client import HTTPConnection
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import pytest

from sfumato._types import FloatArray
from sfumato.errors import ExistsAlready, InvalidInput, InvalidParameter
from sfumato.heatmap.local import (
    Answer,
    AnswerDesk,
    Collector,
    Evidence,
    KaryResponse,
    LocalHashing,
    Question,
    SubsetSelection,
    UnaryEncoding,
    answer_server,
    collect_answers,
    collected_text,
    design,
    evidence_of,
    first_question,
    poisoning_bound,
    read_answers,
    read_question,
    serve_answers,
    simulate_reports,
)
from sfumato.heatmap.local.channels import Channel
from sfumato.spaces import Grid

pytestmark = pytest.mark.unit

UNIT = (0.0, 0.0, 1.0, 1.0)
USERS = 600
RNG = np.random.default_rng(3)


class Generated:
    """Integers of a seeded generator, for made-up devices."""

    def uniform(self, below: int, size: int) -> list[int]:
        return [int(one) for one in RNG.integers(0, below, size)]


def answers_to(question: Question) -> list[Answer]:
    """Answers of made-up devices, three in four of them in the lower left."""
    found = []
    for number in range(USERS):
        name = f"device {number}"
        if question.asks(name):
            place = RNG.random(2) * (0.25 if number % 4 else 1.0)
            cell = question.cell_of(*place)
            assert cell is not None
            found.append(Answer(question.digest, name, question.channel.sample(cell, Generated())))
    return found


def lines(answers: list[Answer]) -> str:
    return "".join(json.dumps(one.to_json()) + "\n" for one in answers)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both questions, their answers and the map."""
    folder = tmp_path_factory.mktemp("campaign")
    first = first_question(design(USERS, 3), bounds=UNIT, campaign="test")
    (folder / "q1.json").write_text(json.dumps(first.to_json()))
    (folder / "a1.jsonl").write_text(lines(answers_to(first)))
    asked = collect_answers([folder / "q1.json"], [folder / "a1.jsonl"], ask=folder / "q2.json")
    assert asked.asked is not None
    (folder / "a2.jsonl").write_text(lines(answers_to(asked.asked)))
    return folder


def test_two_rounds_make_a_map(campaign: Path) -> None:
    out = [campaign / "map.json", campaign / "map.png", campaign / "map.npy"]
    questions = [campaign / "q1.json", campaign / "q2.json"]
    files = [campaign / "a1.jsonl", campaign / "a2.jsonl"]
    found = collect_answers(questions, files, outputs=out)
    assert found.map is not None
    assert sum(found.tally.counted) == USERS
    quarter = Grid(2).image(found.map.posterior.means(2))[0, 0] / USERS
    assert 0.6 < quarter < 0.9  # three quarters of a quarter more
    saved = json.loads(out[0].read_text())
    assert saved["statement"] == str(found.map.guarantee)
    assert saved["guarantee"]["model"] == "local"
    assert out[1].read_bytes()[:4] == b"\x89PNG"
    assert np.load(out[2]).shape == (128, 128)
    assert "epsilon 3 for each user" in collected_text(found)
    assert "without a place in the bounds" in collected_text(found)
    assert saved["outside"] in collected_text(found)
    assert found.map.errors["emd"].high < 0.3
    with pytest.raises(ExistsAlready):
        collect_answers(questions, files, outputs=out[:1])


def test_a_device_counts_once_and_its_first_answer_does(campaign: Path) -> None:
    question = read_question(campaign / "q1.json")
    collector = Collector([question])
    read_answers(collector, [campaign / "a1.jsonl"])
    before = [dict(held) for held in collector.reports]
    honest = Answer.from_json(json.loads((campaign / "a1.jsonl").read_text().splitlines()[0]))
    other = next(r for r in question.channel.reports() if r != honest.report)
    liar = Answer(question.digest, honest.device, other)
    assert collector.add(json.dumps(honest.to_json())) == "repeated"
    assert collector.add(json.dumps(liar.to_json())) == "conflicting"
    stranger = next(f"x{n}" for n in range(99) if not question.asks(f"x{n}"))
    assert collector.add(json.dumps({**liar.to_json(), "device": stranger})) == "not asked"
    assert collector.add(json.dumps({**liar.to_json(), "question": "0"})) == "other question"
    for broken in ("", "{", "[]", "null", json.dumps({**liar.to_json(), "report": [0.5]})):
        assert collector.add(broken) == "malformed"
    assert collector.reports == before


def test_a_late_answer_counts_in_the_map_and_changes_no_question(
    campaign: Path, tmp_path: Path
) -> None:
    """To the first round, after the second was asked: the rule of docs/how-to/local.md."""
    first, second = campaign / "q1.json", campaign / "q2.json"
    on_time = (campaign / "a1.jsonl").read_text().splitlines()
    late, answers = tmp_path / "late.jsonl", [campaign / "a1.jsonl", campaign / "a2.jsonl"]
    question = read_question(first)
    names = (f"latecomer {number}" for number in range(1000))
    late.write_text(
        lines(
            [
                Answer(question.digest, name, question.channel.sample(0, Generated()))
                for name in names
                if question.asks(name)
            ][:20]
        )
    )
    before = second.read_bytes()
    found = collect_answers([first, second], [*answers, late], outputs=[tmp_path / "map.json"])
    assert found.tally.counted[0] == len(on_time) + 20
    assert found.map is not None
    assert sum(found.tally.counted) == USERS + 20
    assert second.read_bytes() == before  # devices answer what was asked when it was asked
    with pytest.raises(InvalidInput, match="asked already"):
        collect_answers([first, second], [late], ask=tmp_path / "q2.json")


def test_what_cannot_be_made_is_refused(campaign: Path) -> None:
    q1, q2 = campaign / "q1.json", campaign / "q2.json"
    with pytest.raises(InvalidInput, match="order of rounds"):
        collect_answers([q2, q1], [])
    with pytest.raises(InvalidInput, match="no answer counts"):
        collect_answers([q1], [], outputs=[campaign / "none.json"])
    with pytest.raises(InvalidInput, match="asked already"):
        collect_answers([q1, q2], [], ask=campaign / "q3.json")
    with pytest.raises(InvalidParameter, match="written as"):
        collect_answers([q1], [], outputs=[campaign / "map.txt"])


@pytest.fixture
def served(campaign: Path) -> Iterator[tuple[int, Collector, list[bytes]]]:
    collector, kept = Collector([read_question(campaign / "q1.json")]), list[bytes]()
    with answer_server(AnswerDesk(collector, kept.append)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port, collector, kept
        server.shutdown()
        thread.join(timeout=600)


def ask(
    port: int, method: str, path: str, body: str = "", headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request(method, path, body=body, headers=headers or {})
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def test_answers_come_by_http(served: tuple[int, Collector, list[bytes]], campaign: Path) -> None:
    port, collector, kept = served
    assert Question.from_json(ask(port, "GET", "/question")[1]) == collector.questions[0]
    line = (campaign / "a1.jsonl").read_text().splitlines()[0]
    assert ask(port, "POST", "/answers", line) == (201, {"answer": "counted"})
    assert ask(port, "POST", "/answers", line)[0] == 200
    assert ask(port, "POST", "/answers", "{}")[0] == 400
    assert ask(port, "GET", "/answers")[0] == 404
    assert kept == [line.encode()]


def test_pages_of_others_and_broken_lengths_are_refused(
    served: tuple[int, Collector, list[bytes]], campaign: Path
) -> None:
    port, collector, _ = served
    line = (campaign / "a1.jsonl").read_text().splitlines()[0]
    for header in ({"Host": f"evil.example:{port}"}, {"Origin": "http://evil.example"}):
        assert ask(port, "POST", "/answers", line, header)[0] == 403
        assert ask(port, "GET", "/question", headers=header)[0] == 403
    for length in ("\u00b2", "-1", "+5", "9" * 5000, str(2**16 + 1)):
        with socket.create_connection(("127.0.0.1", port), timeout=600) as raw:
            text = f"POST /answers HTTP/1.0\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
            raw.sendall(text.encode("latin-1"))
            assert raw.recv(2**16).split()[1] == b"400"
    assert sum(collector.tally.counted) == 0


def test_a_connection_that_says_nothing_keeps_nobody_waiting(
    served: tuple[int, Collector, list[bytes]],
) -> None:
    port, _, _ = served
    with socket.create_connection(("127.0.0.1", port), timeout=600):
        assert ask(port, "GET", "/question")[0] == 200


def test_an_answer_is_on_the_disk_before_its_device_is_told_that_it_counts(
    campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, line = tmp_path / "kept.jsonl", (campaign / "a1.jsonl").read_text().splitlines()[0]
    kept.write_text("torn")  # by a crash
    synced: list[bytes] = []
    full = [True]

    def sync(handle: int) -> None:
        if full.pop() if full else False:
            raise OSError(28, "No space left on device")
        synced.append(kept.read_bytes())

    told, stop, ports = [], threading.Event(), Queue[int]()

    def tell(message: str) -> None:
        told.append(message)
        if "listening" in message:
            ports.put(int(message.split(":")[2].split("/")[0]))

    thread = threading.Thread(
        target=serve_answers,
        args=([campaign / "q1.json"],),
        kwargs={"port": 0, "answers": [kept], "tell": tell, "stop": stop},
    )
    thread.start()
    port = ports.get(timeout=600)
    monkeypatch.setattr(os, "fsync", sync)
    assert ask(port, "POST", "/answers", line)[0] == 503  # the disk did not say that it has it
    assert ask(port, "POST", "/answers", line)[0] == 201
    assert synced == [kept.read_bytes()]
    stop.set()
    thread.join(timeout=600)
    assert kept.read_text() == f"torn\n{line}\n{line}\n"
    assert told[-2].startswith("1 answer counts")
    assert told[-1].startswith("not counted: 1 (no answer")  # the torn line


def evidence_over(channel: Channel) -> Evidence:
    """One report each of a channel over 4, 7 or 10 cells: quarters, the first one split."""
    cells = [(1, code) for code in range(4)]
    while len(cells) < channel.cells:
        level, code = cells[0]
        cells = [(level + 1, 4 * code + one) for one in range(4)] + cells[1:]
    whole = (Fraction(0), Fraction(1))
    asked = Question("c", 1, 100, Fraction(2), UNIT, tuple(cells), whole, channel)
    return evidence_of(asked, dict.fromkeys(channel.reports(), 1))


def test_liars_move_a_cell_no_further_than_the_bound() -> None:
    """Fifty of two thousand devices all send what favors one cell most."""
    rng = np.random.default_rng(5)
    question = first_question(design(2000, 2), bounds=UNIT, campaign="liars")
    cells = rng.integers(0, len(question.cells), 2000)
    even = np.full(len(question.cells), 1 / len(question.cells))
    honest = simulate_reports(question.channel, cells, rng=rng)
    lies = simulate_reports(question.channel, cells[50:], rng=rng)
    favored = next(r for r in question.channel.reports() if 0 in r)
    moved = evidence_of(question, {**lies, favored: lies.get(favored, 0) + 50})
    bound = poisoning_bound(moved, 50, even)
    base = evidence_of(question, lies)
    shares, before = moved.expanded(even)[0], base.expanded(even)[0]
    # The same honest reports with and without the lies: what is compared is what the bound is of.
    assert abs(shares[0] * 2000 - before[0] * 1950) / 2000 <= bound.largest_move
    assert bound.honest_move < bound.largest_move < 10 * bound.honest_move
    assert sum(honest.values()) == 2000
    with pytest.raises(InvalidParameter):
        poisoning_bound(moved, 3000, even)


def pull(evidence: Evidence, masses: FloatArray, report: Iterable[int]) -> FloatArray:
    """What one report of a set of cells moves shares by, to first order."""
    _, covariance = evidence.expanded(masses)
    likely = np.zeros(masses.size)
    likely[list(report)] = 1
    each = 1 + (evidence.odds - 1) * likely
    return np.asarray(covariance @ each / (each @ masses))


def test_liars_choose_their_own_sets_and_stay_below_the_bound() -> None:
    """Sixty-four cells, epsilon 1: the set of cells that pull one cell hardest is no random one."""
    rng = np.random.default_rng(6)
    question = first_question(design(100_000, 1), bounds=UNIT, campaign="chosen")
    masses = rng.dirichlet(np.full(64, 0.3)) * 0.97 + 0.03 / 64
    cells = rng.choice(64, 1000, p=masses)
    evidence = evidence_of(question, simulate_reports(question.channel, cells, rng=rng))
    bound = poisoning_bound(evidence, 1, masses)
    assert isinstance(question.channel, SubsetSelection)
    _, covariance = evidence.expanded(masses)
    widest, size = 0.0, question.channel.size
    for cell in range(64):
        ranked = np.argsort(covariance[cell] - covariance[cell] @ masses)
        most, least = (pull(evidence, masses, one) for one in (ranked[-size:], ranked[:size]))
        widest = max(widest, most[cell] - least[cell])
    assert widest <= bound.largest_move < 1.5 * widest


@pytest.mark.parametrize(
    "channel",
    [
        SubsetSelection(10, 3, Fraction(3)),
        UnaryEncoding(7, Fraction(3)),
        KaryResponse(4, Fraction(3)),
    ],
    ids=lambda one: one.kind,
)
def test_the_bound_on_liars_is_the_most_of_all_reports(channel: Channel) -> None:
    masses = np.random.default_rng(7).dirichlet(np.full(channel.cells, 0.7))
    evidence = evidence_over(channel)
    pulls = np.array([pull(evidence, masses, one) for one in channel.reports()])
    widest = (pulls.max(axis=0) - pulls.min(axis=0)).max()
    assert poisoning_bound(evidence, 1, masses).largest_move == pytest.approx(widest)


def test_the_bound_on_liars_holds_for_local_hashing() -> None:
    channel = LocalHashing(7, 3, 50, Fraction(3))
    masses, evidence = np.full(7, 1 / 7), evidence_over(channel)
    pulls = np.array([pull(evidence, masses, channel.likely(one)) for one in channel.reports()])
    widest = (pulls.max(axis=0) - pulls.min(axis=0)).max()
    assert widest <= poisoning_bound(evidence, 1, masses).largest_move < 3 * widest
