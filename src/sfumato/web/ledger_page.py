"""Ledgers: what is left, who released what, whether the chain is whole, whether a map was paid for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sfumato.errors import InvalidParameter, LedgerDamaged, LedgerMismatch
from sfumato.web.answers import check_csrf, fields, go_to, in_thread, page
from sfumato.web.saved_pages import LARGEST_MAP

if TYPE_CHECKING:
    from sfumato.web.desk import Desk


async def ledger(request: Request) -> Response:
    """The ledgers of the folder, or one of them: entries, what is left, and whether its chain is whole."""
    desk: Desk = request.app.state.desk
    path = request.query_params.get("path", "").strip()
    data: dict[str, Any] = {"ledgers": desk.ledgers(), "path": path, "ledger": None}
    if path:
        data |= await in_thread(_told, desk, path)
    return page(request, "ledger.html", data, folder=str(desk.folder))


def _told(desk: Desk, path: str) -> dict[str, Any]:
    from sfumato.privacy import Ledger
    from sfumato.privacy.ledger import at_most, ledger_teams, render_check, verify_ledger
    from sfumato.privacy.runs import undelivered_runs

    book = Ledger(path)
    statement = book.statement()
    here = {
        (Path(one["ledger"]).resolve(), one["entry"]): {"key": one["key"], "name": one["name"]}
        for one in desk.maps()
        if "ledger" in one
    }
    return {
        "ledger": statement.to_json(),
        "left": at_most(statement.left),
        "terms": str(book.header.budget),
        "unit": book.header.unit,
        "source": str(book.header.source),
        "teams": ledger_teams(statement),
        "tables": [str(one) for one in statement.tables],
        "closed": None if statement.closed is None else statement.closed.to_json(),
        "entries": [
            {
                "number": one.number,
                "time": one.time,
                "cost": str(one.cost),
                "mechanism": one.mechanism,
                "note": one.note,
                "team": one.team,
                "map": here.get((Path(path).resolve(), one.number)),
            }
            for one in statement.entries
        ],
        "whole": render_check(verify_ledger(path)),
        "undelivered": [str(one) for one in undelivered_runs(book)],
    }


async def create(request: Request) -> Response:
    """Make a ledger in the folder; one that is there is never touched."""
    desk: Desk = request.app.state.desk
    asked = await fields(request)
    path = await in_thread(_made, desk, asked)
    back = asked.get("back", "")
    address = f"/ledger?path={quote(str(path))}"
    if back.startswith("upload:") or Path(back).is_file():
        address = f"/table?file={quote(back)}"
    return go_to(request, address, {"ledger": str(path)})


def _made(desk: Desk, asked: dict[str, str]) -> Path:
    from sfumato.privacy import Ledger, PureDP

    name = asked.get("name", "").strip()
    if not name or name != Path(name).name or name.startswith(".") or "\0" in name:
        raise InvalidParameter(
            f"a ledger here has a plain file name, got {name!r}; nothing was made"
        )
    path = desk.folder / (name if name.endswith(".ledger") else f"{name}.ledger")
    budget = PureDP(asked.get("epsilon", ""))
    desk.folder.mkdir(parents=True, exist_ok=True)
    teams = _teams(asked.get("teams", ""))
    unit, source = asked.get("unit", "").strip() or "user", asked.get("source", "").strip()
    Ledger.create(path, budget, unit=unit, source=source or path.stem, teams=teams)
    return path


def _teams(text: str) -> dict[str, str]:
    """Sub-budgets as they are typed, `red=1/4, blue=1/2`."""
    found: dict[str, str] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        team, equals, share = (one.strip() for one in part.partition("="))
        if not (team and equals and share) or team in found:
            raise InvalidParameter(
                f"`teams` are name=epsilon with commas, as red=1/4, blue=1/2, "
                f"got {text[:80]!r}; nothing was made"
            )
        found[team] = share
    return found


async def check(request: Request) -> Response:
    """Whether a map.json that is sent was paid for by a ledger."""
    check_csrf(request, request.headers.get("x-csrf-token", ""))
    desk: Desk = request.app.state.desk
    file = await desk.take("map.json", request.stream(), largest=LARGEST_MAP)
    path = request.query_params.get("path", "")
    return JSONResponse(await in_thread(_checked, path, desk.uploaded(file)))


def _checked(path: str, file: Path) -> dict[str, Any]:
    from sfumato.heatmap import read_heatmap
    from sfumato.privacy.ledger import render_check, verify_ledger

    receipt = read_heatmap(file).receipt
    try:
        found = verify_ledger(path, [("the dropped file", [receipt])])
    except (LedgerDamaged, LedgerMismatch) as problem:
        return {"paid": False, "words": str(problem)}
    return {"paid": True, "words": render_check(found), "check": found.to_json()}
