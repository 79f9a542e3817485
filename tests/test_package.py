"""The package's front door: about twenty names, each with an example, none loaded before it is used."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import sfumato

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("name", sfumato.__all__)
def test_every_name_says_what_it_is_for_and_shows_it(name: str) -> None:
    value = getattr(sfumato, name)
    assert inspect.isfunction(value) or inspect.isclass(value)
    assert ">>>" in (value.__doc__ or ""), "its docstring has no example"


def test_there_are_about_twenty() -> None:
    assert 15 <= len(sfumato.__all__) <= 25
    assert sorted(sfumato.__all__) == dir(sfumato)


def test_importing_it_loads_nothing_heavy() -> None:
    code = "import sys, sfumato; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "sfumato" in loaded
    assert not loaded & {
        "numpy",
        "scipy",
        "numba",
        "pandas",
        "matplotlib",
        "duckdb",
        "pyarrow",
        "ibis",
        "typer",
    }


def test_a_wrong_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        sfumato.no_such_name  # type: ignore[attr-defined]  # noqa: B018
