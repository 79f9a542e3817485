"""Who may ask: the host that was named, the page itself, whoever has the token; and what a browser may do."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.web.answers import refuse

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "worker-src 'self' blob:",
        "frame-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
FRAMED = "sandbox allow-scripts; frame-ancestors 'self'"
"""Of a saved map's own page, which has a policy of its own inside: it may do nothing else to us."""
ANOTHER = "another page may not ask this server for anything; nothing was done"
SESSION, ADMITTED = "sfumato_session", "sfumato_admitted"


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own.

    Args:
        host: A name or an address.

    Returns:
        True for localhost, 127.0.0.0/8 and ::1.

    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Gate:
    """Who is let in, and how it is known that a page of ours asks.

    Attributes:
        host: The address that is served.
        token: What others than this machine must show; empty for loopback alone.
        names: Further host names under which the page is reached.
        secret: What session cookies are signed with.

    """

    host: str = "127.0.0.1"
    token: str = ""
    names: tuple[str, ...] = ()
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def sign(self, text: str) -> str:
        """A signature that only this server can make."""
        return hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server: a page elsewhere whose name was bent to us does not."""
        name = _split(f"//{host}").hostname or ""
        if is_loopback(name) or name in (self.host, *self.names):
            return True
        try:  # An address cannot be bent; it is only served where a token is asked for.
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return bool(self.token)

    def admits(self, headers: Headers, cookies: dict[str, str]) -> bool:
        """Whether who asks has shown the token, if one is needed."""
        if not self.token:
            return True
        shown = headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(shown.encode(), self.token.encode()) or hmac.compare_digest(
            cookies.get(ADMITTED, "").encode(), self.sign(self.token).encode()
        )


class Guard:
    """Every request passes here: host, origin, token; and every answer leaves with its policy."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self.app = app
        self.gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        cookies = cookie_parser(headers.get("cookie", ""))
        session = cookies.get(SESSION, "")
        fresh = not (len(session) == 32 and session.isalnum())
        session = secrets.token_hex(16) if fresh else session
        scope.setdefault("state", {})["csrf"] = self.gate.sign(session)
        new = [_cookie(SESSION, session)] if fresh else []

        async def finish(message: Message) -> None:
            if message["type"] == "http.response.start":
                out = MutableHeaders(scope=message)
                out.setdefault("content-security-policy", POLICY)
                out["x-content-type-options"] = "nosniff"
                # "no-referrer" would make the Origin of our own forms null.
                out["referrer-policy"] = "same-origin"
                out["cross-origin-opener-policy"] = "same-origin"
                out["cross-origin-resource-policy"] = "same-origin"
                out.setdefault("cache-control", "no-store")
                for one in new:
                    out.append("set-cookie", one)
            await send(message)

        wrong = self._wrong(scope["method"], headers)
        if wrong:
            await refuse(scope, wrong, status=403)(scope, receive, finish)
        elif self.gate.admits(headers, cookies):
            await self.app(scope, receive, finish)
        else:
            shown = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if hmac.compare_digest(shown.encode(), self.gate.token.encode()):
                new.append(_cookie(ADMITTED, self.gate.sign(self.gate.token)))
                # The token goes out of the address, so that no bookmark keeps it. Two slashes would
                # name another host, and a line end another header.
                location = "/" + quote(scope["path"].lstrip("/\\"))
                await finish(
                    {
                        "type": "http.response.start",
                        "status": 303,
                        "headers": [(b"location", location.encode())],
                    }
                )
                await finish({"type": "http.response.body", "body": b""})
                return
            said = "this address asks for the token that `sfumato serve` printed; nothing was shown"
            await refuse(scope, said, status=401)(scope, receive, finish)

    def _wrong(self, method: str, headers: Headers) -> str:
        host = headers.get("host", "")
        if not self.gate.knows(host):
            return (
                f"this server is not known as {host!r}; if it is, begin it with that name "
                "(`sfumato serve --name NAME`); nothing was shown"
            )
        site = headers.get("sec-fetch-site", "same-origin")
        if method in ("GET", "HEAD", "OPTIONS"):
            # A link may lead here. A page elsewhere may not have files looked through, or maps drawn, unseen.
            led = headers.get("sec-fetch-mode") == "navigate" and (
                headers.get("sec-fetch-dest", "document") == "document"
            )
            return "" if led or site in ("same-origin", "none") else ANOTHER
        origin = headers.get("origin")
        if origin is not None and _split(origin).netloc != host:
            return f"a page of {origin!r} may not ask this server for anything; nothing was done"
        return "" if site in ("same-origin", "none") else ANOTHER


def _split(address: str) -> SplitResult:
    """The parts of an address; of what is none, such as http://[, no parts."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def _cookie(name: str, value: str) -> str:
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Strict"
