"""What the page never does: show a row, believe a name, spend twice, forget what was paid for."""

from __future__ import annotations

import http.client
import io
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from PIL import Image
from starlette.testclient import TestClient
from tests.web.served import a_book, a_form, a_head, a_table, asking, crawled, serving

from sfumato.errors import InvalidInput
from sfumato.heatmap import public_area
from sfumato.privacy import Ledger
from sfumato.web import make_app

pytestmark = pytest.mark.unit

SCRIPT = "\"><script>alert(1)</script><img src=x onerror=alert(1)>'"
NAMES = {
    "markup": SCRIPT,
    "template": "{{ 7 * 1191 }}{% raw %}",
    "right to left": "\u202egpj.exe\u202c\u2066",
    "a way out": "../../../etc/passwd",
    "nothing": "a\0b",
    "lines": "a\r\nset-cookie: stolen=1",
    "half a character": "a\ud800",
}
JSON = {"content-type": "application/json"}
CANARIES = ("canary-7731", "3.141592", "2.718281", "note-of-canary")
"""A user, two coordinates and a cell of a row that is nowhere shown."""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    return tmp_path / "desk"


@pytest.fixture
def client(desk: Path) -> Iterator[TestClient]:
    with asking(desk) as found:
        yield found


def entries(ledger: str) -> int:
    return len(Ledger(ledger).statement().entries)


def test_no_page_and_no_twin_shows_a_row_or_their_number_before_or_after(
    client: TestClient, desk: Path, tmp_path: Path
) -> None:
    row = "{},{},{},{}".format(*CANARIES)
    # 5,237 rows, more than the map has cells, of 37 people: neither number may be told.
    same = [f"u{n % 36},1.5,1.25,1" for n in range(5200)]
    rows = a_table(tmp_path / "people.csv", row, *same)
    ledger = a_book(desk, 2)
    table = f"/table?{urlencode({'file': str(rows)})}"
    plan = f"/plan?{urlencode({'epsilon': '1', 'users': '500', 'ledger': ledger})}"
    before = crawled(client, table, plan)
    assert entries(ledger) == 0
    headers = a_head(client)
    made = [
        client.post("/release", json=a_form(rows, ledger, key=key * 16), headers=headers)
        for key in "12"
    ]
    assert [one.status_code for one in made] == [201, 201]
    refused = client.post("/release", json=a_form(rows, ledger, key="3" * 16), headers=headers)
    assert refused.status_code == 409
    wrong = [
        client.post("/release", json=a_form(rows, ledger, **change), headers=headers)
        for change in ({"x": "note", "key": "4" * 16}, {"user": "x", "y": "user", "key": "5" * 16})
    ]
    both = f"/compare?{urlencode({'a': '1' * 16, 'b': '2' * 16})}"
    book = f"/ledger?{urlencode({'path': ledger})}"
    after = crawled(client, table, plan, both, book, but=f"/maps/{'2' * 16}")
    assert len(after) > len(before) > 10
    assert any(address.startswith(f"/maps/{'1' * 16}/map.") for address in after)
    said = [*before.items(), *after.items()]
    said += [("released", one.content) for one in [*made, refused, *wrong]]
    for address, text in said:
        for one in CANARIES:
            assert one.encode() not in text, (address, one)
        assert not re.search(rb"(?<![\w.,-])5,?237(?![\w.])", text), address
        assert not re.search(rb"(?<![\w.,-])37(\.0)? (rows|people|users)", text), address


