from .fill import filled_page, page_style
from .rounds import PageRound, RoundsPage, rounds_page

__all__ = [
    "PageRound",
    "RoundsPage",
    "filled_page",
    "page_style",
    "rounds_page",
]
