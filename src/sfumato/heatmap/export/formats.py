"""Write a map to a file: the suffix names the format, and refusals come before anything is paid.

A package adds a format by an entry point of the group `sfumato.map_formats`, whose value is a
`MapFormat`; a program by `register_format`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato._registry import Registry
from sfumato.errors import ExistsAlready, InvalidParameter, MissingPackage
from sfumato.files import write_file
from sfumato.records import named_files
from sfumato.spaces import Area

if TYPE_CHECKING:
    from sfumato.heatmap.export.ground import Ground
    from sfumato.heatmap.export.legend import LegendKind
    from sfumato.heatmap.export.output_names import Group
    from sfumato.heatmap.results import HeatmapRelease


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a map is written.

    Attributes:
        level: Resolution of pictures and arrays, and the finest cell of tables; that of the map if
            None.
        over: The image under the heat, for pictures and pages: of the size of a map in pixels, or
            georeferenced; {by} in its name stands for the group.
        h3_resolution: Resolution of H3 tables, 0 to 15; about the size of a cell if None.
        outline: A public GeoJSON file whose lines and areas are drawn on pictures and pages.
        legend: What the numbers of legends are: people to a square kilometre, or shares.
        every_cell: Whether .geojson has every cell as it was released.

    """

    level: int | None = None
    over: str | Path | None = None
    h3_resolution: int | None = None
    outline: str | Path | None = None
    legend: LegendKind = "density"
    every_cell: bool = False

    def ground(self, release: HeatmapRelease) -> Ground:
        """What lies under a map."""
        found: Ground = _part("ground").ground_of(
            release.area, over=self.over, outline=self.outline, group=release.group_words
        )
        return found


PLAIN = WriteOptions()


@dataclass(frozen=True, slots=True)
class MapFormat:
    """A way to write a map.

    Attributes:
        suffix: How the names of its files end, with the dot.
        encode: The bytes of a file.
        description: What it is, in a few words.
        packages: Optional packages it needs.
        degrees_only: Whether it takes maps in longitudes and latitudes only.
        uncertainty: Whether it shows how sure the map is, for methods that know.
        check: Refuses an area and options it could not write, before anything is charged.

    """

    suffix: str
    encode: Callable[[HeatmapRelease, WriteOptions], bytes]
    description: str = ""
    packages: tuple[str, ...] = ()
    degrees_only: bool = False
    uncertainty: bool = False
    check: Callable[[Area, WriteOptions], None] | None = None


def _part(name: str) -> Any:
    """A module of this folder, loaded when a format needs it: its suffix is known without."""
    return importlib.import_module(f"sfumato.heatmap.export.{name}")


def _check_h3(area: Area, options: WriteOptions) -> None:
    _part("tables").check_h3(area, area.grid.levels, options.h3_resolution)


STYLE = ".qml"
_GEOTIFF = "Cloud Optimized GeoTIFF"
_HEXAGONS = "table of H3 hexagons"
_OWN: dict[str, MapFormat] = {
    one.suffix: one
    for one in (
        MapFormat(
            ".png",
            lambda one, how: _part("picture").png(
                one, ground=how.ground(one), level=how.level, legend=how.legend
            ),
            "picture with legend and guarantee",
            uncertainty=True,
        ),
        *(
            MapFormat(
                suffix,
                lambda one, how: _part("geotiff").geotiff(one, how.level),
                _GEOTIFF,
                ("rasterio",),
                uncertainty=True,
            )
            for suffix in (".tif", ".tiff")
        ),
        MapFormat(
            ".geojson",
            lambda one, how: _part("geojson").geojson(one, how.level, every_cell=how.every_cell),
            "polygons of the smoothed map",
            check=lambda area, _: _part("geojson").check_geojson(area),
        ),
        MapFormat(
            STYLE,
            lambda one, how: _part("qgis").qgis_style(one, how.level, every_cell=how.every_cell),
            "style of polygons and GeoTIFF for QGIS",
            check=lambda area, _: _part("geojson").check_geojson(area),
        ),
        MapFormat(
            ".csv", lambda one, how: _part("tables").cell_table(one, how.level), "table of cells"
        ),
        MapFormat(
            ".h3.csv",
            lambda one, how: _part("tables").h3_csv(one, how.level, resolution=how.h3_resolution),
            _HEXAGONS,
            ("h3",),
            degrees_only=True,
            uncertainty=True,
            check=_check_h3,
        ),
        MapFormat(
            ".h3.parquet",
            lambda one, how: _part("tables").h3_parquet(
                one, how.level, resolution=how.h3_resolution
            ),
            _HEXAGONS,
            ("h3",),
            degrees_only=True,
            uncertainty=True,
            check=_check_h3,
        ),
        MapFormat(
            ".npz",
            lambda one, how: _part("archive").npz(one, how.level),
            "NumPy arrays",
            uncertainty=True,
        ),
        MapFormat(
            ".html",
            lambda one, how: _part("page").html(
                one, how.level, ground=how.ground(one), legend=how.legend
            ),
            "page to pan and zoom, offline",
            uncertainty=True,
        ),
        MapFormat(
            ".json",
            lambda one, _: _part("archive").report_json(one),
            "report with all tiles",
            uncertainty=True,
        ),
    )
}
SUFFIXES: tuple[str, ...] = tuple(_OWN)
FORMATS = Registry[MapFormat]("format", "sfumato.map_formats", {})


