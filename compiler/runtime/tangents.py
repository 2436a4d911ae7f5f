"""The gradients that a compiled backward is given (its tangents), freed at their last use like everything else.

Eager's nodes let go of a gradient as soon as they have run. A compiled backward is one node, and torch hands it its
gradients as arguments, which the engine and AOTAutograd hold until it returns. Newer torch puts them into a list that
is emptied. For an older one a hook in front of the node hands it aliases that nobody else has seen: the backward moves
an alias's memory into a tensor of its own and leaves the alias empty, to whoever still holds that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from compiler.runtime.executable import Call
from compiler.runtime.flags import flags, with_flags

NEEDED = not hasattr(torch.autograd.Function, "boxed_grads_call")
_LENT = "_fusescope_lent"  # of an alias
_HOLDERS = 2  # of an alias that nothing after the backward looks at: its Python object, and the engine


class Tangents:
    """Those of one graph of Dynamo's: what calls it lends them, its backward takes them.

    ``trained``: there is going to be a backward. Nothing is lent before that asks for it, which it does when it is
    compiled, perhaps in the first iteration only.
    """

    def __init__(self) -> None:
        self.trained = False
        self._asked = False

    def lending(self, call: Callable[..., Sequence[Any]]) -> Callable[..., Sequence[Any]]:
        """``call``, AOTAutograd's, whose results' backward is lent its gradients."""
        if not (NEEDED and self.trained):
            return call

        def lent(*inputs: Any) -> Sequence[Any]:
            results = call(*inputs)
            if self._asked:
                for result in results:
                    node = result.grad_fn if isinstance(result, Tensor) else None
                    if node is not None and node.name() == "CompiledFunctionBackward":
                        _lend_to(node)
                        break
            return results

        return lent

    def taking(self, run: Call, positions: Sequence[int]) -> Call:
        """``run``, a backward, which takes the gradients among its inputs that were lent to it.

        Only those at ``positions``, where freeing them lowers the peak.
        """
        if not (NEEDED and positions):
            return run
        self._asked = True

        def taken(args: list[Any]) -> Any:
            for position in positions:
                lent = args[position]
                # More hold it where a hook after the backward is to see it.
                if getattr(lent, _LENT, False) and lent._use_count() == _HOLDERS:
                    args[position] = lent.detach()
                    lent.data = lent.new_empty(0)
            return run(args)

        return taken


def with_traced_flags(run: Call, graph: torch.fx.GraphModule) -> Call:
    """``run``, the backward ``graph``, on gradients that stand for what they stood for when it was traced.

    A conjugate's backward hands on the memory of its own gradient as conjugates, and an imaginary part's as negatives.
    Nothing guards that, and neither kernels nor a graph that reads an address would see it.
    """
    placeholders = enumerate(graph.graph.find_nodes(op="placeholder"))
    tangents = [(place, node.meta.get("val")) for place, node in placeholders if node.name.startswith("tangents")]
    traced = [(place, flags(value)) for place, value in tangents if isinstance(value, Tensor)]
    if not traced:
        return run

    def call(args: list[Any]) -> Any:
        for place, wanted in traced:
            if flags(args[place]) != wanted:
                args[place] = with_flags(args[place], wanted)
        return run(args)

    return call


def _lend_to(node: torch.autograd.graph.Node) -> None:
    def lend(gradients: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...] | None:
        seen = len(hooks() or ()) > 1  # by hooks of the user's that come after this one
        if seen or torch.is_grad_enabled():
            return None
        return tuple(_alias(gradient) for gradient in gradients)

    hooks = node.register_prehook(lend).hooks_dict_ref


def _alias(gradient: Tensor | None) -> Tensor | None:
    if gradient is None or type(gradient) not in (Tensor, FakeTensor):
        return gradient
    alias = gradient.detach()
    setattr(alias, _LENT, True)
    return alias
