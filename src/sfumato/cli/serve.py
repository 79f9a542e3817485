"""`sfumato serve`: the page, on this machine alone unless somebody says otherwise."""

from __future__ import annotations

import secrets
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.console import Quiet, say, sentences
from sfumato.errors import MissingPackage

NEEDED = ("starlette", "uvicorn", "jinja2", "python_multipart")


@sentences
def serve(
    folder: Annotated[
        Path, typer.Argument(help="Folder of ledgers and released maps.", show_default=True)
    ] = Path("sfumato-page"),
    host: Annotated[
        str, typer.Option(help="Address to serve; any but this machine's own asks for a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to serve; 0 for one that is free.", min=0, max=65535)
    ] = 8377,
    name: Annotated[
        list[str] | None,
        typer.Option(help="A host name under which it is reached; again for each."),
    ] = None,
    token: Annotated[
        str,
        typer.Option(
            help="What others must show; made up and printed if left out.", show_default=False
        ),
    ] = "",
    largest_upload: Annotated[
        int, typer.Option(help="How many megabytes a file may have.", min=1)
    ] = 1024,
    quiet: Quiet = False,
) -> None:
    """Open a page to plan, release, look at and compare private maps, and to read ledgers.

    It answers on this machine alone, fetches nothing from anywhere, and never shows a row. Files
    that are uploaded lie in a private folder until it ends (Ctrl-C).
    """
    if any(find_spec(one) is None for one in NEEDED):
        raise MissingPackage("pip install 'sfumato[web]'")
    import socket

    import uvicorn

    from sfumato.web.app import make_app
    from sfumato.web.desk import Desk
    from sfumato.web.security import Gate, is_loopback

    own = is_loopback(host)
    shown = token or ("" if own else secrets.token_urlsafe(24))
    gate = Gate(host, shown, tuple(name or ()))
    app = make_app(folder, gate=gate, desk=Desk(folder, largest=largest_upload * 2**20))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named TCP: for others asyncio lets short answers wait 40 ms for the browser's acknowledgement.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(2048)  # who reads the address below and asks at once waits, and is not refused
        at = f"[{host}]" if ":" in host else host
        address = f"http://{at}:{bound.getsockname()[1]}/"
        say(f"the page is at {address}{f'?token={shown}' if shown else ''}", quiet=False)
        if not own:
            said = "others can reach this address: it asks for the token, and sends it unencrypted"
            say(said, quiet=False)
        say(f"ledgers and maps are kept in {folder}; Ctrl-C ends it", quiet=quiet)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="on",
            # Who watches a network would otherwise keep the server from ending.
            timeout_graceful_shutdown=2,
        )
        uvicorn.Server(config).run(sockets=[bound])
