"""The page of a running network: what its collector recovers, pushed as it comes.

The browser talks to this page alone. One connection to a collector serves all viewers, and keeps the last
rounds, so that who comes late has the history. Nothing is computed here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from sfumato.errors import InvalidParameter
from sfumato.web.answers import (
    answering,
    check_csrf,
    error_of,
    event_of,
    in_thread,
    page,
    wants_json,
)

if TYPE_CHECKING:
    from sfumato.web.desk import Desk

HOST, DEFAULT_PORT = "127.0.0.1", 8787
MOST_ROUNDS, MOST_VIEWERS, MOST_COLLECTORS = 200, 200, 4
LONGEST = 2**23  # bytes of one event
LARGEST_PLAN = 2**25
PATIENCE = 10.0  # seconds for a collector to answer at all


class Relay:
    """One collector's stream, for all who watch it; it ends with the last of them."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.rounds: OrderedDict[str, Any] = OrderedDict()
        self.viewers: set[asyncio.Queue[str]] = set()
        self._task: asyncio.Task[None] | None = None
        self._latest = ""

    async def events(self) -> AsyncGenerator[str, None]:
        """What one viewer is sent: the rounds so far, then every state as it comes."""
        queue: asyncio.Queue[str] = asyncio.Queue(maxsize=4)
        self.viewers.add(queue)
        try:
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._listen())
            yield event_of("history", json.dumps(list(self.rounds.values())))
            if self._latest:
                yield self._latest
            while True:
                yield await queue.get()
        finally:
            self.viewers.discard(queue)
            if not self.viewers and self._task is not None:
                ended, self._task = self._task, None
                ended.cancel()
                await asyncio.gather(ended, return_exceptions=True)

    async def _listen(self) -> None:
        """Read the collector's events until it ends; then say that it is away, and try again."""
        while True:
            # Whatever it was is told below.
            with contextlib.suppress(
                OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError
            ):
                await self._read()
            self._latest = ""
            self._tell(event_of("away", json.dumps({"port": self.port})))
            await asyncio.sleep(2)

    async def _read(self) -> None:
        async with _asked(self.port, "/events", "text/event-stream") as reader:
            while block := await reader.readuntil(b"\n\n"):
                fields = dict(
                    line.split(": ", 1) for line in block.decode().split("\n") if ": " in line
                )
                if fields.get("event") == "end":
                    return
                if fields.get("event") == "state":
                    self._state(fields.get("data", ""))

    def _state(self, text: str) -> None:
        state = json.loads(text)
        last = state.get("last") if isinstance(state, dict) else None
        if isinstance(last, dict):
            self.rounds[str(last.get("time"))] = last
            while len(self.rounds) > MOST_ROUNDS:
                self.rounds.popitem(last=False)
        self._latest = event_of("state", json.dumps(state))
        self._tell(self._latest)

    def _tell(self, event: str) -> None:
        for queue in self.viewers:
            if queue.full():  # it reads slowly: every state is whole, so old ones are dropped
                queue.get_nowait()
            queue.put_nowait(event)


@contextlib.asynccontextmanager
async def _asked(port: int, path: str, kind: str) -> AsyncIterator[asyncio.StreamReader]:
    """A collector's answer after its head; only of this machine, and only of the kind that was asked for."""
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(HOST, port, limit=LONGEST)
    try:
        # HTTP/1.0: the body is everything until the end, never in chunks.
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {HOST}:{port}\r\n\r\n".encode())
        async with asyncio.timeout(PATIENCE):
            await writer.drain()
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        status, *lines = head.split("\r\n")
        if " 200" not in status or not any(
            line.startswith(f"content-type: {kind}") for line in lines
        ):
            raise ValueError(f"port {port} does not serve a collector's state")
        yield reader
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _port(request: Request) -> int | None:
    text = request.query_params.get("port", str(DEFAULT_PORT))
    known = text.isascii() and text.isdecimal() and len(text) <= 5 and 1024 <= int(text) < 65536
    return int(text) if known else None


def _refused(said: str, status: int) -> Response:
    return JSONResponse(error_of(said), status)


WRONG_PORT = "a collector's port is a number from 1024 to 65535; nothing was asked"


