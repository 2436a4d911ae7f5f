"""Random numbers as functions of a seed and a position, so that fused kernels can draw them.

``draw_from_seeds`` rewrites a graph: one library call draws a seed for each random op, with the device's own
generator, and every op becomes a pure one that turns its seed and an element's place in the result into a number, by
Philox 4x32-10. So ``torch.manual_seed`` reproduces a run, every call and every replay of a CUDA Graph advances the
generator, and neither the layout of a kernel nor what it is fused with changes a number.

The pure ops are ``torch.ops.fusescope.uniform``, ``normal`` and ``integers``. What they compute here in torch, the
kernels compute in ``codegen/helpers.py``; the numbers are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

SEED_RANGE = (-(1 << 63), (1 << 63) - 1)
DOUBLE_DIGITS = 53  # binary digits of a float64 drawn from two words

aten = torch.ops.aten
_MASK = 0xFFFFFFFF


# --- Philox ------------------------------------------------------------------------------------------------------


def _multiply(constant: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """The high and the low 32 bits of a product of two 32-bit numbers, in int64."""
    high = (constant * (x >> 16) + ((constant * (x & 0xFFFF)) >> 16)) >> 16
    return high, (constant * x) & _MASK


def philox(seed: Tensor, counter: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Four random 32-bit words (in int64) for each ``counter``, by Philox 4x32-10 keyed with ``seed``."""
    words = [counter & _MASK, (counter >> 32) & _MASK, torch.zeros_like(counter), torch.zeros_like(counter)]
    low_key, high_key = seed & _MASK, (seed >> 32) & _MASK
    for _ in range(10):
        high0, low0 = _multiply(0xD2511F53, words[0])
        high2, low2 = _multiply(0xCD9E8D57, words[2])
        words = [high2 ^ words[1] ^ low_key, low2, high0 ^ words[3] ^ high_key, low0]
        low_key, high_key = (low_key + 0x9E3779B9) & _MASK, (high_key + 0xBB67AE85) & _MASK
    return words[0], words[1], words[2], words[3]


