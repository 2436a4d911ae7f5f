"""What each stage of a compilation does, in three sentences, for people who learn."""

from __future__ import annotations

_TEXTS = {
    "load": (
        "The model and its example inputs are made by running the source's function. "
        "Everything is made on the CPU first and moved to the GPU where one is the target. "
        "A slow load is the model's own code, not the compiler's."
    ),
    "capture": (
        "TorchDynamo runs the model's Python bytecode with symbolic tensors and records every tensor operation. "
        "AOTAutograd then traces these down to ATen operations, and in training derives the backward graph. "
        "Where Python does what a graph cannot hold, Dynamo breaks the graph and begins another region."
    ),
    "lower": (
        "Each ATen operation becomes a recipe for one element of its result at an index. "
        "Views become arithmetic on that index, so they cost nothing. "
        "An operation without a rule stays a call into a library, with its reason recorded."
    ),
    "fuse": (
        "Recipes that can share one loop over memory become a fusion group, which is one kernel. "
        "Fusing saves the writes and reads of what lies between, which is most of what small operations cost. "
        "For every pair of neighbours that stays apart, the rule that kept them apart is recorded."
    ),
    "plan": (
        "The order of kernels and calls decides from when to when each intermediate buffer is needed. "
        "A buffer that is not needed any more gives its storage to a later one. "
        "The Memory panel shows lifetimes, reuse and the peak."
    ),
    "generate": (
        "Each fusion group is printed as the source of a Triton kernel, its blocks chosen by size and shape. "
        "Equal groups share one kernel. "
        "The wrapper program that allocates, launches and calls in order is printed, too."
    ),
    "compile": (
        "Triton compiles each kernel for the target: to its own IRs, then LLVM IR, then PTX, then a binary. "
        "Registers, spills and shared memory are known from here on, and are exact. "
        "No GPU of that kind is needed to compile for it."
    ),
    "report": (
        "What every stage decided is gathered into plain records. "
        "They hold where each operation came from and why it went where it did. "
        "A session file is these records and their texts."
    ),
    "tune": (
        "Candidate configurations of a kernel are compiled and timed against one another. "
        "The fastest is kept, and remembered for the next compilation of the same source. "
        "Only a GPU of the target's kind can do this."
    ),
}
_UNKNOWN = (
    "This compiler names a stage that has no explanation here. Its time is wall time, measured by that compiler. "
    "What it made is in the other panels."
)


def explanation(stage: str) -> str:
    """Three sentences on a stage."""
    return _TEXTS.get(stage, _UNKNOWN)
