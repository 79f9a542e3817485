"""Where mass lives: Line, Grid, Graph, Points, each a metric with neighbors; Area sets a grid on earth."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
