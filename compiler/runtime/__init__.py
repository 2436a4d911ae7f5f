"""What runs on the GPU: the executable, CUDA Graphs, timing, modes."""
