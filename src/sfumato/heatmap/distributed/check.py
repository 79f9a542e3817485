"""Whether the ledgers and maps of several parties tell of the same joint releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput, LedgerDamaged, LedgerMismatch
from sfumato.heatmap.distributed.joint_plan import session_of
from sfumato.heatmap.distributed.results import CheckedSession, JointCheck
from sfumato.heatmap.export.archive import read_heatmap
from sfumato.heatmap.private_map import HeatmapRelease
from sfumato.privacy import Joint, Ledger
from sfumato.privacy.accounting import canonical, encode
from sfumato.privacy.ledger import Entry, LedgerStatement, verify_ledger


def check_joint(files: Sequence[str | Path]) -> JointCheck:
    """Compare what ledgers and maps of several parties say of their joint releases.

    Every ledger's chain of hashes is checked. Then each session that one of them names must be in all
    ledgers, with the same mechanism, parameters, cost, unit and parties; and maps of it must have the same
    counts, and be paid for by one of the ledgers if that is among them.

    Args:
        files: Ledgers of different parties, and maps saved as .json, two or more together.

    Returns:
        Each session, with where they tell different stories.

    Raises:
        InvalidInput: A file is neither, or there are fewer than two; nothing was checked.
        LedgerDamaged: A ledger is not whole and unedited.

    """
    if len(files) < 2:
        raise InvalidInput(
            f"two or more ledgers or maps of parties are compared, got {len(files)}; nothing was checked"
        )
    maps = [(str(one), read_heatmap(one)) for one in files if Path(one).suffix == ".json"]
    books = [_book(Path(one)) for one in files if Path(one).suffix != ".json"]
    ids = [one.statement.header.id for one in books]
    if len(set(ids)) < len(ids):
        raise InvalidInput("a ledger was given twice, or a copy of it; nothing was checked")
    told = [story for book in books for story in book.stories]
    told += [_of_map(path, one) for path, one in maps]
    sessions: dict[str, list[_Story]] = {}
    for story in sorted(told, key=lambda story: story.entry.time):
        sessions.setdefault(story.session, []).append(story)
    if not sessions:
        raise InvalidInput("none of them tells of a joint release; nothing was checked")
    return JointCheck(tuple(_checked(name, stories, books) for name, stories in sessions.items()))


@dataclass(frozen=True, slots=True)
class _Story:
    """What one file says of one session."""

    session: str
    file: str
    entry: Entry
    trust: Joint
    told: dict[str, Any]
    map: HeatmapRelease | None = None


@dataclass(frozen=True, slots=True)
class _Book:
    file: str
    statement: LedgerStatement
    stories: tuple[_Story, ...]


def _book(path: Path) -> _Book:
    verify_ledger(path, [])
    statement = Ledger(path).statement()
    header = statement.header
    stories = []
    for entry in statement.entries:
        session = session_of(entry.once)
        if session and isinstance(header.model, Joint):
            told = _told(entry, header.model, header.unit, encode(header.neighbors))
            stories.append(_Story(session, str(path), entry, header.model, told))
    return _Book(str(path), statement, tuple(stories))


def _of_map(path: str, found: HeatmapRelease) -> _Story:
    promise, entry = found.receipt.guarantee, found.receipt.entry
    session = session_of(entry.once)
    if not session or not isinstance(promise.model, Joint):
        raise InvalidInput(f"{path} is no joint map; nothing was checked")
    told = _told(entry, promise.model, promise.unit, encode(promise.neighbors))
    return _Story(session, path, entry, promise.model, told, found)


def _told(entry: Entry, trust: Joint, unit: str, neighbors: Any) -> dict[str, Any]:
    """What all parties must tell alike, in words for messages."""
    return {
        "mechanism": entry.mechanism,
        "parameters": entry.parameters,
        "cost": encode(entry.cost),
        "number of parties": trust.parties,
        "number of curious parties": trust.curious,
        "unit": unit,
        "neighbors": neighbors,
        "size": None if entry.bound is None else entry.bound.get("size"),
    }


def _checked(name: str, stories: list[_Story], books: list[_Book]) -> CheckedSession:
    first, problems = stories[0], []
    for story in stories[1:]:
        other = [
            what
            for what, said in story.told.items()
            if canonical(said) != canonical(first.told[what])
        ]
        if other:
            problems.append(
                f"{story.file} tells of another {' and '.join(other)} than {first.file}"
            )
    having = [story.file for story in stories if story.map is None]
    problems += [f"{book.file} does not tell of it" for book in books if book.file not in having]
    problems += [
        f"{file} tells of it {having.count(file)} times"
        for file in dict.fromkeys(having)
        if having.count(file) > 1
    ]
    if len(books) > first.trust.parties:
        problems.append(f"{len(books)} ledgers were given, {first.trust.parties} parties took part")
    maps = [story for story in stories if story.map is not None]
    problems += _maps_apart(maps)
    for story in maps:
        problems += _unpaid(story, books)
    return CheckedSession(
        name,
        first.trust.parties,
        tuple(dict.fromkeys(having)),
        tuple(story.file for story in maps),
        str(first.entry.cost),
        tuple(problems),
    )


def _maps_apart(maps: list[_Story]) -> list[str]:
    def counts(story: _Story) -> Any:
        found = None if story.map is None else story.map.posterior
        return None if found is None or found.counts is None else canonical(found.counts.to_json())

    return [
        f"{story.file} has no counts to compare"
        if counts(story) is None
        else f"{story.file} has other counts than {maps[0].file}"
        for story in maps
        if counts(story) is None or counts(story) != counts(maps[0])
    ]


def _unpaid(story: _Story, books: list[_Book]) -> list[str]:
    if story.map is None:
        return []
    receipt = story.map.receipt
    for book in books:
        if book.statement.header.id == receipt.ledger:
            try:
                Ledger(book.file).check(receipt, now=book.statement)
            except (LedgerMismatch, LedgerDamaged) as problem:
                return [f"{story.file}: {problem}"]
    return []