async def sources_page(request: Request) -> Response:
    """What a running network's collector recovers, as it comes; as JSON the state once."""
    if wants_json(request.scope):
        return await sources_state(request)
    return page(request, "sources.html", {}, port=request.query_params.get("port", DEFAULT_PORT))


async def sources_events(request: Request) -> Response:
    """The stream of one collector, relayed."""
    port = _port(request)
    if port is None:
        return _refused(WRONG_PORT, 400)
    if not hasattr(request.app.state, "relays"):
        request.app.state.relays = {}
    relays: dict[int, Relay] = request.app.state.relays
    if port not in relays:
        for old in [one for one, relay in relays.items() if not relay.viewers]:
            if len(relays) >= MOST_COLLECTORS:
                del relays[old]
        if len(relays) >= MOST_COLLECTORS:
            return _refused(f"{MOST_COLLECTORS} collectors are watched already", 503)
        relays[port] = Relay(port)
    if len(relays[port].viewers) >= MOST_VIEWERS:
        return _refused(f"{MOST_VIEWERS} watch already", 503)
    return StreamingResponse(
        relays[port].events(),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _once(request: Request, path: str) -> Any:
    """One JSON answer of a collector, or a refusal."""
    port = _port(request)
    if port is None:
        return _refused(WRONG_PORT, 400)
    try:
        async with _asked(port, path, "application/json") as reader, asyncio.timeout(PATIENCE):
            body = await reader.read(LONGEST)
        return json.loads(body)
    except (OSError, ValueError, asyncio.IncompleteReadError, TimeoutError):
        return _refused(f"no collector answers at port {port} of this machine", 404)


async def sources_state(request: Request) -> Response:
    """The page's twin: the state once."""
    found = await _once(request, "/state.json")
    return found if isinstance(found, Response) else JSONResponse(found)


async def sources_site(request: Request) -> Response:
    """The site: sensors and their places, and how it is drawn."""
    found = await _once(request, "/site.json")
    if isinstance(found, Response):
        return found
    return JSONResponse(await in_thread(_drawn, json.dumps(found)))


@lru_cache(maxsize=4)
def _drawn(text: str) -> dict[str, Any]:
    from sfumato.sensing import Site
    from sfumato.sensing.render import site_view

    data = json.loads(text)
    return {"site": data, "drawn": site_view(Site.from_json(data))}


async def floor_plan(request: Request) -> Response:
    """Take a public floor plan, an image with its `bounds` or a GeoJSON file, to draw the site on."""
    check_csrf(request, request.headers.get("x-csrf-token", ""))
    desk: Desk = request.app.state.desk
    name = unquote(request.headers.get("x-file-name", "plan.geojson"))
    key = await desk.take(name, request.stream(), largest=LARGEST_PLAN)
    box = request.query_params.get("bounds", "")
    return JSONResponse(await in_thread(_plan, desk.uploaded(key), box), 201)


def _plan(file: Path, box: str) -> dict[str, Any]:
    from sfumato.files import read_floor_plan

    if file.suffix.lower() in (".geojson", ".json"):
        found = read_floor_plan(outline=file)
    else:
        try:
            west, south, east, north = map(float, box.split(","))
        except ValueError:
            raise InvalidParameter(
                f"`bounds` are x0,y0,x1,y1 in the site's unit, got {box[:60]!r}; nothing was drawn"
            ) from None
        found = read_floor_plan(file, bounds=(west, south, east, north))
    return {
        "image": found.image_uri(),
        "bounds": found.bounds,
        "lines": [line.tolist() for line in found.lines],
        "said": found.sentence,
    }


ADDRESSES = (
    ("/sources", "sources", sources_page, "GET"),
    ("/sources/site.json", "sources_site", sources_site, "GET"),
    ("/sources/plan", "sources_plan", floor_plan, "POST"),
)
"""Address, name, handler, method, as the page's others; the events are a stream."""
routes = [
    Route("/sources.json", answering(sources_state)),
    *(
        Route(path, answering(handler), methods=[method], name=name)
        for path, name, handler, method in ADDRESSES
    ),
    Route("/sources/events", sources_events, name="sources_events"),
]
