"""Texts with lines that can be followed: the model's source, kernels and every level below them, programs."""
