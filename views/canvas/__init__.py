"""The graph on screen: one widget that draws arrays, its minimap, and its export."""

from views.canvas.canvas import GraphCanvas
from views.canvas.minimap import Minimap

__all__ = ["GraphCanvas", "Minimap"]
