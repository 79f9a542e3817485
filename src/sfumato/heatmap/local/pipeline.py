"""Local maps as a user means them: ask, collect answers, write the next question or the map."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.files import LineLog, check_writable, sync_folder, write_json
from sfumato.heatmap.local.collect import AnswerDesk, Collector, read_answers
from sfumato.heatmap.local.device_input import read_question
from sfumato.heatmap.local.maps import ask_next, decode_answers
from sfumato.heatmap.local.question import Bounds, Question
from sfumato.heatmap.local.render import counted_text, not_counted
from sfumato.heatmap.local.results import Collected
from sfumato.heatmap.local.rounds import Design, first_question
from sfumato.heatmap.local.server import answer_server


def ask_first(
    design: Design,
    out: str | Path,
    *,
    bounds: Bounds,
    campaign: str,
    overwrite: bool = False,
) -> Question:
    """Write the question of round 1, which devices answer.

    Args:
        design: Rounds, cells and patches: `plan_local(...).design`.
        out: Where to write it.
        bounds: Low x, low y, high x, high y of the map.
        campaign: A name that no other campaign with these devices has.
        overwrite: Whether a file that exists gives way.

    Returns:
        The question.

    Raises:
        InvalidParameter: There is no name; nothing was written.
        InvalidInput: The file exists already, or cannot be written.

    """
    if not campaign:
        raise InvalidParameter("a question needs a `campaign`: a name of its own; none was written")
    asked = first_question(design, bounds=bounds, campaign=campaign)
    write_json(out, asked.to_json(), overwrite=overwrite)
    return asked


def collect_answers(
    questions: Sequence[str | Path | Question],
    answers: Iterable[str | Path],
    *,
    ask: str | Path | None = None,
    outputs: Iterable[str | Path] = (),
    overwrite: bool = False,
) -> Collected:
    """Collect answers from files, and write the question of round 2 or the map.

    Args:
        questions: Question files, in the order of rounds.
        answers: Files of answers, one JSON object a line.
        ask: Where to write the question of round 2.
        outputs: Where to write the map: .json, .png, .npy.
        overwrite: Whether files that exist give way.

    Returns:
        What was counted and written.

    Raises:
        InvalidInput: Nothing counts, or a file cannot be read.
        InvalidParameter: An output has another ending, or there is no second round.

    """
    targets = [Path(one) for one in outputs]
    for path in targets:
        if path.suffix.lower() not in (".json", ".png", ".npy"):
            raise InvalidParameter(
                f"a local map is written as .json, .png or .npy, got {path.name}; nothing was collected"
            )
    for path in [*targets, *([] if ask is None else [Path(ask)])]:
        check_writable(path, overwrite=overwrite)
    collector = Collector(
        [one if isinstance(one, Question) else read_question(one) for one in questions]
    )
    read_answers(collector, answers)
    asked = None if ask is None else ask_next(collector)
    found = decode_answers(collector) if targets else None
    files = []
    if ask is not None and asked is not None:
        write_json(ask, asked.to_json(), overwrite=overwrite)
        files.append(str(ask))
    for path in targets:
        if found is not None:
            found.write(path, overwrite=overwrite)
            files.append(str(path))
    return Collected(collector.tally, tuple(files), asked, found)


def gather_answers(
    questions: Sequence[str | Path],
    *,
    answers: Sequence[str | Path],
    source: Callable[[AnswerDesk], None],
    tell: Callable[[str], None],
) -> None:
    """Take answers as they come, until their source ends; those that count are kept in a file.

    The disk holds an answer before it counts and before its sender is told so.

    Args:
        questions: Question files, in the order of rounds.
        answers: The first file is where answers are kept; it is made, or added to.
        source: Hands answers to the desk until it ends or is interrupted: HTTP, or an MQTT topic.
        tell: Told in the end what was counted, and what was not.

    Raises:
        InvalidInput: No file is named, or one cannot be read.

    """
    if not answers:
        raise InvalidInput(
            "answers that come one by one are kept in a file: name it with `answers`; not listening"
        )
    kept = Path(answers[0])
    collector = Collector([read_question(one) for one in questions])
    read_answers(collector, [one for one in answers if Path(one).exists()])
    log = LineLog(kept, undone="not listening")
    sync_folder(kept.absolute().parent)

    def keep(line: bytes) -> None:
        log.add(" ".join(line.decode().splitlines()))
        log.sync()

    try:
        source(AnswerDesk(collector, keep))
    except KeyboardInterrupt:
        pass
    finally:
        log.close()
        tally = collector.tally
        tell(f"{counted_text(tally)}, kept in {kept}")
        # What did not count is kept nowhere: a flood of it is seen here or not at all.
        for line in not_counted(tally):
            tell(line)


def serve_answers(
    questions: Sequence[str | Path],
    *,
    port: int,
    answers: Sequence[str | Path],
    tell: Callable[[str], None],
    stop: threading.Event | None = None,
) -> None:
    """Take answers by HTTP on this machine until interrupted; those that count are kept in a file.

    The disk holds an answer before its device is told that it counts.

    Args:
        questions: Question files, in the order of rounds.
        port: Where to listen; any free port for 0.
        answers: The first file is where answers are kept; it is made, or added to.
        tell: Told where it listens, and in the end what was counted.
        stop: Ends it, besides an interrupt.

    Raises:
        InvalidInput: No file is named, or one cannot be read.

    """

    def source(desk: AnswerDesk) -> None:
        with answer_server(desk, port) as server:
            tell(f"listening at http://127.0.0.1:{server.server_port}/answers; interrupt to end")
            server.timeout = 0.2
            while stop is None or not stop.is_set():
                server.handle_request()

    gather_answers(questions, answers=answers, source=source, tell=tell)
