"""Every citation resolves, and every entry can be cited."""

from __future__ import annotations

import functools
import re
import tokenize
import unicodedata
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[2]
CITATION = re.compile(r"\[([a-z]+[0-9]{2})(?:,[^\]]*)?\]")
ENTRY = re.compile(r"^@(\w+)\{([^,\s]+),\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (\w+) = \{(.*)\},$", re.MULTILINE)


def bibliography() -> dict[str, dict[str, str]]:
    text = (ROOT / "docs/references.bib").read_text(encoding="utf-8")
    return {key: dict(FIELD.findall(body)) for _, key, body in ENTRY.findall(text)}


def prose(path: Path) -> str:
    """A page, or what a module says in comments and strings: subscripts such as x[e10] cite nobody."""
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    said = (tokenize.COMMENT, tokenize.STRING)
    with tokenize.open(path) as file:
        return "\n".join(
            t.string for t in tokenize.generate_tokens(file.readline) if t.type in said
        )


@functools.cache
def citations() -> list[tuple[str, str]]:
    """(file, key) of each citation in the source and the pages."""
    files = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md")])
    return [
        (file.relative_to(ROOT).as_posix(), key)
        for file in files
        for key in CITATION.findall(prose(file))
    ]


def test_every_citation_is_in_the_bibliography() -> None:
    known = bibliography()
    assert [(file, key) for file, key in citations() if key not in known] == []


def test_citations_are_found() -> None:
    found = citations()
    assert ("src/sfumato/privacy/accounting/divergences.py", "vanerven14") in found
    assert ("docs/errata.md", "mcmillan18") in found


def test_every_entry_is_whole() -> None:
    text = (ROOT / "docs/references.bib").read_text(encoding="utf-8")
    entries = bibliography()
    keys = re.findall(r"^@\w+\{([^,]*)", text, re.MULTILINE)
    assert sorted(entries) == sorted(keys), "an entry is broken, or a key is used twice"
    for key, fields in entries.items():
        assert {"author", "title", "year"} <= fields.keys(), key
        assert all(value.count("{") == value.count("}") for value in fields.values()), key


def test_every_key_is_the_first_author_and_the_year() -> None:
    for key, fields in bibliography().items():
        family = unicodedata.normalize("NFKD", fields["author"].split(",")[0]).lower()
        assert re.fullmatch(r"[a-z]+[0-9]{2}", key), key
        assert key.startswith("".join(filter(str.isalpha, family))), key
        assert key.endswith(fields["year"][-2:]), key
        assert re.fullmatch(r"[0-9]{4}", fields["year"]), key


@pytest.mark.parametrize(
    "page",
    [ROOT / "docs/errata.md", *sorted((ROOT / "docs/proofs").glob("*.md"))],
    ids=lambda page: page.stem,
)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text(encoding="utf-8"))
    assert named
    for path, name in named:
        assert f"\ndef {name}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path}::{name}"
