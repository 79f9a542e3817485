"""Answers to a local map by a topic of a real broker: kept, then acknowledged; each device counts once."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from queue import Queue

import pytest
from tests.network.mosquitto import running_mosquitto

from sfumato.errors import InvalidParameter
from sfumato.heatmap.local import Answer, AnswerDesk, design, first_question, gather_answers
from sfumato.network import BrokerConfig, MqttClient, listen_to, read_inbox
from sfumato.network.topics import level_of

PATIENCE = 60.0


@pytest.mark.reference
def test_answers_of_a_topic_are_kept_once_each_and_come_again_if_they_were_not(
    tmp_path: Path,
) -> None:
    question = first_question(design(60, 5), bounds=(0.0, 0.0, 1.0, 1.0), campaign="mqtt")
    (tmp_path / "q.json").write_text(json.dumps(question.to_json()))
    names = [name for name in (f"phone {n}" for n in range(40)) if question.asks(name)][:3]
    reports = list(question.channel.reports())[:2]
    lines = {name: sent(question.digest, name, reports[0]) for name in names}
    kept, told, stop = tmp_path / "kept.jsonl", Queue[str](), threading.Event()
    broken = [True]
    taken: Queue[object] = Queue()

    def listen(desk: AnswerDesk) -> None:
        def take(line: bytes, sender: str | None) -> object:
            if broken:
                raise OSError(28, "No space left on device")
            taken.put(desk.take(line, sender))
            return None

        listen_to(inbox, take, client_id=desk.name, tell=told.put, stop=stop)

    def run() -> threading.Thread:
        thread = threading.Thread(
            target=gather_answers,
            args=([tmp_path / "q.json"],),
            kwargs={"answers": [kept], "source": listen, "tell": told.put},
            daemon=True,
        )
        thread.start()
        assert "listening to spring/+/answers" in told.get(timeout=PATIENCE)
        return thread

    with running_mosquitto(tmp_path) as broker:
        inbox = read_inbox(f"mqtt://127.0.0.1:{broker.plain}/spring/+/answers")
        thread = run()
        phones = MqttClient(BrokerConfig("127.0.0.1", broker.plain), client_id="phones")
        phones.start()
        try:
            phones.publish(topic(names[0]), lines[names[0]])
            assert "not acknowledged" in told.get(timeout=PATIENCE)
            stop.set()
            thread.join(timeout=PATIENCE)
            assert told.get(timeout=PATIENCE).startswith("0 answers count")
            # Nobody listens: the session keeps what comes, and what was not acknowledged.
            phones.publish(topic(names[1]), lines[names[1]])
            broken.clear()
            stop.clear()
            thread = run()
            assert [taken.get(timeout=PATIENCE) for _ in range(2)] == ["counted"] * 2
            again = sent(question.digest, names[1], reports[1])
            for name, line, verdict in (
                (names[0], lines[names[0]], "repeated"),
                (names[1], again, "conflicting"),
                (names[1], lines[names[2]], "malformed"),  # on the topic of another
                (names[2], b"{", "malformed"),
                (names[2], b" " * 2**17, "malformed"),
                (
                    names[2],
                    lines[names[2]].decode().encode("utf-16"),
                    "malformed",
                ),  # no line of a file
                (names[2], lines[names[2]], "counted"),
            ):
                phones.publish(topic(name), line)
                assert taken.get(timeout=PATIENCE) == verdict
            stop.set()
            thread.join(timeout=PATIENCE)
        finally:
            stop.set()
            phones.stop()
    assert told.get(timeout=PATIENCE).startswith("3 answers count")
    refused = [told.get(timeout=PATIENCE) for _ in range(3)]
    assert [line.partition(" (")[0] for line in refused] == [
        f"not counted: {number}" for number in (1, 1, 4)
    ]
    assert sorted(kept.read_bytes().splitlines()) == sorted(lines.values())


def sent(question: str, device: str, report: tuple[int, ...]) -> bytes:
    return json.dumps(Answer(question, device, report).to_json()).encode()


def topic(device: str) -> str:
    return f"spring/{level_of(device)}/answers"


@pytest.mark.unit
@pytest.mark.parametrize(
    "address",
    [
        "http://h/t", "mqtt://h", "mqtt://h/", "mqtt:///t", "mqtt://h/a/#", "mqtt://h/+/+",
        "mqtt://h/a+/b", "mqtt://u:secret@h/t", "mqtt://h:99999/t", "mqtt://[/t", "mqtt://h/t?x=1",
    ],
)  # fmt: skip
def test_what_is_no_inbox_is_refused_and_no_password_shown(address: str) -> None:
    with pytest.raises(InvalidParameter, match="an inbox is") as problem:
        read_inbox(address)
    assert "secret" not in str(problem.value)


@pytest.mark.unit
def test_an_inbox_says_who_sent_a_message_and_whether_it_is_sealed() -> None:
    plain, secure = read_inbox("mqtt://h/t"), read_inbox("mqtts://u@h:1/a/+")
    assert plain.broker.address == ("h", 1883)
    assert plain.sender_of("t") is None
    assert (secure.broker.is_tls, secure.broker.username) == (True, "u")
    assert secure.sender_of("a/p%2Fq") == "p/q"
    # One name has one spelling: else who may write to one of these topics answers for another user.
    for level in ("p%2fq", "p q", "%70", "p%20q%", "%ff", ""):
        assert secure.sender_of(f"a/{level}") == "", level
