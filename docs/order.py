"""Make the reference pages, and order the site's navigation, so that mkdocs.yml names no page."""

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.utils import nest_paths

sys.path.insert(0, str(Path(__file__).parent.parent))  # a hook is loaded as no package

from docs.make_reference import pages

ORDER = [
    "index",
    "tutorial",
    "how-to",
    "explain",
    "gallery",
    "proofs",
    "reference",
    "errata",
    "threat-model",
]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add generated pages; put folders and pages in ORDER, each folder's index first."""
    for path, page in pages().items():
        files.append(File.generated(config, path, content=page))

    def place(path: str) -> tuple[int, bool, str]:
        first, _, rest = path.removesuffix(".md").partition("/")
        return ORDER.index(first) if first in ORDER else len(ORDER), rest != "index", path

    config.nav = nest_paths(
        sorted((file.src_uri for file in files.documentation_pages()), key=place)
    )
    return files
