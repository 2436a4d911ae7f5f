"""The panel at the centre: the graph with its boxes, overlays and its history of views."""
