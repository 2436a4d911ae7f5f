"""ATen ops as loops over elements: one file per family. ``registry.rule_for`` finds an op's rule."""
