"""Functions that kernels call in their reductions. A kernel's source carries those it uses, so it stands by itself."""

HELPERS = {
    "max_nan": """@triton.jit
def max_nan(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
""",
    "min_nan": """@triton.jit
def min_nan(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
""",
    "multiply": """@triton.jit
def multiply(a, b):
    return a * b
""",
    "first_max": """@triton.jit
def first_max(a, i, b, j):
    # NaN counts as the largest; equal values keep the lower position
    wins = (a > b) | ((a != a) & (b == b))
    ties = (a == b) | ((a != a) & (b != b))
    left = wins | (ties & (i < j))
    return tl.where(left, a, b), tl.where(left, i, j)
""",
    "first_min": """@triton.jit
def first_min(a, i, b, j):
    # NaN counts as the smallest; equal values keep the lower position
    wins = (a < b) | ((a != a) & (b == b))
    ties = (a == b) | ((a != a) & (b != b))
    left = wins | (ties & (i < j))
    return tl.where(left, a, b), tl.where(left, i, j)
""",
}