def register_format(
    suffix: str,
    encode: Callable[[HeatmapRelease, WriteOptions], bytes],
    *,
    description: str = "",
    packages: tuple[str, ...] = (),
    degrees_only: bool = False,
    uncertainty: bool = False,
    check: Callable[[Area, WriteOptions], None] | None = None,
) -> MapFormat:
    """Make an output format known by the suffix of its files: to commands and to `write`.

    Args:
        suffix: How the names of its files end, with the dot, e.g. ".kml".
        encode: Makes the bytes of a file of a map and the options of writing.
        description: What it is, in a few words.
        packages: Names of optional packages it needs.
        degrees_only: Whether it takes maps in longitudes and latitudes only.
        uncertainty: Whether it shows how sure the map is; that is then worked out before.
        check: Raises InvalidParameter for an area and options it could not write.

    Returns:
        The format.

    Raises:
        InvalidParameter: The suffix has no dot, or there is a format of this suffix already.

    """
    if not suffix.startswith(".") or len(suffix) < 2 or suffix != suffix.lower():
        raise InvalidParameter(f"a suffix is a dot and small letters, got {suffix!r}")
    if suffix in registered_formats():
        raise InvalidParameter(f"there is a format {suffix} already; choose another suffix")
    made = MapFormat(suffix, encode, description, packages, degrees_only, uncertainty, check)
    FORMATS.add(suffix, made)
    return made


def unregister_format(suffix: str) -> None:
    """Forget a format that `register_format` made known.

    Args:
        suffix: How the names of its files end.

    Raises:
        InvalidParameter: None of this suffix was registered; those of the package stay.

    """
    FORMATS.remove(suffix)


def registered_formats() -> dict[str, MapFormat]:
    """Every output format by suffix: of the package, registered, and of installed plugins.

    Returns:
        The formats, the package's first; a plugin does not replace a suffix that is taken.

    """
    # An entry point has a name of its own: which suffix it is for, the format says.
    others = {}
    for name in FORMATS.names():
        try:
            found = FORMATS.get(name)
        except InvalidParameter as problem:  # of who installed it; the others work
            warnings.warn(str(problem), stacklevel=2)
            continue
        others[found.suffix] = found
    return _OWN | {suffix: one for suffix, one in others.items() if suffix not in _OWN}


