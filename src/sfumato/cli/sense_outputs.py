"""Files that commands write, for commands that still import them from here."""

from __future__ import annotations

from sfumato.files import check_outputs, keep_paid

__all__ = ["check_outputs", "keep_paid"]
