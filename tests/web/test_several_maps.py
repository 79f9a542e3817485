"""Several maps of one release: by image and by day; areas, grounds, comparisons, downloads; and audits."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from starlette.testclient import TestClient

from sfumato.privacy import Ledger, MovedMass, PureDP
from sfumato.sensing import Sensors, Site, graph_diffusion
from sfumato.sensing.render import site_view
from sfumato.spaces import Graph
from sfumato.web import Desk, make_app

pytestmark = pytest.mark.unit
KEY = "ab" * 8
CANARY = "canary-5519"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    found = Desk(tmp_path / "desk", largest=2**20)
    found.folder.mkdir()
    return found


@pytest.fixture
def client(desk: Desk) -> Iterator[TestClient]:
    with TestClient(make_app(desk.folder, desk=desk), base_url="http://127.0.0.1:8377") as found:
        csrf = re.search('name="csrf" content="(.*?)"', found.get("/").text)
        assert csrf is not None
        found.headers |= {"x-csrf-token": csrf[1], "accept": "application/json"}
        yield found


def image(client: TestClient, folder: Path, name: str) -> str:
    """A public image of 64 x 64, taken by the page; its key."""
    path = folder / name
    Image.new("RGB", (64, 64), "green").save(path)
    sent = client.post(
        "/ground?kind=image", content=path.read_bytes(), headers={"x-file-name": name}
    )
    assert sent.json()["ground"]["bounds"] == [0, 0, 64, 64]
    return str(sent.json()["file"])


def test_gazes_on_two_images_are_one_price_with_areas_of_their_own(
    client: TestClient, desk: Desk, tmp_path: Path
) -> None:
    rows = [f"o{n},{scene},{20 + n % 5},{40 + n % 3}" for n in range(30) for scene in ("a", "b")]
    table = tmp_path / "gaze.csv"
    table.write_text("\n".join(["who,scene,x,y", *rows, f"{CANARY},a,21,41"]))
    book = desk.folder / "gaze.ledger"
    Ledger.create(book, PureDP(1), unit="who-scene", source="gaze")
    keys = [image(client, tmp_path, f"{name}.png") for name in ("a", "b")]
    asked = {
        "file": str(table), "ledger": str(book), "epsilon": "1", "user": "who", "x": "x", "y": "y",
        "by": "scene", "values": "a, b", "mass_per_value": "yes", "images": ",".join(keys),
        "levels": "6", "key": KEY, "users": "30",
    }  # fmt: skip
    planned = client.get("/plan.json", params=asked).json()
    assert (planned["problem"], planned["price"]["words"]) == ("", "epsilon 1")
    assert planned["price"]["maps"] == 2
    assert client.get("/plan.json", params=asked | {"epsilon": "2"}).json()["problem"]
    lacking = client.post("/release", json=asked | {"values": "a, c"})
    assert "there is none for c" in lacking.json()["error"]["message"]
    assert not Ledger(book).statement().entries
    assert client.post("/release", json=asked).status_code == 201
    assert client.post("/release", json=asked).json()["made_before"]
    assert [one.name for one in desk.files(KEY)] == ["map-a.json", "map-b.json"]
    # An area of one image is counted on that one alone.
    here = f"/maps/{KEY}/areas"
    drawn = client.post(here, json={"name": "Tree", "group": "a", "corners": "8 8, 40 56"})
    assert drawn.json()["areas"][0]["corners"] == [[8, 8], [40, 8], [40, 56], [8, 56]]
    for wrong in ("8 8", "8 8, x 9", "1 1, 1 9"):
        answer = client.post(here, json={"name": "No", "corners": wrong})
        assert answer.status_code in (400, 422), wrong
    view = client.get("/view.json", params={"maps": KEY}).json()
    assert [len(one["zones"]) for one in view["maps"]] == [1, 0]
    assert view["maps"][0]["zones"][0]["low"] is not None
    assert ([one["ground"] for one in view["maps"]], len(view["grounds"])) == ([0, 1], 2)
    compared = client.get("/compare.json", params={"a": f"{KEY}_1", "b": f"{KEY}_2"}).json()
    assert [one["name"] for one in compared["comparison"]["zones"]] == ["Tree"]
    assert client.get(f"/maps/{KEY}_2/map.csv").status_code == 200
    assert client.get(f"/maps/{KEY}/map.csv").status_code == 400  # which of them?
    assert client.get(f"/maps/{KEY}_3/map.csv").status_code == 422
    assert client.get(f"/maps/{KEY}/film.html").status_code == 400  # no periods
    page = client.get(f"/maps/{KEY}", headers={"accept": "text/html"}).text
    assert f'href="/maps/{KEY}_1/map.csv"' in page
    for told in (page, json.dumps(view), json.dumps(planned)):
        assert CANARY not in told


def test_weeks_and_teams_are_priced_before_a_row_is_read(
    client: TestClient, tmp_path: Path
) -> None:
    table = tmp_path / "days.csv"
    table.write_text("user,x,y,time\nann,1,1,2026-01-05T10:00\n")
    made = client.post(
        "/ledger/create", json={"name": "days", "epsilon": "8", "teams": "red=1, blue=1/2"}
    )
    book = made.json()["ledger"]
    told = client.get("/ledger.json", params={"path": book}).json()
    left = {one["team"]: one["left"] for one in told["teams"]}
    assert (left["team red"], left["team blue"]) == ("epsilon 1", "epsilon 0.5")
    asked = {
        "file": str(table), "ledger": book, "epsilon": "1", "user": "user", "x": "x", "y": "y",
        "west": "0", "south": "0", "east": "8", "north": "8", "plane": "yes", "levels": "6",
        "time": "time", "period": "week", "from": "2026-01-05", "to": "2026-01-19",
    }  # fmt: skip
    found = client.get("/plan.json", params=asked | {"team": "red"}).json()
    assert (found["price"]["words"], found["price"]["frames"]) == ("epsilon 1", 2)
    whole = client.get("/plan.json", params=asked | {"mass_per_period": "yes", "team": "red"})
    assert "asked" in whole.json()["problem"]  # twice epsilon, and red has one
    wrong = client.get("/plan.json", params=asked | {"from": "yesterday"}).json()
    assert "2026-01-31" in wrong["problem"]


def test_an_outline_is_something_to_draw_on(client: TestClient, desk: Desk, tmp_path: Path) -> None:
    line = {"type": "LineString", "coordinates": [[11.2, 43.7], [11.3, 43.8]]}
    sent = client.post("/ground", content=json.dumps(line), headers={"x-file-name": "l.geojson"})
    assert sent.json()["ground"]["lines"] == [[[11.2, 43.7], [11.3, 43.8]]]
    broken = client.post("/ground", content=b"{", headers={"x-file-name": "l.geojson"})
    assert broken.status_code == 422
    # One that misses the area is refused before Release, and one that lies there changes no format.
    table, book = tmp_path / "people.csv", desk.folder / "people.ledger"
    table.write_text("\n".join(["user,x,y", *(f"u{n},11.24,43.75" for n in range(30))]))
    Ledger.create(book, PureDP(1), unit="user", source="people")
    asked = {
        "file": str(table), "ledger": str(book), "epsilon": "1", "user": "user", "x": "x", "y": "y",
        "outline": sent.json()["file"], "levels": "6", "key": KEY,
    }  # fmt: skip
    here = {"west": "11.2", "south": "43.7", "east": "11.3", "north": "43.8"}
    assert "the public area is missing" in client.post("/release", json=asked).text
    missed = client.get("/plan.json", params=asked | here | {"south": "44", "north": "44.1"}).json()
    assert "none there" in missed["problem"]
    assert client.get("/plan.json", params=asked | here).json()["problem"] == ""
    assert client.post("/release", json=asked | here).status_code == 201
    for suffix, first in ((".csv", "level,"), (".h3.csv", "h3,")):
        assert client.get(f"/maps/{KEY}/map{suffix}").text.startswith(first), suffix


def test_an_audit_is_watched_stopped_and_kept_and_runs_nobody_elses_code(
    client: TestClient, desk: Desk
) -> None:
    for wrong in ({"mechanism": "os:system"}, {"seconds": "1e9"}, {"runs": "1e12"}):
        assert client.post("/audit", json=wrong).status_code == 400, wrong
    asked = {"mechanism": "HalfNoise", "epsilon": "2", "runs": "20000"}
    assert client.post("/audit", json=asked).status_code == 201
    told = client.get("/audit/events").text  # which ends with the audit
    assert told.startswith("event: history")
    assert "event: end" in told
    state: dict[str, Any] = client.get("/audit.json").json()
    assert state["running"]["state"] == "done", state
    (kept,) = state["kept"]
    assert kept["kind"] == "REFUTED"
    report = client.get("/audit/report.html", params={"key": kept["key"]})
    assert "HalfNoise" in report.text
    assert client.get("/audit/verdict.json", params={"key": kept["key"]}).json()["verdict"]
    assert client.get("/audit/report.html", params={"key": "../../x"}).status_code == 400
    long = {"mechanism": "OurLaplace", "runs": "5000000", "seconds": "300"}
    assert client.post("/audit", json=long).status_code == 201
    assert "one audit runs at a time" in client.post("/audit", json=long).text
    client.post("/audit/stop", json={})
    while client.get("/audit.json").json()["running"]["state"] == "running":
        time.sleep(0.05)
    assert "nothing was concluded" in client.get("/audit.json").json()["running"]["said"]
    assert len(list((desk.folder / "audits").iterdir())) == 1


def test_a_graph_is_drawn_with_its_edges_and_sensors_on_nodes() -> None:
    graph, ends = Graph([(0, 1), (1, 2), (2, 3)]), Sensors([[0.0], [3.0]])
    operator = graph_diffusion(graph, 0.5, sensors=ends)
    drawn = site_view(Site("path", operator, MovedMass(Fraction(1, 20), "graph")))
    assert (drawn["kind"], drawn["edges"]) == ("graph", [[0, 1], [1, 2], [2, 3]])
    assert [drawn["sensors"][1][axis] for axis in "xy"] == drawn["nodes"][3]
    assert json.loads(json.dumps(drawn)) == drawn
