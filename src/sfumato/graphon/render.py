"""Words, tables, HTML and pictures of what is said of a network, made of a result's fields."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from sfumato.graphon.limits.thresholds import REGIMES, phases
from sfumato.graphon.results import REHEARSED, BlocksResult, NetworkComparison, NetworkLimits
from sfumato.graphon.sources import NamedNetwork

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

SHOWN = 12
"""Blocks whose matrix is printed, and matches; more are in the JSON."""


def render_network(given: NamedNetwork) -> str:
    """What was read of a file, and what of it was left out."""
    left_out = [
        f"{count:,} {name}{'s' * (count > 1)} left out"
        for count, name in ((given.loops, "loop"), (given.repeats, "repeated edge"))
        if count
    ]
    network = given.network
    return ", ".join([f"{network.size:,} nodes, {len(network.edges):,} edges", *left_out])


def render_blocks(result: BlocksResult) -> Group:
    """Blocks as sentences and the table of chances, for rich.

    Args:
        result: The blocks.

    Returns:
        What a rich console prints; the matrix is left out where there are more than 12 blocks.

    """
    from rich.console import Group
    from rich.text import Text

    texts = [Text(line) for line in blocks_lines(result)]
    return Group(*texts) if result.k > SHOWN else Group(*texts, _matrix(result))


def blocks_lines(result: BlocksResult) -> list[str]:
    """Blocks in sentences."""
    counted = f"{result.k} block{'s' * (result.k > 1)} of {result.nodes:,} nodes"
    lines = [f"{counted}: {result.reason}"]
    if result.signals:
        lines.append(_signals(result.signals))
    lines.append(f"density {result.density:.3g}")
    if result.rate > 0:
        lines[-1] += f"; nobody's error is below {result.rate:.3g}, up to a constant"
    if result.entries:
        paid = f"paid {' and '.join(result.losses)}: {result.neighbors}"
        lines.append(f"{REHEARSED}: {paid}" if result.rehearsal else paid)
    return lines


def render_comparison(result: NetworkComparison) -> list[str]:
    """How far two networks are apart, in sentences.

    Args:
        result: The comparison.

    Returns:
        The distance, then which blocks are matched, the largest shares first, at most 12 of them.

    """
    (one, other), (first, second) = result.blocks, result.densities
    text = (
        f"distance {result.upper:.4g}, exactly"
        if result.exact
        else f"distance between {result.lower:.4g} and {result.upper:.4g}"
    )
    text += f" (delta_2 of {one} and {other} blocks as found; densities "
    text += f"{first:.4g} and {second:.4g})"
    pairs = [
        (float(share), i, j)
        for i, row in enumerate(result.coupling)
        for j, share in enumerate(row)
        if share > 5e-3
    ]
    lines = [
        f"block {i} with block {j}: {share:.1%} of the nodes" for share, i, j in sorted(pairs)[::-1]
    ]
    shown = lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"and {len(lines) - SHOWN} more"]
    return [text, *shown]


def render_limits(result: NetworkLimits) -> list[str]:
    """What a network can tell, in sentences.

    Args:
        result: The limits.

    Returns:
        What was found in the network if there is one, whether blocks can be found, and the errors
        that nobody beats.

    """
    lines = []
    if (found := result.measured) is not None:
        lines = [f"{found.nodes:,} nodes: {found.reason}", _signals(found.signals)]
        if found.k > 2:
            lines.append("the faintest of these directions, as even blocks:")
    return [
        *lines,
        f"{result.n:,} nodes in {result.k} even blocks, chances {result.within:.3g} within and "
        f"{result.between:.3g} between:",
        result.detectability.sentence,
        f"no estimator errs by less than {result.floor:.3g} on every network like this (delta_2, expected)",
        f"up to constants: nobody beats {result.rate:.3g}, least squares attains {result.attained:.3g}, "
        f"answering 0 errs by at most {max(result.within, result.between):.3g}",
    ]


def phase_diagram(result: NetworkLimits) -> bytes:
    """A PNG of what so many nodes can tell at every density and number of blocks."""
    from sfumato.figures import phase_picture

    low, rho = sorted((result.within, result.between))
    contrast = (1 - low / rho) * (1 if result.within == rho else -1)
    max_blocks = max(2, min(result.n // 2, max(100, 2 * result.k)))
    blocks = np.unique(np.geomspace(2, max_blocks, 60).round().astype(np.int64))
    densities = np.geomspace(min(rho, 1 / result.n) / 2, 1, 160)
    where = "between blocks" if contrast > 0 else "within blocks"
    return phase_picture(
        densities,
        blocks,
        phases(result.n, contrast=contrast, densities=densities, blocks=blocks),
        names=REGIMES,
        caption=f"{result.n:,} nodes; the chance {where} is {low / rho:.3g} of the larger. "
        f"Yours: {result.detectability.sentence}.",
        trivial=(blocks / result.n) ** 2,
        point=(rho, result.k),
    )


def blocks_html(result: BlocksResult) -> str:
    """Sentences and the table of chances, for a notebook."""
    if result.k > SHOWN:
        return lines_html(blocks_lines(result))
    header = "".join(f"<th>{name}</th>" for name in ("block", "nodes", *range(result.k)))
    rows = "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in _rows(result)
    )
    table = f"<table><caption>chance of an edge</caption><tr>{header}</tr>{rows}</table>"
    return lines_html(blocks_lines(result)) + table


def lines_html(lines: Sequence[str]) -> str:
    """Sentences, for a notebook."""
    return f"<p>{'<br>'.join(escape(line) for line in lines)}</p>"


def _signals(strong: Sequence[float]) -> str:
    """How clear the directions of some blocks are, the clearest first."""
    if len(strong) < 2:
        return "".join(
            f"signal {one:.3g}; above 1 fast methods find blocks in large networks"
            for one in strong
        )
    clear = sum(one > 1 for one in strong)
    return (
        f"signals {strong[0]:.3g} down to {strong[-1]:.3g}: {clear} of {len(strong)} directions above 1, "
        "which fast methods need in large networks"
    )


def _matrix(result: BlocksResult) -> Table:
    from rich.table import Table

    table = Table(title="chance of an edge", title_justify="left", box=None)
    for name in ("block", "nodes", *range(result.k)):
        table.add_column(str(name), justify="right")
    for row in _rows(result):
        table.add_row(*row)
    return table


def _rows(result: BlocksResult) -> list[list[str]]:
    return [
        [str(block), f"{size:,}", *(f"{chance:.3g}" for chance in row)]
        for block, (size, row) in enumerate(
            zip(result.sizes.tolist(), result.graphon.matrix.tolist(), strict=True)
        )
    ]
