"""The gallery: one model a file, in plain torch, with seeded random weights.

Each file defines ``TITLE``, ``DESCRIPTION`` and ``TRAINING``, and a function named as the file whose keyword
parameters are the example's options. It returns ``(module_or_function, example_inputs)`` on the CPU.
"""
