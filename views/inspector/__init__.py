"""The inspector: what is selected, and what is pinned beside it."""
