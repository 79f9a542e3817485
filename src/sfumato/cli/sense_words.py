"""Words of sensors, for commands that still import them from here."""

from __future__ import annotations

from sfumato.sensing.render import aligned, listed, many, plain, short, up

__all__ = ["aligned", "listed", "many", "plain", "short", "up"]
