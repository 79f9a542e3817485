"""State and metrics over HTTP, for pages and Prometheus on this machine: loopback only, reading only."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sfumato.errors import InvalidInput
from sfumato.network.collector.metrics import prometheus
from sfumato.network.collector.state import CollectorState

HOST = "127.0.0.1"


@contextmanager
def serve_state(state: Callable[[], CollectorState], port: int) -> Iterator[int]:
    """Serve /state.json, /metrics and /health while the block runs.

    Args:
        state: What the collector knows, asked anew for every request.
        port: A port of this machine; 0 for any that is free.

    Yields:
        The port.

    Raises:
        InvalidInput: The port is taken; nothing was collected.
    """
    try:
        server = ThreadingHTTPServer((HOST, port), _handler(state))
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
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(state: Callable[[], CollectorState]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Three pages, for whoever asks this machine by its own name."""

        server_version, sys_version = "sfumato", ""
        timeout = 10

        def do_GET(self) -> None:
            # A page of somebody else's, in a browser here, comes by another name.
            host = (self.headers.get("Host") or "").rpartition(":")[0] or self.headers.get("Host")
            if host not in (HOST, "localhost"):
                self._answer(403, "text/plain", "asked by another name than this machine's\n")
                return
            match self.path:
                case "/state.json":
                    self._answer(200, "application/json", json.dumps(state().to_json()) + "\n")
                case "/metrics":
                    self._answer(200, "text/plain; version=0.0.4", prometheus(state()))
                case "/health":
                    now = state()
                    well = now.connected and not now.store_problem
                    self._answer(
                        200 if well else 503, "text/plain", "ok\n" if well else "not well\n"
                    )
                case _:
                    self._answer(404, "text/plain", "there are /state.json, /metrics and /health\n")

        def _answer(self, code: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is logged: who asked is nobody's business."""

    return Handler
