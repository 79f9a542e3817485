"""One answer, two readers: a page for people, the same as JSON at the same address; and one shape of errors."""

from __future__ import annotations

import hmac
import re
import traceback
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from sfumato.cli.endings import INVALID, MEANINGS, REFUSED, USAGE
from sfumato.errors import InvalidInput, InvalidParameter, LedgerBusy, ReleasedAlready, SfumatoError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jinja2 import Environment
    from starlette.types import Scope

FOLDER = Path(__file__).parent
LARGEST_FORM = 2**20
STATUS = {REFUSED: 409, USAGE: 400, INVALID: 422, 8: 409, 10: 409}


@cache
def environment() -> Environment:
    """The templates: whatever is put into one is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def wants_json(scope: Scope) -> bool:
    """Whether JSON is asked for: by `.json` at the end of the address, or by Accept."""
    if scope["path"].endswith(".json"):
        return True
    accepts = Request(scope).headers.get("accept", "")
    return "application/json" in accepts and "text/html" not in accepts


def page(
    request: Request, template: str, data: dict[str, Any], *, status: int = 200, **more: Any
) -> Response:
    """What a handler found, as JSON or as a page of the same fields.

    Args:
        request: Who asks, and how.
        template: The page's file.
        data: What is told, in both.
        status: The HTTP status.
        **more: What only the page needs: forms' choices and the like.

    Returns:
        The answer.

    """
    if wants_json(request.scope):
        return JSONResponse(data, status)
    csrf = request.scope.get("state", {}).get("csrf", "")
    text = (
        environment()
        .get_template(template)
        .render(**data, **more, data=data, csrf=csrf, here=request.url.path)
    )
    return HTMLResponse(text, status)


def refuse(scope: Scope, message: str, *, status: int, code: int = USAGE) -> Response:
    """An error in the one shape that all have."""
    return page(Request(scope), "error.html", error_of(message, code), status=status)


def error_of(message: str, code: int = USAGE) -> dict[str, Any]:
    """What is told of an error: its sentence, and what the exit code of a command would be."""
    return {"error": {"message": message, "exit": code, "meaning": MEANINGS[code]}}


def event_of(name: str, data: str) -> str:
    """A server-sent event."""
    return f"event: {name}\ndata: {data}\n\n"


def answering(
    handler: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """A handler whose refusals are answers: the sentence of the library, and what its exit code means."""

    async def answer(request: Request) -> Response:
        from sfumato.cli.console import exit_code
        from sfumato.web.desk import TooLarge

        try:
            check_text(*request.query_params.values(), *map(str, request.path_params.values()))
            return await handler(request)
        except SfumatoError as problem:
            code = exit_code(problem)
            status = 413 if isinstance(problem, TooLarge) else STATUS.get(code, 400)
            if isinstance(problem, (LedgerBusy, ReleasedAlready)):
                status = 409  # nothing is wrong with what was asked: another request came first
            said = "; ".join([str(problem), *getattr(problem, "__notes__", ())])
            said = request.app.state.desk.named(said)
            return refuse(request.scope, said, status=status, code=code)
        except OSError as problem:
            named = Path(str(problem.filename)).name if problem.filename else "a file"
            said = f"{named}: {problem.strerror or 'it could not be read'}; nothing more was done"
            return refuse(request.scope, said, status=422, code=INVALID)
        except HTTPException:
            raise
        except Exception as problem:
            # Its text may quote a row: the terminal is told, the browser its kind alone.
            traceback.print_exc()
            said = (
                f"something unforeseen happened ({type(problem).__name__}): the terminal says more"
            )
            return refuse(request.scope, said, status=500, code=INVALID)

    return answer


async def fields(request: Request) -> dict[str, str]:
    """The fields of a form that our own page sent; refused without the page's token."""
    length = request.headers.get("content-length", "")
    if not length.isdecimal():  # sent in pieces it has no end
        raise HTTPException(411)
    if int(length) > LARGEST_FORM:
        from sfumato.web.desk import TooLarge

        raise TooLarge(
            f"a form has at most {LARGEST_FORM:,} bytes, got {int(length):,}; nothing was done"
        )
    kind = request.headers.get("content-type", "")
    if kind.startswith("application/json"):
        check_csrf(request, request.headers.get("x-csrf-token", ""))
        try:
            sent = await request.json()
        except (ValueError, RecursionError):  # which brackets in brackets are
            raise InvalidInput("the body is no JSON; nothing was done") from None
        if not isinstance(sent, dict):
            raise InvalidInput("the body is one JSON object; nothing was done")
        found = {str(name): "" if one is None else str(one) for name, one in sent.items()}
        check_text(*found.values())
        return found
    form = await request.form(max_files=0, max_fields=100)
    found = {name: value for name, value in form.items() if isinstance(value, str)}
    check_csrf(request, found.get("csrf") or request.headers.get("x-csrf-token", ""))
    check_text(*found.values())
    return found


def check_text(*sent: str) -> None:
    """Refuse what no file name, no ledger and no page can hold: NUL, halves of characters."""
    for one in sent:
        if re.search("[\0\ud800-\udfff]", one):
            raise InvalidParameter(
                f"NUL and halves of characters are no text, got {one!r}; nothing was done"
            )


def check_csrf(request: Request, shown: str) -> None:
    """Refuse what does not come from a page of ours, opened in the same browser."""
    if not hmac.compare_digest(shown.encode(), request.state.csrf.encode()):
        raise InvalidParameter(
            "this form is not one of a page that this server gave this browser: load the page again; "
            "nothing was done"
        )


def go_to(request: Request, address: str, data: dict[str, Any]) -> Response:
    """After a form: JSON says what was made, a browser goes and looks."""
    if wants_json(request.scope):
        return JSONResponse(data | {"address": address}, 201)
    return RedirectResponse(address, 303)


in_thread = run_in_threadpool
"""Pipelines block; the page answers others meanwhile. A browser that leaves does not stop one."""
