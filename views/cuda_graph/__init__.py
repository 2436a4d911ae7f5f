"""The CUDA Graph panel: a captured graph's life, its nodes, its inputs."""
