"""Layered layout of a region: coordinates for nodes, groups and edges, with no Qt and no torch."""

from app.layout.graph_layout import GraphLayout, NodeStyle
from app.layout.ranks import LayoutCancelled
from app.layout.region import layout_region

__all__ = ["GraphLayout", "LayoutCancelled", "NodeStyle", "layout_region"]
