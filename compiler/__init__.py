"""Fusescope's compiler: everything that knows torch and Triton. Importing the package imports neither."""
