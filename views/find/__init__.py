"""Ctrl+K: the palette that finds anything, and how to go there."""
