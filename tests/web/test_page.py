"""The page: what it shows, what it never shows, who may ask, and that nothing is paid for twice."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from sfumato.errors import LedgerBusy, ReleasedAlready
from sfumato.privacy import Ledger, PureDP
from sfumato.web import Desk, Gate, make_app, map_page

pytestmark = pytest.mark.unit

AREA = {"west": "0", "south": "0", "east": "8", "north": "8", "plane": "yes", "levels": "6"}
CANARY_X, CANARY_USER = "3.141592", "canary-7731"
HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "desk", largest=2**20)


@pytest.fixture
def client(desk: Desk) -> Iterator[TestClient]:
    with TestClient(make_app(desk.folder, desk=desk), base_url="http://127.0.0.1:8377") as found:
        yield found


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    people = [f"{CANARY_USER},{CANARY_X},2.718281,77"]
    people += [f"u{n},{1 + n % 5}.5,{1 + n % 3}.25,1" for n in range(36)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["user,x,y,<i>hostile</i>", *people]))
    return path


def head(client: TestClient) -> dict[str, str]:
    """What a page of the server would send with a question."""
    found = re.search('name="csrf" content="(.*?)"', client.get("/").text)
    assert found is not None
    return {"x-csrf-token": found[1], "accept": "application/json"}


def book(desk: Desk, epsilon: int = 1) -> str:
    desk.folder.mkdir(exist_ok=True)
    path = desk.folder / "people.ledger"
    Ledger.create(path, PureDP(epsilon), unit="user", source="people")
    return str(path)


def form(rows: Path, ledger: str, **more: str) -> dict[str, str]:
    named = {"file": str(rows), "ledger": ledger, "user": "user", "x": "x", "y": "y"}
    return AREA | named | {"epsilon": "1", "key": "0" * 16} | more


def test_a_map_is_planned_released_downloaded_and_checked_and_no_row_is_shown(
    client: TestClient, desk: Desk, rows: Path
) -> None:
    said: list[bytes] = []

    def got(address: str, **more: Any) -> Any:
        answer = client.get(address, **more)
        assert answer.status_code == 200, answer.text
        said.append(answer.content)
        return answer

    headers = head(client)
    sent = client.post(
        "/files", content=rows.read_bytes(), headers=headers | {"x-file-name": "../people.csv"}
    )
    file = sent.json()["file"]
    assert stat.S_IMODE(desk.private().stat().st_mode) == 0o700
    assert desk.uploaded(file.removeprefix("upload:")).parent.parent == desk.private()
    columns = got("/table.json", params={"file": file}).json()
    assert set(columns) == {"file", "name", "columns"}
    assert [one["name"] for one in columns["columns"]] == ["user", "x", "y", "<i>hostile</i>"]
    shown = got("/table", params={"file": file}).text
    assert "<i>" not in shown
    assert "&lt;i&gt;hostile" in shown
    ledger = book(desk)
    asked = {"epsilon": "1", "users": "500", "ledger": ledger}
    plan = got("/plan.json", params=asked).json()
    assert "at most 2.72 to 1" in plan["odds"]
    assert plan["left"]["pays"]
    assert 0 < plan["plan"]["forecast"]["similarity"]["low"] < 1
    assert not client.get("/plan.json", params=asked | {"epsilon": "3"}).json()["left"]["pays"]
    assert len(Ledger(ledger).statement().entries) == 0  # nothing was spent so far
    wanted = form(rows, ledger, file=file, title=HOSTILE)
    made = client.post("/release", json=wanted, headers=headers)
    assert made.status_code == 201, made.text
    again = client.post("/release", json=wanted, headers=headers)
    assert (made.json()["made_before"], again.json()["made_before"]) == (False, True)
    assert len(Ledger(ledger).statement().entries) == 1
    page = got(made.json()["address"]).text
    assert "<script>alert" not in page
    assert "2.72 times as likely" in page
    for suffix in (".csv", ".json", ".geojson"):
        answer = client.get(f"{made.json()['address']}/map{suffix}")
        assert answer.status_code == (200 if suffix != ".geojson" else 400)  # a plane has none
        said.append(answer.content)
    got("/maps")
    told = got("/ledger.json", params={"path": ledger}).json()
    assert "is whole" in told["whole"]
    assert [one["number"] for one in told["entries"]] == [1]
    receipt = desk.saved("0" * 16).read_bytes()

    def paid(file: str) -> bool:
        answer = client.post(
            "/ledger/check", content=receipt, params={"path": file}, headers=headers
        )
        return bool(answer.json()["paid"])

    assert paid(str(ledger))
    other = desk.folder / "other.ledger"
    Ledger.create(other, PureDP(1), unit="user", source="people")
    assert not paid(str(other))
    for one in (CANARY_X, CANARY_USER, "2.718281", "37 rows"):
        assert not any(one.encode() in answer for answer in said)


def test_a_refusal_calls_an_upload_as_its_owner_does(client: TestClient, desk: Desk) -> None:
    headers = head(client)
    sent = client.post("/files", content=b"\0", headers=headers | {"x-file-name": "people.parquet"})
    answer = client.get("/table", params={"file": sent.json()["file"]}, headers=headers)
    assert answer.status_code == 422
    assert "people.parquet" in answer.json()["error"]["message"]
    assert str(desk.private()) not in answer.text


def test_numbers_that_are_none_are_refused_before_anything_is_charged(
    client: TestClient, desk: Desk, rows: Path
) -> None:
    ledger, headers = book(desk), head(client)
    for levels in ("7.9", "1e999", "99", "-1"):
        answer = client.post("/release", json=form(rows, ledger, levels=levels), headers=headers)
        assert answer.status_code == 400, answer.text
    assert len(Ledger(ledger).statement().entries) == 0
    for users in ("1e999", "0", "-3"):
        asked = {"users": users, "west": "1", "south": "1", "east": "2", "north": "2"}
        answer = client.get("/plan.png", params=asked, headers=headers)
        assert answer.status_code == 400, users
    assert client.get(f"/maps/{'0' * 16}.json?hotspots={'1' * 5000}").status_code == 400


def test_two_at_once_cannot_overspend(client: TestClient, desk: Desk, rows: Path) -> None:
    ledger, headers = book(desk), head(client)
    keys = [f"{n:016x}" for n in (1, 2, 2)]

    def press(key: str) -> int:
        asked = form(rows, ledger, key=key)
        return client.post("/release", json=asked, headers=headers).status_code

    with ThreadPoolExecutor(3) as pool:
        codes = list(pool.map(press, keys))
    # One key is paid for, once, whoever presses it; the other finds nothing left.
    assert sorted(codes) in ([201, 201, 409], [201, 409, 409])
    assert len(Ledger(ledger).statement().entries) == 1
    assert len(desk.maps()) == 1
    left = client.post("/release", json=form(rows, ledger, key="f" * 16), headers=headers)
    assert left.status_code == 409
    error = left.json()["error"]
    assert (error["exit"], error["meaning"]) == (3, "budget refused")


@pytest.mark.parametrize("problem", [LedgerBusy("held"), ReleasedAlready("paid", 1)])
def test_who_comes_second_asked_for_nothing_wrong(
    client: TestClient, desk: Desk, rows: Path, problem: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def second(*_: Any) -> None:
        raise problem

    monkeypatch.setattr(map_page, "_released", second)
    answer = client.post("/release", json=form(rows, book(desk)), headers=head(client))
    assert answer.status_code == 409


def test_only_our_own_page_may_ask(client: TestClient, rows: Path) -> None:
    headers = head(client)
    for wrong in (
        {"host": "evil.example"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
    ):
        answer = client.post("/ledger/create", json={}, headers=headers | wrong)
        assert answer.status_code == 403, wrong
    # Nor may a page elsewhere have files looked through or cities drawn by an image; a link may lead here.
    for kind, status in (("image", 403), ("iframe", 403), ("document", 200)):
        asked = {"sec-fetch-site": "cross-site", "sec-fetch-dest": kind} | {
            "sec-fetch-mode": "no-cors" if kind == "image" else "navigate"
        }
        assert client.get("/maps", headers=asked).status_code == status, kind
    assert client.get("/", headers={"host": "evil.example:8377"}).status_code == 403
    posts = ("/files", "/release", "/maps", "/ledger/create", "/ledger/check", "/maps/x/totals")
    for address in posts:
        answer = client.post(address, content=b"{}", headers={"accept": "application/json"})
        assert "not one of a page" in answer.json()["error"]["message"], address
    answer = client.get("/")
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=|style=", answer.text)
    assert not re.search(r"https?://", answer.text)
    too_much = client.post("/files", content=b"x" * (2**20 + 1), headers=headers)
    assert too_much.status_code == 413


def test_other_addresses_ask_for_a_token(tmp_path: Path) -> None:
    gate = Gate("0.0.0.0", token="opener")  # noqa: S104, S106
    with TestClient(make_app(tmp_path, gate=gate), base_url="http://192.0.2.7") as client:
        assert client.get("/ledger").status_code == 401
        assert client.get("/?token=wrong").status_code == 401
        with_header = {"authorization": "Bearer opener"}
        assert client.get("/ledger", headers=with_header).status_code == 200
        assert client.get("/ledger").status_code == 401
        entered = client.get("/?token=opener", follow_redirects=False)
        assert (entered.status_code, entered.headers["location"]) == (303, "/")
        assert client.get("/ledger").status_code == 200
        client.cookies.clear()
        bent = client.get("/%0d%0ax-a:b?token=opener", follow_redirects=False)
        assert bent.headers["location"] == "/%0D%0Ax-a%3Ab"
        client.cookies.clear()
        bent = client.get("http://192.0.2.7//evil.example/?token=opener", follow_redirects=False)
        assert bent.headers["location"] == "/evil.example/"
        assert client.get("/", headers={"host": "bent.example"}).status_code == 403


def test_every_page_has_a_twin_that_is_described(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    pages = [path for path, verbs in described["paths"].items() if "get" in verbs]
    for path in pages:
        answers = described["paths"][path]["get"]["responses"]["200"]["content"]
        if "{" in path or "." in path or "application/json" not in answers:
            continue
        twin = client.get(f"{'/index' if path == '/' else path}.json")
        asked = client.get(path, headers={"accept": "application/json"})
        assert twin.headers["content-type"] == "application/json"
        assert twin.json() == asked.json(), path
        assert client.get(path).headers["content-type"].startswith("text/html")
    missing = client.get("/nothing.json")
    assert missing.status_code == 404
    assert set(missing.json()["error"]) == {"message", "exit", "meaning"}


def test_the_server_starts_without_anything_heavy(tmp_path: Path) -> None:
    script = """
import sys
from starlette.testclient import TestClient
from sfumato.web import make_app
heavy = {"numpy", "scipy", "numba", "pandas", "duckdb", "pyarrow", "ibis", "matplotlib", "opendp"}
with TestClient(make_app("desk"), base_url="http://localhost") as client:
    assert client.get("/").status_code == 200
print(sorted(heavy & sys.modules.keys()))
"""
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert found.stdout.strip() == "[]"
