"""A private map: tiles, the guarantee they carry, and the ledger entry that paid for them.

Long because it is the one value that every verb returns or takes.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato._types import BoolArray, FloatArray
from sfumato.errors import InvalidParameter
from sfumato.heatmap.accuracy.map_error import MapError, map_error
from sfumato.heatmap.accuracy.noise_floor import quick_density
from sfumato.heatmap.accuracy.noise_mark import FINEST_SEEN, EmptyMaps, NoiseMark, noise_mark
from sfumato.heatmap.accuracy.uncertainty import (
    COVERAGE,
    SIGMA,
    MapBand,
    Mark,
    ShownUncertainty,
    Uncertainty,
    uncertainty,
)
from sfumato.heatmap.analysis.blur import smooth
from sfumato.heatmap.analysis.places import FoundHotspots, Hotspot, find_hotspots, hotspots
from sfumato.heatmap.analysis.zone_shapes import read_zones
from sfumato.heatmap.analysis.zones import ZoneTotal, zone_totals
from sfumato.heatmap.inference.map_posterior import MapPosterior
from sfumato.heatmap.inference.partial_pooling import PooledPosterior
from sfumato.heatmap.inference.prior import Declared, Prior, sharpened
from sfumato.heatmap.measure import Measure
from sfumato.heatmap.tiles import FINEST_IMAGE, Tiles, inside
from sfumato.privacy import UNITS, ZCDP, ApproxDP, Guarantee, PureDP, Release, compose
from sfumato.privacy.accounting import encode, encode_guarantee
from sfumato.spaces import Area

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfumato.heatmap.analysis.map_total import MapTotal
    from sfumato.heatmap.export.legend import LegendKind

FORMAT = "sfumato-heatmap/1"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HeatmapRelease:
    """What `release` gives back. Everything it holds was paid for; drawing and writing it cost nothing.

    `tiles` hold mass in users as estimated; `receipt` the noisy counts they were made of, with
    guarantee and ledger entry; `group` names the map when several share one release. `area_cost`
    was paid besides, when the area itself was found in the data: whoever sees the map sees that
    too. `counted` says which columns were counted, and how. `title` is for people. `posterior`
    draws maps that could have led to what was released, for methods that have one;
    `known_marks`, `known_untested`, `known_silent` and `known_total` (between what its total lies, in
    users) are those of a map that was saved. `prior` says which
    public file the map follows within its tiles, if it does. `noise_scale` is the usual scale
    of the noise on a count, in users; 0 where the method does not say. `known_error` is what a
    saved map said of how far off it is. `nothing` are the maps that the method makes of nobody,
    which say up to where this one may be noise; `known_noise` is that of a map that was saved,
    or follows a prior.
    """

    tiles: Tiles
    area: Area
    method: str
    parameters: dict[str, Any]
    receipt: Release[Any]
    group: str = ""
    area_cost: PureDP | None = None
    counted: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    posterior: MapPosterior | None = None
    known_marks: tuple[Mark, ...] | None = None
    known_untested: tuple[tuple[float, float], ...] | None = None
    known_silent: BoolArray | None = None
    prior: Declared | None = None
    noise_scale: float = 0.0
    known_error: MapError | None = None
    nothing: EmptyMaps | None = None
    known_noise: NoiseMark | None = None
    known_total: tuple[float, float] | None = None

    def __repr__(self) -> str:
        return f"HeatmapRelease({self.name!r}, {self.method}, {self.statement})"

    @property
    def name(self) -> str:
        """What the map is called: its title, or what it is; and which of several it is."""
        which = self.group
        if pair := self.counted.get("pair"):
            which = ", ".join(
                str(one["name"]) if "unit" in one else f"{one['by']} {one['name']}" for one in pair
            )
        elif self.group and "period" not in self.counted:
            which = f"{self.counted.get('by') or ''} {self.group}".strip()
        return ": ".join(part for part in (self.title or self._called, which) if part)

    @property
    def group_words(self) -> str | dict[str, str]:
        """What stands for the group in names of files: {by}, and of a pair the names of its columns."""
        pair = self.counted.get("pair")
        if not pair:
            return self.group
        return {"by": self.group} | {str(one["by"]): str(one["name"]) for one in pair}

    @property
    def _called(self) -> str:
        """What a map is called that has no title and is not of a ledger's source."""
        return "Rehearsal of a heatmap" if self.receipt.rehearsal else "Private heatmap"

    @property
    def guarantee(self) -> Guarantee:
        """What is promised for the map and its area together."""
        promised = self.receipt.guarantee
        if self.area_cost is None:
            return promised
        return replace(promised, loss=compose([promised.loss, self.area_cost]))

    @property
    def statement(self) -> str:
        """What was promised, in one sentence; a rehearsal says that it promises nothing."""
        sentence = str(self.guarantee)
        if self.area_cost is not None:
            sentence += f": {self.receipt.guarantee.loss} for the map, {self.area_cost} for finding its area"
        if self.counted.get("one_row_one_user"):
            sentence += f"; each row taken for another {self.guarantee.unit}"
        if self.measure.name == "rows":
            sentence += (
                f"; rows are counted, at most {self.measure.scale:,} of each {self.guarantee.unit}"
            )
        if self.pooled_maps > 1:
            sentence += (
                f"; partly pooled over {self.pooled_maps} maps at no cost: one unlike the others may be "
                "drawn towards them, and its bands and marks suppose that it is like them"
            )
        if self.receipt.rehearsal:
            return f"REHEARSAL on public data, protects nobody: {sentence}"
        return sentence

    @property
    def pooled_maps(self) -> int:
        """How many maps share strength, this one among them; 1 for a map by itself."""
        return 1 if self.posterior is None else self.posterior.pooled_maps

    @property
    def map_epsilon(self) -> float:
        """The epsilon whose noise this map has: sqrt(2 rho) of zCDP.

        Where everyone has mass 1 in each of several maps, the whole cost is that of all of them.
        """
        loss = self.receipt.guarantee.loss
        moved = (self.receipt.entry.bound or {}).get("l1")
        masses = 1.0 if moved is None else max(1.0, int(moved) / UNITS)
        if isinstance(loss, ZCDP):
            return math.sqrt(2 * float(loss.rho) / masses)
        return float(loss.epsilon) / masses

    @property
    def measure(self) -> Measure:
        """What the map counts; masses of tiles times its scale are so many."""
        return Measure.of(self.counted, self.guarantee.unit)

    @property
    def plainly(self) -> str:
        """What the guarantee means for one person, in words."""
        if self.receipt.rehearsal:
            return "Nobody is protected by a rehearsal: its rows are public, or made up."
        unit, loss = self.guarantee.unit, self.guarantee.loss
        if isinstance(loss, ZCDP):
            return (
                f"How much can be learned from this map about any one {unit} is bounded by {loss}."
            )
        times = math.exp(min(float(loss.epsilon), 700.0))
        except_for = (
            f", up to a chance of {float(loss.delta):.1g}" if isinstance(loss, ApproxDP) else ""
        )
        return (
            f"Whatever else somebody knows, nothing that follows from this map is more than {times:.3g} "
            f"times as likely with any one {unit} in the data as without{except_for}."
        )

    @property
    def noise(self) -> NoiseMark:
        """Up to which height the map may be noise, the same in every picture, and whether it is empty.

        One map in twenty of nothing exceeds it anywhere. A map of a method that cannot be
        simulated, or of an old file, has what is known of the width of its noise instead.
        """
        if self.known_noise is not None:
            return self.known_noise
        # A map that is paid for is written and drawn whatever a method or a posterior of somebody's
        # own does.
        with contextlib.suppress(Exception):
            found = noise_mark(self.tiles, self.area, self.posterior, self.nothing)
            if found is not None:
                return found
        return NoiseMark(quick_density(self))

    @property
    def empty(self) -> bool:
        """Whether the map cannot be told from one of nobody: at least 94 % of such maps are called so."""
        return bool(self.noise.empty)

    @property
    def shares(self) -> Tiles:
        """The map with mass 1; where nothing is left of it, even within the bounds."""
        shares = self.tiles.normalized()
        return shares if self.tiles.total > 0 else inside(shares, self.area)

    def image(self, level: int | None = None, *, sigma: float = 0.0) -> FloatArray:
        """Shares of the whole, adding up to 1, as a picture of the grid [row, column], row 0 at the lowest y.

        With `sigma` (in sides of the grid, e.g. 0.02) the heatmap of [ghazi23, sec. 2.3].
        """
        chosen = min(self.tiles.grid.levels, FINEST_IMAGE) if level is None else level
        shares = self.shares.image(chosen)
        return smooth(shares, sigma) if sigma else shares

    def sharpened(self, prior: Prior) -> HeatmapRelease:
        """The same map, following a file that its user declares public within each cell that was counted.

        Guarantee and ledger entry stay what they were: this is post-processing, and free.
        """
        if self.prior is not None:
            raise InvalidParameter(
                f"a map follows one prior, this one has {self.prior}; nothing was drawn"
            )
        told, tiles, known = (
            Declared(prior.file, prior.sha256, self.tiles.codes.size),
            self.tiles,
            self.posterior,
        )
        if known is not None and known.mean_is_map:
            # Its tiles are as fine as the picture; what it knows is what it counted.
            tiles = inside(known.counted(tiles), self.area)
        weights = prior.weights(self.area)
        # No finer than peaks are looked for.
        seen = prior.weights(self.area, min(self.area.grid.levels, FINEST_SEEN))
        nothing = self.nothing
        if nothing is None:
            with contextlib.suppress(Exception):  # a method of somebody's own, which is not there
                nothing = EmptyMaps.of(self)
        noise = self.noise.following(
            tiles,
            self.area,
            lambda one: sharpened(one, seen),
            posterior=self.posterior,
            nothing=nothing,
        )
        return replace(
            self,
            tiles=sharpened(tiles, weights),
            prior=told,
            known_error=None,
            known_total=None,
            known_noise=noise,
        )

    def totals(
        self, zones: str | Path | Mapping[str, Any], *, name: str = "name", coverage: float = 0.9
    ) -> tuple[ZoneTotal, ...]:
        """How many users are in each zone of a GeoJSON file, or of a mapping from names to polygons.

        Each with an interval that holds the truth with chance `coverage` or more, for methods that
        can say so.
        """
        return zone_totals(self, read_zones(zones, name=name), coverage=coverage)

    def total(self) -> MapTotal:
        """How many users or rows the map is of, with a 90 % interval for methods that can say so."""
        from sfumato.heatmap.analysis.map_total import map_total

        return map_total(self)

    @property
    def usual_noise(self) -> float:
        """The usual scale of the noise on a count, in users; 0 where it is not known."""
        known = None if self.posterior is None else self.posterior.noise_scale
        return self.noise_scale if known is None else known

    def hotspots(self, k: int) -> tuple[Hotspot, ...]:
        """The k places that best stand for the map, and the share of mass that is nearest to each."""
        return hotspots(self.shares, k)

    def find_hotspots(self, k: int) -> FoundHotspots:
        """The same places with a bound that proves how near to the best choice of k they are."""
        return find_hotspots(self.shares, k)

    def uncertainty(
        self, level: int | None = None, *, sigma: float = SIGMA, coverage: float = COVERAGE
    ) -> Uncertainty:
        """How sure the blurred map is: its band, where it says nothing, and which places are real.

        For methods whose release says what could have led to it: zoom and pyramid.
        """
        if self.posterior is None:
            raise InvalidParameter(
                f"a map's uncertainty needs method zoom or pyramid and its noisy counts; this one, by "
                f"{self.method}, has none; nothing was drawn"
            )
        found = uncertainty(self.posterior, self.area, level=level, sigma=sigma, coverage=coverage)
        return found.of_nothing(self.area) if self.empty else found

    def shown_uncertainty(self) -> ShownUncertainty:
        """What pictures show of how sure the map is; a saved map shows what it showed then."""
        known = self.known_silent, self.known_marks, self.known_untested
        if known[0] is None or known[1] is None or known[2] is None:
            return self.uncertainty().shown
        return ShownUncertainty(known[0], known[1], known[2])

    def band(
        self, level: int | None = None, *, sigma: float = SIGMA, coverage: float = COVERAGE
    ) -> MapBand:
        """Between what each cell of the blurred map lies, with chance `coverage`."""
        return self.uncertainty(level, sigma=sigma, coverage=coverage).band

    def marks(self, *, sigma: float = SIGMA) -> tuple[Mark, ...]:
        """The places that have over twice the map's average, all of them at once with chance 95 %."""
        told = self.known_marks if sigma == SIGMA else None
        return self.uncertainty(sigma=sigma).marks if told is None else told

    def untested(self) -> tuple[tuple[float, float], ...]:
        """The x and y of further peaks, too near others to be tested; a saved map says what it said then."""
        told = () if self.posterior is None else self.known_untested
        return self.uncertainty().untested if told is None else told

    def error(self) -> MapError:
        """How far off the map is: what to expect, with 90 % intervals, and what is certain.

        From what was released alone: it costs nothing. A saved map says what it said then.
        """
        return map_error(self) if self.known_error is None else self.known_error

    def write(
        self,
        path: str | Path,
        *,
        over: str | Path | None = None,
        level: int | None = None,
        h3_resolution: int | None = None,
        outline: str | Path | None = None,
        legend: LegendKind = "density",
        every_cell: bool = False,
        overwrite: bool = False,
    ) -> None:
        """Save as what the suffix says: .png .tif .geojson .qml .csv .h3.csv .h3.parquet .npz .html .json."""
        from sfumato.heatmap.export import write

        write(
            self,
            path,
            over=over,
            level=level,
            h3_resolution=h3_resolution,
            outline=outline,
            legend=legend,
            every_cell=every_cell,
            overwrite=overwrite,
        )

    def to_geodataframe(self, level: int | None = None) -> Any:
        """The cells as a GeoDataFrame with geometry, share, users and level."""
        from sfumato.heatmap.export import to_geodataframe

        return to_geodataframe(self, level)

    def to_dataframe(self, level: int | None = None) -> Any:
        """The cells as a pandas DataFrame: edges, share, users (or rows), and 90 % intervals if known.

        Raises:
            MissingPackage: pandas is not installed.

        """
        from sfumato.heatmap.export import to_dataframe

        return to_dataframe(self, level)

    def plot(
        self,
        *,
        over: str | Path | None = None,
        outline: str | Path | None = None,
        legend: LegendKind = "density",
    ) -> Figure:
        """The picture as a figure of matplotlib; its first axes are the map, to draw more on."""
        from sfumato.heatmap.export.formats import WriteOptions
        from sfumato.heatmap.export.picture import figure

        ground = WriteOptions(over=over, outline=outline).ground(self)
        return figure(self, ground=ground, legend=legend)

    def _repr_html_(self) -> str:
        from sfumato.heatmap.export import html_repr

        return html_repr(self)

    def to_json(self) -> dict[str, Any]:
        """The report: guarantee, unit, neighbors, method, parameters, ledger entry, area, tiles, counts."""
        known = self.posterior
        return {
            "format": FORMAT,
            "rehearsal": self.receipt.rehearsal,
            "title": self.title,
            "statement": self.statement,
            "plainly": self.plainly,
            "guarantee": encode_guarantee(self.guarantee),
            "map_cost": encode(self.receipt.guarantee.loss),
            "method": self.method,
            "parameters": self.parameters,
            "counted": self.counted,
            "group": self.group,
            "prior": None if self.prior is None else self.prior.to_json(),
            "area": {
                "kind": self.area.kind,
                "bounds": list(self.area.bounds),
                "grid": list(self.area.grid.bounds),
                "levels": self.area.grid.levels,
                "cell_size": list(self.area.cell_size),
                "unit": self.area.unit,
                "crs": self.area.crs,
                "metre": self.area.metre,
                "cost": None if self.area_cost is None else encode(self.area_cost),
            },
            "ledger": self.receipt.ledger,
            "entry": self.receipt.entry.to_json(),
            "tiles": self.tiles.to_json(),
            "noise_scale": self.usual_noise,
            "noise": self.noise.to_json(),
            "mean_is_map": known is not None and known.mean_is_map,
            "counts": None if known is None or known.counts is None else known.counts.to_json(),
            "pooling": known.pooling.to_json() if isinstance(known, PooledPosterior) else None,
        }
