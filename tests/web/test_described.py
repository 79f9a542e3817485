"""The page does what its OpenAPI description says: whatever is sent, what comes back was described."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tests.web.served import KEY, a_book, a_form, a_head, a_table, asking

pytestmark = pytest.mark.property

# Grammars of addresses that a validator of formats would have, a second for each process; none is asked.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
from jsonschema import Draft202012Validator  # noqa: E402

# Why not schemathesis: it needs six more packages (35 MB), and is a plugin that every process of pytest
# would load for half a second. This is what we would have asked of it.
TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["1", "0", "-1", "1/3", "1e999", "nan", "inf", "9" * 40, KEY, "f" * 16, "people",
                     "../x", "map.json", "upload:0", "127.0.0.1", "%00", "a\0b", "<b>", "\ud800", " "]),
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("desk")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    """A page with a map of its own, so that some of what is asked for is there."""
    ledger, rows = a_book(folder), a_table(folder / "people.csv")
    with asking(folder) as found:
        made = found.post("/release", json=a_form(rows, ledger), headers=a_head(found))
        assert made.status_code == 201, made.text
        yield found


@pytest.fixture(scope="module")
def described(client: TestClient) -> Any:
    return client.get("/openapi.json").json()


def test_what_is_described_is_a_description(described: Any) -> None:
    assert described["openapi"].startswith("3.1.")
    names = [one["operationId"] for verbs in described["paths"].values() for one in verbs.values()]
    assert len(names) == len(set(names)) > 10
    for verbs in described["paths"].values():
        for one in verbs.values():
            assert one["summary"], one
            Draft202012Validator.check_schema(error_schema(described, one))
            for parameter in one["parameters"]:
                Draft202012Validator.check_schema(parameter["schema"])


def error_schema(described: Any, operation: Any) -> Any:
    """What an operation promises of its refusals."""
    shape = operation["responses"]["default"]["content"]["application/json"]["schema"]
    return described["components"]["schemas"][shape["$ref"].rpartition("/")[2]]


def test_whatever_is_sent_is_answered_as_described(
    client: TestClient, described: Any, folder: Path
) -> None:
    """No answer is a fault of ours; done is what was described as done; all refusals have one shape."""
    operations = [
        (path, verb, one)
        for path, verbs in described["paths"].items()
        for verb, one in verbs.items()
        # Asked of in tests of their own: they take long, or make what others count.
        if not path.endswith(".png") and "map.{suffix}" not in path
    ]
    headers, seen = a_head(client), set[tuple[str, int]]()
    ledgers = sorted(folder.rglob("*.ledger"))

    @settings(max_examples=6, suppress_health_check=[HealthCheck.filter_too_much])
    @given(st.data())
    def asked(path: str, verb: str, operation: dict[str, Any], data: st.DataObject) -> None:
        query, place = dict[str, str](), path
        for one in operation["parameters"]:
            if one["in"] == "path":
                text = data.draw(TEXTS.filter(bool)).encode("utf-8", "replace").decode()
                place = place.replace(f"{{{one['name']}}}", quote(text, safe=""))
            elif one["in"] == "query" and data.draw(st.booleans()):
                query[one["name"]] = data.draw(TEXTS).encode("utf-8", "replace").decode()
        body: dict[str, Any] = {}
        if verb == "post":
            kind = next(iter(operation["requestBody"]["content"]))
            fields = operation["requestBody"]["content"][kind]["schema"].get("properties", {})
            sent = data.draw(
                st.one_of(
                    st.fixed_dictionaries({}, optional=dict.fromkeys(fields, TEXTS)).map(
                        json.dumps
                    ),
                    st.sampled_from(
                        ["", "{}", "[]", "{", '{"a": {"b": null}}', "[" * 5000, '"\\ud800"']
                    ),
                )
            )
            body = {"content": sent.encode(), "headers": headers | {"content-type": kind}}
        asking = client.post if verb == "post" else client.get
        answer = asking(place, params=query, **({"headers": headers} | body))
        seen.add((operation["operationId"], answer.status_code // 100))
        assert answer.status_code < 500, (place, query, body, answer.text)
        if str(answer.status_code) in operation["responses"]:
            (kind,) = operation["responses"][str(answer.status_code)]["content"]
            assert answer.headers["content-type"].startswith(kind)
            if kind == "application/json":
                answer.json()
        else:
            assert answer.status_code >= 400, (place, answer.status_code)
            Draft202012Validator(error_schema(described, operation)).validate(answer.json())

    for path, verb, operation in operations:
        asked(path, verb, operation)
    assert {("index", 2), ("plan", 2), ("plan", 4), ("release", 4)} <= seen
    # Nothing of it was charged.
    for ledger in ledgers:
        assert client.get("/ledger.json", params={"path": str(ledger)}).json()["entries"][1:] == []


def test_a_method_or_an_address_that_is_not_there_is_refused_in_the_same_shape(
    client: TestClient, described: Any
) -> None:
    shape = Draft202012Validator(described["components"]["schemas"]["Error"])
    headers = a_head(client)
    for verb, path in (
        ("delete", "/maps"), ("put", "/release"), ("get", "/release"), ("get", "/static/none.js"),
        ("get", "/maps/x/y/z"), ("post", "/plan"), ("patch", "/"), ("get", "/sources/events?port=1"),
        ("get", "/sources.json?port=1025"), ("get", "/openapi.jsonx"),
    ):  # fmt: skip
        answer = client.request(verb, path, headers=headers)
        assert 400 <= answer.status_code < 503, (verb, path)
        shape.validate(answer.json())
