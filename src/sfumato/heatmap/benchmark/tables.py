"""Tables of words, heads first, for a terminal and for a page of the docs."""

from __future__ import annotations

from collections.abc import Sequence


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table for a page of the docs.

    Args:
        rows: Cells of words, heads first.

    Returns:
        A table in Markdown.
    """
    head, *rest = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *rest])


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A table for a terminal.

    Args:
        rows: Cells of words, heads first, as many in each row.

    Returns:
        Lines of columns that are aligned.

    >>> print(aligned([["method", "best"], ["a", "12 of 24"]]))
    method  best
    a       12 of 24
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