def write(
    release: HeatmapRelease,
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
    """Save a map as what the suffix of the path says; the file is there whole, or not at all.

    Args:
        release: The map.
        path: Where to; its suffix is one of `registered_formats`.
        over: The public image under the heat (.png, .html): of the size of a map in pixels, or
            georeferenced.
        level: Resolution of pictures and arrays, and the finest cell of tables; a .json is whole.
        h3_resolution: Resolution of H3 tables, 0 to 15; about the size of a cell if None.
        outline: A public GeoJSON file whose lines and areas are drawn (.png, .html).
        legend: What the numbers of legends are: "density" (people to a square kilometre) or "share".
        every_cell: Whether .geojson has every cell as it was released, instead of the smoothed map in
            as few as do.
        overwrite: Whether a file that exists is replaced.

    Raises:
        InvalidParameter: The file cannot be written so; nothing was written.
        MissingPackage: The format needs a package that is not installed.

    """
    target = Path(path)
    options = WriteOptions(level, over, h3_resolution, outline, legend, every_cell)
    check_outputs(
        [target], release.area, options=options, groups=(release.group_words,), overwrite=overwrite
    )
    if level is not None:
        release.area.grid.at_level(level)
    save(target, format_of(target).encode(release, options), overwrite=overwrite)


def check_outputs(
    paths: Iterable[str | Path],
    area: Area,
    *,
    options: WriteOptions = PLAIN,
    groups: tuple[Group, ...] = ("",),
    overwrite: bool = False,
) -> None:
    """Refuse outputs that could not be written, before anything is read or charged.

    Args:
        paths: The files, each with a known suffix.
        area: The area of the map.
        options: How they would be written.
        groups: The maps, where {by} in the name of an image stands for one of them.
        overwrite: Whether files that exist may be replaced.

    Raises:
        InvalidParameter: An unknown suffix, one that does not go with the kind of area, a missing
            folder, a file that exists already, the same file twice, an image not of the area.
        InvalidInput: The image cannot be read.
        MissingPackage: A format needs a package that is not installed.

    """
    targets = [Path(path) for path in paths]
    _part("legend").check_legend(options.legend)
    for target in targets:
        kind = format_of(target)
        if kind.degrees_only and area.kind != "degrees":
            raise InvalidParameter(
                f"{kind.suffix} is for longitudes and latitudes, the map is in {area.kind}: {target}; "
                "write .csv instead; nothing was written"
            )
        absent = [one for one in kind.packages if importlib.util.find_spec(one) is None]
        if absent:
            ours = kind.suffix in SUFFIXES
            raise MissingPackage(
                _part("geojson").GEO if ours else f"pip install {' '.join(absent)}"
            )
        if kind.check is not None:
            kind.check(area, options)
        check_place(target, overwrite=overwrite)
    if len({target.resolve() for target in targets}) < len(targets):
        raise InvalidParameter(
            "every output needs its own file, got one twice; nothing was written"
        )
    if options.over is not None or options.outline is not None:
        _part("ground").check_ground(
            area, over=options.over, outline=options.outline, groups=groups
        )


def check_place(target: Path, *, overwrite: bool) -> None:
    """Refuse a file that could not be written where it is to be, or is there and kept."""
    if not target.parent.is_dir():
        raise InvalidParameter(
            f"the folder of {target} must exist, it does not; nothing was written"
        )
    if target.is_dir() or (os.path.lexists(target) and not overwrite):
        raise ExistsAlready(f"{target} exists already and is kept; nothing was written")
    if not os.access(target.parent, os.W_OK):
        raise InvalidParameter(f"the folder of {target} cannot be written to; nothing was written")


def keep_apart(outputs: Iterable[Path], others: Iterable[str | Path | None], rows: Any) -> None:
    """Refuse outputs that would replace what is read: the ledger, an image, the rows themselves.

    Args:
        outputs: Files that would be written.
        others: Files that are read; those that are None are passed over.
        rows: The source of the rows: a path or pattern, or a table in memory.

    Raises:
        InvalidParameter: An output is one of them, or lies in the folder of the rows.

    """
    private = {path.resolve() for path in named_files(rows)}
    places = {Path(one).resolve() for one in others if one} | private
    for path in outputs:
        if path.resolve() in places or path.resolve().parent in private:
            raise InvalidParameter(
                f"{path} must not replace the ledger, an image or rows that are read; nothing was charged"
            )


def format_of(path: Path) -> MapFormat:
    """The format whose suffix a file name ends in, the longest there is."""
    known = registered_formats()
    fits = [suffix for suffix in known if path.name.lower().endswith(suffix)]
    if not fits:
        raise InvalidParameter(
            f"the name of an output must end in one of {', '.join(known)}, got {path}; nothing was written"
        )
    return known[max(fits, key=len)]


def save(path: Path, data: bytes, *, overwrite: bool) -> None:
    """Write a map that is paid for; the file is there whole, or not at all."""
    lost = "the map was paid for, write it elsewhere"
    write_file(path, data, overwrite=overwrite, kept="write the map elsewhere", lost=lost)
