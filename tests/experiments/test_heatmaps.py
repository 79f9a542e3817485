"""The experiments run, write what they promise and find what expected.toml says; and they can fail."""

from __future__ import annotations

import csv
import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
from experiments.heatmaps import figure1, figure2, report, sweeps
from experiments.heatmaps.claims import Claim, conclude, decide, read_claims
from experiments.heatmaps.protocol import EPSILONS, FILES, METHODS, Options, places

from sfumato.heatmap.benchmark import Score, known_noise, rehearse_sums, sample_sums
from sfumato.privacy import gaussian_sigma
from sfumato.spaces import Grid

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
SOURCES = [
    pytest.param("city", id="city"),
    pytest.param(
        "real",
        id="real",
        marks=pytest.mark.skipif(
            not all((DATA / file).exists() for file in FILES.values()),
            reason=f"no real check-ins in {DATA}; the made-up ones were run",
        ),
    ),
]


def arguments(source: str, out: Path) -> list[str]:
    return ["--quick", "--out", str(out), "--data", str(DATA) if source == "real" else "none"]


def row(method: str, epsilon: float, value: float) -> Score:
    return Score("city", "here", 0, 200, 256, epsilon, method, value, value, 1 - value, 1 - value)


@pytest.mark.unit
@pytest.mark.parametrize("source", SOURCES)
def test_figure_1_is_what_the_paper_says(source: str, tmp_path: Path) -> None:
    figure1.main(arguments(source, tmp_path))
    rows = list(csv.DictReader((tmp_path / "figure1.csv").read_text(encoding="utf-8").splitlines()))
    assert {line["source"] for line in rows} == {source}
    assert (tmp_path / "figure1.png").read_bytes().startswith(b"\x89PNG")
    assert "pyramid" in (tmp_path / "figure1.md").read_text(encoding="utf-8")


@pytest.mark.unit
@pytest.mark.parametrize("source", SOURCES)
def test_figure_2_is_drawn(source: str, tmp_path: Path) -> None:
    figure2.main(arguments(source, tmp_path))
    for epsilon in (1, 5):
        assert (tmp_path / f"figure2-epsilon-{epsilon}.png").read_bytes().startswith(b"\x89PNG")
    assert len((tmp_path / "figure2.csv").read_text(encoding="utf-8").splitlines()) == 9


@pytest.mark.unit
@pytest.mark.parametrize("source", SOURCES)
def test_the_sweeps_are_what_the_paper_says(source: str, tmp_path: Path) -> None:
    sweeps.main(arguments(source, tmp_path))
    for name in ("users.csv", "sides.csv", "scaling.csv", "users.png", "sides.png", "sweeps.md"):
        assert (tmp_path / name).stat().st_size > 100


@pytest.mark.unit
def test_a_rehearsal_can_be_had_again(rng: np.random.Generator) -> None:
    place = places(Options(True, Path(), Path("none")), 1)[0]
    sums = sample_sums(place, 50, Grid(4), rng=rng)
    for name, method in METHODS.items():
        one, other = (
            rehearse_sums(method, sums, 1.0, noise=known_noise("test", name)) for _ in range(2)
        )
        assert np.array_equal(one.masses, other.masses), name


@pytest.mark.unit
@pytest.mark.parametrize(
    ("kind", "values", "held"),
    [
        ("better", {"a": [0.5, 0.6], "b": [0.4, 0.5]}, True),
        ("better", {"a": [0.5, 0.5], "b": [0.4, 0.5]}, False),
        ("improves", {"a": [0.5, 0.6], "b": [0.6, 0.5]}, True),
        ("worsens", {"a": [0.5, 0.6], "b": [0.6, 0.5]}, False),
        ("steady", {"a": [0.50, 0.52], "b": [0.6, 0.5]}, True),
        ("steady", {"a": [0.50, 0.60], "b": [0.6, 0.5]}, False),
    ],
)
def test_claims_are_decided_by_their_means(
    kind: str, values: dict[str, list[float]], held: bool
) -> None:
    rows = [row(name, at, value) for name, some in values.items() for at, value in enumerate(some)]
    claim = Claim("c", "f", "here", "text", kind, "a", held, than=("b",), within=0.1)  # type: ignore[arg-type]
    found = decide(claim, rows, "epsilon")
    assert found.held is held
    assert found.expected
    assert bool(found.against) is not held


@pytest.mark.unit
def test_a_surprise_fails_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = Claim("c", "f", "here", "text", "better", "a", True, than=("b",))
    found = decide(claim, [row("a", 1, 0.1), row("b", 1, 0.2)], "epsilon")
    with pytest.raises(SystemExit):
        conclude(Options(True, tmp_path, tmp_path), "page", ["text"], [found])
    assert "SURPRISE: c was expected to hold" in capsys.readouterr().out


@pytest.mark.unit
def test_every_claim_says_where_it_stands() -> None:
    tables = tomllib.loads(
        (ROOT / "experiments/heatmaps/expected.toml").read_text(encoding="utf-8")
    )["claim"]
    assert len({table["name"] for table in tables}) == len(tables)
    for source in ("real", "city"):
        read = [
            c for f in ("figure1", "users", "sides") for c in read_claims(f, source, quick=False)
        ]
        assert len(read) == len(tables)
        assert all(claim.where and claim.text for claim in read)
        assert {claim.method for claim in read} | {
            m for c in read for m in c.than
        } <= METHODS.keys()
        assert all(claim.note for claim in read if not claim.holds), "a disagreement is explained"


@pytest.mark.unit
def test_the_page_is_gathered_from_the_runs(tmp_path: Path) -> None:
    for source in ("real", "city"):
        (tmp_path / source).mkdir()
        for name in ("figure1", "figure2", "sweeps"):
            (tmp_path / source / f"{name}.md").write_text(f"{source} {name}\n")
    report.main(["--out", str(tmp_path), "--page", str(tmp_path / "page.md")])
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.index("real sweeps") < page.index("city figure1")


@pytest.mark.unit
def test_footnote_8_holds_where_the_paper_looks_and_not_below() -> None:
    """Mean |noise| of a Gaussian at delta 1e-3 and sensitivity 1, against the 1/epsilon of Laplace noise."""

    def gaussian(epsilon: float) -> float:
        return float(gaussian_sigma(epsilon, "1e-3", sensitivity=1)) * math.sqrt(2 / math.pi)

    assert all(gaussian(epsilon) > 1 / epsilon for epsilon in EPSILONS)
    assert gaussian(0.01) < 1 / 0.01
