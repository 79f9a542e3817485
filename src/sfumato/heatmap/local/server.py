"""Answers over HTTP on this machine alone: GET gives the question, POST takes one answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from sfumato.heatmap.local.collect import Collector, Verdict

LOOPBACK = "127.0.0.1"
MAX_ANSWER = 2**16
STATUS: dict[Verdict, int] = {
    "counted": 201,
    "repeated": 200,
    "conflicting": 409,
    "not asked": 403,
    "other question": 404,
    "malformed": 400,
}


def answer_server(
    collector: Collector, port: int = 0, *, keep: Callable[[bytes], None] = lambda _: None
) -> HTTPServer:
    """A server on the loopback address; the caller serves and closes it.

    GET /question gives the last question as JSON, POST /answers takes one answer. It speaks plain HTTP
    and listens to this machine alone: put whatever speaks TLS to the world before it.

    Args:
        collector: Takes answers.
        port: Where to listen; any free port for 0.
        keep: Told each answer that counts, before its sender is.

    Returns:
        The server: `serve_forever`, `shutdown`, `server_port`.

    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/question":
                return self._say(404, {"error": "GET /question or POST /answers"})
            return self._say(200, collector.questions[-1].to_json())

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if self.path != "/answers" or not length.isdigit() or int(length) > MAX_ANSWER:
                return self._say(400, {"error": f"POST /answers, at most {MAX_ANSWER} bytes"})
            line = self.rfile.read(int(length))
            verdict = collector.add(line)
            if verdict == "counted":
                keep(line)
            return self._say(STATUS[verdict], {"answer": verdict})

        def _say(self, code: int, data: Any) -> None:
            body = json.dumps(data).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing: who answered when is nobody's business."""

    return HTTPServer((LOOPBACK, port), Handler)
