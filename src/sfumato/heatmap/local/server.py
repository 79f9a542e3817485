"""Answers over HTTP on this machine alone: GET gives the question, POST takes one answer."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.heatmap.local.collect import MAX_ANSWER, AnswerDesk, Verdict

LOOPBACK = "127.0.0.1"
STATUS: dict[Verdict, int] = {
    "counted": 201,
    "repeated": 200,
    "conflicting": 409,
    "not asked": 403,
    "other question": 404,
    "malformed": 400,
}


class AnswerServer(ThreadingHTTPServer):
    """A thread for each connection; one that the other side drops is no error."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing for a connection that was dropped."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def answer_server(desk: AnswerDesk, port: int = 0) -> AnswerServer:
    """A server on the loopback address; the caller serves and closes it.

    GET /question gives the last question as JSON, POST /answers takes one answer. It speaks plain HTTP
    and listens to this machine alone: put whatever speaks TLS to the world before it, which asks for
    it by the name 127.0.0.1 or localhost. Pages of others in a browser here are refused.

    Args:
        desk: Takes answers; where one could not be kept, its sender is told to send it again.
        port: Where to listen; any free port for 0.

    Returns:
        The server: `serve_forever`, `shutdown`, `server_port`.

    Raises:
        InvalidInput: The port is taken.

    """

    class Handler(BaseHTTPRequestHandler):
        """Two pages, for whoever asks this machine by its own name."""

        server_version, sys_version = "sfumato", ""
        timeout = 10

        def do_GET(self) -> None:
            if self._from_elsewhere():
                return
            if self.path != "/question":
                self._say(404, {"error": "GET /question or POST /answers"})
                return
            self._say(200, desk.collector.questions[-1].to_json())

        def do_POST(self) -> None:
            if self._from_elsewhere():
                return
            length = self.headers.get("Content-Length", "")
            whole = length.isascii() and length.isdigit() and len(length) <= len(str(MAX_ANSWER))
            if self.path != "/answers" or not whole or int(length) > MAX_ANSWER:
                self._say(400, {"error": f"POST /answers, at most {MAX_ANSWER} bytes"})
                return
            line = self.rfile.read(int(length))
            try:
                verdict = desk.take(line)
            except (OSError, ValueError):
                self._say(503, {"error": "the answer could not be kept; send it again"})
                return
            self._say(STATUS[verdict], {"answer": verdict})

        def _from_elsewhere(self) -> bool:
            # A page of somebody else's, in a browser here, comes by another name or says where from.
            asked = self.headers.get("Host") or ""
            host = asked.rpartition(":")[0] or asked
            elsewhere = host not in (LOOPBACK, "localhost") or "Origin" in self.headers
            if elsewhere:
                self._say(403, {"error": "asked by another name than this machine's"})
            return elsewhere

        def _say(self, code: int, data: Any) -> None:
            body = json.dumps(data).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing: who answered when is nobody's business."""

    try:
        return AnswerServer((LOOPBACK, port), Handler)
    except OSError as problem:
        raise InvalidInput(
            f"cannot listen on {LOOPBACK}:{port}: {problem.strerror}; nothing was collected"
        ) from None
