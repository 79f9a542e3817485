"""Sites: each comes back from its file as it was, and one that cannot be is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.privacy import MovedMass, SwappedCells
from sfumato.sensing.model.operators.graph_diffusion import graph_diffusion
from sfumato.sensing.model.operators.heat_line import heat_line
from sfumato.sensing.model.operators.heat_plane import heat_plane
from sfumato.sensing.model.operators.matrix import linear
from sfumato.sensing.model.sensors import Sensors
from sfumato.sensing.model.site import Site, part_of_site, read_site
from sfumato.spaces import Graph, Grid, Line

SITES = [
    Site(
        "hall",
        heat_line(
            sources=40, sensors=Sensors([0.1, 0.4, 0.9], ["a", "b", "c"]), diffusion_time=0.05
        ),
        MovedMass("1/10", "line"),
        Fraction(1, 16),
    ),
    Site(
        "uneven",
        heat_line(sources=[0.0, 0.1, 0.7], sensors=[0.3], diffusion_time=1),
        SwappedCells(2),
    ),
    Site(
        "plane",
        heat_plane(sources=Grid(2, (0, 0, 3, 2)), sensors=[(1, 1), (2, 0.5)], diffusion_time=0.1),
        MovedMass(1, "grid-l1"),
    ),
    Site(
        "places",
        heat_plane(sources=[(0, 0), (1, 2)], sensors=[(1, 1)], diffusion_time=0.1),
        MovedMass(1, "points-euclidean"),
    ),
    Site(
        "friends",
        graph_diffusion(Graph([(0, 1), (1, 2)], [1, 2]), 0.5, sensors=[2, 0], weights=[1, 3]),
        MovedMass(1, "graph"),
        cells=("ann", "bob", "eve"),
    ),
    Site("any", linear([[1, 0.5], [0, -2]], Line(2)), MovedMass(1, "line")),
]


@pytest.mark.unit
@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)
def test_a_site_comes_back_from_its_file(
    site: Site, tmp_path: Path, rng: np.random.Generator
) -> None:
    site.write(tmp_path / "s.json")
    again = read_site(tmp_path / "s.json")
    assert (again.name, again.neighbors, again.step, again.cells) == (
        site.name,
        site.neighbors,
        site.step,
        site.cells,
    )
    assert again.operator.space == site.operator.space
    assert again.sensors == site.sensors
    masses = rng.random(site.operator.space.size)
    assert np.array_equal(again.operator.readings(masses), site.operator.readings(masses))
    with pytest.raises(InvalidInput, match="kept"):
        site.write(tmp_path / "s.json")
    data = site.to_json()
    for part in ("format", "name", "operator", "sources", "sensors", "neighbors", "step"):
        with pytest.raises(InvalidInput, match="not a whole site"):
            Site.from_json({name: value for name, value in data.items() if name != part})
    tampered = json.loads(json.dumps(data))
    tampered["sensors"]["positions"][0][0] += 1
    with pytest.raises(InvalidInput, match="not those of its hash"):
        Site.from_json(tampered)


@pytest.mark.unit
def test_sites_that_cannot_be_are_refused() -> None:
    operator = heat_line(sources=4, sensors=2, diffusion_time=1)
    with pytest.raises(InvalidParameter, match="move in the metric 'line'"):
        Site("hall", operator, MovedMass(1, "graph"))
    with pytest.raises(InvalidParameter, match="printable name"):
        Site("", operator, MovedMass(1, "line"))
    with pytest.raises(InvalidParameter, match="every cell needs one name"):
        Site("hall", operator, MovedMass(1, "line"), cells=("a",))


@pytest.mark.unit
@pytest.mark.parametrize("site", SITES, ids=lambda site: site.name)
def test_a_part_of_the_sensors_reads_the_same(site: Site, rng: np.random.Generator) -> None:
    masses = rng.random(site.operator.space.size)
    whole = dict(zip(site.sensors.names, site.operator.readings(masses), strict=True))
    names = tuple(reversed(site.sensors.names))
    part = part_of_site(site, names)
    assert part.readings(masses) == pytest.approx([whole[name] for name in names], rel=1e-12)
    with pytest.raises(InvalidParameter, match="has no sensor 'nobody'"):
        part_of_site(site, ("nobody",))
