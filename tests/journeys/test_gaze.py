"""A gaze researcher with 70 observers and some scenes: maps over images, one ledger for all, a death."""

from __future__ import annotations

import csv
import json
import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.journeys.conftest import Day

pytestmark = pytest.mark.fault

SCENES = ("street", "kitchen", "shop")
WIDE, HIGH = 160, 120


def fixations(folder: Path, rng: np.random.Generator) -> None:
    """70 observers who look at two places of each scene, a dozen times each; and the scenes."""
    for scene in SCENES:
        places = rng.uniform([20, 20], [140, 100], (2, 2))
        with (folder / f"{scene}.csv").open("w", newline="") as target:
            rows = csv.writer(target)
            rows.writerow(["observer", "x", "y", "ms"])
            for observer in range(70):
                for place in places[rng.integers(0, 2, 12)]:
                    x, y = np.clip(place + rng.normal(0, 6, 2), 0, [WIDE - 1, HIGH - 1])
                    rows.writerow([f"o{observer}", f"{x:.1f}", f"{y:.1f}", rng.integers(80, 900)])
        shade = rng.integers(0, 255, (HIGH, WIDE), dtype=np.uint8)
        Image.fromarray(shade).save(folder / f"{scene}.png")


def test_scenes_are_released_one_by_one(day: Day, rng: np.random.Generator) -> None:
    fixations(day.folder, rng)
    day.done(
        "ledger", "create", "gaze.ledger", "--epsilon", "3", "--unit", "observer", "--source", "lab"
    )

    def ask(scene: str) -> tuple[str, ...]:
        return ("heatmap", "release", f"{scene}.csv", "--user", "observer", "--x", "x", "--y", "y",
                "--weight", "ms", "--weight-step", "1", "--weight-cap", "5000",
                "--image", f"{scene}.png", "--levels", "4",
                "--ledger", "gaze.ledger", "--epsilon", "1", "--method", "laplace", "--other-table",
                "--over", f"{scene}.png", "--once", scene, "--out", f"{scene}-map.json",
                "--out", f"{scene}-map.png", "--quiet")  # fmt: skip

    day.done(*ask("street"))
    # The session server is stopped: SIGTERM after the draw, before a file is written.
    said = day.killed("kept", *ask("kitchen"), number=signal.SIGTERM)
    assert "entry 2 of gaze.ledger, epsilon 1, was charged and its counts are kept" in said
    assert not (day.folder / "kitchen-map.json").exists()
    # The same again is the same release: nothing is paid, the files are written.
    assert "made before: nothing was charged" in day.done(*ask("kitchen"), code=7)
    assert json.loads((day.folder / "kitchen-map.json").read_text())["entry"]["number"] == 2
    day.done(*ask("shop"))
    assert day.left("gaze.ledger") == 0.0
    for scene in SCENES:
        first = (day.folder / f"{scene}-map.png").read_bytes()
        (day.folder / f"{scene}-map.png").unlink()
        day.done(*ask(scene), code=7)
        assert (day.folder / f"{scene}-map.png").read_bytes() == first
    other = [word if word != "shop-map.json" else "shop-other.json" for word in ask("shop")]
    day.done(*other, code=7)  # another file of the same release costs nothing either
    assert (day.folder / "shop-other.json").read_bytes() == (
        day.folder / "shop-map.json"
    ).read_bytes()
    files = [f"{scene}-map.json" for scene in SCENES]
    assert "3 release(s) paid for" in day.done(
        "ledger", "verify", "gaze.ledger", "--against", *files
    )
