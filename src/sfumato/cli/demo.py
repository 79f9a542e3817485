"""`sfumato demo`: the main job on a synthetic city, from people to a private map with its report."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.errors import BudgetExceeded, InvalidInput

if TYPE_CHECKING:
    import numpy as np

    from sfumato.privacy.guarded import FloatArray, IntArray

LEVELS = 6
PEOPLE = 20_000
TOP = 60.0  # of the color scale, people per cell: chosen before any person was
SOURCE = "demo city (synthetic)"


@sentences
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the report, the picture, the release and the ledger.")
    ] = Path("demo"),
    epsilon: Annotated[str, typer.Option(help="What the map may cost.")] = "1",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Release a map of a synthetic city with a ledger, and draw it.

    Each run makes a new city, so it starts a new ledger in the folder.
    """
    import numpy as np

    from sfumato.figures import draw_maps
    from sfumato.privacy import DiscreteLaplace, Ledger, PureDP, histogram
    from sfumato.report import Section, write_report
    from sfumato.spaces import Grid

    budget = PureDP(epsilon)
    grid = Grid(LEVELS)
    points = city(np.random.default_rng(), PEOPLE)
    cells = grid.cells_of(points[:, 0], points[:, 1])
    guarded = histogram(cells, grid.size, source=SOURCE)

    mechanism = DiscreteLaplace.within(budget, guarded.bound)

    out.mkdir(parents=True, exist_ok=True)
    file = out / "city.ledger"
    if file.exists() and Ledger(file).header.source != SOURCE:
        raise InvalidInput(f"{file} accounts for another source and is kept; choose another --out")
    file.unlink(missing_ok=True)
    say(f"a synthetic city of {PEOPLE:,} people on {grid.side} x {grid.side} cells", quiet=quiet or json)
    ledger = Ledger.create(file, budget, unit="user", source=SOURCE)
    release = ledger.release(mechanism, guarded, note="people per cell")
    say(f"released: {release.guarantee}", quiet=quiet or json)
    try:
        ledger.release(mechanism, guarded, note="once more")
    except BudgetExceeded as refusal:
        refused = str(refusal)
        say(f"asked again, refused: {refused}", quiet=quiet or json)

    # Everything from here on is post-processing of what was released: it costs nothing.
    private = grid.image(np.clip(release.numbers(), 0, None))
    # The exact map may be shown only because this city is made up.
    exact = grid.image(np.bincount(cells[cells >= 0], minlength=grid.size).astype(np.float64))
    picture = draw_maps(
        [("the synthetic city", exact), ("what sfumato releases", private)],
        top=TOP,
        caption=str(release.guarantee),
        unit="people per cell",
    )
    (out / "map.png").write_bytes(picture)
    (out / "release.json").unlink(missing_ok=True)  # of the city before
    release.write(out / "release.json")
    moved = float(np.abs(private - exact).sum() / exact.sum())
    statement = ledger.statement()
    write_report(
        out / "report.html",
        "A private map of a synthetic city",
        sections=[
            Section(
                "The map",
                f"{PEOPLE:,} made-up people, each in one of {grid.size} cells. Left, the truth, which may be "
                "shown because nobody in it exists; right, what is released.",
                picture=picture,
                description="Two maps of the same city side by side, exact and private",
            ),
            Section(
                "What was promised",
                f"{release.guarantee}.\n\nWhatever else they know, who sees it learns little from the map "
                f"about any one person: nothing that follows is over {math.exp(budget.epsilon):.4g} times as "
                "likely with them in the data as without.",
                table=[
                    ["entry", "mechanism", "cost", "note"],
                    *[[str(e.number), e.mechanism, str(e.cost), e.note] for e in statement.entries],
                ],
            ),
            Section("What was refused", f"The same map was asked for a second time: {refused}."),
        ],
    )
    result = {
        "report": str(out / "report.html"),
        "picture": str(out / "map.png"),
        "release": str(out / "release.json"),
        "ledger": str(file),
        "guarantee": str(release.guarantee),
        "refused": refused,
        "noise_per_person": moved,
    }
    show(result, f"report: {out / 'report.html'}", json=json)


def city(rng: np.random.Generator, people: int) -> FloatArray:
    """Where made-up people are: a few dense quarters along a river, and a thin spread everywhere."""
    import numpy as np

    centers = np.array([(0.30, 0.62), (0.42, 0.55), (0.60, 0.45), (0.72, 0.30), (0.22, 0.25)])
    widths = np.array([0.05, 0.09, 0.07, 0.04, 0.06])
    quarter: IntArray = rng.choice(6, size=people, p=[0.22, 0.25, 0.2, 0.1, 0.08, 0.15])
    spread = rng.uniform(size=(people, 2))
    dense = np.clip(quarter, 0, 4)
    near = centers[dense] + widths[dense, None] * rng.standard_normal((people, 2))
    return np.where(quarter[:, None] < 5, near, spread)
