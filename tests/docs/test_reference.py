"""The reference pages say what the code says."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from docs.make_reference import ROOMS, escaped, pages, prose, signature

pytestmark = pytest.mark.docs

FRESH = pages()


@pytest.mark.parametrize("path", sorted(FRESH), ids=lambda path: path.stem)
def test_the_committed_page_is_a_fresh_one(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == FRESH[path], (
        "run: .venv/bin/python docs/make_reference.py"
    )


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_has_its_place(room: str) -> None:
    page = next(text for path, text in FRESH.items() if path.stem == "api")
    names = importlib.import_module(room).__all__
    assert names
    assert [name for name in names if f"\n### `{name}`\n" not in page] == []


def test_the_pages_are_plain_text() -> None:
    assert all(text.isprintable() for page in FRESH.values() for text in page.split("\n"))


def test_a_docstring_becomes_markdown() -> None:
    docstring = """Two to the n is 2**n, `2**n` in code.

        drawn as it is

    | a | b |

    >>> 1
    1

    See docs/proofs/ledger.md for x_i < 1.
    """
    assert list(prose(docstring)) == [
        r"Two to the n is 2\*\*n, `2**n` in code.",
        "```text\n    drawn as it is\n```",
        "| a | b |",
        "```python\n>>> 1\n1\n```",
        r"See [docs/proofs/ledger.md](../proofs/ledger.md) for x\_i &lt; 1.",
    ]
    assert escaped("|x|") == r"\|x\|"


def test_a_signature_is_written_as_in_the_source() -> None:
    def narrow(a: int | str, *, b: bytes = b"") -> float:
        raise NotImplementedError

    def wide(
        first_of_all: tuple[int, str],
        *,
        second_of_all: str = "a, b",
        third: int = 0,
        fourth: float = 1.5,
    ) -> tuple[()]:
        raise NotImplementedError

    assert signature(narrow) == "(a: int | str, *, b: bytes = b'') -> float"
    assert signature(narrow, skip=1, returns=False) == "(*, b: bytes = b'')"
    inside = ["first_of_all: tuple[int, str]", "*", "second_of_all: str = 'a, b'", "third: int = 0"]
    inside.append("fourth: float = 1.5")
    assert signature(wide) == "(\n    " + ",\n    ".join(inside) + ",\n) -> tuple[()]"
