"""What a party has sent in each round of a session, beside its ledger, until all parties have the map.

    berlin.ledger.joint/<session>/0001.round    on the disk before the round's shares leave
    berlin.ledger.joint/<session>/0001.opened   on the disk after its sum was seen
    berlin.ledger.joint/<session>/rows          the SHA-256 of what was counted: it must stay the same

A party that stops may have been heard: others may have seen a sum that it never saw. So a session that
goes on sends in each round what was sent before, number for number, and the same sum is opened: nobody
learns more. Receipts hold the party's own counts with its own shares of noise: they are for its eyes.
Proof: docs/proofs/joint-session.md
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from sfumato._types import IntArray
from sfumato.errors import InvalidInput, SessionStopped
from sfumato.files import sync_folder, write_file

HASH = 32
ABANDONED, ROWS = "abandoned", "rows"


class Receipts:
    """The rounds of one session as one party has sent them."""

    def __init__(self, ledger: Path, session: str) -> None:
        real = ledger.resolve()
        self.folder = real.with_name(f"{real.name}.joint") / session

    def begun(self) -> int:
        """How many rounds were begun: written down, and so perhaps sent."""
        count = 0
        while self._read(count + 1) is not None:
            count += 1
        return count

    def sent(self, number: int, asked: bytes, size: int) -> IntArray | None:
        """What was sent in a round, from 1; None if it was never begun."""
        found = self._read(number)
        if found is None:
            return None
        if found[0] != asked or found[1].size != size:
            raise SessionStopped(
                f"round {number} asks for other counts than its receipt in {self.folder} was for: begin with "
                "`anew` at all parties, which is charged again"
            )
        return found[1]

    def all_sent(self) -> list[tuple[bytes, IntArray]]:
        """What was asked for and sent in each round that was begun."""
        found = [self._read(number) for number in range(1, self.begun() + 1)]
        return [one for one in found if one is not None]

    def hold(self, rows: bytes) -> None:
        """Write down a hash of what was counted, or refuse another than was written down before."""
        path = self.folder / ROWS
        if not path.exists():
            self._write(path, rows)
        elif path.read_bytes() != rows:
            raise SessionStopped(
                "this party's rows have changed since the session was begun, which would charge some people "
                "twice: begin with `anew` at all parties, which is charged again"
            )

    def opened(self) -> int:
        """How many rounds this party has seen the sum of."""
        count = 0
        while self._mark(count + 1).exists():
            count += 1
        return count

    def mark_opened(self, number: int) -> None:
        """Write down that the sum of a round was seen: from now on its receipt must be there."""
        if not self._mark(number).exists():
            self._write(self._mark(number), b"")

    def write(self, number: int, asked: bytes, values: IntArray) -> None:
        """Write down what will be sent, and wait for the disk."""
        body = asked + np.ascontiguousarray(values, dtype=np.int64).tobytes()
        self._write(self._path(number), hashlib.sha256(body).digest() + body)

    def _write(self, path: Path, data: bytes) -> None:
        """A file that is there whole or not at all, and on the disk."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.parent.chmod(0o700)
        write_file(path, data, private=True)
        for folder in (self.folder, self.folder.parent, self.folder.parent.parent):
            sync_folder(folder)

    def remove(self) -> None:
        """Forget them: every party has kept what was opened."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.folder.parent.is_dir() and not any(self.folder.parent.iterdir()):
            self.folder.parent.rmdir()

    def abandon(self) -> None:
        """Mark a session that was charged and is not gone on with: another one was begun."""
        self._write(self.folder / ABANDONED, b"")
        for file in self.folder.iterdir():
            if file.name != ABANDONED:
                file.unlink()

    @property
    def abandoned(self) -> bool:
        """Whether another session was begun in its place."""
        return (self.folder / ABANDONED).exists()

    def _mark(self, number: int) -> Path:
        return self.folder / f"{number:04d}.opened"

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:04d}.round"

    def _read(self, number: int) -> tuple[bytes, IntArray] | None:
        try:
            data = self._path(number).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise InvalidInput(
                f"{self._path(number)} cannot be read ({problem.strerror})"
            ) from problem
        body = data[HASH:]
        if len(body) < HASH or hashlib.sha256(body).digest() != data[:HASH]:
            # It was whole before its shares left: to draw others would be a second release.
            raise SessionStopped(
                f"{self._path(number)} is damaged, and what it told may have been sent: begin with `anew` "
                "at all parties, which is charged again"
            )
        return body[:HASH], np.frombuffer(body[HASH:], dtype=np.int64)


def sessions_beside(ledger: Path) -> list[str]:
    """The sessions of which a ledger has receipts."""
    real = ledger.resolve()
    found = real.with_name(f"{real.name}.joint").glob("*")
    return [one.name for one in sorted(found, key=lambda one: one.stat().st_mtime)]


def round_hash(before: bytes, scales: Sequence[Fraction], which: IntArray) -> bytes:
    """What a round asks for, after all `before` it, as receipts and parties compare it."""
    told = ";".join(map(str, scales)).encode() + b"|" + which.astype(np.int64).tobytes()
    return hashlib.sha256(before + told).digest()


def after_round(asked: bytes, opened: IntArray) -> bytes:
    """What the next round comes after: what was asked for, and what was opened."""
    return hashlib.sha256(asked + opened.astype(np.int64).tobytes()).digest()
