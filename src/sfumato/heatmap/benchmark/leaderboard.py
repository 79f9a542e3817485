"""All methods on the same samples of public or made-up places: who makes the best map, and by how much.

Everything here is simulated, and nothing here may see a private row: errors are exact numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._random import generator
from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.heatmap.analysis.blur import smooth
from sfumato.heatmap.analysis.metrics import compare
from sfumato.heatmap.benchmark.contenders import (
    BuiltinMethod,
    Contender,
    UserMethod,
    standard_methods,
)
from sfumato.heatmap.benchmark.places import (
    CITIZENS,
    Place,
    digest,
    public_place,
    sample_sums,
    synthetic_places,
    true_shares,
)
from sfumato.heatmap.benchmark.results import LeaderboardResult, SampleMaps, Score
from sfumato.heatmap.methods.protocol import MapMethod
from sfumato.heatmap.tiles import Tiles
from sfumato.records import Columns
from sfumato.spaces import Bounds, Grid

LEVELS = 8  # 256 x 256 cells
# Deviation of the heatmap's filter in sides of the map.
SIGMA = 0.02
CITIES = "made-up cities"
MAX_CITIES = 30
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
COLUMNS = Columns("user", "lon", "lat")


def run_leaderboard(
    files: Sequence[str] = (),
    *,
    methods: Sequence[str | MapMethod[Any]] | None = None,
    user_methods: Sequence[UserMethod] = (),
    epsilons: Sequence[float] = EPSILONS,
    users: int = 200,
    runs: int = 60,
    cities: bool = True,
    public: bool = False,
    columns: Columns = COLUMNS,
    bounds: Bounds | None = None,
    chance: Callable[[bytes], np.random.Generator] = generator,
    watch: Callable[[str], None] | None = None,
) -> LeaderboardResult:
    """Compare methods on the same samples of users, with noise that is the same in every run.

    It is a simulation: never run it on private data, for the errors it shows are exact numbers
    about the rows.

    Args:
        files: Tables of PUBLIC rows, each a place of its own beside the made-up cities.
        methods: Map methods by name or as values; all that come with the package if left out.
        user_methods: Functions of a researcher, compared before the others.
        epsilons: Values of epsilon, each above 0.
        users: How many people of a place are sampled.
        runs: Samples at each epsilon, over all cities or of a file; at least 2.
        cities: Whether made-up cities are run too.
        public: Must be True with files: their rows are public, so exact errors may be shown.
        columns: The columns of the files.
        bounds: Box of the files (west, south, east, north), stretched to the map; else that of
            their rows.
        chance: Makes the generator of a sample from a hash; the default gives the same numbers
            in every run.
        watch: Called with each step before it begins.

    Returns:
        Scores of every method on every sample, and maps of one sample of each source.

    Raises:
        InvalidParameter: For methods that are unknown or fewer than two, epsilons that are not
            above 0, nothing to run on, or files that were not declared public.
        InvalidInput: For files that cannot be read or have too few people, and for functions
            that fail.
    """
    values = sorted({float(epsilon) for epsilon in epsilons})
    if not values or not all(0 < value < math.inf for value in values):
        raise InvalidParameter(f"epsilons are numbers above 0, got {epsilons}; nothing was run")
    contenders = _contenders(methods, user_methods, users)
    if files and not public:
        raise InvalidParameter(
            "a leaderboard shows exact errors: its rows must be public or made up, said aloud by `public`; "
            "nothing was read"
        )
    sources = _sources(files, users, runs, cities, columns, bounds, chance)
    tell = watch or (lambda _: None)
    scores: list[Score] = []
    for source in sources:
        for epsilon in values:
            tell(
                f"{source.name}: epsilon {epsilon:g}, {len(source.runs)} runs of {len(contenders)} methods"
            )
            for place, sample in source.runs:
                scores += score_sample(
                    place,
                    contenders,
                    source=source.name,
                    users=users,
                    epsilon=epsilon,
                    sample=sample,
                    chance=chance,
                )
    tell("drawing")
    return LeaderboardResult(
        users,
        tuple(one.name for one in contenders),
        tuple(scores),
        tuple(_sample_maps(one, contenders, users, values, chance) for one in sources),
        tuple(one.name for one in user_methods),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """Places whose scores are taken together, and the samples to run: (place, number)."""

    name: str
    runs: tuple[tuple[Place, int], ...]


def _contenders(
    methods: Sequence[str | MapMethod[Any]] | None, user_methods: Sequence[UserMethod], users: int
) -> list[Contender]:
    """A researcher's own first, then ours."""
    ours = standard_methods(users)
    chosen: list[Contender] = [*user_methods]
    for method in ours if methods is None else methods:
        if not isinstance(method, str):
            chosen.append(BuiltinMethod(method.name, method))
        elif method in ours:
            chosen.append(BuiltinMethod(method, ours[method]))
        else:
            raise InvalidParameter(
                f"methods are {', '.join(ours)}, got {method!r}; nothing was run"
            )
    names = [one.name for one in chosen]
    if len(set(names)) < len(names) or len(names) < 2:
        raise InvalidParameter(
            f"two methods or more that differ are compared, got {names}; nothing was run"
        )
    return chosen


