"""What the page can be asked, in the words of OpenAPI 3.1."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from sfumato import __version__

ASKED = (
    "file", "ledger", "team", "epsilon", "user", "one_row_one_user", "x", "y", "weight", "weight_step",
    "weight_cap", "rows_per_user", "west", "south", "east", "north", "plane", "crs", "images", "levels",
    "method", "width", "top", "delta", "pooling", "time", "period", "from", "to", "time_zone",
    "mass_per_period", "by", "values", "mass_per_value", "other_table",
)  # fmt: skip
"""What is asked of a release, and of the plan of one."""
QUERY: dict[str, tuple[str, ...]] = {
    "table": ("file",),
    "ground": ("kind",),
    "plan": (*ASKED, "users"),
    "plan_picture": ("epsilon", "users", "west", "south", "east", "north"),
    "map": ("hotspots",),
    "view": ("maps", "hotspots"),
    "totals": ("name",),
    "download": ("view",),
    "film": ("view",),
    "compare": ("a", "b"),
    "ledger": ("path",),
    "check_receipt": ("path",),
    "sources": ("port",),
    "sources_site": ("port",),
    "sources_plan": ("bounds",),
    "audit_report": ("key",),
    "audit_verdict": ("key",),
}
FORM: dict[str, tuple[str, ...]] = {
    "release": ("key", *ASKED, "users", "title", "note", "outline", "ground"),
    "create_ledger": ("name", "epsilon", "unit", "source", "teams"),
    "areas": ("name", "group", "corners", "remove"),
    "start_audit": ("mechanism", "epsilon", "claim", "seconds", "runs", "confidence"),
    "stop_audit": (),
}
MAKES = (
    "files", "ground", "add_map", "release", "create_ledger", "areas", "outline", "sources_plan",
    "start_audit", "stop_audit",
)  # fmt: skip
KINDS = {"view": "application/json", "audit_verdict": "application/json"}
ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "exit", "meaning"],
            "properties": {
                "message": {"type": "string"},
                "exit": {"type": "integer", "description": "The command's exit code."},
                "meaning": {"type": "string"},
            },
        }
    },
}


def described(pages: Iterable[Any], files: Iterable[Any]) -> dict[str, Any]:
    """The description of these addresses.

    Args:
        pages: Address, name, handler and method of each page.
        files: Address, name and handler of each file.

    Returns:
        An OpenAPI document.

    """
    paths: dict[str, Any] = {}
    told = [(*one, "application/json") for one in pages]
    told += [(*one, "GET", KINDS.get(one[1], "application/octet-stream")) for one in files]
    for path, name, handler, method, kind in told:
        made = "201" if name in MAKES else "200"
        operation: dict[str, Any] = {
            "operationId": name,
            "summary": (handler.__doc__ or "").strip().splitlines()[0],
            "parameters": [_parameter(one, "path") for one in re.findall(r"{(\w+)}", path)]
            + [_parameter(one, "query") for one in QUERY.get(name, ())],
            "responses": {
                made: {"description": "done", "content": {kind: {"schema": {}}}},
                "default": {
                    "description": "refused: the sentence, and what its exit code means",
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Error"}}
                    },
                },
            },
        }
        if method == "POST":
            operation["parameters"].append(_parameter("X-CSRF-Token", "header"))
            operation["requestBody"] = _body(FORM.get(name))
        paths.setdefault(path, {})[method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sfumato serve",
            "version": __version__,
            "description": "Every page as JSON: by Accept: application/json, or .json at the end. "
            "Server-sent events come from /audit/events and /sources/events.",
        },
        "paths": paths,
        "components": {"schemas": {"Error": ERROR}},
    }


def _parameter(name: str, where: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": where,
        "required": where != "query",
        "schema": {"type": "string"},
    }


def _body(names: tuple[str, ...] | None) -> dict[str, Any]:
    if names is None:
        return {"content": {"application/octet-stream": {"schema": {}}}}
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    return {"content": {"application/json": {"schema": schema}}}
