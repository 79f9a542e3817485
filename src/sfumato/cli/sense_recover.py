"""`sfumato sense recover|check`: where sources are, from noisy readings, with a proof that can be checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.console import FAILED, Json, Quiet, fail, say, sentences, show, working
from sfumato.cli.sense_draw import draw
from sfumato.cli.sense_files import read_sigma, read_snapshots, read_sources
from sfumato.cli.sense_outputs import check_outputs
from sfumato.errors import InvalidInput, InvalidParameter, LedgerMismatch

if TYPE_CHECKING:
    from sfumato.sensing import Readings, Recovery, SavedRecovery, Site, Snapshot
    from sfumato.spaces.space import FloatArray

PAPERS = "papers"
BADLY = 1.5  # noise of 12 readings is as large as that in one of 1,000 draws; of more readings, in fewer

_REMARKS = {
    "optimal": "",
    "zero": "the readings are within the radius of no sources at all: nothing can be told from them",
    "infeasible": "no sources in the box explain the readings within the radius (this is proved): the site "
    "does not fit, or --radius or --upper is too small",
}


@sentences
def recover(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Noisy readings: .json as `sense release` wrote it, of one or several devices; "
            "or one .csv with --site and --sigma.",
            show_default=False,
        ),
    ],
    out: Annotated[
        list[Path] | None,
        typer.Option(help="File(s): .json with the proof, .csv with the sources.", show_default=False),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw it: a .png file.", show_default=False)] = None,
    site: Annotated[Path | None, typer.Option(help="The site, for .csv readings.")] = None,
    sigma: Annotated[float | None, typer.Option(help="Deviation of the noise, for .csv readings.")] = None,
    time: Annotated[str, typer.Option(help="Which of several times.", show_default=False)] = "",
    average: Annotated[
        bool, typer.Option("--average", help="Average all times: of sources that stay, with less noise.")
    ] = False,
    radius: Annotated[
        str,
        typer.Option(
            help="How far the answer may be from the readings: a number, or 'papers' for sigma sqrt(m); "
            "otherwise what noise of this sigma exceeds in 1 of 10 draws.",
            show_default=False,
        ),
    ] = "",
    upper: Annotated[
        float,
        typer.Option(
            help="Largest mass of one source; the default radius takes for noise what it could not tell."
        ),
    ] = 1.0,
    sources: Annotated[
        Path | None, typer.Option(help="True sources of a simulation: table of cell, mass.")
    ] = None,
    layout: Annotated[
        Path | None, typer.Option(help="Where to draw the nodes of a graph: table of node, x, y.")
    ] = None,
    communities: Annotated[
        int, typer.Option(help="On a graph: say which of so many communities the source is in.", min=1)
    ] = 2,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files of --out and --plot.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Recover roughly where sources are: the least mass that explains the readings within their noise.

    Costs nothing: readings with noise may be worked on as one likes. The answer carries a proof, which
    `sense check` checks again.
    """
    from sfumato.sensing import emd_of
    from sfumato.sensing import recover as solve
    from sfumato.sensing.site import part_of_site

    inputs = [*files, site, sources, layout]
    check_outputs(out or [], {".json", ".csv"}, reads=inputs, overwrite=overwrite)
    check_outputs([plot] if plot else [], {".png"}, reads=inputs, overwrite=overwrite)
    read = _noisy(files, site=site, sigma=sigma, time=time, average=average)
    operator = part_of_site(read.site, read.names)
    with working(f"recovering from {len(read.names)} readings", quiet=quiet or json):
        found = solve(operator, read.values, upper=upper, **_limit(radius, read.sigma))
    saved = read.saved(found)
    truth = None if sources is None else read_sources(sources, read.site)
    result = {**saved.to_json(), "site": read.site.name}
    del result["dual"], result["readings"]
    result["expected_noise"] = None if read.sigma is None else read.sigma * len(read.names) ** 0.5
    if truth is not None and found.status == "optimal":
        result["emd"] = emd_of(found, truth)
    _communities(saved, communities, result)
    for path in out or []:
        saved.write(path, overwrite=overwrite)
    if plot is not None:
        plot.write_bytes(draw(saved, truth, layout=layout, labels=result.get("labels")))
    result.pop("labels", None)
    say(_REMARKS[found.status], quiet=quiet or json or found.status == "optimal")
    expected = result["expected_noise"]
    if expected and found.radius > BADLY * expected:
        say(
            f"the readings fit this site badly: they are allowed {found.radius:.3g} from the answer, their "
            f"noise is about {expected:.3g}; are the diffusion time and the unit of the readings right?",
            quiet=quiet or json,
        )
    show(result, _told(saved, result), json=json)


