"""A distance in words."""

from __future__ import annotations

from sfumato.transport.results import EmdResult


def render_emd(result: EmdResult) -> str:
    """One line for a distance and its bounds.

    Args:
        result: What `compare_masses` found.

    Returns:
        The sentence that `sfumato emd` prints.

    """
    unit = f" {result.unit}" if result.unit else ""
    return f"{result.value}{unit} (at least {result.lower}, at most {result.upper})"
