"""What pipelines are given, in the form they need: blocks that are known, a case to judge."""

from __future__ import annotations

import json
import os
from pathlib import Path

from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.graphon.blocks import Blocks
from sfumato.graphon.limits.thresholds import even_like
from sfumato.graphon.model import BlockGraphon
from sfumato.graphon.results import FORMAT, BlocksResult, MeasuredBlocks, read_blocks

BETWEEN = 0.2  # the chance between blocks over that within, where nobody knows it


def _saved(graph: object) -> BlocksResult | None:
    """Blocks in a JSON file, or None if the file or the object is something else."""
    if not isinstance(graph, str | os.PathLike) or Path(graph).suffix != ".json":
        return None
    path = Path(graph)
    if not path.exists():
        raise InvalidInput(f"cannot read {path}: there is no such file; nothing was compared")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return read_blocks(path) if isinstance(data, dict) and data.get("format") == FORMAT else None


def known_blocks(graph: object) -> BlocksResult | BlockGraphon | None:
    """Blocks that need not be found any more."""
    if isinstance(graph, BlocksResult | BlockGraphon):
        return graph
    return graph.graphon_ if isinstance(graph, Blocks) else _saved(graph)


def limits_case(
    found: MeasuredBlocks | None,
    graphon: BlockGraphon | None,
    n: int | None,
    k: int | None,
    rho: float | None,
    between: float | None,
) -> tuple[int, int, float, float]:
    """Nodes, blocks and both chances: what was given, else what was measured."""
    if found is None and (n is None or k is None or rho is None):
        raise InvalidParameter("give `n`, `k` and `rho`, or an edge list; nothing was computed")
    if found is not None and graphon is not None:
        n = n or found.nodes
        if rho is None and found.k == 1:
            raise InvalidParameter(
                f"no blocks are found in it ({found.nodes:,} nodes: {found.reason}): to ask about some that "
                "it might have, give `k` and `rho`; nothing was computed"
            )
        if rho is None and k is not None and k != found.k:
            raise InvalidParameter(
                f"it has {found.k} blocks by itself: to ask about {k}, give `rho` as well, the chance within "
                "them; nothing was computed"
            )
        k = k or found.k
        if rho is None:
            if between is not None:
                raise InvalidParameter(
                    "`between` is a share of `rho`: give both; nothing was computed"
                )
            return n, k, *even_like(graphon)
    if n is None or k is None or k < 2 or rho is None:
        raise InvalidParameter("give `k`, how many blocks to ask about; nothing was computed")
    share = BETWEEN if between is None else between
    if not 0 < rho <= 1:
        raise InvalidParameter(
            f"`rho` must be above 0 and at most 1, got {rho}; nothing was computed"
        )
    if not 0 <= share <= 1:
        raise InvalidParameter(
            f"`between` must be at least 0 and below 1, got {share}; nothing was computed"
        )
    if share == 1:
        raise InvalidParameter("`between` 1 leaves nothing to tell blocks by; nothing was computed")
    return n, k, rho, share * rho
