"""The browser that the page is opened in."""

from tests.browsers import browser

__all__ = ["browser"]