def test_a_hostile_name_is_shown_as_the_text_it_is_or_refused(
    client: TestClient, desk: Path, tmp_path: Path
) -> None:
    headers, ledger = a_head(client), a_book(desk, 20)
    rows = a_table(
        tmp_path / "people.csv", header=f'user,x,y,"{SCRIPT.replace(chr(34), chr(34) * 2)}"'
    )
    sent = client.post(
        "/files",
        content=rows.read_bytes(),
        headers=headers | {"x-file-name": quote(f"{SCRIPT}.csv")},
    )
    file = sent.json()["file"]
    answers = [
        client.get("/table", params={"file": file}),
        client.get("/table", params={"file": str(rows)}),
    ]
    pages = list[str]()
    for number, name in enumerate(NAMES.values()):
        typed = name.encode("utf-8", "replace").decode()  # of an address; JSON says anything
        place = quote(typed, safe="")
        for address, asked in (
            ("/table", {"file": typed}),
            ("/plan", {"epsilon": typed, "users": typed, "ledger": typed}),
            ("/plan.png", {"epsilon": typed}),
            ("/ledger", {"path": typed}),
            ("/compare", {"a": typed, "b": typed}),
            (f"/maps/{place}", {"hotspots": typed}),
            (f"/maps/{place}/map.{place}", {}),
            ("/sources/events", {"port": typed}),
        ):
            answers.append(client.get(address, params=asked))
            assert 400 <= answers[-1].status_code < 500 or answers[-1].status_code == 200, address
        for address, form in (
            ("/ledger/create", {"name": name, "epsilon": "1", "back": name}),
            (
                "/ledger/create",
                {"name": f"book{number}", "unit": name, "source": name, "epsilon": "1"},
            ),
            ("/release", a_form(rows, ledger, epsilon="999", title=name, note=name)),
            ("/release", a_form(rows, ledger, key=name)),
            ("/release", a_form(rows, name, key="e" * 16)),
            ("/release", a_form(name, ledger, key="d" * 16)),
        ):
            text = json.dumps(form)
            answers.append(client.post(address, content=text, headers=headers | JSON))
            assert answers[-1].status_code < 500, (address, name, answers[-1].text)
    whole = " ".join(NAMES[one] for one in ("markup", "template", "a way out"))
    made = client.post(
        "/release", json=a_form(file, ledger, title=whole, note=whole), headers=headers
    )
    assert made.status_code == 201, made.text
    answers.append(client.get(made.json()["address"]))
    for answer in answers:
        assert "stolen" not in answer.headers.get("set-cookie", "")
        if answer.headers["content-type"].startswith("text/html"):
            pages.append(answer.text)
    pages += [
        text.decode()
        for text in crawled(client, but="/maps/").values()
        if b"\ncontent-type: text/html" in text
    ]
    assert len(pages) > 20
    for text in pages:
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "8337" not in text  # 7 * 1191
    outside = {one for one in tmp_path.rglob("*") if one.is_file()} - {rows}
    assert all(one.is_relative_to(desk) for one in outside)


def posted(address: str, head: dict[str, str], form: dict[str, str]) -> http.client.HTTPConnection:
    """A browser that has pressed Release, and has no answer yet."""
    link = http.client.HTTPConnection(address.removeprefix("http://"))
    link.request("POST", "/release", json.dumps(form), head | JSON)
    return link


def answered(link: http.client.HTTPConnection) -> http.client.HTTPResponse:
    return link.getresponse()


def opened(address: str) -> dict[str, str]:
    """What a browser sends that has the page open."""
    link = http.client.HTTPConnection(address.removeprefix("http://"))
    link.request("GET", "/", headers={"accept": "text/html"})
    answer = link.getresponse()
    found = re.search(b'name="csrf" content="(.*?)"', answer.read())
    cookie = str(answer.headers["set-cookie"]).partition(";")[0]
    link.close()
    assert found is not None
    return {"x-csrf-token": found[1].decode(), "cookie": cookie, "accept": "application/json"}


def test_two_servers_of_one_folder_cannot_overspend(desk: Path, tmp_path: Path) -> None:
    rows, ledger = a_table(tmp_path / "people.csv"), a_book(desk, 2)
    with serving(make_app(desk)) as one, serving(make_app(desk)) as other:
        homes = [(one, opened(one)), (other, opened(other))]
        # The same press at both, then two presses for what is left: one is paid for, each time.
        for keys in ("00", "12"):
            links = [
                posted(*home, a_form(rows, ledger, key=key * 16))
                for home, key in zip(homes, keys, strict=True)
            ]
            answers = [(one.status, json.loads(one.read())) for one in map(answered, links)]
            assert min(status for status, _ in answers) == 201, answers
            assert max(status for status, _ in answers) < 500, answers
            for link in links:
                link.close()
            again = posted(*homes[0], a_form(rows, ledger, key="0" * 16))
            assert json.loads(answered(again).read())["made_before"]
            again.close()
        assert entries(ledger) == 2
        listed = [json.loads(asked(home, "/maps.json"))["maps"] for home, _ in homes]
        assert [len(found) for found in listed] == [2, 2]


