"""Compiling from the window: the worker, one compilation at a time, its stages, its options, and checked numbers."""
