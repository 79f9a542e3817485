"""Audits of the catalogue's mechanisms: begun, watched while they bet, read, kept. Never of anybody's code.

A page that runs what a form names would run anything for whoever reaches it, so that it offers built-in
mechanisms alone; `sfumato audit run` audits others. One runs at a time.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse

from sfumato.errors import InvalidInput, InvalidParameter, SfumatoError
from sfumato.web.answers import event_of, fields, go_to, in_thread, page
from sfumato.web.asked import number, said, whole
from sfumato.web.desk import KEY

if TYPE_CHECKING:
    from sfumato.audit import Look
    from sfumato.audit.catalogue import Specimen
    from sfumato.web.desk import Desk

MOST_SECONDS, MOST_RUNS, MOST_LOOKS, MOST_VIEWERS = 300, 5_000_000, 400, 50
VERDICT, REPORT, ABOUT = "verdict.json", "report.html", "about.json"
Viewer = tuple[asyncio.AbstractEventLoop, "asyncio.Queue[str]"]


class Stopped(Exception):
    """Somebody pressed Stop."""


@dataclass(slots=True, eq=False)
class Running:
    """One audit: what was asked, how the bet stands, how it ended."""

    key: str
    asked: dict[str, Any]
    state: str = "running"
    said: str = ""
    looks: list[dict[str, Any]] = field(default_factory=list)
    every: int = 1
    count: int = 0
    stopping: bool = False

    def to_json(self) -> dict[str, Any]:
        """What the page says of it."""
        last = self.looks[-1] if self.looks else None
        told = {"key": self.key, "asked": self.asked, "state": self.state, "said": self.said}
        return told | {"look": last}

    def note(self, look: dict[str, Any]) -> None:
        """Keep a look; of very many, every second, fourth, ... one."""
        self.count += 1
        if self.count % self.every == 0:
            self.looks.append(look)
        if len(self.looks) > MOST_LOOKS:
            self.looks, self.every = self.looks[::2], 2 * self.every


class Audits:
    """The one audit that runs, and who watches it."""

    def __init__(self) -> None:
        self.running: Running | None = None
        self._viewers: list[Viewer] = []
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(
        self, asked: dict[str, Any], work: Callable[[Running, Callable[..., None]], str]
    ) -> Running:
        """Run an audit in a thread of its own; refused while another runs."""
        with self._guard:
            if self.running is not None and self.running.state == "running":
                raise InvalidParameter(
                    "one audit runs at a time, and one is running: stop it, or wait; nothing was begun"
                )
            one = self.running = Running(secrets.token_hex(8), asked)
            self._thread = threading.Thread(target=self._run, args=(one, work), daemon=True)
            self._thread.start()
        return one

    def _run(self, one: Running, work: Callable[[Running, Callable[..., None]], str]) -> None:
        def watch(step: Look | str) -> None:
            if one.stopping:
                raise Stopped
            self._watched(one, step)

        try:
            one.said = work(one, watch)
            one.state = "done"
        except Stopped:
            one.state, one.said = "stopped", f"stopped after {_stood(one)}; nothing was concluded"
        except SfumatoError as problem:
            one.state, one.said = "failed", str(problem)
        except Exception as problem:
            one.state, one.said = (
                "failed",
                f"something unforeseen happened ({type(problem).__name__})",
            )
            raise
        finally:
            self._tell("end", one.to_json())

    def _watched(self, one: Running, step: Look | str) -> None:
        from sfumato.audit.render import look_line

        if isinstance(step, str):
            one.said = step
            self._tell("said", {"said": step})
            return
        look = {
            "runs": step.runs,
            "seconds": step.seconds,
            # A wealth beyond all doubles is far over every line.
            "wealth": min(step.wealth, 1e300),
            "best": min(step.best, 1e300),
            "target": step.target,
            "said": look_line(step),
        }
        one.note(look)
        self._tell("look", look)

    def _tell(self, name: str, data: dict[str, Any]) -> None:
        event = _event(name, data)
        for loop, queue in list(self._viewers):
            loop.call_soon_threadsafe(_put, queue, event)

    def stop(self) -> Running | None:
        """Ask the audit to end at its next look."""
        if self.running is not None and self.running.state == "running":
            self.running.stopping = True
        return self.running

    def close(self) -> None:
        """The server ends, and so does the audit."""
        self.stop()
        if self._thread is not None:
            self._thread.join(timeout=5)

    async def events(self) -> AsyncGenerator[str, None]:
        """What one viewer is sent: the looks so far, then each as it comes, until the end."""
        queue: asyncio.Queue[str] = asyncio.Queue(maxsize=64)
        viewer = asyncio.get_running_loop(), queue
        self._viewers.append(viewer)
        try:
            one = self.running
            yield _event("history", {"looks": [] if one is None else one.looks})
            if one is None or one.state != "running":
                yield _event("end", {} if one is None else one.to_json())
                return
            while True:
                event = await queue.get()
                yield event
                if event.startswith("event: end"):
                    return
        finally:
            self._viewers.remove(viewer)

    @property
    def watched(self) -> int:
        """How many watch."""
        return len(self._viewers)


def _put(queue: asyncio.Queue[str], event: str) -> None:
    if queue.full():  # who reads slowly misses looks, never the end
        queue.get_nowait()
    queue.put_nowait(event)


def _event(name: str, data: dict[str, Any]) -> str:
    return event_of(name, json.dumps(data, allow_nan=False))


def _stood(one: Running) -> str:
    if not one.looks:
        return "no look"
    last = one.looks[-1]
    return f"{last['runs']:,} runs, with wealth {last['wealth']:.3g} of {last['target']:.4g}"


# the pages


async def audit(request: Request) -> Response:
    """The audit that runs, or the verdict of the last; what can be audited, and what was kept."""
    desk: Desk = request.app.state.desk
    running = request.app.state.audits.running
    data: dict[str, Any] = {
        "running": None if running is None else running.to_json(),
        "kept": await in_thread(_kept, desk),
        "mechanisms": await in_thread(_mechanisms),
        "most": {"seconds": MOST_SECONDS, "runs": MOST_RUNS},
    }
    return page(request, "audit.html", data)


def _mechanisms() -> list[dict[str, Any]]:
    return [
        {"name": one.name, "private": one.private, "delta": one.delta} for one in _specimens("1")
    ]


def _specimens(epsilon: str) -> tuple[Specimen, ...]:
    from sfumato._random import generator
    from sfumato.audit.catalogue import all_specimens

    return all_specimens(float(epsilon), generator())


def _kept(desk: Desk) -> list[dict[str, Any]]:
    """What was noted of the audits that were kept, the latest first."""
    found = sorted(
        (desk.folder / "audits").glob(f"*/{ABOUT}"),
        key=lambda one: one.stat().st_mtime,
        reverse=True,
    )
    return [json.loads(one.read_text("utf-8")) for one in found]


async def start(request: Request) -> Response:
    """Begin an audit of a mechanism of the catalogue; one at a time."""
    desk: Desk = request.app.state.desk
    asked = await fields(request)
    one = await in_thread(_begun, desk, request.app.state.audits, asked)
    return go_to(request, "/audit", one.to_json())


def _begun(desk: Desk, audits: Audits, asked: dict[str, str]) -> Running:
    from sfumato.audit import Budget, check_confidence, parse_claim

    epsilon = number(asked, "epsilon", 1)
    if not 0.01 <= epsilon <= 10:
        raise InvalidParameter(
            f"`epsilon` lies between 0.01 and 10, got {epsilon:g}; nothing was begun"
        )
    known = {one.name: one for one in _specimens(str(epsilon))}
    name = said(asked, "mechanism") or "OurLaplace"
    if name not in known:
        raise InvalidParameter(
            f"`mechanism` is one of {', '.join(known)}, got {name[:40]!r}: the page runs nobody else's code, "
            "`sfumato audit run` does; nothing was begun"
        )
    specimen = known[name]
    seconds, runs = number(asked, "seconds", 30), whole(asked, "runs", 1_000_000)
    if not (0 < seconds <= MOST_SECONDS and 0 < runs <= MOST_RUNS):
        raise InvalidParameter(
            f"an audit of the page takes at most {MOST_SECONDS} seconds and {MOST_RUNS:,} runs, got "
            f"{seconds:g} and {runs:,}; nothing was begun"
        )
    confidence = number(asked, "confidence", 0.99)
    check_confidence(confidence)
    claim = parse_claim(said(asked, "claim")) if said(asked, "claim") else specimen.claim
    budget = Budget(runs, seconds)
    told = {
        "mechanism": name,
        "claim": str(claim.loss),
        "epsilon": epsilon,
        "seconds": seconds,
        "runs": runs,
        "confidence": confidence,
    }

    def work(one: Running, watch: Callable[..., None]) -> str:
        from sfumato.audit import audit_claim
        from sfumato.audit.render import result_lines
        from sfumato.files import write_file
        from sfumato.report import write_audit_report

        result = audit_claim(
            specimen.box,
            claim,
            inputs=specimen.inputs,
            confidence=confidence,
            budget=budget,
            watch=watch,
        )
        lines = result_lines(result)
        place = desk.folder / "audits" / one.key
        place.mkdir(parents=True)
        result.write(place / VERDICT)
        write_audit_report(
            place / REPORT,
            result,
            command=["sfumato serve: Audit", name],
            budget=f"{seconds:g}s,{runs}",
            title=f"Privacy audit of {name}",
        )
        about = told | {"key": one.key, "kind": result.kind, "words": lines}
        write_file(place / ABOUT, json.dumps(about).encode())
        return lines[0]

    return audits.begin(told, work)


async def stop(request: Request) -> Response:
    """Stop the audit that runs, at its next look; nothing is concluded then."""
    await fields(request)
    one = request.app.state.audits.stop()
    return go_to(request, "/audit", {"running": None if one is None else one.to_json()})


async def events(request: Request) -> Response:
    """The looks of the audit that runs, as server-sent events, until its end."""
    audits: Audits = request.app.state.audits
    if audits.watched >= MOST_VIEWERS:
        raise InvalidParameter(f"{MOST_VIEWERS} watch already; nothing is shown")
    return StreamingResponse(
        audits.events(), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
    )


async def report(request: Request) -> Response:
    """The report of an audit that was kept, to be filed: one HTML file."""
    path = await in_thread(_file, request, REPORT)
    return FileResponse(path, filename=f"audit-{path.parent.name}.html")


async def verdict(request: Request) -> Response:
    """The verdict of an audit that was kept, for `sfumato audit replay`."""
    path = await in_thread(_file, request, VERDICT)
    return FileResponse(path, filename=f"audit-{path.parent.name}.json")


def _file(request: Request, name: str) -> Path:
    desk: Desk = request.app.state.desk
    key = request.query_params.get("key", "")
    if not KEY.fullmatch(key):
        raise InvalidParameter(
            f"a key has 16 hexadecimal digits, got {key[:40]!r}; nothing was read"
        )
    path: Path = desk.folder / "audits" / key / name
    if not path.is_file():
        raise InvalidInput(f"there is no audit {key} in {desk.folder}; nothing was read")
    return path
