"""Ibis' compilers of SQL, one by one: a query for DuckDB has no need of those of nineteen other databases."""

from __future__ import annotations

import ast
import importlib
import sys
import threading
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from sfumato._process import is_own

PACKAGE = "ibis.backends.sql.compilers"
_LOADING = threading.Lock()


class _OneByOne(ModuleType):
    """The package of the compilers, each of which is loaded when it is first asked for."""

    def __init__(self, spec: ModuleSpec, modules: dict[str, str]) -> None:
        super().__init__(PACKAGE)
        self.__spec__, self.__loader__, self.__file__ = spec, spec.loader, spec.origin
        self.__path__ = list(spec.submodule_search_locations or ())
        self.__package__ = PACKAGE
        self.__all__ = sorted(modules)
        self._modules = modules

    def __getattr__(self, name: str) -> Any:
        if name in self._modules:
            return getattr(importlib.import_module(f"{PACKAGE}.{self._modules[name]}"), name)
        if name in self._modules.values():
            return importlib.import_module(f"{PACKAGE}.{name}")
        raise AttributeError(f"module {PACKAGE!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._modules, *self._modules.values()})


def load_compilers_one_by_one() -> None:
    """In the command's own process: let Ibis load those compilers alone that are asked for.

    An Ibis whose package of compilers is anything but a list of imports is loaded as it is, and so is
    any Ibis in a process of somebody else's, who may look at all of them.
    """
    if not is_own():
        return
    with _LOADING:
        if PACKAGE in sys.modules:
            return
        spec = find_spec(PACKAGE)  # loads the package above it
        text = getattr(spec and spec.loader, "get_source", lambda _: None)(PACKAGE)
        if spec is None or text is None or (modules := _imported(text)) is None:
            return
        above, _, name = PACKAGE.rpartition(".")
        sys.modules[PACKAGE] = package = _OneByOne(spec, modules)
        setattr(sys.modules[above], name, package)


def _imported(text: str) -> dict[str, str] | None:
    """The module of each name in a package that imports names of its modules; None if it does more."""
    found: dict[str, str] = {}
    for node in ast.parse(text).body:
        match node:
            case ast.ImportFrom("__future__"):
                pass
            case ast.ImportFrom(str(module), names, 0) if module.startswith(f"{PACKAGE}."):
                if any(one.asname or one.name == "*" for one in names):
                    return None
                found |= {one.name: module.removeprefix(f"{PACKAGE}.") for one in names}
            case ast.Assign([ast.Name("__all__")]) | ast.Expr(ast.Constant()):
                pass
            case _:
                return None
    return found or None
