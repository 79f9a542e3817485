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


def test_all_images_of_one_table_by_image_and_group(day: Day, rng: np.random.Generator) -> None:
    """One table, maps of every image over its stimulus: mass 1 in each, then by two columns."""
    fixations(day.folder, rng)
    rows = ["observer,image,group,x,y"]
    for scene in SCENES:
        for line in (day.folder / f"{scene}.csv").read_text().splitlines()[1:]:
            observer, x, y, _ = line.split(",")
            group = "expert" if int(observer[1:]) % 2 else "novice"
            rows.append(f"{observer},{scene},{group},{x},{y}")
    (day.folder / "gaze.csv").write_text("\n".join(rows) + "\n")
    images = ("--by", "image", "--values", ",".join(SCENES))
    # What to expect, before anything is paid: shared, a third of everybody; each with mass 1, all.
    shared, each = (
        day.done("heatmap", "plan", "--users", "70", "--epsilon", "1", "--kind", "gaze", "--maps", "3", *own)
        for own in ((), ("--mass-per-value",))
    )  # fmt: skip
    assert "about 23 users a map" in shared
    assert "about 70 users a map" in each
    for unit in ("observer", "observer-image"):
        day.done("ledger", "create", f"{unit}.ledger", "--epsilon", "4", "--unit", unit, "--source", "lab",
                 "--quiet")  # fmt: skip

    def ask(unit: str, *words: str) -> tuple[str, ...]:
        return ("heatmap", "release", "gaze.csv", "--user", "observer", "--x", "x", "--y", "y",
                "--image", "street.png", "--levels", "4", "--method", "laplace", "--epsilon", "1",
                "--ledger", f"{unit}.ledger", *words, "--quiet")  # fmt: skip

    mass = (
        *images,
        "--mass-per-value",
        "--over",
        "{by}.png",
        "--out",
        "{by}-map.json",
        "--out",
        "{by}-map.png",
    )
    assert "would cost epsilon 3 for 3 maps" in day.done(*ask("observer", *mass, "--dry-run"))
    day.done(*ask("observer-image", *mass))
    assert day.left("observer-image.ledger") == 3.0
    assert "epsilon 1 for each observer-image" in (day.folder / "street-map.json").read_text()
    # Shared over images, one of an observer's would move the others: this ledger does not pay for it.
    assert "nearly two masses" in day.done(
        *ask("observer-image", *images, "--out", "x-{by}.json"), code=2
    )
    groups = ("--by", "group", "--values", "novice,expert")
    day.done(*ask("observer", *images, *groups, "--over", "{image}.png", "--out", "{group}-{image}.json",
                  "--out", "both-{by}.png"))  # fmt: skip
    assert day.left("observer.ledger") == 3.0
    assert (day.folder / "both-kitchen_expert.png").exists()
    said = day.told(
        "heatmap", "compare", "novice-shop.json", "expert-shop.json", "--out", "change.png"
    )
    assert "one release" in " ".join(said["remarks"])
    assert said["names"] == [
        "lab: image shop, group novice",
        "lab: image shop, group expert",
    ]
    day.done("heatmap", "draw", "novice-shop.json", "--over", "shop.png", "--out", "again.html")
    assert "shop.png (sha256" in (day.folder / "again.html").read_text()
