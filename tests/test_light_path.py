"""What a device needs loads nothing heavy: charge a ledger, draw keyed noise, release, in little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.unit,
    pytest.mark.skipif(sys.platform != "linux", reason="resident memory is counted as on Linux"),
]

HEAVY = (
    "numba",
    "llvmlite",
    "scipy",
    "matplotlib",
    "pandas",
    "duckdb",
    "pyarrow",
    "opendp",
    "ibis",
)
MOST_MEGABYTES = 60

LEDGER = """
import numpy as np
from sfumato.privacy import (
    REHEARSAL, ApproxDP, Bound, DiscreteLaplace, KeyedNoise, Ledger, PureDP, ReplaceUser,
    RoundedGaussian, guard,
)

key, readings = bytes(range(32)), np.array([3, 1, 4, 1, 5, 9, 2, 6])
bound = Bound(ReplaceUser(), readings.size, l1=2, linf=1, entries=2)
for name, budget, mechanism in [
    ("pure", PureDP(1), DiscreteLaplace(40)),
    ("gaussian", ApproxDP(1, "1e-6"), RoundedGaussian(40)),
]:
    book = Ledger.create(f"{name}.ledger", budget, unit="user", source="site", neighbors=ReplaceUser())
    paid = book.release(mechanism, guard(readings, bound, source="site"), noise=KeyedNoise(key))
    paid.write(f"{name}.json")
    assert Ledger(f"{name}.ledger").statement().left != budget
    assert paid.value.size == readings.size
rehearsal = Ledger.rehearsal(PureDP(1), unit="user", neighbors=ReplaceUser())
imagined = guard(readings, bound, source=REHEARSAL)
rehearsal.release(DiscreteLaplace(40), imagined, noise=KeyedNoise(key))
"""

LOCAL = """
from fractions import Fraction
from sfumato.heatmap.local import Question, SubsetSelection, answer, odds_below

cells = tuple((2, code) for code in range(16))
whole = (Fraction(0), Fraction(1))
channel = SubsetSelection(16, 2, odds_below(2))
question = Question("light", 1, 100, Fraction(2), (0.0, 0.0, 1.0, 1.0), cells, whole, channel)
given = answer(Question.from_json(question.to_json()), [(0.3, 0.4, 1)], device="a", ledger="a.ledger", budget=2)
assert len(given.report) == 2
"""

SHUFFLED = """
import numpy as np
from fractions import Fraction
from sfumato.heatmap.shuffled import Device, Keys, Round, ShufflePlan
from sfumato.privacy import Shuffled
from sfumato.spaces import area_in_degrees

adder, shuffler = Keys(bytes(range(32))), Keys(bytes(range(1, 33)))
area, trust = area_in_degrees((11.2, 43.74, 11.32, 43.81), 2), Shuffled(900, 1000, 50)
plan = ShufflePlan(
    area, Fraction(1), Fraction(1, 1000), trust, 20, 0.5, 1, (Fraction(2**20),), 64, 12, 20,
    adder.public, shuffler.public,
)
asked = Round(1, np.arange(4)).signed(plan, adder)
assert len(Device(plan, [(11.25, 43.77)]).report(asked, bytes(16))) == plan.report_bytes(4)
"""
# What a device does, by name; each runs alone in a fresh process, in an empty folder.
SCENARIOS = {
    "ledger and keyed noise": LEDGER,
    "a report to a shuffler": SHUFFLED,
    "an answer to a local question": LOCAL,
}

MEASURE = """
import json, re, sys
# Not ru_maxrss: a process inherits that of whoever started it.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]
print(json.dumps({
    "modules": sorted({name.partition(".")[0] for name in sys.modules}),
    "megabytes": int(peak) / 1024,
}))
"""


def measured(code: str, folder: Path) -> dict[str, object]:
    """The modules a process has loaded after some code, and the most memory that it held."""
    run = subprocess.run(
        [sys.executable, "-c", code + MEASURE],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, object] = json.loads(run.stdout)
    return found


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_device_loads_nothing_heavy(name: str, tmp_path: Path) -> None:
    found = measured(SCENARIOS[name], tmp_path)
    print(f"{name}: {found['megabytes']:.1f} MB resident at most")
    assert isinstance(found["modules"], list)
    assert not set(HEAVY) & set(found["modules"])
    assert isinstance(found["megabytes"], float)
    assert found["megabytes"] < MOST_MEGABYTES


def test_what_is_heavy_is_seen(tmp_path: Path) -> None:
    found = measured("import scipy.special", tmp_path)
    assert isinstance(found["modules"], list)
    assert "scipy" in found["modules"]
