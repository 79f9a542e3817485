"""Relative links in the documentation lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from docs.make_reference import GENERATED

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parent.parent.parent
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", flags=re.MULTILINE | re.DOTALL)
LINK = re.compile(
    r"""\]\(\s*<?([^)\s>]+)|^\[[^\]^]+\]:\s*(\S+)|<(?:a|img)\b[^>]*?\b(?:href|src)="([^"]+)""",
    flags=re.MULTILINE,
)


def dead_links(text: str, directory: Path) -> list[str]:
    """Relative links of a page in directory that name no file, or lead from docs/ to where the site ends."""
    targets = ["".join(groups) for groups in LINK.findall(CODE.sub("", text))]
    paths = [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:|//", target)]
    docs = ROOT / "docs"
    made = {docs / page for page in GENERATED}  # there when the site is built
    return [
        path
        for path in paths
        if path
        and (
            not ((end := (directory / unquote(path)).resolve()).exists() or end in made)
            or (directory.is_relative_to(docs) and not end.is_relative_to(docs))
        )
    ]


def test_links_lead_to_files() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    dead = {
        str(page.relative_to(ROOT)): dead_links(page.read_text(), page.parent) for page in pages
    }
    assert not {page: links for page, links in dead.items() if links}


def test_the_index_says_which_pages_are_made() -> None:
    """Links to them are dead in a clone until `make docs`."""
    index = (ROOT / "docs" / "index.md").read_text()
    assert all(f"({page})" in index for page in GENERATED)
    assert "made by `make docs` and not in a clone" in index


@pytest.mark.parametrize(
    "text",
    [
        "[x](no-such-file.md)",
        "![x](no-such-file.png)",
        "[x](no-such-file.md#part)",
        "[x]: no-such-file.md",
        '<img alt="x" src="no-such-file.png">',
        "```\ncode\n```\n[x](no-such-file.md)",
    ],
)
def test_a_dead_link_is_seen(text: str) -> None:
    assert dead_links(text, ROOT)


@pytest.mark.parametrize(
    "text",
    [
        "[x](pyproject.toml)",
        "[x](tests/docs/test_links.py#L1)",
        "[x](#part)",
        "[x](https://example.org/no-such-file.md)",
        "[x](mailto:nobody@example.org)",
        "`[x](no-such-file.md)`",
        "```\n[x](no-such-file.md)\n```",
    ],
)
def test_a_living_link_passes(text: str) -> None:
    assert not dead_links(text, ROOT)


def test_a_page_of_the_site_stays_in_the_site() -> None:
    assert dead_links("[x](../pyproject.toml)", ROOT / "docs")
    assert not dead_links("[x](index.md)", ROOT / "docs")