@sentences
def check(
    file: Annotated[Path, typer.Argument(help="A recovery (.json).", show_default=False)],
    ledger: Annotated[
        list[Path] | None, typer.Option(help="Also check that --readings were paid for, in these ledgers.")
    ] = None,
    readings: Annotated[
        list[Path] | None,
        typer.Option(help="The noisy readings it was made from (.json), of one or several devices."),
    ] = None,
    json: Json = False,
) -> None:
    """Check a recovery again, independently: its proof, and who paid for its readings; exit 1 if not."""
    from sfumato.privacy import Ledger
    from sfumato.sensing import check as verify
    from sfumato.sensing import read_readings, read_recovery

    if bool(ledger) != bool(readings):
        raise InvalidParameter("--ledger and --readings go together; nothing was checked")
    saved = read_recovery(file)
    found = verify(saved.recovery)
    result: dict[str, Any] = {
        "holds": found.holds,
        "status": saved.recovery.status,
        "objective": found.objective,
        "bound": found.bound,
        "gap": found.gap,
        "residual": found.residual,
        "radius": saved.recovery.radius,
        "why": found.why,
    }
    result = {
        name: None if value != value or value in (float("inf"), -float("inf")) else value
        for name, value in result.items()
    }
    if not found.holds:
        fail(f"{file}: {found.why}", code=FAILED, json=json)
    text = f"{file}: {saved.recovery.status}, {found.why}"
    if ledger and readings:
        books = {book.header.id: book for book in map(Ledger, ledger)}
        read = [read_readings(path) for path in readings]
        if not _made_from(saved, read):
            fail(f"{file} was not made from these readings", code=FAILED, json=json)
        for path, one in zip(readings, read, strict=True):
            try:
                for snapshot in one.snapshots:
                    # One that is of none of them is told so by the first.
                    books.get(snapshot.release.ledger, next(iter(books.values()))).check(snapshot.release)
            except LedgerMismatch as problem:
                fail(f"{path}: {problem}", code=FAILED, json=json)
        result["paid"] = True
        paid = " and ".join(map(str, ledger))
        text += f"; releases of these sensors were paid for in {paid} (no receipt vouches for their values)"
    show(result, text, json=json)


@dataclass(frozen=True)
class _Noisy:
    """Noisy readings, from wherever they came."""

    site: Site
    names: tuple[str, ...]
    values: FloatArray
    sigma: float | None
    statement: str
    rehearsal: bool
    time: str
    averaged: bool = False

    def saved(self, found: Recovery) -> SavedRecovery:
        from sfumato.sensing import SavedRecovery

        return SavedRecovery(
            self.site,
            self.names,
            found,
            self.sigma,
            self.statement,
            self.rehearsal,
            self.time,
            self.averaged,
        )


def _noisy(files: list[Path], *, site: Path | None, sigma: float | None, time: str, average: bool) -> _Noisy:
    import numpy as np

    from sfumato.sensing import read_readings, read_site

    if any(path.suffix != ".json" for path in files) or site is not None:
        if len(files) != 1 or site is None:
            raise InvalidParameter("readings in a .csv come as one file, with --site; nothing was recovered")
        ground = read_site(site)
        groups = read_snapshots(files[0], ground)
        if time:
            groups = [group for group in groups if group[0] == time]
        if not groups:
            raise InvalidParameter(f"there is no reading at {time!r} in {files[0]}; nothing was recovered")
        if len(groups) > 1:
            raise InvalidParameter(f"{files[0]} has {len(groups)} times; choose one with --time")
        ((when, values),) = groups
        names = tuple(name for name in ground.sensors.names if name in values)
        return _Noisy(
            ground,
            names,
            np.array([values[name] for name in names]),
            sigma=read_sigma(files[0]) if sigma is None else sigma,
            statement="nothing was promised by sfumato for these readings",
            rehearsal=False,
            time=when,
        )
    if sigma is not None:
        raise InvalidParameter("--sigma goes with .csv readings; a .json says its own; nothing was recovered")
    read = [read_readings(path) for path in files]
    return _joined(read, time=time, average=average)


