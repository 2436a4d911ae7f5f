"""Calling a compiled inference graph without AOTAutograd's runtime wrapper, where there is nothing for that to do.

The wrapper restores what functionalization took out of the graph (writes to inputs, outputs that are views), sets
gradients and autocast aside, and unpacks tensor subclasses. A plain function of plain tensors needs none of it, and a
small one spends a good part of its CPU time there.

Nor do gradients and autocast matter to a replay: what it computes was decided when it was captured, and the tensors
that it hands out are new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

_PLAIN = (torch.Tensor, torch.nn.Parameter, FakeTensor)


def direct_call(run: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """``run``, which takes a list that it may empty, called with its inputs as arguments.

    As in the wrapper no gradients are recorded, and autocast, which the graph has in it, does not act a second time.
    """
    region = getattr(run, "region", None)  # of a ``PartitionedRegion``'s entry
    return _around(run) if region is None else _replay_first(region)


def _replay_first(region: Any) -> Callable[..., Any]:
    rest = _around(region)

    def call(*inputs: Any) -> Any:
        results = region.asked.fast(inputs)
        return rest(*inputs) if results is None else results

    return call


def _around(run: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    grad_enabled, autocast_enabled = torch.is_grad_enabled, torch._C._is_any_autocast_enabled

    def call(*inputs: Any) -> Any:
        if grad_enabled() or autocast_enabled():
            with torch.no_grad(), torch._C._DisableAutocast():
                return run([*inputs])
        return run([*inputs])

    return call


def needs_no_wrapper(metadata: Any, graph: torch.fx.GraphModule, given: Sequence[type]) -> bool:
    """Whether a call of the inference ``graph`` is a call of what Dynamo captured, input by input, output by output.

    ``metadata`` is AOTAutograd's on the graph, ``given`` the types of what Dynamo calls it with. What is asked here
    holds for every call that Dynamo's guards let through, for they see to the inputs' types.
    """
    placeholders = graph.graph.find_nodes(op="placeholder")
    (output,) = graph.graph.find_nodes(op="output")
    results = [node.meta.get("val") if isinstance(node, torch.fx.Node) else None for node in output.args[0]]
    types = [*given, *(type(node.meta.get("val")) for node in placeholders), *map(type, results)]
    if len(placeholders) != len(given) or any(kind not in _PLAIN for kind in types):
        return False
    try:
        return bool(
            len(metadata.output_info) == len(results)
            and all(info.output_type.name == "non_alias" for info in metadata.output_info)
            and not any(info.mutates_data or info.mutates_metadata for info in metadata.input_info)
            and not metadata.num_intermediate_bases
            and not metadata.dynamic_outputs
            and not metadata.is_rng_op_functionalized
            and not metadata.num_graphsafe_rng_states
            and not metadata.tokens
            and metadata.grad_enabled_mutation is None
        )
    except AttributeError:  # another torch, which may leave other work to its wrapper
        return False
