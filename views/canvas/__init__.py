"""The graph on screen: one widget that draws arrays, its minimap, and its export."""
