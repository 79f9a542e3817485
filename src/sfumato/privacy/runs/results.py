"""What finishing earlier requests gave, and how it is said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from sfumato.privacy.runs.kept import KeptRun


class Told(Protocol):
    """A result that can be printed as JSON."""

    def to_json(self) -> dict[str, Any]:
        """The result as JSON."""


R = TypeVar("R", bound=Told)


@dataclass(frozen=True, slots=True)
class ResumeResult(Generic[R]):
    """What `resume` has finished, and what it has left as it was.

    Attributes:
        ledger: The ledger, or the folder of ledgers, that was looked at.
        finished: The requests that were finished, the oldest first.
        results: What each of them gave, in the same order; None for one whose results had all been
            written.
        waiting: Those that are left: of another command, in progress, or only listed.

    """

    ledger: str
    finished: tuple[KeptRun, ...] = ()
    results: tuple[R | None, ...] = field(default=(), repr=False)
    waiting: tuple[KeptRun, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What `resume --json` prints."""
        told = [None if one is None else one.to_json() for one in self.results]
        return {
            "ledger": self.ledger,
            "finished": [one.to_json() for one in self.finished],
            "results": told,
            "waiting": [one.to_json() for one in self.waiting],
        }

    @staticmethod
    def from_json(
        data: Mapping[str, Any], read: Callable[[Mapping[str, Any]], R]
    ) -> ResumeResult[R]:
        """What `to_json` gave; `read` reads the result of one request."""
        return ResumeResult(
            str(data["ledger"]),
            tuple(map(KeptRun.from_json, data["finished"])),
            tuple(None if one is None else read(one) for one in data["results"]),
            tuple(map(KeptRun.from_json, data["waiting"])),
        )


def render_resumed(result: ResumeResult[Any], *, listed: bool = False) -> str:
    """What was finished and what is left, a line for each.

    Args:
        result: What `resume` gave.
        listed: Whether it was asked to list only.

    Returns:
        The lines; one that says so where there was nothing to do.

    """
    lines = [
        f"finished: {one}" + (f", written to {', '.join(_files(told))}" if _files(told) else "")
        if told is not None
        else f"ticked off: {one}: its results had been written"
        for one, told in zip(result.finished, result.results, strict=True)
    ]
    lines += [f"{'to finish' if listed else 'left'}: {one} ({_why(one)})" for one in result.waiting]
    return "\n".join(lines) or f"{result.ledger}: nothing to finish"


def _files(told: Any) -> list[str]:
    return [str(path) for path in getattr(told, "written", ())]


def _why(run: KeptRun) -> str:
    command = run.kind.split("/")[0]
    where = ", ".join(Path(path).name for path in run.delivery.get("outputs", ()))
    return "; ".join(filter(None, [f"{command}, {run.state}", f"for {where}" if where else ""]))
