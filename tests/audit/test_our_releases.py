"""We audit ourselves: every release keeps the guarantee that it states, and saboteurs' releases do not.

All data is public and made up, all ledgers are rehearsals. What is deterministic, the reading of a
table, is done once for each input. Sensors are in test_our_sensors.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests import saboteurs
from tests.audit.flat_rows import listed, many, maps, one_by_one, scattered, shapes, sums_of
from tests.audit.ours import CHOSEN, EMPTY, OURS, SLOW, Ours, Pairs, Rows, audited, refuted

from sfumato.audit.boxes.box import Pair
from sfumato.heatmap import HeatmapRelease, PyramidMethod, price, release, release_heatmap
from sfumato.heatmap.methods import Method, PrivateBounds, baselines, find_area
from sfumato.heatmap.methods.baselines import (
    AdaptiveGridMethod,
    CoarseMethod,
    FlatMethod,
    GaussianMethod,
    HierarchyMethod,
    PrivTreeMethod,
    TopMethod,
)
from sfumato.heatmap.methods.protocol import NoisyTree
from sfumato.privacy import (
    REHEARSAL,
    UNITS,
    ZCDP,
    AddRemoveUser,
    Bound,
    DiscreteGaussian,
    DiscreteLaplace,
    Guarantee,
    KeyedNoise,
    Ledger,
    Loss,
    Noise,
    PureDP,
    ReplaceUser,
    guard,
)
from sfumato.privacy.ledger import guarded as guarded_module
from sfumato.records import CellSums, Columns, guard_sums, open_table
from sfumato.spaces import Area, Grid

pytestmark = pytest.mark.statistical

MANY, FEW = 3_000, 1_000
"""Runs: where one call gives many, and where each takes a millisecond or several."""
CHARGING, MAKING, FINDING = (
    import_module("sfumato.heatmap.pipeline.charging"),
    import_module("sfumato.heatmap.pipeline.release_plan"),
    import_module("sfumato.heatmap.methods.private_bounds"),
)
"""The modules: their names in the package are those of functions."""
QUICK = (many, maps, shapes, one_by_one)
AREA = Area(Grid(1), (0.0, 0.0, 1.0, 1.0), "plane")


@pytest.fixture
def noise(key: bytes) -> Noise:
    return KeyedNoise(key)


# --- every mechanism through a ledger ---


@dataclass(slots=True)
class Paid:
    """A mechanism that is run by a ledger only; it keeps what the last release stated."""

    mechanism: Any
    bound: Bound
    stated: Guarantee | None = None

    @property
    def levels(self) -> int:
        return int(self.mechanism.levels)

    def sample(self, values: Any, noise: Noise) -> Any:
        cost = self.mechanism.cost(self.bound)
        ledger = Ledger.rehearsal(cost, neighbors=self.bound.neighbors, model=self.bound.model)
        if isinstance(values, CellSums):
            under_guard: Any = guard_sums(values, source=REHEARSAL)
        else:
            one = self.bound
            bound = Bound(
                one.neighbors,
                values.size,
                l1=one.l1,
                l2_squared=one.l2_squared,
                linf=one.linf,
                entries=one.entries,
                model=one.model,
            )
            under_guard = guard(values, bound, source=REHEARSAL)
        released = ledger.release(self.mechanism, under_guard, noise=noise)
        self.stated = released.guarantee
        return released.value


def through_a_ledger(ours: Ours, noise: Noise) -> tuple[Pairs, Guarantee]:
    paid = Paid(ours.mechanism, ours.bound)
    draw = ours.box(noise, paid).function
    draw(ours.pairs[0].first, 1)
    assert paid.stated is not None
    return draw, paid.stated


# Adaptive grids and strips go through a ledger below, as a map and as an area.
@pytest.mark.parametrize(
    "ours", [one for one in OURS if one.draw in QUICK], ids=lambda one: one.name
)
def test_a_ledger_states_what_its_release_keeps(ours: Ours, noise: Noise) -> None:
    draw, stated = through_a_ledger(ours, noise)
    runs = FEW if ours.draw is one_by_one else MANY
    audited(draw, ours.pairs[-1], stated, runs=runs)


def histograms(
    relation: AddRemoveUser | ReplaceUser, noise: Noise, loss: Loss
) -> tuple[Pairs, Guarantee]:
    """Releases of a histogram of users in three cells; one long histogram is many short ones."""

    def once(cells: Any, runs: int) -> Any:
        again = (np.asarray(cells, dtype=np.int64)[:, None] + 3 * np.arange(runs)).ravel()
        held = guarded_module.histogram(again, 3 * runs, source=REHEARSAL, neighbors=relation)
        kind: Any = DiscreteLaplace if isinstance(loss, PureDP) else DiscreteGaussian
        ledger = Ledger.rehearsal(loss, neighbors=relation)
        return ledger.release(kind.within(loss, held.bound), held, noise=noise)

    return lambda cells, runs: np.asarray(once(cells, runs).value).reshape(runs, 3), once(
        [0], 1
    ).guarantee


ADDED, MOVED = Pair([0, 2], [0, 2, 1], "one more"), Pair([0, 2, 2], [0, 2, 1], "one moves")
HISTOGRAMS = [(AddRemoveUser(), ADDED), (ReplaceUser(), MOVED)]


@pytest.mark.parametrize("loss", [PureDP(1), ZCDP("1/2")], ids=str)
@pytest.mark.parametrize(("relation", "pair"), HISTOGRAMS, ids=["added", "replaced"])
def test_a_histogram_keeps_what_is_stated(
    relation: Any, pair: Pair, loss: Loss, noise: Noise
) -> None:
    draw, stated = histograms(relation, noise, loss)
    audited(draw, pair, stated, runs=MANY)


# --- maps ---


METHODS: tuple[Method[Any], ...] = (
    PyramidMethod(width=2),
    FlatMethod(),
    TopMethod(Fraction(1, 4)),
    GaussianMethod(Fraction(1, 100)),
    HierarchyMethod(first=0),
    PrivTreeMethod(),
    CoarseMethod(users=4),
)
EPSILON = Fraction(1)


def whole(one: HeatmapRelease, tree: Rows) -> Rows:
    """All of a map that its reader gets and that is no constant of the code: counts, picture, area, title."""
    title = float(sum(map(ord, one.title)))
    return np.concatenate([tree, one.tiles.image().ravel(), one.area.bounds, [title]])


def sums_released(
    method: Method[Any], noise: Noise, *, each: bool = False, epsilon: Fraction = EPSILON
) -> tuple[Pairs, Guarantee]:
    """Maps made of sums: the groups of one release are many runs, unless they share something."""

    def once(units: Any, groups: int) -> tuple[HeatmapRelease, ...]:
        ledger = Ledger.rehearsal(price(method, epsilon, AREA, groups=groups))
        held = guard_sums(sums_of(units, groups), source=REHEARSAL)
        names = [str(number) for number in range(groups)]
        made: tuple[HeatmapRelease, ...] = CHARGING.release_sums(
            held, AREA, ledger=ledger, epsilon=epsilon, method=method, groups=names, noise=noise
        )
        return made

    def draw(units: Any, runs: int) -> Rows:
        parts = [once(units, 1) for _ in range(runs)] if each else [once(units, runs)]
        shaped = shape_of(method)
        return np.array(
            [
                whole(one, row)
                for made in parts
                for one, row in zip(made, shaped(made[0].receipt.value), strict=True)
            ]
        )

    return draw, once(EMPTY.first, 1)[0].guarantee


def shape_of(method: Method[Any]) -> Callable[[NoisyTree], Rows]:
    if isinstance(method, PrivTreeMethod):
        return lambda tree: scattered(tree, 1)
    return listed


@pytest.mark.parametrize("method", METHODS, ids=lambda one: one.name)
def test_a_map_keeps_what_it_states(method: Method[Any], noise: Noise) -> None:
    draw, stated = sums_released(method, noise)
    audited(draw, EMPTY, stated, runs=FEW)


def test_a_map_of_an_adaptive_grid_keeps_what_it_states(noise: Noise) -> None:
    draw, stated = sums_released(AdaptiveGridMethod(), noise, each=True)
    audited(draw, EMPTY, stated, runs=FEW)


def test_no_method_is_left_out() -> None:
    named = {name for name in baselines.__all__ if name.endswith("Method")} | {"PyramidMethod"}
    assert {type(method).__name__ for method in METHODS} | {"AdaptiveGridMethod"} == named


COLUMNS = Columns(user="user", x="x", y="y", by="day")
DAYS = ("1", "2", "3", "4")
TABLES = Pair(
    (("ann", 0.2, 0.2, "1"),),
    (("ann", 0.2, 0.2, "1"), *(("bob", 0.7, 0.7, day) for day in DAYS)),
    "one with many rows, on four maps",
)


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a table takes a tenth of a second and is the same every time: each is read and summed once."""
    true_sum = MAKING.sum_cells

    @cache
    def summed(rows: Any, columns: Columns, area: Area, source: str, unit: str, groups: Any) -> Any:
        table = pa.table(
            {name: [row[at] for row in rows] for at, name in enumerate(("user", "x", "y", "day"))}
        )
        opened = open_table(table, columns=columns)
        return true_sum(opened, columns, area, source=source, unit=unit, groups=groups)

    def sum_cells(
        rows: Any, columns: Any, area: Any, *, source: str, unit: str, groups: Any, identity: Any
    ) -> Any:
        assert identity is None
        return summed(rows, columns, area, source, unit, None if groups is None else tuple(groups))

    class Opened(tuple[Any, ...]):
        """The rows as they are, which say what counts them, as a table does."""

        def get_backend(self) -> Any:
            return SimpleNamespace(name="duckdb")

    monkeypatch.setattr(MAKING, "open_rows", lambda rows, *_: Opened(rows.source))
    monkeypatch.setattr(MAKING, "sum_cells", sum_cells)


