"""Methods that make a map: zoom, pyramid, and baselines; private bounds of an area."""
