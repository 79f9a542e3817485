"""The page for tests: served by a thread, or asked in process; a table nobody may see; every address."""

from __future__ import annotations

import html
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.testclient import TestClient

from sfumato.privacy import Ledger, PureDP
from sfumato.web import make_app

AREA = {"west": "0", "south": "0", "east": "8", "north": "8", "plane": "yes", "levels": "6"}
KEY = "0" * 16
LINK = re.compile(r'\b(?:href|src)="(/[^"#]*)')


@contextmanager
def serving(app: Starlette) -> Iterator[str]:
    """The address of the page, served on a free port by a thread of the test."""
    config = uvicorn.Config(app, port=0, log_level="warning", lifespan="on")
    server, ready = uvicorn.Server(config), threading.Event()
    started = server.startup

    async def startup(sockets: Any = None) -> None:
        await started(sockets)
        ready.set()

    server.startup = startup  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run)
    thread.start()
    assert ready.wait(600)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def asking(folder: Path) -> Iterator[TestClient]:
    """The page of a folder, in process."""
    with TestClient(make_app(folder), base_url="http://127.0.0.1:8377") as found:
        yield found


def a_book(folder: Path, epsilon: int = 1, name: str = "people") -> str:
    """A ledger in a folder."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.ledger"
    Ledger.create(path, PureDP(epsilon), unit="user", source="people")
    return str(path)


def a_table(path: Path, *more: str, header: str = "user,x,y,note") -> Path:
    """Some people in a corner of the area, and more rows."""
    people = (f"u{n},{1 + n % 5}.5,{1 + n % 3}.25,1" for n in range(36))
    path.write_text("\n".join([header, *people, *more]), "utf-8")
    return path


def a_form(file: Path | str, ledger: str, **more: str) -> dict[str, str]:
    """What the form of a map sends."""
    named = {"file": str(file), "ledger": ledger, "user": "user", "x": "x", "y": "y"}
    return AREA | named | {"epsilon": "1", "key": KEY} | more


def a_head(client: TestClient) -> dict[str, str]:
    """What a page of the server would send with a question."""
    found = re.search('name="csrf" content="(.*?)"', client.get("/").text)
    assert found is not None
    return {"x-csrf-token": found[1], "accept": "application/json"}


def crawled(client: TestClient, *more: str, but: str = "-") -> dict[str, bytes]:
    """What every address answers that links lead to, and its twin, with its head; all but some."""
    described = client.get("/openapi.json").json()["paths"]
    plain = [path for path, verbs in described.items() if "get" in verbs and "{" not in path]
    waiting, found = ["/sources", "/nothing", *plain, *more], dict[str, bytes]()
    while waiting:
        address = waiting.pop()
        # MapLibre is a public package's, and knows pi to many digits.
        if address in found or address.startswith((but, "/maplibre/")):
            continue
        answer = client.get(address)
        head = "\n".join(f"{name}: {value}" for name, value in answer.headers.items())
        found[address] = head.encode() + b"\n\n" + answer.content
        if answer.headers.get("content-type", "").startswith("text/html"):
            path, mark, query = address.partition("?")
            waiting.append(f"{'/index' if path == '/' else path}.json{mark}{query}")
            waiting += [html.unescape(link) for link in LINK.findall(answer.text)]
    return found
