"""Graphs for a GPU that is not here: traced on the CPU as they are traced on the target, then moved to it."""
