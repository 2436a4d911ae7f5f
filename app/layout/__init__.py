"""Graph layout: numpy only, no Qt, no torch."""
