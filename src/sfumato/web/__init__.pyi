from .app import make_app
from .desk import Desk
from .map_assets import map_asset, map_script, map_style
from .security import Gate

__all__ = ["Desk", "Gate", "make_app", "map_asset", "map_script", "map_style"]
