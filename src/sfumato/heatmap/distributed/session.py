"""A session of parties: they compare what they ask for, wait for each other, and add up round by round."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato._types import IntArray
from sfumato.errors import SessionStopped
from sfumato.heatmap.distributed.receipts import Receipts, after_round, round_hash
from sfumato.heatmap.distributed.request import FIELDS, JointRequest
from sfumato.heatmap.distributed.secure_sum import PartySums
from sfumato.privacy import Joint
from sfumato.privacy.accounting import InShares
from sfumato.privacy.noise import SharedNoise, draw_shares

Watch = Callable[[str], None]
WORD = 7
"""Bytes of one number that is told: below any modulus of ours."""
READY, CHARGED, KEPT = 1, 2, 3
"""What parties tell each other, in this order: rows counted, ledger charged, counts kept."""


def noisy_input(
    values: IntArray, scales: Sequence[Fraction], which: IntArray, trust: Joint
) -> IntArray:
    """What a party hands to a secure sum: its own values with fresh shares of the noise, never clipped.

    Args:
        values: Its own sums [sum].
        scales: Scales of the noise.
        which: Which of them each sum has [sum].
        trust: How many parties there are, and how many of them may pool what they know.

    Returns:
        Integers, for one sum only [sum].

    """
    return values + draw_shares(trust, scales, which)


def round_input(
    receipts: Receipts,
    number: int,
    values: IntArray,
    scales: Sequence[Fraction],
    which: IntArray,
    trust: Joint,
    *,
    asked: bytes,
) -> IntArray:
    """What a party sends in a round: what its receipt says; else fresh, and on its disk before it leaves."""
    sent = receipts.sent(number, asked, values.size)
    if sent is None:
        sent = noisy_input(values, scales, which, trust)
        receipts.write(number, asked, sent)
    return sent


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a party is in a session that was begun before.

    Attributes:
        charged: Whether its ledger has paid.
        drawn: Whether it has kept all that was opened.
        begun: How many rounds it may have sent.
        opened: How many rounds it has seen the sum of.

    """

    charged: bool
    drawn: bool
    begun: int
    opened: int = 0


@dataclass(frozen=True, slots=True)
class Agreed:
    """What the parties agreed on.

    Attributes:
        session: The name of the session, the same at all.
        resumed: Whether it was begun before.

    """

    session: str
    resumed: bool


class JointSession(SharedNoise):
    """Noise in shares between real parties: each round is one secure sum.

    Before the first round all parties say that they have charged; what a party sends is on its disk
    before it leaves, and is sent again, number for number, if the session goes on after a party stopped.
    """

    distance: Fraction | None = None
    known = False
    repeats: ClassVar[bool] = True

    def __init__(
        self,
        sums: PartySums,
        trust: Joint,
        *,
        names: Sequence[str],
        receipts: Receipts,
        watch: Watch | None = None,
    ) -> None:
        self._sums, self._trust, self._names, self._receipts = sums, trust, names, receipts
        self._watch = watch or (lambda _: None)
        self.rounds = self.counts = 0
        self._before = b""

    @property
    def trust(self) -> Joint:
        """How many parties there are, and how many of them may pool what they know."""
        return self._trust

    def noisy_sum(
        self, values: IntArray, scales: Sequence[Fraction], which: IntArray, trust: InShares
    ) -> IntArray:
        """One round: the values of all parties with fresh shares of all."""
        del trust  # it was compared with that of the session by whoever asks
        self._begin()
        number, asked = self.rounds + 1, round_hash(self._before, scales, which)
        self._compare(asked, values.size)
        sent = round_input(self._receipts, number, values, scales, which, self._trust, asked=asked)
        return self._opened(asked, sent)

    def hold(self, sums: bytes) -> None:
        """Refuse to go on with other rows than the session was begun with."""
        self._receipts.hold(sums)

    def standing(self, *, charged: bool, drawn: bool) -> Standing:
        """How far this party is in a session that was begun before."""
        return Standing(charged, drawn, self._receipts.begun(), self._receipts.opened())

    def replay(self) -> None:
        """Send again what was sent, for parties that lack it: this one has kept all that was opened."""
        self._begin()
        for asked, sent in self._receipts.all_sent():
            self._compare(asked, sent.size)
            self._opened(asked, sent)

    def meet(self, stage: int, at: str) -> None:
        """Wait until all parties are as far; `at` says what this one has done."""
        told = self._sums.tell(np.array([stage, self.rounds]))
        for name, (theirs, rounds) in zip(self._names, told.tolist(), strict=True):
            if theirs != stage or rounds != self.rounds:
                raise SessionStopped(
                    f"{name} is elsewhere in the session than this party, which {at}"
                )

    def finish(self) -> None:
        """All have kept what was opened: receipts are of no use any more."""
        self.meet(KEPT, "has kept its counts")
        self._receipts.remove()

    def _begin(self) -> None:
        if self.rounds == 0:
            self._watch("waiting until all parties have charged their ledgers")
            self.meet(CHARGED, "has charged its ledger")

    def _compare(self, asked: bytes, size: int) -> None:
        """Whether all parties ask for the same counts with the same noise, before any share leaves."""
        own = [self.rounds + 1, size, int.from_bytes(asked[:WORD], "big")]
        for name, theirs in zip(self._names, self._sums.tell(np.array(own)).tolist(), strict=True):
            if theirs != own:
                raise SessionStopped(
                    f"{name} asks for other counts in round {self.rounds + 1} than this party: their machines, "
                    "libraries or receipts differ"
                )

    def _opened(self, asked: bytes, sent: IntArray) -> IntArray:
        found = self._sums.sum(sent)
        self.rounds += 1
        self._receipts.mark_opened(self.rounds)
        self._before = after_round(asked, found)
        self.counts += sent.size
        self._watch(f"round {self.rounds}: {sent.size:,} count{'s' * (sent.size > 1)} opened")
        return found


