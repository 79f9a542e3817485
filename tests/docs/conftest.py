"""One lukewarm process for all pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.warm import variables, warm_command


@pytest.fixture(scope="session")
def lukewarm() -> Iterator[Path]:
    """The folder of a `sfumato` that has read the libraries already, and nothing of ours."""
    with warm_command(variables(), lukewarm=True) as folder:
        yield folder
