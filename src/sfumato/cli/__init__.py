"""The command `sfumato`: thin, it parses and it prints."""

from sfumato.cli.main import main

__all__ = ["main"]
