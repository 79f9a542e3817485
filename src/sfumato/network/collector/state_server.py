"""State and metrics over HTTP, for pages and Prometheus on this machine: loopback only, reading only."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sfumato.errors import InvalidInput
from sfumato.network.collector.metrics import prometheus
from sfumato.network.collector.state import CollectorState
from sfumato.sensing import Site

HOST = "127.0.0.1"
OURS = (HOST, "localhost")
OUR_ORIGIN = re.compile(r"http://(127\.0\.0\.1|localhost)(:[0-9]{1,5})?")
PACE = 0.5
"""Seconds between two events of a stream, at least."""
SILENCE = 10.0
"""Seconds after which a stream without news says that it is alive; who is gone is noticed by it."""
MAX_LISTENERS = 16
PAGES = "/state.json, /events, /site.json, /metrics and /health"


@contextmanager
def serve_state(
    state: Callable[[], CollectorState], port: int, *, site: Site | None = None
) -> Iterator[int]:
    """Serve /state.json, /events, /site.json, /metrics and /health while the block runs.

    Args:
        state: What the collector knows, asked anew for every request.
        port: A port of this machine; 0 for any that is free.
        site: The site, for who draws it; without it there is no /site.json.

    Yields:
        The port.

    Raises:
        InvalidInput: The port is taken; nothing was collected.
    """
    stream = _Stream(state)
    try:
        server = ThreadingHTTPServer((HOST, port), _handler(state, stream, site))
    except OSError as problem:
        raise InvalidInput(
            f"cannot serve on {HOST}:{port}: {problem.strerror}; nothing was collected"
        ) from None
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="state", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        stream.end()
        server.shutdown()
        server.server_close()
        thread.join()


class _Stream:
    """The state as events; all listeners share one text of it, so that many cost what one costs."""

    def __init__(self, state: Callable[[], CollectorState]) -> None:
        self._state = state
        self._lock = threading.Lock()
        self._ended, self._left = threading.Event(), threading.Condition()
        self._listeners, self._number, self._text, self._when = 0, 0, "", -PACE

    def events(self) -> Iterator[str]:
        """What one listener is sent: the state at once and after every change, and a word at the end."""
        yield "retry: 2000\n\n"
        seen, said = 0, time.monotonic()
        while not self._ended.is_set():
            number, text = self._latest()
            if number != seen:
                seen, said = number, time.monotonic()
                yield f"event: state\nid: {number}\ndata: {text}\n\n"
            elif time.monotonic() - said > SILENCE:
                said = time.monotonic()
                yield ": nothing new\n\n"
            self._ended.wait(PACE)
        yield f"event: end\nid: {seen}\ndata: {{}}\n\n"

    @contextmanager
    def listening(self) -> Iterator[bool]:
        """Whether there is room for one more; its place is kept while the block runs."""
        with self._left:
            room = self._listeners < MAX_LISTENERS and not self._ended.is_set()
            self._listeners += room
        try:
            yield room
        finally:
            with self._left:
                self._listeners -= room
                self._left.notify_all()

    def end(self) -> None:
        """Say so to every listener; one that does not read is not waited for long."""
        self._ended.set()
        with self._left:
            self._left.wait_for(lambda: not self._listeners, timeout=2)

    def _latest(self) -> tuple[int, str]:
        with self._lock:
            now = time.monotonic()
            if now - self._when >= PACE:
                text, self._when = json.dumps(self._state().to_json()), now
                self._number += text != self._text
                self._text = text
            return self._number, self._text


def _handler(
    state: Callable[[], CollectorState], stream: _Stream, site: Site | None
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """A few pages, for whoever asks this machine by its own name."""

        server_version, sys_version = "sfumato", ""
        timeout = 10

        def do_GET(self) -> None:
            # A page of somebody else's, in a browser here, comes by another name.
            host = (self.headers.get("Host") or "").rpartition(":")[0] or self.headers.get("Host")
            if host not in OURS:
                self._answer(403, "text/plain", "asked by another name than this machine's\n")
                return
            # It could not read an answer, but hold the place of a listener.
            origin, where = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site")
            ours = OUR_ORIGIN.fullmatch(origin) if origin else where != "cross-site"
            if not ours:
                self._answer(403, "text/plain", "asked by a page of another machine\n")
                return
            match self.path:
                case "/state.json":
                    self._answer(200, "application/json", json.dumps(state().to_json()) + "\n")
                case "/events":
                    self._stream()
                case "/site.json" if site is not None:
                    self._answer(200, "application/json", json.dumps(site.to_json()) + "\n")
                case "/metrics":
                    self._answer(200, "text/plain; version=0.0.4", prometheus(state()))
                case "/health":
                    now = state()
                    well = now.connected and not now.store_problem
                    self._answer(
                        200 if well else 503, "text/plain", "ok\n" if well else "not well\n"
                    )
                case _:
                    self._answer(404, "text/plain", f"there are {PAGES}\n")

        def _stream(self) -> None:
            with stream.listening() as room:
                if not room:
                    told = f"{MAX_LISTENERS} listen already, or the collector ends\n"
                    self._answer(503, "text/plain", told)
                    return
                self._head(200, "text/event-stream")
                try:
                    for event in stream.events():
                        self.wfile.write(event.encode())
                except OSError:
                    self.close_connection = True  # who listened is gone, or reads nothing

        def _answer(self, code: int, kind: str, text: str) -> None:
            body = text.encode()
            self._head(code, kind, length=len(body))
            self.wfile.write(body)

        def _head(self, code: int, kind: str, *, length: int | None = None) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            if length is not None:
                self.send_header("Content-Length", str(length))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cache-Control", "no-store")
            # A page of this machine may come from another port of it; a stranger's may read nothing.
            origin = self.headers.get("Origin") or ""
            if OUR_ORIGIN.fullmatch(origin):
                self.send_header("Access-Control-Allow-Origin", origin)
                self.send_header("Vary", "Origin")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is logged: who asked is nobody's business."""

    return Handler
