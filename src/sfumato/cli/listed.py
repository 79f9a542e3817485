"""Names that others may add to, in the help of a command: looked up when the help is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _methods() -> Iterable[str]:
    from sfumato.heatmap.methods import registered_methods

    return registered_methods()


def _suffixes() -> Iterable[str]:
    from sfumato.heatmap.export import registered_formats

    return registered_formats()


def _engines() -> Iterable[str]:
    from sfumato.records.engines import engine_names

    return engine_names()


def _estimators() -> Iterable[str]:
    from sfumato.sensing.recovery.estimators import estimator_names

    return estimator_names()


def _operators() -> Iterable[str]:
    from sfumato.sensing.model.operators import operator_kinds

    return operator_kinds()


LISTS: dict[str, tuple[str, Callable[[], Iterable[str]]]] = {
    "{methods}": ("|", _methods),
    "{suffixes}": (" ", _suffixes),
    "{engines}": ("|", _engines),
    "{estimators}": ("|", _estimators),
    "{operators}": ("|", _operators),
}
"""What stands in the texts of options for all names there are: between them, and who knows them."""


def list_names(command: Any) -> None:
    """Put names for what stands for them in the help of a command's options."""
    for parameter in command.params:
        texts = vars(parameter).setdefault(
            "texts", {part: getattr(parameter, part, None) or "" for part in ("metavar", "help")}
        )
        for part, text in texts.items():
            if any(mark in text for mark in LISTS):
                setattr(parameter, part, _listed(text))


def _listed(text: str) -> str:
    for mark, (between, names) in LISTS.items():
        if mark in text:
            text = text.replace(mark, between.join(names()))
    return text
