"""Why nodes are in different kernels: each pair that was kept apart, by rule."""
