"""Order the site's navigation, so that mkdocs.yml need not name every page."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.utils import nest_paths

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
    """Put folders and pages in ORDER, others after them, each folder's index first."""

    def place(path: str) -> tuple[int, bool, str]:
        first, _, rest = path.removesuffix(".md").partition("/")
        return ORDER.index(first) if first in ORDER else len(ORDER), rest != "index", path

    config.nav = nest_paths(
        sorted((file.src_uri for file in files.documentation_pages()), key=place)
    )
    return files
