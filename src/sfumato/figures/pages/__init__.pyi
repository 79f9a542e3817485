from .fill import filled_page, page_style, player_script
from .rounds import PageRound, RoundsPage, rounds_page

__all__ = [
    "PageRound",
    "RoundsPage",
    "filled_page",
    "page_style",
    "player_script",
    "rounds_page",
]
