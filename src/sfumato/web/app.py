"""The page as an application: its addresses, each with a JSON twin. Pipelines load when they are asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from sfumato.cli.endings import USAGE
from sfumato.web import (
    audit_page,
    compare_page,
    ledger_page,
    map_page,
    plan_page,
    saved_pages,
    sources,
)
from sfumato.web.answers import FOLDER, answering, refuse
from sfumato.web.desk import Desk
from sfumato.web.map_assets import MAPLIBRE, map_asset
from sfumato.web.openapi import described
from sfumato.web.security import Gate, Guard


async def _maplibre(request: Request) -> Response:
    """A file of MapLibre, of the installed package."""
    name = request.path_params["name"]
    if name not in MAPLIBRE:
        raise HTTPException(404)
    kind = "text/javascript" if name.endswith(".js") else "text/css"
    return Response(map_asset(name), media_type=kind, headers={"cache-control": "max-age=86400"})


PAGES = (
    ("/", "index", map_page.start, "GET"),
    ("/files", "files", map_page.upload, "POST"),
    ("/table", "table", map_page.table, "GET"),
    ("/ground", "ground", map_page.ground, "POST"),
    ("/plan", "plan", plan_page.plan, "GET"),
    ("/release", "release", map_page.release, "POST"),
    ("/maps", "maps", saved_pages.maps, "GET"),
    ("/maps", "add_map", saved_pages.add_map, "POST"),
    ("/maps/{key}", "map", saved_pages.one_map, "GET"),
    ("/maps/{key}/totals", "totals", saved_pages.totals, "POST"),
    ("/maps/{key}/areas", "areas", saved_pages.add_area, "POST"),
    ("/maps/{key}/outline", "outline", saved_pages.outline, "POST"),
    ("/compare", "compare", compare_page.compare, "GET"),
    ("/audit", "audit", audit_page.audit, "GET"),
    ("/audit", "start_audit", audit_page.start, "POST"),
    ("/audit/stop", "stop_audit", audit_page.stop, "POST"),
    ("/ledger", "ledger", ledger_page.ledger, "GET"),
    ("/ledger/create", "create_ledger", ledger_page.create, "POST"),
    ("/ledger/check", "check_receipt", ledger_page.check, "POST"),
)
"""Address, name, handler, method; each is also there with `.json` at its end."""
FILES = (
    ("/plan.png", "plan_picture", plan_page.plan_picture),
    ("/view.json", "view", saved_pages.view),
    ("/maps/{key}/map.{suffix}", "download", saved_pages.download),
    ("/maps/{key}/film.html", "film", saved_pages.film),
    ("/compare/{a}-{b}.png", "difference", compare_page.difference),
    ("/audit/report.html", "audit_report", audit_page.report),
    ("/audit/verdict.json", "audit_verdict", audit_page.verdict),
    ("/maplibre/{name}", "maplibre", _maplibre),
)


def make_app(
    folder: str | Path, *, gate: Gate | None = None, desk: Desk | None = None
) -> Starlette:
    """The page over a folder of ledgers and maps.

    Args:
        folder: Where ledgers and released maps are kept.
        gate: Who is let in; this machine alone, if none is given.
        desk: The desk of the folder, if it has limits of its own.

    Returns:
        An ASGI application.

    """
    work, audits = desk or Desk(folder), audit_page.Audits()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            audits.close()
            work.close()

    app = Starlette(
        routes=[*_routes(), Mount("/static", StaticFiles(directory=FOLDER / "static"))],
        middleware=[Middleware(Guard, gate=gate or Gate())],
        exception_handlers={HTTPException: _no_page},
        lifespan=lifespan,
    )
    app.state.desk, app.state.audits = work, audits
    return app


def _routes() -> list[BaseRoute]:
    # The twins first: a key may not end in .json.
    twins: list[BaseRoute] = [
        Route(f"{'/index' if path == '/' else path}.json", answering(handler), methods=[method])
        for path, _, handler, method in PAGES
    ]
    files = [Route(path, answering(handler), name=name) for path, name, handler in FILES]
    pages = [
        Route(path, answering(handler), methods=[method], name=name)
        for path, name, handler, method in PAGES
    ]
    own = Route("/openapi.json", _openapi)
    # A stream has no end that a description could tell of.
    stream = Route("/audit/events", answering(audit_page.events), name="audit_events")
    return [own, stream, *files, *twins, *pages, *sources.routes]


async def _openapi(_: Request) -> Response:
    return JSONResponse(described((*PAGES, *sources.ADDRESSES), FILES))


async def _no_page(request: Request, problem: Exception) -> Response:
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    said = "there is no such page" if status == 404 else f"this page does not do that ({status})"
    return refuse(request.scope, f"{said}; nothing was done", status=status, code=USAGE)