def tables_released(
    method: Method[Any], *, groups: bool, epsilon: Fraction = EPSILON
) -> tuple[Pairs, Guarantee]:
    """Maps of a table from the front door, one by one, with noise of the system."""

    def once(rows: Any) -> list[HeatmapRelease]:
        settings: dict[str, Any] = {
            "ledger": Ledger.rehearsal(PureDP(epsilon)), "public": True, "epsilon": epsilon, "method": method
        }  # fmt: skip
        if groups:
            return list(
                release_heatmap(rows, COLUMNS, AREA, groups=DAYS, **settings).by_group.values()
            )
        return [release(rows, replace(COLUMNS, by=None), AREA, **settings)]

    def draw(rows: Any, runs: int) -> Rows:
        return np.array([_joined(once(rows)) for _ in range(runs)])

    return draw, once(TABLES.first)[0].guarantee


def _joined(made: list[HeatmapRelease]) -> Rows:
    trees = listed(made[0].receipt.value)
    return np.concatenate([whole(one, tree) for one, tree in zip(made, trees, strict=True)])


@pytest.mark.system
@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize(
    ("method", "groups"),
    [(PyramidMethod(width=1), False), (CoarseMethod(users=1), True)],
    ids=["release", "release_each"],
)
def test_maps_of_a_table_keep_what_they_state(method: Method[Any], groups: bool) -> None:
    draw, stated = tables_released(method, groups=groups)
    audited(draw, TABLES, stated, runs=FEW)


