"""The browser that notebooks are opened in."""

from tests.browsers import browser

__all__ = ["browser"]
