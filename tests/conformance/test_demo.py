"""The commands `demo` and `heatmap city` leave what `run_demo` and `write_city` leave, with the same noise."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, NoReturn

import pyarrow.parquet as pq
import pytest
from tests.seeded import seed_system
from typer.testing import CliRunner

from sfumato.cli.main import app
from sfumato.heatmap import read_heatmap
from sfumato.heatmap.benchmark import CityFile, demo_city, write_city
from sfumato.privacy import Ledger, PureDP
from sfumato.report import DemoResult, run_demo
from sfumato.sensing import read_recovery

pytestmark = pytest.mark.unit


def told(*words: str) -> Any:
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def close_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever reaches for a network from now on fails."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("the demo reached for the network")

    monkeypatch.setattr(socket, "socket", type("Closed", (socket.socket,), {"__init__": refuse}))
    for name in ("create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)
    with pytest.raises(AssertionError, match="reached for the network"):
        socket.socket()


def test_the_demo_of_the_command_is_that_of_the_call_may_run_again_and_needs_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    close_network(monkeypatch)
    Path("demo").mkdir()
    Ledger.create("demo/city.ledger", PureDP(7), unit="user", source=demo_city.SOURCE)
    seed_system(monkeypatch, key)
    said = told("demo", "--out", "demo", "--epsilon", "1/2")
    assert Ledger("demo/city.ledger").header.budget == PureDP("1/2")  # that of before is gone
    kept = {file.name: file.read_bytes() for file in Path("demo").glob("*.png")}
    first = read_heatmap("demo/map.json")
    seed_system(monkeypatch, key)
    steps: list[str] = []
    result = run_demo("demo", epsilon="1/2", watch=steps.append)
    assert json.loads(json.dumps(result.to_json())) == said
    assert DemoResult.from_json(said) == result
    assert steps == [
        "a synthetic city of 20,000 people: demo/checkins.parquet",
        "released: epsilon 0.5 for each user (one user added or removed), central model",
        "asked again, refused: asked epsilon 0.5, 0 left in demo/city.ledger; nothing was released",
        "recovered a corridor and a network from private readings",
    ]
    again = read_heatmap("demo/map.json")
    assert first.tiles.to_json() == again.tiles.to_json()
    for name in ("corridor", "network"):  # what `sense recover` answers, not R alone
        saved = read_recovery(f"demo/{name}.json")
        answered = "nothing" if saved.answer is None else saved.answer.estimator
        assert answered == "bayes-median" or saved.certificate.status != "optimal"
    for name in ("side-by-side.png", "corridor.png", "network.png"):
        assert Path("demo", name).read_bytes() == kept[name], name


def test_a_city_of_the_command_is_that_of_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    for family in ("town", "gaze"):
        seed_system(monkeypatch, key)
        said = told(
            "heatmap", "city", f"{family}.parquet", "--users", "20", "--family", family,
            "--bounds", "0,0,1,1",
        )  # fmt: skip
        seed_system(monkeypatch, key)
        made = write_city(f"{family}-too.parquet", users=20, family=family)
        assert CityFile.from_json(said) == CityFile(f"{family}.parquet", made.rows, made.users)
        assert pq.read_table(f"{family}.parquet").equals(pq.read_table(f"{family}-too.parquet"))