def areas_found(epsilon: Fraction = EPSILON) -> tuple[Pairs, Guarantee]:
    """Areas found in the data of so many users at one place."""
    outer = Area(Grid(1), (0.0, 0.0, 1.0, 1.0), "plane")

    def once(users: int) -> tuple[Area, Ledger]:
        def sums(area: Area) -> Any:
            cells = area.grid.cells_of(np.array([0.45]), np.array([0.45]))
            return guard_sums(
                CellSums(area.grid, cells, np.array([users * UNITS])), source=REHEARSAL
            )

        ledger = Ledger.rehearsal(PureDP(epsilon))
        return find_area(sums, outer, ledger=ledger, epsilon=epsilon), ledger

    _, ledger = once(1)
    entries = ledger.statement().entries
    paid = PureDP(
        sum(
            (entry.cost.epsilon for entry in entries if isinstance(entry.cost, PureDP)), Fraction(0)
        )
    )
    stated = Guarantee(paid, ledger.header.neighbors, ledger.header.unit)
    assert len(entries) == 2
    return lambda users, runs: np.array([once(users)[0].bounds for _ in range(runs)]), stated


THRESHOLD = int(4 * np.log(8 / (2 * FINDING.FALSE_STRIP)))
EDGE = Pair(THRESHOLD, THRESHOLD + 1, "one who makes a strip full")
"""Noise of each strip has the scale of 4 users at epsilon 1; there are 4 columns and 4 rows."""


