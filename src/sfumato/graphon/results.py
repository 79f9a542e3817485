"""What is said of a network: its blocks, how far it is from another, what it can tell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato._types import FloatArray, IntArray
from sfumato._validate import read_only
from sfumato.errors import InvalidInput
from sfumato.files import decoding, read_json, write_json, write_table
from sfumato.graphon.limits.thresholds import REGIMES, Detectability
from sfumato.graphon.model import BlockGraphon

FORMAT = "sfumato-blocks/1"
REHEARSED = "REHEARSAL on public data, protects nobody"


@dataclass(frozen=True, slots=True, eq=False)
class BlocksResult:
    """The blocks of a network, as `find_blocks` and `release_blocks` return them.

    Attributes:
        nodes: How many nodes the network has.
        graphon: The chance of an edge between each two blocks (`graphon.matrix`, k x k) and the
            share of the nodes in each (`graphon.shares`).
        labels: The block of each node, 0 to k - 1, by the node's name.
        detectable: Whether the network tells more than its density; if not, there is one block.
        hopeless: Whether the noise of a private release hid everything; False for public edges.
        reason: Why these blocks were believed or not, in words.
        density: The share of all pairs of nodes that are joined; of private edges, as released.
        signals: How much each direction of the blocks stands out; above 1 fast methods find it.
        rate: The error that nobody beats at this size, up to a constant; 0 without edges.
        guarantee: What each release of private edges promises, or that it is a rehearsal and promises
            nothing; empty for public edges.
        losses: What each of them cost.
        neighbors: What the promise hides ("one edge added or removed, ..."); empty for public edges.
        entries: Numbers of the ledger's entries that paid; empty for public edges.
        rehearsal: Whether the ledger was one for rehearsals: then nobody is protected.
        made_before: Whether all of it was paid for before, so that nothing was charged now; not kept in
            files.
        written: Files that were written, by the job that released it; not kept in files.
    """

    nodes: int
    graphon: BlockGraphon
    labels: dict[str, int]
    detectable: bool
    hopeless: bool
    reason: str
    density: float
    signals: tuple[float, ...]
    rate: float
    guarantee: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()
    neighbors: str = ""
    entries: tuple[int, ...] = ()
    rehearsal: bool = False
    made_before: bool = False
    written: tuple[str, ...] = ()

    @property
    def k(self) -> int:
        """How many blocks there are."""
        return self.graphon.k

    @property
    def private(self) -> bool:
        """Whether a ledger paid for them; that of a rehearsal has nothing to pay with."""
        return bool(self.entries) and not self.rehearsal

    @property
    def sizes(self) -> IntArray:
        """How many nodes each block has."""
        blocks = np.fromiter(self.labels.values(), dtype=np.int64)
        return np.bincount(blocks, minlength=self.k)

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON can hold it: what `sfumato graph blocks --json` prints."""
        return {
            "nodes": self.nodes,
            "k": self.k,
            "detectable": self.detectable,
            "hopeless": self.hopeless,
            "reason": self.reason,
            "shares": self.graphon.shares.tolist(),
            "matrix": self.graphon.matrix.tolist(),
            "density": self.density,
            "signals": list(self.signals),
            "rate": self.rate,
            "labels": self.labels,
            "guarantee": list(self.guarantee),
            "losses": list(self.losses),
            "neighbors": self.neighbors,
            "entries": list(self.entries),
            "rehearsal": self.rehearsal,
            **({"made_before": True} if self.made_before else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> BlocksResult:
        """The result that `to_json` or `write` saved; parts that older files lack have defaults.

        Raises:
            InvalidInput: The data has no matrix, shares, nodes or reason, or holds no blocks.

        """
        with decoding("blocks of a network", undone="nothing was computed"):
            if data.get("format", FORMAT) != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            if type(rehearsal := data.get("rehearsal", False)) is not bool:
                raise ValueError("its rehearsal is neither true nor false")
            graphon = BlockGraphon(data["matrix"], data["shares"])
            return cls(
                nodes=int(data["nodes"]),
                graphon=graphon,
                labels={str(name): int(block) for name, block in data.get("labels", {}).items()},
                detectable=bool(data.get("detectable", graphon.k > 1)),
                hopeless=bool(data.get("hopeless", False)),
                reason=str(data["reason"]),
                density=float(data.get("density", graphon.density)),
                signals=tuple(map(float, data.get("signals", ()))),
                rate=float(data.get("rate", 0.0)),
                guarantee=tuple(map(str, data.get("guarantee", ()))),
                losses=tuple(map(str, data.get("losses", ()))),
                neighbors=str(data.get("neighbors", "")),
                entries=tuple(map(int, data.get("entries", ()))),
                rehearsal=rehearsal,
                made_before=bool(data.get("made_before", False)),
            )

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Save as JSON, for `read_blocks`, `compare_networks` and `network_limits`."""
        told = replace(self, made_before=False).to_json()
        write_json(path, {"format": FORMAT, **told}, overwrite=overwrite)

    def write_labels(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the block of each node as CSV, columns node and block."""
        write_table(path, ["node", "block"], list(self.labels.items()), overwrite=overwrite)

    def picture(self, *, caption: str = "") -> bytes:
        """A PNG of the blocks: as wide as they are large, dark where joined."""
        from sfumato.figures import blocks_picture

        names = [str(block) for block in range(self.k)]
        return blocks_picture(
            self.graphon.matrix,
            self.graphon.shares,
            names=names,
            caption=caption or self.reason,
            rehearsal=self.rehearsal,
        )

    def _repr_html_(self) -> str:
        from sfumato.graphon.render import blocks_html

        return blocks_html(self)


def read_blocks(path: str | Path) -> BlocksResult:
    """Read blocks that `BlocksResult.write` or `sfumato graph blocks --out` saved.

    Args:
        path: The JSON file.

    Returns:
        The blocks, of any version since the first.

    Raises:
        InvalidInput: The file cannot be read or holds no blocks.

    """
    data = read_json(path, "blocks of a network", undone="nothing was computed")
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InvalidInput(f"{path} is not blocks of a network; nothing was computed")
    try:
        return BlocksResult.from_json(data)
    except InvalidInput as problem:
        raise InvalidInput(f"{path} is {problem}") from None


@dataclass(frozen=True, slots=True, eq=False)
class NetworkComparison:
    """How far the blocks of two networks are apart: delta_2 lies in [lower, upper].

    Attributes:
        lower: A proved lower end.
        upper: The upper end, attained by `coupling`.
        exact: Whether the ends are the same up to rounding.
        proved_by: The name of the argument behind the lower end.
        coupling: coupling[i, j] is the share of nodes in block i of the first network that is
            matched with block j of the second.
        blocks: How many blocks each network has.
        densities: The density of each network's blocks.
    """

    lower: float
    upper: float
    exact: bool
    proved_by: str
    coupling: FloatArray
    blocks: tuple[int, int]
    densities: tuple[float, float]

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON can hold it: what `sfumato graph distance --json` prints."""
        return {
            "lower": self.lower,
            "upper": self.upper,
            "exact": self.exact,
            "proved_by": self.proved_by,
            "coupling": self.coupling.tolist(),
            "blocks": list(self.blocks),
            "densities": list(self.densities),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NetworkComparison:
        """The comparison that `to_json` made."""
        with decoding("a comparison of networks"):
            first, second = data["blocks"]
            one, other = data["densities"]
            return cls(
                float(data["lower"]),
                float(data["upper"]),
                bool(data["exact"]),
                str(data["proved_by"]),
                read_only(np.array(data["coupling"], dtype=np.float64)),
                (int(first), int(second)),
                (float(one), float(other)),
            )

    def _repr_html_(self) -> str:
        from sfumato.graphon.render import lines_html, render_comparison

        return lines_html(render_comparison(self))


@dataclass(frozen=True, slots=True)
class MeasuredBlocks:
    """What was found in the network that limits were asked of.

    Attributes:
        nodes: How many nodes it has.
        k: How many blocks were found.
        reason: Why they were believed or not.
        signals: How much each direction of the blocks stands out.
    """

    nodes: int
    k: int
    reason: str
    signals: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class NetworkLimits:
    """What a network of n nodes can tell about k even blocks.

    Attributes:
        n: Nodes.
        k: Blocks of even size.
        within: The chance of an edge within a block.
        between: The chance of an edge between two.
        detectability: Whether the blocks can be found, and the numbers that were compared.
        rate: The error that nobody beats, up to a constant (delta_2).
        attained: The error that least squares attains, up to a constant.
        floor: An expected error below which no estimator is on every such network.
        measured: What was found in the network, if limits were asked of one.
    """

    n: int
    k: int
    within: float
    between: float
    detectability: Detectability
    rate: float
    attained: float
    floor: float
    measured: MeasuredBlocks | None = None

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON can hold it: what `sfumato graph limits --json` prints."""
        numbers = asdict(self.detectability)
        if math.isinf(self.detectability.search_degree):
            numbers["search_degree"] = None
        case = {name: getattr(self, name) for name in ("n", "k", "within", "between")}
        rates = {name: getattr(self, name) for name in ("rate", "attained", "floor")}
        measured = None
        if self.measured is not None:
            measured = {**asdict(self.measured), "signals": list(self.measured.signals)}
        return {**case, **numbers, **rates, "measured": measured}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NetworkLimits:
        """The limits that `to_json` made."""
        with decoding("limits of a network"):
            if data["regime"] not in REGIMES:
                raise ValueError(f"there is no regime {data['regime']!r}")
            degree, found = data["search_degree"], data.get("measured")
            return cls(
                n=int(data["n"]),
                k=int(data["k"]),
                within=float(data["within"]),
                between=float(data["between"]),
                detectability=Detectability(
                    regime=data["regime"],
                    signal=float(data["signal"]),
                    contiguous=float(data["contiguous"]),
                    degree=float(data["degree"]),
                    search_degree=math.inf if degree is None else float(degree),
                    separation=float(data["separation"]),
                    trivial=bool(data["trivial"]),
                ),
                rate=float(data["rate"]),
                attained=float(data["attained"]),
                floor=float(data["floor"]),
                measured=None
                if found is None
                else MeasuredBlocks(
                    int(found["nodes"]),
                    int(found["k"]),
                    str(found["reason"]),
                    tuple(map(float, found["signals"])),
                ),
            )

    def picture(self) -> bytes:
        """A PNG of the phase diagram: every density and number of blocks, and where this case is."""
        from sfumato.graphon.render import phase_diagram

        return phase_diagram(self)

    def _repr_html_(self) -> str:
        from sfumato.graphon.render import lines_html, render_limits

        return lines_html(render_limits(self))


@dataclass(frozen=True, slots=True)
class NetworkFiles:
    """The files of a simulated network.

    Attributes:
        edges: CSV with columns u and v.
        blocks: CSV with columns node and block: the truth.
    """

    edges: Path
    blocks: Path

    def to_json(self) -> dict[str, str]:
        """The paths: what `sfumato graph simulate --json` prints."""
        return {"edges": str(self.edges), "blocks": str(self.blocks)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NetworkFiles:
        """The files that `to_json` named."""
        with decoding("files of a network"):
            return cls(Path(data["edges"]), Path(data["blocks"]))
