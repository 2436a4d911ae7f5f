"""Groups as Triton kernels, and the wrapper program that launches them."""
