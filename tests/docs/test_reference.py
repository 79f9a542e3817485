"""The reference pages are made of the code, and every public name has its place in them."""

from __future__ import annotations

import importlib

import pytest
from docs.make_reference import (
    DOCS,
    GENERATED,
    HOUSE,
    escaped,
    pages,
    prose,
    rooms,
    signature,
    with_folder_table,
)

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def fresh() -> dict[str, str]:
    """All pages; not where this file is only collected, which every worker does."""
    return pages()


def test_nothing_generated_is_committed(fresh: dict[str, str]) -> None:
    assert set(fresh) == set(GENERATED)
    assert not [path for path in GENERATED if (DOCS / path).exists()]


@pytest.mark.parametrize("room", rooms())
def test_every_public_name_has_its_place(room: str, fresh: dict[str, str]) -> None:
    names = importlib.import_module(room).__all__
    assert names
    assert [name for name in names if f"\n### `{name}`\n" not in fresh["reference/api.md"]] == []


def test_every_file_has_its_place(fresh: dict[str, str]) -> None:
    for file in HOUSE.rglob("*.py"):
        assert f"`{file.name}`" in fresh["reference/modules.md"] or file.name == "__init__.py"


def test_the_table_of_folders_is_a_fresh_one() -> None:
    page = (DOCS / "explain" / "architecture.md").read_text("utf-8")
    assert page == with_folder_table(page), "run: .venv/bin/python docs/make_reference.py"


def test_the_pages_are_plain_text(fresh: dict[str, str]) -> None:
    assert all(text.isprintable() for page in fresh.values() for text in page.split("\n"))


def test_a_docstring_becomes_markdown() -> None:
    docstring = """Two to the n is 2**n, `2**n` in code.

        drawn as it is

    | a | b |

    >>> 1
    1

    See docs/proofs/ledger.md for x_i < 1.

    Args:
        n: A whole number,
            at least 1.
        base: What it is a power of.

    Returns:
        A power.
    """
    assert list(prose(docstring)) == [
        r"Two to the n is 2\*\*n, `2**n` in code.",
        "```text\n    drawn as it is\n```",
        "| a | b |",
        "```python\n>>> 1\n1\n```",
        r"See [docs/proofs/ledger.md](../proofs/ledger.md) for x\_i &lt; 1.",
        "**Args:**\n\n- `n`: A whole number, at least 1.\n- `base`: What it is a power of.",
        "**Returns:** A power.",
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
