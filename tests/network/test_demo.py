"""`sfumato demo network`: a whole network in one command; its rounds unseal to what sensors read."""

from __future__ import annotations

import itertools
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ExistsAlready
from sfumato.network import (
    Walker,
    demo_lines,
    demo_site,
    read_packets,
    run_network_demo,
    unseal_packets,
)
from sfumato.network.collector import Collector, Recovered

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("demo")
    seen: list[str] = []

    def look(_: Collector, rounds: list[Recovered], walker: Walker) -> None:
        seen[:] = [walker.truth(done.closed.time)[1] for done in rounds]

    made = run_network_demo(
        folder,
        stop=threading.Event(),
        rounds=3,
        period_ms=500,
        sensors=5,
        estimator="least",
        shown=look,
    )
    return made, seen


def test_rounds_are_recovered_and_a_page_is_written(shown: Any) -> None:
    made, seen = shown
    assert len(seen) >= 3
    assert made.rounds >= 1  # of which a busy machine skips some
    assert made.page is not None
    page = made.page.read_text()
    assert "corridor" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")
    assert made.state.promise is not None
    assert made.state.promise.window.startswith("within 10m")
    assert "far too much for people" in "\n".join(demo_lines(made))
    assert json.loads(json.dumps(made.to_json()))["rounds"] == made.rounds


def test_the_key_holder_unseals_the_collectors_rounds(shown: Any) -> None:
    made, _ = shown
    found = unseal_packets(read_packets(made.folder / "rounds.jsonl"), made.folder / "master.key")
    told = found.to_json()
    assert told["refused"] == 0
    assert told["readings"] >= 3


def test_a_folder_with_files_is_kept(shown: Any) -> None:
    made, _ = shown
    with pytest.raises(ExistsAlready, match="choose a new folder"):
        run_network_demo(made.folder, stop=threading.Event())


def test_the_source_walks_along_streets(tmp_path: Path) -> None:
    site, walk, layout = demo_site(tmp_path, roads=True)
    space = site.operator.space
    assert len(site.sensors) == 30
    assert len(layout) == space.size == 60
    steps = {float(space.distances_from(one)[other]) for one, other in itertools.pairwise(walk)}
    assert steps == {0.0, 1.0}
