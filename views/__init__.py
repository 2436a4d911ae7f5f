"""The window. Qt only: reads report records, never torch."""
