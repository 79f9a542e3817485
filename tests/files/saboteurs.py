"""Broken ways to write a file, and to hear consent; `tests/saboteurs.py` says who must catch them."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any


def drafts_of_a_foreseeable_name() -> None:
    atomic: Any = import_module("sfumato.files.atomic")
    atomic._draft = lambda target, kind: target.with_name(f".{target.name}.{os.getpid()}{kind}")
    atomic.NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def results_through_links() -> None:
    atomic: Any = import_module("sfumato.files.atomic")

    def through(draft: Path, target: Path, *, overwrite: bool) -> None:
        target.write_bytes(draft.read_bytes())

    atomic._publish = through


def signals_not_asked() -> None:
    leftovers: Any = import_module("sfumato.files.leftovers")
    leftovers.SIGNALS = ()


def consent_from_a_file() -> None:
    config: Any = import_module("sfumato.cli.config")
    config.is_spoken = lambda *_: False


def consent_from_a_variable() -> None:
    main: Any = import_module("sfumato.cli.main")
    main.refuse_variables = lambda *_, **__: None