def asked(address: str, path: str) -> bytes:
    link = http.client.HTTPConnection(address.removeprefix("http://"))
    link.request("GET", path)
    found = link.getresponse().read()
    link.close()
    return found


def test_a_tab_that_is_closed_in_mid_release_has_its_map_all_the_same(
    desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.heatmap import pipeline

    rows, ledger = a_table(tmp_path / "people.csv"), a_book(desk)
    begun, closed = threading.Event(), threading.Event()
    whole = pipeline.release_heatmap

    def held(*given: object, **more: object) -> object:
        begun.set()
        closed.wait()
        return whole(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("sfumato.heatmap.release_heatmap", held)
    with serving(make_app(desk)) as home:
        link = posted(home, opened(home), a_form(rows, ledger))
        assert begun.wait(600)
        link.close()
        asked(home, "/ledger.json")  # the server has gone on since
        closed.set()
    # It ends no earlier than what it does.
    assert entries(ledger) == 1
    with asking(desk) as client:
        assert [one["entry"] for one in client.get("/maps.json").json()["maps"]] == [1]
        again = client.post("/release", json=a_form(rows, ledger), headers=a_head(client))
        assert (again.status_code, again.json()["made_before"]) == (201, True)
    assert entries(ledger) == 1


def test_a_spent_ledger_refuses_in_words_and_nothing_is_made(
    client: TestClient, desk: Path, tmp_path: Path
) -> None:
    rows, ledger = a_table(tmp_path / "people.csv"), a_book(desk)
    csrf = a_head(client)["x-csrf-token"]
    form = a_form(rows, ledger, csrf=csrf)
    assert client.post("/release", data=form, follow_redirects=False).status_code == 303
    refused = client.post("/release", data=form | {"key": "1" * 16})
    assert refused.status_code == 409
    assert 'role="alert"' in refused.text
    assert "epsilon 1" in refused.text
    assert "nothing was" in refused.text
    assert len(client.get("/maps.json").json()["maps"]) == entries(ledger) == 1
    plan = {"epsilon": "1", "users": "500", "ledger": ledger}
    assert "does not pay for this map" in client.get("/plan", params=plan).text


def test_a_form_without_a_length_or_with_too_much_is_not_read(client: TestClient) -> None:
    headers = a_head(client) | JSON
    read = list[int]()

    def endless() -> Iterator[bytes]:
        for number in range(10_000):
            read.append(number)
            yield b" " * 2**16

    for address in ("/release", "/ledger/create"):
        assert client.post(address, content=endless(), headers=headers).status_code == 411
        much = b" " * (2**20 + 1)
        assert client.post(address, content=much, headers=headers).status_code == 413


def test_a_host_or_an_origin_that_is_no_address_is_refused_as_any_other(client: TestClient) -> None:
    headers = a_head(client)
    for host in ("[", "[::1", "127.0.0.1.", "2130706433", ""):
        refused = client.get("/index.json", headers={"host": host})
        assert refused.status_code == 403
        assert refused.headers["content-security-policy"]
    for origin in ("http://[", "null", "http://127.0.0.1:8377@elsewhere"):
        refused = client.post("/maps", headers=headers | {"origin": origin}, content=b"{}")
        assert refused.status_code == 403


def test_an_image_is_a_raster_whatever_it_is_called(client: TestClient, tmp_path: Path) -> None:
    """Ghostscript would run for PostScript; and a broken picture is no fault of ours."""
    headers = a_head(client) | {"x-file-name": "x.png"}
    script = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 20 20\n%%EndComments\nshowpage\n%%EOF\n"
    broken = io.BytesIO()
    Image.new("RGB", (64, 64), "red").save(broken, "PNG")
    half = bytearray(broken.getvalue())
    half[half.index(b"IDAT") + 8] ^= 0xFF
    for body in (script, bytes(half), half[:60]):
        for address in ("/ground?kind=image", "/sources/plan?bounds=0,0,1,1"):
            refused = client.post(address, headers=headers, content=bytes(body))
            assert refused.status_code == 422, refused.text
    (tmp_path / "x.png").write_bytes(script)
    with pytest.raises(InvalidInput, match="as an image"):
        public_area(image=tmp_path / "x.png")