def _words(seed: Tensor, count: int) -> Tensor:
    """The first ``count`` words of a seed: those of counter 0, then those of counter 1, …"""
    counters = torch.arange(-(-count // 4), device=seed.device)
    return torch.stack(philox(seed, counters), 1).view(-1)[:count]


def _long_words(seed: Tensor, count: int) -> Tensor:
    """Numbers of 63 bits, each from two words."""
    pairs = _words(seed, 2 * count).view(-1, 2)
    return (pairs[:, 0] << 31) | (pairs[:, 1] >> 1)


def _result(seeds: Tensor, size: Sequence[int], like: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Memory for a result: ordered as ``like`` where that is given, else contiguous."""
    if like is not None:
        return torch.empty_like(like, dtype=dtype, device=seeds.device)
    return torch.empty(size, dtype=dtype, device=seeds.device)


# --- the ops -----------------------------------------------------------------------------------------------------


def uniform(
    seeds: Tensor, number: int, size: Sequence[int], like: Tensor | None, digits: int, dtype: torch.dtype
) -> Tensor:
    """Multiples of 2**-digits in [0, 1), drawn from ``seeds[number]``."""
    result = _result(seeds, size, like, dtype)
    if digits == DOUBLE_DIGITS:
        values = (_long_words(seeds[number], result.numel()) >> 10).double() * 2.0**-DOUBLE_DIGITS
    else:
        values = (_words(seeds[number], result.numel()) >> (32 - digits)).double() * 2.0**-digits
    return result.copy_(values.view(result.shape))


def normal(seeds: Tensor, number: int, size: Sequence[int], like: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Numbers of the standard normal distribution by Box and Muller, two from each pair of words."""
    result = _result(seeds, size, like, dtype)
    wide = torch.float64 if dtype is torch.float64 else torch.float32
    count = result.numel()
    pairs = _words(seeds[number], count + count % 2).view(-1, 2).to(wide)
    radius = (-2.0 * ((pairs[:, 0] + 0.5) * 2.0**-32).log()).sqrt()
    angle = pairs[:, 1] * (2.0 * math.pi * 2.0**-32)
    values = torch.stack((radius * angle.cos(), radius * angle.sin()), 1).view(-1)[:count]
    return result.copy_(values.view(result.shape))


def integers(
    seeds: Tensor,
    number: int,
    size: Sequence[int],
    like: Tensor | None,
    low: int,
    high: int,
    dtype: torch.dtype,
) -> Tensor:
    """Whole numbers of low .. high - 1."""
    result = _result(seeds, size, like, dtype)
    values = _long_words(seeds[number], result.numel()) % (high - low) + low
    return result.copy_(values.view(result.shape))


def _define() -> torch.library.Library:
    library = torch.library.Library("fusescope", "DEF")
    common = "Tensor seeds, int number, SymInt[] size, Tensor? like"
    signatures: dict[str, tuple[str, Callable[..., Tensor]]] = {
        "uniform": (f"{common}, int digits, ScalarType dtype", uniform),
        "normal": (f"{common}, ScalarType dtype", normal),
        "integers": (f"{common}, int low, int high, ScalarType dtype", integers),
    }

    def shaped(seeds: Tensor, number: int, size: Sequence[int], like: Tensor | None, *rest: Any) -> Tensor:
        return _result(seeds, size, like, rest[-1])

    for name, (signature, function) in signatures.items():
        library.define(f"{name}({signature}) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
        library.impl(name, function, "CompositeExplicitAutograd")
        library.impl(name, shaped, "Meta")
    return library


_LIBRARY = _define()  # the ops exist as long as this object does
ops = torch.ops.fusescope


# --- the pass ----------------------------------------------------------------------------------------------------


def _digits(dtype: torch.dtype) -> int:
    """Binary digits that a number below one has room for: what torch's own draws have."""
    return {torch.float16: 11, torch.bfloat16: 8, torch.float64: DOUBLE_DIGITS}.get(dtype, 24)


def _pure(node: torch.fx.Node) -> tuple[Any, tuple[Any, ...]] | None:
    """The pure op that stands for a random one, and its arguments after the layout; None for other nodes."""
    value = node.meta.get("val")
    packet = getattr(node.target, "overloadpacket", None)
    if not isinstance(value, Tensor) or node.kwargs.get("generator") is not None:
        return None
    if node.kwargs.get("memory_format") not in (None, torch.preserve_format):
        return None
    if packet in (aten.rand, aten.rand_like) and value.dtype.is_floating_point:
        return ops.uniform.default, (_digits(value.dtype), value.dtype)
    if packet in (aten.randn, aten.randn_like) and value.dtype.is_floating_point:
        return ops.normal.default, (value.dtype,)
    if packet in (aten.randint, aten.randint_like):
        names = [a.name for a in node.target._schema.arguments]  # type: ignore[union-attr]
        given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
        low, high = given.get("low", 0), given.get("high")
        if isinstance(low, int) and isinstance(high, int) and 0 < high - low < 1 << 63:
            return ops.integers.default, (low, high, value.dtype)
    return None


def draw_from_seeds(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Rewrite the random ops of an ATen graph in place; one call a device draws their seeds at the front.

    A graph is rewritten once: the call that draws the seeds is itself random. Where tensors lie on a GPU, what is
    drawn on the CPU stays as it is.
    """
    found = [(node, pure) for node in graph.graph.nodes if node.op == "call_function" and (pure := _pure(node))]
    on_gpu = any(t.is_cuda for n in graph.graph.nodes if isinstance(t := n.meta.get("val"), Tensor))
    by_device: dict[torch.device, list[tuple[torch.fx.Node, tuple[Any, tuple[Any, ...]]]]] = {}
    for node, pure in found:
        device = node.meta["val"].device
        if not on_gpu or device.type != "cpu":
            by_device.setdefault(device, []).append((node, pure))
    for device, draws in by_device.items():
        mode = draws[0][0].meta["val"].fake_mode
        with graph.graph.inserting_before(draws[0][0]):
            seeds = graph.graph.call_function(
                aten.randint.low,
                (*SEED_RANGE, [len(draws)]),
                {"dtype": torch.int64, "device": device, "pin_memory": False},
            )
        with mode:
            seeds.meta["val"] = torch.empty(len(draws), dtype=torch.int64, device=device)
        for number, (node, (target, rest)) in enumerate(draws):
            _replace(graph.graph, node, target, seeds, number, rest)
    if by_device:
        graph.graph.eliminate_dead_code()  # what was there only for its size
        graph.graph.lint()
        graph.recompile()
    return graph


def _replace(
    graph: torch.fx.Graph, node: torch.fx.Node, target: Any, seeds: torch.fx.Node, number: int, rest: tuple[Any, ...]
) -> None:
    packet = node.target.overloadpacket  # type: ignore[union-attr]
    names = [a.name for a in node.target._schema.arguments]  # type: ignore[union-attr]
    like: Any = None
    value = node.meta["val"]
    if packet not in (aten.rand_like, aten.randn_like, aten.randint_like):
        size = node.args[names.index("size")]
    elif all(isinstance(s, int) for s in value.shape) and value.is_contiguous():
        size = list(value.shape)
    else:
        size, like = [], node.args[0]
    with graph.inserting_before(node):
        new = graph.create_node("call_function", target, (seeds, number, size, like, *rest), {}, node.name)
    new.meta.update(node.meta)
    node.replace_all_uses_with(new)
    graph.erase_node(node)
