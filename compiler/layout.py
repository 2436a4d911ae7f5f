"""Channels-last convolutions: cuDNN's tensor-core kernels want the channels innermost, and transpose what is not.

The pass rewrites an inference graph so that convolutions read and write channels-last tensors. What lies between two
of them (normalisation, activations, pooling, residual sums) follows by torch's own stride rules, so that one copy at
the first convolution and one where the order of strides matters again are all that is added. Graphs that train keep
their strides, for the backward graph was traced with them.
"""

from __future__ import annotations

import torch

from compiler.report import Target
from compiler.restriding import Restriding, is_static

aten = torch.ops.aten

# A weight this many times as large as what its convolution reads and writes stays as it is: cuDNN then transposes it in
# its workspace, which is no slower than a copy of it beforehand, and is gone as soon as the call returns.
HEAVY = 8
FEW_CHANNELS = 4  # tensor cores take more at a time: cuDNN pads such an input, which costs a copy and memory


def wants_channels_last(graph: torch.fx.GraphModule, target: Target) -> bool:
    """Whether the graph has 2-D convolutions of known sizes that cuDNN would run on tensor cores."""
    if target.backend != "cuda":
        return False
    tf32 = torch.get_float32_matmul_precision() != "highest" or torch.backends.cudnn.allow_tf32
    fast = {torch.float16, torch.bfloat16, *([torch.float32] if tf32 else [])}
    found = [n for n in graph.graph.nodes if _is_2d_convolution(n)]
    grouped = [n for n in found if n.args[8] != 1]
    if len(grouped) == len(found) or not all(n.meta["val"].dtype in fast for n in found) or not is_static(graph):
        return False
    return any(_weight_of(n).shape[1] > FEW_CHANNELS and not _is_heavy(n) for n in found)


def _weight_of(convolution: torch.fx.Node) -> torch.Tensor:
    weight: torch.Tensor = convolution.args[1].meta["val"]  # type: ignore[union-attr]
    return weight


def _is_heavy(convolution: torch.fx.Node) -> bool:
    read: torch.Tensor = convolution.args[0].meta["val"]  # type: ignore[union-attr]
    written: torch.Tensor = convolution.meta["val"]
    return _weight_of(convolution).numel() > HEAVY * (read.numel() + written.numel())


def _is_2d_convolution(node: torch.fx.Node) -> bool:
    return node.target is aten.convolution.default and len(node.meta["val"].shape) == 4


def channels_last(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The same computation with channels-last convolutions. Its outputs keep the strides that they had."""
    return _ChannelsLast(graph).run()


class _ChannelsLast(Restriding):
    def operands(self, node: torch.fx.Node) -> dict[torch.fx.Node, torch.fx.Node]:
        """Data and weight of a convolution in channels-last, but for those that stay."""
        given = super().operands(node)
        if _is_2d_convolution(node) and not _is_heavy(node):
            for operand in node.args[:2]:
                assert isinstance(operand, torch.fx.Node)
                value = given[operand]
                if not value.meta["val"].is_contiguous(memory_format=torch.channels_last):
                    given[operand] = self.clone(value, node, torch.channels_last)
        return given

    def follows(self, node: torch.fx.Node) -> bool:
        """See Restriding. A convolution that stays reads what the capture saw."""
        return super().follows(node) and not (_is_2d_convolution(node) and _is_heavy(node))
