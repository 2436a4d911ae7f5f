"""What every panel follows: the one selection, the one filter stack, and look-ups over the region shown."""
