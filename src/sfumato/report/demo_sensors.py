"""The sensors of the demo: a corridor and a network, made up, read privately, and recovered from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidInput
from sfumato.files import write_file

if TYPE_CHECKING:
    import numpy as np

    from sfumato._types import FloatArray, IntArray
    from sfumato.report import Section
    from sfumato.sensing import RecoveryResult, Site
    from sfumato.sensing.release import Snapshot

LINE = "demo corridor (synthetic)"
GRAPH = "demo network (synthetic)"
DELTA = "1e-6"
NOTHING = "nothing could be told from the noise"
FILES = ("corridor.json", "corridor.png", "network.json", "network.png")


def sensors(out: Path, *, rng: np.random.Generator) -> tuple[list[Section], dict[str, Any]]:
    """Release and recover both; the sections of the report, and what goes into the JSON result."""
    corridor, one = _corridor(out, rng)
    network, two = _network(out, rng)
    return [corridor, network], {"corridor": one, "network": two}


def keep_others(out: Path) -> None:
    """Refuse a folder whose ledgers are not of a demo."""
    from sfumato.privacy import Ledger

    for name, source in (("corridor.ledger", LINE), ("network.ledger", GRAPH)):
        file = out / name
        if file.exists() and Ledger(file).header.source != source:
            raise InvalidInput(
                f"{file} accounts for another source and is kept; choose another `out`"
            )


def _corridor(out: Path, rng: np.random.Generator) -> tuple[Section, dict[str, Any]]:
    from sfumato.privacy import MovedMass
    from sfumato.report import Section
    from sfumato.sensing import emd_of, heat_line
    from sfumato.sensing.planning import synthetic_site

    operator = heat_line(sources=100, sensors=50, diffusion_time=0.01)
    site = synthetic_site(LINE, operator, MovedMass("1/100", "line"))
    truth, snapshot = _read(out / "corridor.ledger", site, sources=2, epsilon="2", rng=rng)
    saved, picture = _recovered(site, snapshot, truth, out / "corridor")
    off = behind = None
    if saved.answer is not None and saved.answer.estimate.masses.any():
        off = emd_of(saved.answer.estimate, truth)
    if saved.certificate.status == "optimal":
        behind = emd_of(saved.certificate, truth)
    said = (
        NOTHING
        if off is None
        else f"the answer's mass is off by {off:.3f} of the corridor on average"
        + ("" if behind is None else f", that of the least heat by {behind:.3f}")
    )
    return (
        Section(
            "Where the heat came from",
            "Two people in a corridor of length 1, 50 sensors, each of which adds its noise before it sends. "
            "In front is what the collector answers, the best guess by distance, with a band of 90 % for "
            f"each person where it is that sure; behind it the least heat that explains the readings: {said}."
            "\n\n"
            f"{snapshot.guarantee}.",
            picture=picture,
            description="Recovered heat sources on a line above the noisy readings",
        ),
        {
            "statement": str(snapshot.guarantee),
            "status": saved.certificate.status,
            "emd": off,
            "least_emd": behind,
        },
    )


def _network(out: Path, rng: np.random.Generator) -> tuple[Section, dict[str, Any]]:
    import numpy as np

    from sfumato.privacy import MovedMass
    from sfumato.report import Section
    from sfumato.sensing import graph_diffusion
    from sfumato.sensing.planning import block_graph, synthetic_site
    from sfumato.sensing.recovery import community_of

    graph, labels = block_graph([100, 100], inside=0.2, across=0.002, rng=rng)
    site = synthetic_site(GRAPH, graph_diffusion(graph, 0.5), MovedMass("1/8", "graph"))
    truth, snapshot = _read(out / "network.ledger", site, sources=1, epsilon="4", rng=rng)
    saved, picture = _recovered(site, snapshot, truth, out / "network", labels)
    right = None
    said = NOTHING
    if saved.answer is not None and saved.answer.estimate.masses.any():
        masses = np.zeros(labels.size)
        for one in saved.sources():
            masses[one["cell"]] += one["mass"]
        found = community_of(masses, labels)
        right = bool(found.label == labels[truth.argmax()])
        said = f"{max(found.shares):.0%} of the answer's mass is in the {'right' if right else 'wrong'} one"
    return (
        Section(
            "Who started the rumour",
            "One of 200 people in two communities told a rumour, which spread along friendships. Everybody "
            f"says how much of it they heard, with noise. Which community it came from: {said}.\n\n"
            f"{snapshot.guarantee}.",
            picture=picture,
            description="A network of two communities with the recovered source",
        ),
        {
            "statement": str(snapshot.guarantee),
            "status": saved.certificate.status,
            "right_community": right,
        },
    )


def _read(
    file: Path, site: Site, *, sources: int, epsilon: str, rng: np.random.Generator
) -> tuple[FloatArray, Snapshot]:
    from sfumato.privacy import ApproxDP, Ledger
    from sfumato.sensing import plan, release_snapshot
    from sfumato.sensing.planning import synthetic_sources
    from sfumato.sensing.release import unit_of

    truth = synthetic_sources(site.operator.space, sources, rng=rng)
    file.unlink(missing_ok=True)
    promise = ApproxDP(epsilon, DELTA)
    book = Ledger.create(
        file,
        promise,
        unit=unit_of(site.sensors),
        source=site.name,
        neighbors=site.neighbors,
        model="local",
    )
    readings = site.operator.readings(truth)
    return truth, release_snapshot(
        readings, site, plan(site, promise), ledger=book, note="the demo's readings"
    )


def _recovered(
    site: Site, snapshot: Snapshot, truth: FloatArray, name: Path, labels: IntArray | None = None
) -> tuple[RecoveryResult, bytes]:
    """The answer that `sense recover` has, and its picture, both saved beside each other."""
    from sfumato.sensing import recover_sources
    from sfumato.sensing.render import draw_recovery

    # Without bounds of the worst error: nobody reads them here, and they take longer than the rest.
    found = recover_sources(snapshot, site=site, certify=False)
    picture = draw_recovery(found, sources=truth, labels=labels)
    found.write(name.with_suffix(".json"), overwrite=True)
    write_file(name.with_suffix(".png"), picture, overwrite=True)
    return found, picture