@pytest.fixture
def few_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FINDING, "LEVEL", 2)


@pytest.mark.system
@pytest.mark.usefixtures("few_strips")
def test_an_area_keeps_what_was_paid_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, stated = areas_found()
    audited(draw, EDGE, stated, runs=FEW)
    # Without noise the strips are above their threshold with one user more, and are not without.
    monkeypatch.setattr(DiscreteLaplace, "sample", lambda self, values, noise: values)
    refuted(draw, EDGE, stated, runs=FEW)


# --- what is known to be wrong is refuted through the same doors ---


def strike(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A saboteur of the suite, for this test only."""
    monkeypatch.setattr(saboteurs, "plant", monkeypatch.setattr)
    saboteurs.SABOTEURS[name].strike()


def laplace(noise: Noise) -> tuple[Pairs, Guarantee]:
    return through_a_ledger(OURS[0], noise)


def replaced(noise: Noise) -> tuple[Pairs, Guarantee]:
    return histograms(ReplaceUser(), noise, PureDP(1))


def chosen(noise: Noise) -> tuple[Pairs, Guarantee]:
    return through_a_ledger(next(one for one in OURS if one.name == "permute-and-flip"), noise)


def pyramids(noise: Noise) -> tuple[Pairs, Guarantee]:
    return sums_released(PyramidMethod(width=2), noise)


def strips(noise: Noise) -> tuple[Pairs, Guarantee]:
    ours = next(one for one in OURS if one.name == "strips")
    return through_a_ledger(replace(ours, mechanism=PrivateBounds(Fraction(UNITS, 2))), noise)


STRUCK: dict[str, tuple[Callable[[Noise], tuple[Pairs, Guarantee]], Pair]] = {
    "float noise instead of lattice noise": (laplace, Pair([0], [1], "nobody, then one alone")),
    "a replaced user counted as an added one": (replaced, MOVED),
    "selection twice as sharp as charged": (chosen, CHOSEN),
    "top-w chosen on exact counts": (pyramids, EMPTY),
    "every row a whole user": (
        lambda noise: tables_released(PyramidMethod(width=1), groups=False),
        TABLES,
    ),
    "every map a whole user": (
        lambda noise: tables_released(CoarseMethod(users=1), groups=True),
        TABLES,
    ),
    "bounds from the data": (pyramids, EMPTY),
    "a title with the number of users": (pyramids, EMPTY),
    "strips charged once": (strips, EMPTY),
}


@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize("name", STRUCK)
def test_a_saboteur_is_refuted(name: str, noise: Noise, monkeypatch: pytest.MonkeyPatch) -> None:
    strike(monkeypatch, name)
    release_of, pair = STRUCK[name]
    draw, stated = release_of(noise)
    # A thousand runs, as of the honest maps, show five of them; these show all.
    refuted(draw, pair, stated, runs=SLOW)
