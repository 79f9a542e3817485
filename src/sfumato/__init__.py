"""Release where things are, privately, so that the geography survives and the exact places do not."""

__version__ = "0.1.0.dev0"
