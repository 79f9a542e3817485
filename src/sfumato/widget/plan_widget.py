"""A plan in a notebook: move epsilon and the number of users, and see how good a map would be."""

from __future__ import annotations

import math
from html import escape
from importlib.resources import files
from typing import Any

import traitlets

from sfumato.errors import SfumatoError
from sfumato.heatmap import plan_heatmap
from sfumato.widget.shown import Shown

RENDER = (files("sfumato.widget") / "plan.js").read_text(encoding="utf-8")
STYLE = ".sf-plan, .sf-plan label { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem }"


class PlanWidget(Shown):
    """Sliders of epsilon and users, and the forecast of `plan_heatmap`: it reads no data and costs nothing."""

    _esm = RENDER
    _css = STYLE
    epsilon = traitlets.Float().tag(sync=True)
    users = traitlets.Float().tag(sync=True)
    shown = traitlets.Unicode().tag(sync=True)

    def __init__(self, *, epsilon: float = 1.0, users: float = 10_000, **options: Any) -> None:
        """Show a plan that can be moved.

        Args:
            epsilon: Where the slider begins, above 0.
            users: About how many users there are.
            options: Whatever else `plan_heatmap` takes, such as area, levels and method.
        """
        self._options = options
        start = float(epsilon), float(users)
        super().__init__(epsilon=start[0], users=start[1], shown=self._planned(*start))
        self.observe(self._moved, names=["epsilon", "users"])

    def _moved(self, _: Any) -> None:
        self.shown = self._planned(self.epsilon, self.users)

    def _planned(self, epsilon: float, users: float) -> str:
        if not (math.isfinite(epsilon) and math.isfinite(users)):
            return "<p>epsilon and users are finite numbers; nothing was planned</p>"
        try:
            # As it was typed: 0.1 is one tenth, not its nearest double.
            found = plan_heatmap(epsilon=f"{epsilon:g}", users=users, **self._options)
        except SfumatoError as problem:
            return f"<p>{escape(str(problem))}</p>"
        return found._repr_html_()

    def _repr_html_(self) -> str:
        return str(self.shown)
