"""Graphs before they are lowered: which ops are taken apart, what is rewritten, what a whole graph is found to be."""
