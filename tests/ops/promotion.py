"""Type promotion: ops of two operands over every pair of dtypes, with and without dimensions, against eager.

    python -m tests.ops.promotion --device cpu          kernels in Triton's interpreter, about 5 minutes
    python -m tests.ops.promotion --device cuda --jobs 12

op_db has four dtypes of an operator in the suite, and both operands in one. Prints what differs and exits with 1.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import torch
from torch import Tensor

from tests.ops.choice import chosen_ops

DTYPES = (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64,
)  # fmt: skip
TOGETHER = 60  # results that one function returns: compiling them together is quicker
NUMBERS = (-128, -7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 100, 127)

Op = Callable[[Any, Any], Tensor]
OPS: dict[str, Op] = {
    "add": torch.add,
    "add with alpha": lambda a, b: torch.add(a, b, alpha=2),
    "sub": torch.sub,
    "rsub": torch.rsub,
    "mul": torch.mul,
    "div": torch.div,
    "floor_divide": torch.floor_divide,
    "div truncated": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "pow": torch.pow,
    "float_power": torch.float_power,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "fmax": torch.fmax,
    "lt": torch.lt,
    "ge": torch.ge,
    "eq": torch.eq,
    "bitwise_and": torch.bitwise_and,
    "bitwise_or": torch.bitwise_or,
    "bitwise_xor": torch.bitwise_xor,
    "logical_and": torch.logical_and,
    "where": lambda a, b: torch.where(a > b, a, b),
    "clamp": lambda a, b: torch.clamp(a, min=b),
    "masked_fill": lambda a, b: a.masked_fill(b != 0, 3),
    "atan2": torch.atan2,
    "copysign": torch.copysign,
    "hypot": torch.hypot,
    "nextafter": torch.nextafter,
    "ldexp": torch.ldexp,
    "gcd": torch.gcd,
    "heaviside": torch.heaviside,
    "xlogy": torch.xlogy,
    "logaddexp": torch.logaddexp,
    "addcmul": lambda a, b: torch.addcmul(a, b, b, value=2),
    "add of a number": lambda a, b: torch.add(a, 1.5) + torch.mul(b, 3),
}


def main(arguments: list[str]) -> int:
    """Run every op; the exit status says whether all agreed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.ops.promotion", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--ops", default="", help="only these, by commas")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with one op at a time")
    options = parser.parse_args(arguments)
    names = chosen_ops(parser, options.ops, list(OPS))
    if options.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # for the processes, before they import Triton
    wrong = 0
    # Spawned: a forked process could not use the GPU.
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        found = pool.map(check_op, names, itertools.repeat(options.device))
        for name, faults in zip(names, found, strict=True):
            wrong += len(faults)
            print(f"{name}: {len(faults)} differ", *faults[:5], sep="\n  ", flush=True)
    return 1 if wrong else 0


def check_op(name: str, device: str) -> list[str]:
    """What differs from eager over all pairs that the op takes, in words."""
    torch.set_num_threads(1)  # there is a process for each core
    op = OPS[name]
    pairs = [(title, a.to(device), b.to(device)) for title, a, b in operand_pairs() if _takes(op, a, b, device)]
    faults = []
    for start in range(0, len(pairs), TOGETHER):
        faults += _check_together(op, pairs[start : start + TOGETHER])
    return faults


def operand_pairs() -> list[tuple[str, Tensor, Tensor]]:
    """Every pair of dtypes three times: two rows of numbers, and a row beside a single number on either side."""
    found = []
    for first, second in itertools.product(DTYPES, DTYPES):
        a, b = _numbers(first), _numbers(second).roll(3)
        b = torch.where(b == 0, torch.ones_like(b), b)
        title = f"{str(first)[6:]} {str(second)[6:]}"
        found += [(title, a, b), (f"{title} (number)", a, b[4].clone()), (f"{title} (number first)", a[3].clone(), b)]
    return found


def _numbers(dtype: torch.dtype) -> Tensor:
    numbers = torch.tensor(NUMBERS)
    if dtype is torch.bool:
        return numbers > 0
    return (numbers.abs() if dtype is torch.uint8 else numbers).to(dtype)


def _takes(op: Op, a: Tensor, b: Tensor, device: str) -> bool:
    try:
        op(a.to(device), b.to(device))
        op(a.to("meta"), b.to("meta"))
    except Exception:
        return False
    return True


def _check_together(op: Op, pairs: list[tuple[str, Tensor, Tensor]]) -> list[str]:
    from compiler.backend import fusescope
    from tests.interpret.checking import difference

    def function(*operands: Tensor) -> list[Tensor]:
        return [op(operands[2 * k], operands[2 * k + 1]) for k in range(len(operands) // 2)]

    flat = [operand for _, a, b in pairs for operand in (a, b)]
    wide = [operand.double() if operand.is_floating_point() else operand for operand in flat]
    torch._dynamo.reset()
    results = torch.compile(function, backend=fusescope, fullgraph=True, dynamic=False)(*flat)
    judged = zip(pairs, results, function(*flat), function(*wide), strict=True)
    faults = [(title, difference(ours, eager, exact)) for (title, _, _), ours, eager, exact in judged]
    return [f"{title}: {fault}" for title, fault in faults if fault]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
