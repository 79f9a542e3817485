"""`sfumato emd`: the earth mover's distance between two files, between proven bounds."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import Json, Overwrite, Quiet, say, sentences, show
from sfumato.cli.heatmap.options import four_numbers
from sfumato.errors import InvalidParameter
from sfumato.files import check_writable, write_file

if TYPE_CHECKING:
    from sfumato.transport import SpaceName


class Kind(StrEnum):
    """Names of spaces on the command line."""

    line = "line"
    grid = "grid"
    graph = "graph"


@sentences
def emd(
    a: Annotated[
        Path,
        typer.Argument(
            help="Masses: .npy, .csv, a grey .png, where white is most; or a map saved as .json.",
            show_default=False,
        ),
    ],
    b: Annotated[Path, typer.Argument(help="Masses of the same shape.", show_default=False)],
    space: Annotated[
        Kind | None,
        typer.Option(
            help="Where the mass lives; by itself, a list is a line and a square of 2, 4, 8, ... a grid."
        ),
    ] = None,
    edges: Annotated[
        Path | None,
        typer.Option(help="Edges of the graph, CSV: two nodes, counted from 0, and a length."),
    ] = None,
    bounds: Annotated[
        str,
        typer.Option(
            help="West,south,east,north of the grid, for its units; else its longer side is 1."
        ),
    ] = "",
    normalize: Annotated[bool, typer.Option("--normalize", help="Scale both masses to 1.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw where mass moves on a grid, as PNG.")
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how far mass must move to turn A into B, between a lower and an upper bound that were proved.

    The first row of a picture is its north, the first row of numbers the south. On a line of n
    cells they are 1/n apart, on a grid the metric is l1, on a graph it is shortest paths.

    Two maps saved by `sfumato heatmap` are compared as shares, on at most 64 x 64 cells, in metres;
    maps of images in pixels. What noise alone would give is said by `sfumato heatmap compare`.
    """
    from sfumato.transport import check_space_options, compare_masses, draw_emd, render_emd

    kind: SpaceName | None = None if space is None else space.value
    check_space_options(kind, edges=edges, bounds=bounds, flow=plot is not None)
    maps = _are_maps(a, b, space=kind, edges=edges, bounds=bounds)
    if plot is not None:
        _check_plot(plot, (a, b))
        check_writable(plot, overwrite=overwrite, lost="no distance was computed")

    def watch(step: str) -> None:
        say(step, quiet=quiet or json)

    if maps:
        from sfumato.heatmap import map_distance, map_frame

        found = map_distance(a, b, flow=plot is not None, watch=watch)
    else:
        found = compare_masses(
            a,
            b,
            space=kind,
            edges=edges,
            bounds=four_numbers(bounds) if bounds else None,
            normalize=normalize,
            flow=plot is not None,
            watch=watch,
        )
    if plot is not None:
        frame = map_frame(a) if maps else None
        picture = draw_emd(found, names=(a.name, b.name), shares=normalize or maps, frame=frame)
        write_file(plot, picture, overwrite=overwrite)
        say(f"drawn in {plot}", quiet=quiet or json)
    show(found.to_json(), render_emd(found), json=json)


def _are_maps(
    a: Path, b: Path, *, space: SpaceName | None, edges: Path | None, bounds: str
) -> bool:
    """Whether both are saved maps, which know their own space."""
    saved = [path.suffix.lower() == ".json" for path in (a, b)]
    if any(saved) and not all(saved):
        raise InvalidParameter(
            f"a saved map is compared with another, got {a} and {b}; no distance was computed"
        )
    if all(saved) and (space not in (None, "grid") or edges is not None or bounds):
        raise InvalidParameter(
            "saved maps know where they lie: leave out --space, --edges and --bounds; no distance was "
            "computed"
        )
    return all(saved)


def _check_plot(plot: Path, inputs: tuple[Path, Path]) -> None:
    if plot.suffix.lower() != ".png":
        raise InvalidParameter(f"--plot writes PNG, so its name must end in .png, got {plot}")
    if plot.resolve() in [path.resolve() for path in inputs]:
        raise InvalidParameter(
            f"--plot {plot} would write over what is measured; nothing was written"
        )