def agree(
    sums: PartySums,
    request: JointRequest,
    unfinished: str,
    *,
    names: Sequence[str],
    anew: bool = False,
) -> Agreed:
    """Compare what all parties ask for, before anything is charged; the session they begin or go on with.

    Args:
        sums: The connection.
        request: What this party asks for.
        unfinished: The session of this request that its ledger has paid for and not delivered, or "".
        names: The parties' names, in order.
        anew: Whether it begins another session, though one was charged and not finished.

    Returns:
        The session.

    Raises:
        SessionStopped: Parties ask for different things, or would go on with different sessions.

    """
    nonce = secrets.token_bytes(2 * WORD)
    session = bytes.fromhex(unfinished.replace("-", "")).rjust(3 * WORD, b"\0")
    hashes = b"".join(one[:WORD] for one in request.hashes())
    told = sums.tell(np.array([*_words(hashes + session + nonce), int(anew)]))
    fields, sessions, nonces, afresh = np.split(told, np.cumsum([len(FIELDS), 3, 2]), axis=1)
    for name, theirs in zip(names, fields, strict=True):
        other = [what for what, same in zip(FIELDS, theirs == fields[0], strict=True) if not same]
        if other:
            raise SessionStopped(
                f"{name} asks for another {' and '.join(other)} than {names[0]}: compare what `dry_run` says"
            )
    if len({*afresh.ravel().tolist()}) > 1:
        said = [name for name, one in zip(names, afresh.ravel(), strict=True) if one]
        raise SessionStopped(f"{', '.join(said)} would begin `anew`, the others not")
    whose = {_session_name(row) for row in sessions if row.any()}
    if len(whose) > 1:
        raise SessionStopped(
            "parties would go on with different sessions: begin with `anew` at all, which is charged again"
        )
    if whose:
        (session_name,) = whose
        if not session_name.startswith(request.digest[:16]):
            raise SessionStopped("a party would go on with a session of another request")
        return Agreed(session_name, resumed=True)
    mixed = hashlib.sha256(request.digest.encode() + nonces.astype(">i8").tobytes())
    return Agreed(f"{request.digest[:16]}-{mixed.hexdigest()[:16]}", resumed=False)


def compare_standings(sums: PartySums, own: Standing, *, names: Sequence[str]) -> bool:
    """Whether rounds are to be opened in a session that goes on: not where all have kept what was.

    Args:
        sums: The connection.
        own: How far this party is.
        names: The parties' names, in order.

    Returns:
        Whether anybody lacks what was opened.

    Raises:
        SessionStopped: A party lacks receipts of what others have sent, so that nobody can go on.

    """
    told = sums.tell(np.array([own.charged, own.drawn, own.begun, own.opened], dtype=np.int64))
    charged, drawn, begun, opened = told.T
    if drawn.all():
        return False
    # A round begins when that before it was opened, which took all parties; a charge comes before all.
    most = int(begun.max())
    lost = (begun < most - 1) | (begun < int(opened.max()))
    lacking = lost | ((most > 0) & (charged == 0)) | ((drawn == 1) & (begun < most))
    if lacking.any():
        who = [name for name, lacks in zip(names, lacking, strict=True) if lacks]
        raise SessionStopped(
            f"{', '.join(who)} has no receipts of rounds that others have begun: begin with `anew` at all "
            "parties, which is charged again"
        )
    return True


def _words(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + WORD], "big") for at in range(0, len(data), WORD)]


def _session_name(words: IntArray) -> str:
    data = b"".join(int(one).to_bytes(WORD, "big") for one in words)[-16:].hex()
    return f"{data[:16]}-{data[16:]}"