def _sources(
    files: Sequence[str],
    users: int,
    runs: int,
    cities: bool,
    columns: Columns,
    bounds: Bounds | None,
    chance: Callable[[bytes], np.random.Generator],
) -> list[_Source]:
    """The made-up cities, and each file for itself."""
    if not (files or cities):
        raise InvalidParameter(
            "without `cities` there must be files to run on, got none; nothing was run"
        )
    sources = []
    if cities:
        places = synthetic_places(min(MAX_CITIES, runs), people=max(CITIZENS, users), chance=chance)
        sources.append(_Source(CITIES, _samples(places, runs)))
    for file in dict.fromkeys(files):
        place = public_place(file, columns, name=file, bounds=bounds)
        if place.users < users:
            raise InvalidInput(
                f"{file} has rows of {place.users} people in the bounds, fewer than `users` {users}; "
                "nothing was run"
            )
        sources.append(_Source(file, _samples([place], runs)))
    return sources


def _samples(places: Sequence[Place], runs: int) -> tuple[tuple[Place, int], ...]:
    """The places in turn, until there are as many samples as runs."""
    return tuple((places[number % len(places)], number // len(places)) for number in range(runs))


def _sample_maps(
    source: _Source,
    contenders: Sequence[Contender],
    users: int,
    epsilons: Sequence[float],
    chance: Callable[[bytes], np.random.Generator],
) -> SampleMaps:
    """The first sample of a source at the epsilon nearest to 1."""
    epsilon = min(epsilons, key=lambda value: abs(math.log(value)))
    place, sample = source.runs[0]
    (_, truth, _), *maps = maps_of_sample(
        place, contenders, users=users, epsilon=epsilon, sample=sample, chance=chance
    )
    drawn = tuple((name, image) for name, image, _ in maps)
    return SampleMaps(source.name, place.name, users, epsilon, truth, drawn)


def maps_of_sample(
    place: Place,
    contenders: Sequence[Contender],
    *,
    users: int,
    epsilon: float,
    sample: int,
    chance: Callable[[bytes], np.random.Generator],
    levels: int = LEVELS,
) -> Iterator[tuple[str, FloatArray, float]]:
    """Name, heatmap and seconds: of the truth ("") and of every contender, on one sample of a place.

    `chance` makes a generator of a hash; a map has 2**levels cells to a side.
    """
    rng = chance(digest("users", place.name, users, sample))
    sums = sample_sums(place, users, Grid(levels), rng=rng)
    yield "", smooth(true_shares(sums), SIGMA), 0.0
    # As a float: 1 and 1.0 have the same noise.
    trial = (place.name, users, levels, float(epsilon), sample)
    for contender in contenders:
        shares, seconds = contender.run(sums, epsilon, trial=trial, chance=chance)
        yield contender.name, smooth(shares, SIGMA), seconds


def score_sample(
    place: Place,
    contenders: Sequence[Contender],
    *,
    source: str,
    users: int,
    epsilon: float,
    sample: int,
    chance: Callable[[bytes], np.random.Generator],
    levels: int = LEVELS,
) -> list[Score]:
    """Every contender on one sample of a place, compared with the truth.

    Args:
        place: Where the people are.
        contenders: Who takes part.
        source: What scores say of where the place is from.
        users: How many people of it are sampled.
        epsilon: What a map costs, above 0.
        sample: The number of the sample.
        chance: Makes a generator of a hash.
        levels: 2**levels cells to a side.

    Returns:
        A score for each contender, in their order.

    Raises:
        InvalidInput: For a place with fewer people, and for functions that fail.
    """
    drawn = maps_of_sample(
        place, contenders, users=users, epsilon=epsilon, sample=sample, chance=chance, levels=levels
    )
    _, truth, _ = next(drawn)
    scores = []
    for name, image, seconds in drawn:
        found = compare(truth, image, Grid(levels))
        scores.append(
            Score(
                source, place.name, sample, users, 1 << levels, epsilon, name,
                found.similarity, found.pearson, found.kl, found.emd, seconds,
            )
        )  # fmt: skip
    return scores


def heatmap(tiles: Tiles, level: int, *, sigma: float = SIGMA) -> FloatArray:
    """The heatmap of an estimate.

    Args:
        tiles: The estimate.
        level: Of the picture: 2**level cells to a side.
        sigma: Deviation of the filter, in sides of the map.

    Returns:
        Shares [row, column], row 0 at the lowest y.
    """
    return smooth(tiles.normalized().image(level), sigma)
