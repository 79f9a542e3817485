"""The ten changes on the page of architecture take the files it says: tried in a copy of the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "src/sfumato"
PAGE = (ROOT / "docs/explain/architecture.md").read_text(encoding="utf-8")
PART = PAGE.partition("## Ten changes")[2].partition("\n## ")[0]
TABLE: dict[str, str] = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", PART, re.MULTILINE))

# What somebody would write: a new file for each of five changes, and the one line of its registry.
NEW = {
    "heatmap/methods/spread.py": '''
from dataclasses import dataclass
from typing import ClassVar
from sfumato.heatmap.methods.baselines import FlatMethod
@dataclass(frozen=True)
class SpreadMethod(FlatMethod):
    """Laplace noise on cells, under another name."""
    name: ClassVar[str] = "spread"
''',
    "heatmap/export/spots.py": '''
def spots(release, options):
    return "".join(f"{one.share:.2f}\\n" for one in release.hotspots(1)).encode()
''',
    "sensing/model/operators/decay.py": '''
from dataclasses import dataclass
from typing import Any, ClassVar
import numpy as np
from sfumato.sensing.model.operators.protocol import Operator
@dataclass(frozen=True)
class Decay(Operator):
    """A reading falls off with the distance to a source."""
    space: Any
    sensors: Any
    reach: float
    kind: ClassVar[str] = "decay"
    sources_at: ClassVar[str] = "cells"
    def columns(self, cells):
        return np.exp(-np.abs(self.sensors.positions - self.space.positions[np.asarray(cells)]) / self.reach)
    def to_json(self):
        return {"reach": self.reach}
    @classmethod
    def from_json(cls, data, space, sensors):
        return cls(space, sensors, float(data["reach"]))
''',
    "sensing/recovery/estimators/nowhere.py": '''
class Nowhere:
    name, options, needs_certificate = "nowhere", frozenset(), False
    def unsuitable(self, operator, noise):
        return ""
    def estimate(self, problem):
        raise NotImplementedError
''',
    "records/engines/again.py": '''
from typing import ClassVar
from sfumato.records.engines.duckdb import DuckDBEngine
class AgainEngine(DuckDBEngine):
    """DuckDB, under another name."""
    name: ClassVar[str] = "again"
''',
}  # fmt: skip
KIND = '''
@dataclass(frozen=True)
class CappedDP:
    """Pure DP, under another name: a claim only."""
    cap: Fraction
    def __post_init__(self):
        object.__setattr__(self, "cap", Fraction(self.cap))


'''  # fmt: skip
# The file, the line to be found, and what is put before it.
LINES = (
    ("heatmap/methods/registry.py", '        "zoom": f"',
     '        "spread": f"{_HERE}.spread:SpreadMethod",\n'),
    ("heatmap/export/formats.py", '        MapFormat(\n            ".png"',
     '        MapFormat(".spots", lambda one, how: _part("spots").spots(one, how)),\n'),
    ("sensing/model/operators/registry.py", '        "heat": f"', '        "decay": f"{_HERE}.decay:Decay",\n'),
    ("sensing/recovery/estimators/registry.py", '        "mixture": f"',
     '        "nowhere": f"{_HERE}.nowhere:Nowhere",\n'),
    ("records/engines/registry.py", '        "polars": f"', '        "again": f"{_HERE}.again:AgainEngine",\n'),
    ("privacy/accounting/guarantee.py", "@dataclass(frozen=True, slots=True)\nclass Claim:", KIND),
    ("privacy/__init__.pyi", "from .accounting.guarantee import",
     "from .accounting.guarantee import CappedDP\n"),
    ("privacy/__init__.pyi", '    "Claim",\n', '    "CappedDP",\n'),
    ("audit/claims.py", "    Claim,\n    GaussianDP,\n", "    CappedDP,\n"),
    ("audit/claims.py", '    frozenset(["mu"]): ', '    frozenset(["cap"]): CappedDP,\n'),
    ("audit/claims.py", "    **{kind.__name__: kind for", '    "CappedDP": CappedDP,\n'),
    ("audit/claims.py", "        case GaussianDP(mu):\n",
     "        case CappedDP(cap):\n            return _pure(cap, None)\n"),
    ("heatmap/hotspot_results.py", '            "statement":', '            "country": "Italy",\n'),
    ("figures/style.py", "NIGHT = ", 'MAP = "viridis_r"\n'),
)  # fmt: skip
TRIED = """
from pathlib import Path
import numpy as np
import pyarrow as pa
import sfumato
assert Path(sfumato.__file__).is_relative_to(Path.cwd()), sfumato.__file__
from sfumato.heatmap import map_hotspots, rehearse_heatmap
rows = pa.table({"user": list(range(50)), "lon": [11.25] * 50, "lat": [43.77] * 50})
made = rehearse_heatmap(
    rows, user="user", bounds=(11.2, 43.74, 11.32, 43.81), levels=3, public=True, epsilon=9, method="spread",
    engine="again", outputs=["map.spots"],
)
assert made.maps[0].method == "spread" and Path("map.spots").read_text().strip()
assert map_hotspots(made.maps[0], 1).to_json()["country"] == "Italy"
from matplotlib import colormaps
from sfumato.figures import palette
assert abs(palette()[-1] / 255 - np.array(colormaps["viridis_r"](0.9)[:3])).max() < 0.01
from sfumato.sensing import heat_line
from sfumato.sensing.model.operators.registry import operator_of_kind
like = heat_line(sources=8, sensors=3, diffusion_time=0.1)
found = operator_of_kind("decay", {"reach": 0.5}, like.space, like.sensors)
assert found.readings(np.eye(8)[0]).shape == (3,)
from sfumato.sensing.recovery.estimators import estimator_named
assert estimator_named("nowhere").name == "nowhere"
from sfumato.audit import implied, parse_claim
from sfumato.audit.claims import decode_loss, encode_loss
claim = parse_claim("cap=1")
assert implied(claim)[0].epsilon == 1 and decode_loss(encode_loss(claim.loss)) == claim.loss
print("all")
"""


def test_they_take_these_files_and_no_others(tmp_path: Path) -> None:
    copy = tmp_path / "sfumato"
    shutil.copytree(HOUSE, copy, ignore=shutil.ignore_patterns("__pycache__", "static"))
    for name, text in NEW.items():
        (copy / name).write_text(text)
    for name, line, more in LINES:
        whole = (copy / name).read_text()
        assert whole.count(line) == 1, f"{name}: {line!r}"
        (copy / name).write_text(whole.replace(line, more + line))
    tried = subprocess.run(
        [sys.executable, "-c", TRIED],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tried.stdout == "all\n", tried.stderr
    files = " ".join(TABLE.values())
    for name in {*NEW, *(one for one, _, _ in LINES)}:
        new = f"{name.rpartition('/')[0]}/<"
        assert f"`{name}`" in files or (name in NEW and f"`{new}" in files), f"{name} is not told"


def test_every_file_it_names_is_there() -> None:
    assert len(TABLE) == 11, "a head and ten changes"
    for change, files in TABLE.items():
        named = re.findall(r"`([a-z_/]+\.(?:py|pyi|css))`", files)
        homes = {"", *(f"{name.rpartition('/')[0]}/" for name in named if "/" in name)}
        for name in named:
            some = [HOUSE / f"{home}{name}" for home in homes]
            if name == "render.py":  # of several capabilities
                some = list(HOUSE.glob("*/render.py"))
            assert any(one.is_file() for one in some), f"{change}: there is no {name}"
        for folder in re.findall(r"`([a-z_]+/[a-z_/]+)/<\w+>\.py`", files):
            assert (HOUSE / folder).is_dir(), f"{change}: there is no {folder}"


def test_a_law_is_told_in_the_files_that_a_new_one_takes() -> None:
    folder = HOUSE / "privacy/noise"
    words = re.compile(r"\b(?:RoundedGaussianLaw|def rounded_gaussian)\b")
    found = {one.name for one in folder.glob("*.py") if words.search(one.read_text())}
    told = re.findall(r"([a-z]+\.py)`", TABLE["a noise law"])
    assert found == {one for one in told if (folder / one).is_file()}


def test_what_json_prints_is_in_a_file_called_results() -> None:
    for file in HOUSE.rglob("*.py"):
        if re.search(r"^class \w+Result\b", file.read_text(), re.MULTILINE):
            assert file.stem.endswith("results") or file.parent.name == "results", str(file)


def test_color_maps_are_named_in_one_file() -> None:
    maps = re.compile(
        r"""\b(?:magma|inferno|viridis|plasma|cividis|PuOr|YlOrBr|Blues)(?:_r)?["']"""
    )
    named = {one for one in HOUSE.rglob("*.py") if maps.search(one.read_text())}
    assert named == {HOUSE / "figures/style.py"}
