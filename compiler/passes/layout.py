"""Channels-last convolutions: cuDNN's tensor-core kernels want the channels innermost, and transpose what is not.

The pass rewrites an inference graph so that convolutions read and write channels-last tensors. What lies between two
of them (normalisation, activations, pooling, residual sums) follows by torch's own stride rules, so that one copy at
the first convolution and one where the order of strides matters again are all that is added. Graphs that train keep
their strides, for the backward graph was traced with them.

A weight far larger than what its convolution reads and writes is not worth a transposed copy: such a convolution
becomes a matrix product. It reads the weight as it lies, and patches of the input as rows, which are small here.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.passes.restriding import Restriding, is_static
from compiler.report import Target

aten = torch.ops.aten

# A weight this many times as large as what its convolution reads and writes: more than the patches of a 3x3 kernel,
# which are nine times what it reads. Transposing it took 7 us of 22 (512 to 512 channels at 7x7, H200), and memory.
HEAVY = 16
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
    return any(_weight_of(n).shape[1] > FEW_CHANNELS for n in found)


def _weight_of(convolution: torch.fx.Node) -> torch.Tensor:
    weight: torch.Tensor = convolution.args[1].meta["val"]  # type: ignore[union-attr]
    return weight


def _becomes_product(convolution: torch.fx.Node) -> bool:
    read: torch.Tensor = convolution.args[0].meta["val"]  # type: ignore[union-attr]
    written: torch.Tensor = convolution.meta["val"]
    weight = _weight_of(convolution)
    arguments: tuple[Any, ...] = convolution.args
    dilation, transposed, _, groups = arguments[5:]
    plain = groups == 1 and not transposed and set(dilation) == {1} and weight.is_contiguous()
    return plain and bool(weight.numel() > HEAVY * (read.numel() + written.numel()))


def _is_2d_convolution(node: torch.fx.Node) -> bool:
    return node.target is aten.convolution.default and len(node.meta["val"].shape) == 4


def channels_last(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The same computation with channels-last convolutions. Its outputs keep the strides that they had."""
    return _ChannelsLast(graph).run()


class _ChannelsLast(Restriding):
    def replaced(self, node: torch.fx.Node) -> torch.fx.Node | None:
        """A product for a convolution with a heavy weight: its result is channels-last by itself."""
        if not (_is_2d_convolution(node) and _becomes_product(node)):
            return None
        arguments: tuple[Any, ...] = node.args
        data, weight, bias, stride, padding = arguments[:5]
        _, _, height, width = _weight_of(node).shape
        batch, channels, rows, columns = node.meta["val"].shape
        value = self.made[data]
        if any(padding):
            up, left = padding
            value = self.call(aten.constant_pad_nd.default, (value, [left, left, up, up], 0.0), node)
        for dim, size, step in ((2, height, stride[0]), (3, width, stride[1])):
            value = self.call(aten.unfold.default, (value, dim, size, step), node)
        value = self.call(aten.permute.default, (value, [0, 2, 3, 1, 4, 5]), node)
        value = self.clone(value, node, torch.contiguous_format)
        patches = self.call(aten.view.default, (value, [batch * rows * columns, -1]), node)
        lying = self.call(aten.view.default, (self.made[weight], [channels, -1]), node)
        turned = self.call(aten.permute.default, (lying, [1, 0]), node)
        if bias is None:
            value = self.call(aten.mm.default, (patches, turned), node)
        else:
            value = self.call(aten.addmm.default, (self.made[bias], patches, turned), node)
        value = self.call(aten.view.default, (value, [batch, rows, columns, channels]), node)
        return self.call(aten.permute.default, (value, [0, 3, 1, 2]), node)

    def operands(self, node: torch.fx.Node) -> dict[torch.fx.Node, torch.fx.Node]:
        """Data and weight of a convolution in channels-last."""
        given = super().operands(node)
        if _is_2d_convolution(node):
            for operand in node.args[:2]:
                assert isinstance(operand, torch.fx.Node)
                value = given[operand]
                if not value.meta["val"].is_contiguous(memory_format=torch.channels_last):
                    given[operand] = self.clone(value, node, torch.channels_last)
        return given
