"""Recovered sources in a notebook: the picture with bands and certificate, and a slider over rounds."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import traitlets

from sfumato.errors import InvalidParameter
from sfumato.widget.shown import Shown

RENDER = (files("sfumato.widget") / "recovery.js").read_text(encoding="utf-8")


class RecoveryWidget(Shown):
    """A recovery, or several of one site in order, as they print in notebooks."""

    _esm = RENDER
    rounds: Any = traitlets.List().tag(sync=True)

    def __init__(self, result: Any) -> None:
        """Show what was recovered.

        Args:
            result: A result of `sfumato.sensing` that notebooks show: a recovery, a track; or several.

        Raises:
            InvalidParameter: It is nothing that notebooks show.
        """
        several = tuple(result) if isinstance(result, Sequence) else (result,)
        if not several or not all(hasattr(one, "_repr_html_") for one in several):
            raise InvalidParameter(
                "a widget shows a recovery, a track, or several of them, got "
                f"{type(result).__name__}; nothing is shown"
            )
        self._rounds = [str(one._repr_html_()) for one in several]
        super().__init__(rounds=self._rounds)

    def _repr_html_(self) -> str:
        return self._rounds[-1]