def _joined(read: list[Readings], *, time: str, average: bool) -> _Noisy:
    """Snapshots of one moment by several devices side by side; or the average of all moments."""
    import numpy as np

    ground = read[0].site
    if any(other.site.to_json() != ground.to_json() for other in read[1:]):
        raise InvalidInput("the files are of different sites; nothing was recovered")
    moments: dict[str, list[Snapshot]] = {}
    paid: set[tuple[str, str]] = set()
    for snapshot in (snapshot for other in read for snapshot in other.snapshots):
        moments.setdefault(snapshot.time, []).append(snapshot)
        receipt = snapshot.release.ledger, snapshot.release.entry.hash
        if receipt in paid:
            raise InvalidInput("a reading is there twice, with the same receipt; nothing was recovered")
        paid.add(receipt)
    if time:
        if time not in moments:
            there = ", ".join(when or "one without a time" for when in list(moments)[:5])
            more = ", ..." if len(moments) > 5 else ""
            raise InvalidParameter(
                f"there is no reading at {time!r}, only {there}{more}; nothing was recovered"
            )
        moments = {time: moments[time]}
    if len(moments) > 1 and not average:
        raise InvalidParameter(
            f"there are {len(moments)} times, {min(moments)} to {max(moments)}: choose one with --time, or "
            "--average them; nothing was recovered"
        )
    values = []
    noises = []
    names: tuple[str, ...] = ()
    for snapshots in moments.values():
        at: dict[str, tuple[float, float]] = {}
        for snapshot in snapshots:
            for name, value in zip(snapshot.names, snapshot.numbers().tolist(), strict=True):
                if name in at:
                    raise InvalidInput(f"sensor {name!r} was read twice at one time; nothing was recovered")
                at[name] = value, snapshot.sigma
        here = tuple(name for name in ground.sensors.names if name in at)
        if names and here != names:
            raise InvalidInput("other sensors were read at other times; choose one with --time")
        names = here
        values.append([at[name][0] for name in names])
        noises.append(max(at[name][1] for name in names))
    promises = dict.fromkeys(str(s.guarantee) for group in moments.values() for s in group)
    return _Noisy(
        ground,
        names,
        np.mean(values, axis=0),
        sigma=float(np.sqrt(np.sum(np.square(noises))) / len(noises)),
        statement=(f"{len(moments)} readings, each " if len(moments) > 1 else "") + "; or ".join(promises),
        rehearsal=any(s.release.rehearsal for group in moments.values() for s in group),
        time="" if len(moments) > 1 else next(iter(moments)),
        averaged=len(moments) > 1,
    )


def _made_from(saved: SavedRecovery, read: list[Readings]) -> bool:
    """Whether these readings, joined as the recovery says, are those in it."""
    import numpy as np

    try:
        again = _joined(read, time=saved.time, average=saved.averaged)
    except (InvalidInput, InvalidParameter):  # no such time, or another number of them
        return False
    same_site = again.site.to_json() == saved.site.to_json()
    return same_site and again.names == saved.names and np.array_equal(again.values, saved.recovery.readings)


def _communities(saved: SavedRecovery, count: int, result: dict[str, Any]) -> None:
    from sfumato.spaces import Graph

    space = saved.recovery.operator.space
    if not isinstance(space, Graph) or saved.recovery.status != "optimal" or count < 2:
        return
    from sfumato.sensing import communities, community_of

    labels = communities(space, count=count)
    answer = community_of(saved.recovery.estimate, labels)
    result["labels"] = labels
    result["community"] = {
        "label": int(answer.label),
        "nodes": int((labels == answer.label).sum()),
        "members": [saved.site.cell(int(node)) for node in (labels == answer.label).nonzero()[0]],
        "shares": [float(share) for share in answer.shares],
    }


def _limit(radius: str, sigma: float | None) -> dict[str, Any]:
    """How far the answer may be from the readings: as asked, or as the noise says."""
    if radius and radius != PAPERS:
        try:
            return {"radius": float(radius)}
        except ValueError:
            raise InvalidParameter(f"--radius is a number or 'papers', got {radius!r}") from None
    if sigma is None:
        raise InvalidParameter("readings in a .csv need --sigma, or a --radius; nothing was recovered")
    return {"sigma": sigma, "radius": radius or None}


def _told(saved: SavedRecovery, result: dict[str, Any]) -> Any:
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table

    found = saved.recovery
    head = f"{escape(saved.site.name)}: {found.status}"
    if found.status == "optimal":
        cells = f"{len(found.support)} cell{'s' * (len(found.support) > 1)} with a source"
        head += f", {cells}, total mass {found.objective:.4g}, gap {found.gap:.1e}"
    head += f"; radius {found.radius:.4g}"
    if result["expected_noise"]:
        head += f", noise about {result['expected_noise']:.4g}"
    lines: list[Any] = [head]
    rows = sorted(saved.sources(), key=lambda row: -row["mass"])[:20]
    if rows:
        places = [key for key in rows[0] if key not in {"cell", "mass", "share"}]
        table = Table("cell", *places, "mass", "share")
        for row in rows:
            where = [escape(row[key]) if isinstance(row[key], str) else f"{row[key]:.4g}" for key in places]
            table.add_row(str(row["cell"]), *where, f"{row['mass']:.4g}", f"{row['share']:.0%}")
        lines.append(table)
        if len(found.support) > len(rows):
            lines.append(f"and {len(found.support) - len(rows)} more")
    if "community" in result:
        best = result["community"]
        lines.append(
            f"community {best['label']} of {best['nodes']} nodes, {max(best['shares']):.0%} of the mass: "
            + escape(", ".join(best["members"][:12]) + (", ..." if best["nodes"] > 12 else ""))
        )
    if "emd" in result:
        lines.append(f"earth mover's distance to the true sources, both scaled to 1: {result['emd']:.4g}")
    return Group(*lines)
