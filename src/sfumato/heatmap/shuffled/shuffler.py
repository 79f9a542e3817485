"""The shuffler: a process that takes one report a device, mixes them, strips who sent what, and forgets.

It cannot read messages, which are sealed to the adder, and the adder cannot tell of whom they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.measure import amount_of
from sfumato.heatmap.shuffled.plan import SESSION, TOKEN, ShufflePlan
from sfumato.heatmap.shuffled.rounds import OVER, Round, mix
from sfumato.heatmap.shuffled.sealing import Keys
from sfumato.heatmap.shuffled.wire import (
    MOST_HEADER,
    POLL_SECONDS,
    RETRY_SECONDS,
    read_header,
    write_frame,
)

Watch = Callable[[str], None]
MEMORY = 2**31
"""Bytes that reports and their mixed copy may take, unless said otherwise."""
AT_ONCE = 64
READ_SECONDS = 60.0
POLLERS = 500


class Refused(Exception):
    """What was sent is not taken; the sender is told why."""


class Shuffler:
    """One session of a plan: rounds that the adder opens, a report of each device in each, and no more.

    Fewer reports than the plan's batch are forgotten and never forwarded. At most the plan's
    `devices` reports are held, each of the one size that the round has.
    """

    def __init__(
        self,
        plan: ShufflePlan,
        keys: Keys,
        *,
        enrolled: frozenset[str] | None,
        wait: float = 600.0,
        memory: int = MEMORY,
        watch: Watch | None = None,
    ) -> None:
        """Make a shuffler of a plan.

        Args:
            plan: The plan, with the public keys of this shuffler.
            keys: Its own keys.
            enrolled: The SHA-256 of tokens of devices that may report; None for anybody, of whom one may
                then report as many: a guarantee for devices that are honest in number alone.
            wait: How many seconds a round waits for devices; it ends when all have sent.
            memory: How many bytes of reports it may hold, with their mixed copy.
            watch: Told of each step; never of who sent what.

        Raises:
            InvalidInput: The keys are not those of the plan.
            InvalidParameter: Reports of all devices do not fit the memory.

        """
        if keys.public != plan.shuffler:
            raise InvalidInput("the key is not that of the plan's shuffler; nothing was started")
        if plan.shuffler_bytes > memory:
            raise InvalidParameter(
                f"reports of {plan.trust.devices} devices, mixed, take {plan.shuffler_bytes} bytes, "
                f"`memory` is {memory}; nothing was started"
            )
        self.plan, self._keys, self._wait, self._enrolled = plan, keys, wait, enrolled
        self._say = watch or (lambda _: None)
        # Of this process alone: a report that one session has mixed can be opened in no other, so that
        # whoever has recorded it cannot have it mixed again without that of somebody.
        self._session = os.urandom(SESSION)
        self._changed = asyncio.Condition()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._announced: bytes | None = None
        self._round: Round | None = None
        self._reports: dict[bytes, bytes] = {}
        self._last = plan.first_level - 1
        self._over = asyncio.Event()
        self._waiting, self._sent_away = 0, False

    async def serve(
        self, host: str, port: int, *, ready: Callable[[int], None] | None = None
    ) -> None:
        """Answer until the adder says that the map is done.

        Args:
            host: Where to listen.
            port: At which port; 0 for a free one.
            ready: Told the port.

        """
        server = await asyncio.start_server(self._connected, host, port, limit=MOST_HEADER)
        async with server:
            if ready is not None:
                ready(int(server.sockets[0].getsockname()[1]))
            await self._over.wait()
            # Devices that still wait are told that it is over; those that were sent away ask again.
            await asyncio.sleep(4 * RETRY_SECONDS if self._sent_away else 0.1)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            header = await read_header(reader, timeout=READ_SECONDS)
            try:
                told, body = await self._answer(header, reader)
            except (Refused, InvalidInput) as problem:
                told, body = {"refused": str(problem)}, b""
            await write_frame(writer, told, body)
        except (OSError, ValueError, TypeError, TimeoutError, EOFError, RecursionError):
            pass  # whoever sends nothing that can be read is left alone
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(
        self, header: dict[str, Any], reader: asyncio.StreamReader
    ) -> tuple[dict[str, Any], bytes | bytearray]:
        size = header["size"]
        match header.get("do"):
            case "plan":
                return {
                    "digest": self.plan.digest.hex(),
                    "fresh": self._last < self.plan.first_level and not self._over.is_set(),
                    "wait": self._wait,
                    "enrolled": self._enrolled is not None,
                }, b""
            case "round":
                after = header.get("after", -1)
                if type(after) is not int:
                    raise Refused("a level is a whole number")
                return await self._current(after)
            case "report":
                async with self._slots:
                    asked = self._round
                    if asked is None:
                        raise Refused("no round is open")
                    if size != self.plan.report_bytes(asked.cells.size):
                        raise Refused("the report is not of the size that the round has")
                    await self._take(await self._read(reader, size), asked)
                    return {}, b""
            case "open" if size <= 2**20:
                return await self._open(await self._read(reader, size))
            case "over" if size == 64:
                if not self.plan.adder.verify(
                    self.plan.digest + OVER, await self._read(reader, size)
                ):
                    raise Refused("only the adder ends a session")
                await self._end()
                return {}, b""
            case _:
                raise Refused("there is no such question")

    async def _read(self, reader: asyncio.StreamReader, size: int) -> bytes:
        return await asyncio.wait_for(reader.readexactly(size), READ_SECONDS)

    async def _current(self, after: int) -> tuple[dict[str, Any], bytes | bytearray]:
        """The round that is open, once it is of a level after the one given."""

        def found() -> bool:
            return self._over.is_set() or (self._round is not None and self._round.level > after)

        async with self._changed:
            # A connection is held for so many; the others ask again.
            busy = self._waiting >= POLLERS and not found()
            if busy:
                self._sent_away = True
            else:
                self._waiting += 1
                try:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._changed.wait_for(found), POLL_SECONDS)
                finally:
                    self._waiting -= 1
            if self._over.is_set():
                return {"state": "over"}, b""
            if self._round is None or self._announced is None or self._round.level <= after:
                return {"state": "wait", "busy": busy}, b""
            return {"state": "open", "session": self._session.hex()}, self._announced

    async def _take(self, sealed: bytes, asked: Round) -> None:
        told = self._keys.unseal(sealed, self.plan.digest + self._session)
        if told is None or self._round is not asked or told[TOKEN] != asked.level:
            raise Refused("the report is not sealed for this round")
        # Tokens are kept as hashes, as those that may report are; none leaves this process.
        token = hashlib.sha256(told[:TOKEN]).digest()
        if self._enrolled is not None and token.hex() not in self._enrolled:
            raise Refused("this device is not enrolled")
        async with self._changed:
            # The round may have ended while this waited: what is kept now would be of no round.
            if self._round is not asked:
                raise Refused("the round is over")
            if token in self._reports:
                raise Refused("this device has reported in this round")
            if len(self._reports) >= self.plan.trust.devices:
                raise Refused("as many devices as were planned have reported")
            self._reports[token] = told[TOKEN + 1 :]
            if len(self._reports) == self.plan.trust.devices:
                self._changed.notify_all()

    async def _open(self, announced: bytes) -> tuple[dict[str, Any], bytes | bytearray]:
        """A round: announced, awaited, mixed and forwarded if enough devices came; forgotten in any case."""
        asked, trust = Round.checked(announced, self.plan), self.plan.trust
        async with self._changed:
            if self._round is not None or asked.level <= self._last:
                raise Refused(f"level {asked.level} is open, or was asked for")
            self._round, self._announced, self._last = asked, announced, asked.level
            self._reports = {}
            self._changed.notify_all()
            self._say(f"level {asked.level}: {asked.cells.size} cells, waiting for devices")
            try:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(
                        self._changed.wait_for(lambda: len(self._reports) == trust.devices),
                        self._wait,
                    )
            finally:
                reports = list(self._reports.values())
                self._reports, self._round, self._announced = {}, None, None
        if len(reports) < trust.batch:
            self._say(f"level {asked.level}: {amount_of(len(reports), 'devices')} came, forgotten")
            raise Refused(
                f"{amount_of(len(reports), 'devices')} came in {self._wait:g} s, a batch is "
                f"{trust.batch} at least: what they sent was forgotten"
            )
        mixed = await asyncio.to_thread(mix, reports, self.plan.record)
        self._say(f"level {asked.level}: {amount_of(len(reports), 'devices')} mixed and forgotten")
        return {"arrived": len(reports)}, mixed

    async def _end(self) -> None:
        async with self._changed:
            self._over.set()
            self._changed.notify_all()


def read_enrolled(path: str | Path) -> frozenset[str]:
    """The devices that may report.

    Args:
        path: A file with the SHA-256 of each device's token in hexadecimal digits, one a line.

    Returns:
        The hashes.

    Raises:
        InvalidInput: The file cannot be read, or a line is none.

    """
    try:
        lines = Path(path).read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidInput(
            f"cannot read {path} ({type(problem).__name__}); nothing was started"
        ) from None
    if not all(re.fullmatch("[0-9a-f]{64}", line) for line in lines):
        raise InvalidInput(
            f"{path} holds lines that are no SHA-256 of a token; nothing was started"
        )
    return frozenset(lines)
