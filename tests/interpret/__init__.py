"""Generated kernels run on the CPU by Triton's interpreter, which an environment variable must choose before Triton
is imported: ``tests/test_interpreter.py`` runs this folder in a process of its own."""
