"""Secure sums between parties: the process that MPyC runs in, as this process sees it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol

import numpy as np

from sfumato._types import IntArray
from sfumato.errors import MissingPackage, SessionStopped
from sfumato.heatmap.distributed.parties import Parties
from sfumato.privacy.noise import from_field, to_field

MODULUS = 2**61 - 1
"""A prime: sums with their noise lie between -2**60 and 2**60, but with a chance that is stated."""
TIMEOUT = 600.0
"""Seconds that a party waits for the others, unless somebody says otherwise."""
CHILD = Path(__file__).with_name("_secure_sum_child.py")
Watch = Callable[[str], None]


class PartySums(Protocol):
    """What parties do together: each tells all, and sums of which nobody learns more than the sum."""

    def tell(self, values: IntArray) -> IntArray:
        """What each party says to all [party, value]; non-negative, below `MODULUS`."""

    def sum(self, values: IntArray) -> IntArray:
        """The sum of all parties' values, opened to all."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that went to the other parties and came from them, before TLS."""

    sent: int = 0
    received: int = 0


class SecureSums:
    """One party's end of secure sums, in a process of its own that is connected to all others.

    Use it as a context: leaving it says goodbye to the others.
    """

    def __init__(
        self,
        parties: Parties,
        me: int,
        *,
        timeout: float = TIMEOUT,
        watch: Watch | None = None,
    ) -> None:
        self.parties, self.me, self.traffic = parties, me, Traffic()
        self._timeout, self._watch = timeout, watch or (lambda _: None)
        self._child: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None

    def __enter__(self) -> SecureSums:
        """Start the process and connect to all parties."""
        check_packages()
        self._errors = tempfile.TemporaryFile()
        self._child = subprocess.Popen(  # noqa: S603 - this interpreter, and a file of this package
            [sys.executable, "-P", str(CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        try:
            self._write(json.dumps(self._config()).encode() + b"\n")
            self._ask("connect")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Say goodbye."""
        self.close()

    def close(self) -> None:
        """End the process: it tells the others that this party leaves."""
        child, self._child = self._child, None
        if child is None:
            return
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if self._errors is not None:
            self._errors.close()

    def tell(self, values: IntArray) -> IntArray:
        """What each party says to all."""
        found = self._ask("tell", values)
        return found.reshape(len(self.parties.parties), values.size)

    def sum(self, values: IntArray) -> IntArray:
        """The sum of all, modulo the field: each party's values are shared before they leave its machine."""
        elements = np.array(to_field(values, MODULUS), dtype=np.int64)
        return from_field(self._ask("sum", elements).tolist(), MODULUS)

    def _config(self) -> dict[str, Any]:
        own, prints = self.parties, self.parties.fingerprints()
        return {
            "me": self.me,
            "modulus": MODULUS,
            "timeout": self._timeout,
            "listen": list(own.parties[self.me].listen),
            "certificate": str(own.certificate(self.me)),
            "key": str(own.key(self.me)),
            "parties": [
                {
                    "name": one.name,
                    "host": one.host,
                    "port": one.port,
                    "certificate": str(own.certificate(at)),
                    "fingerprint": prints[at],
                }
                for at, one in enumerate(own.parties)
            ],
        }

    def _ask(self, what: str, values: IntArray | None = None) -> IntArray:
        count = 0 if values is None else values.size
        self._write(json.dumps({"do": what, "count": count}).encode() + b"\n")
        if values is not None:
            self._write(np.ascontiguousarray(values, dtype=np.int64).tobytes())
        while True:
            told, found = self._read()
            if "waiting" in told:
                names = [self.parties.names[at] for at in told["waiting"]]
                self._watch(
                    f"waiting for {', '.join(names)}" if names else "connected with all parties"
                )
                continue
            if "stopped" in told:
                raise self._stopped(told)
            self.traffic = Traffic(told.get("sent", 0), told.get("received", 0))
            return found

    def _write(self, data: bytes) -> None:
        if self._child is None or self._child.stdin is None:
            raise SessionStopped("this party has left the session")
        try:
            self._child.stdin.write(data)
            self._child.stdin.flush()
        except (BrokenPipeError, OSError) as problem:
            # It may have said why before it ended.
            told, _ = self._read()
            raise self._stopped(told) from problem

    def _read(self) -> tuple[dict[str, Any], IntArray]:
        pipe = None if self._child is None else self._child.stdout
        line = b"" if pipe is None else pipe.readline()
        if pipe is None or not line:
            raise SessionStopped(f"the process that adds up has ended{self._last_words()}")
        told = json.loads(line)
        data = pipe.read(8 * told["count"])
        return told, np.frombuffer(data, dtype=np.int64)

    def _last_words(self) -> str:
        if self._errors is None:
            return ""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return f" ({lines[-1][:200]})" if lines else ""

    def _stopped(self, told: dict[str, Any]) -> SessionStopped:
        why, at = str(told["stopped"]), int(told["party"])
        who = self.parties.names[at] if at >= 0 else "a party"
        if why == "late":
            late = [self.parties.names[one] for one in told["missing"]]
            named = ", ".join(late) or "the others"
            return SessionStopped(f"waited {self._timeout:g} s for {named}")
        if why == "lost":
            return SessionStopped(f"{who} stopped")
        if why.startswith("certificate: "):
            where = self.parties.parties[at]
            return SessionStopped(
                f"who answers at {where.host}:{where.port} has no certificate of {who} "
                f"({why.removeprefix('certificate: ')})"
            )
        return SessionStopped(f"{who}: {why}")


def check_packages() -> None:
    """Refuse to begin where MPyC is not installed."""
    if importlib.util.find_spec("mpyc") is None:
        raise MissingPackage("pip install 'sfumato[joint]'")
