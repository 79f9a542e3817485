"""What all widgets share: the package they need, and a picture where no widget can run."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sfumato.errors import MissingPackage

if TYPE_CHECKING:
    AnyWidget = Any
else:
    try:
        AnyWidget = importlib.import_module("anywidget").AnyWidget
    except ImportError:
        raise MissingPackage("pip install 'sfumato[notebook]'") from None


class Shown(AnyWidget):  # type: ignore[misc]
    """A widget that is also a still picture: files of notebooks, nbconvert and mail readers show that."""

    def _repr_html_(self) -> str:
        raise NotImplementedError

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The live widget, and the picture for whoever cannot run it."""
        bundle = super()._repr_mimebundle_(**options)
        if bundle is None:  # nobody here runs widgets
            return {"text/html": self._repr_html_()}
        data, about = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**data, "text/html": self._repr_html_()}, about
