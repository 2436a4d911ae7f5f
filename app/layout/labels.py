"""The texts inside a drawing and the sizes of their boxes, estimated without fonts so that layout needs no Qt."""

from __future__ import annotations

from typing import NamedTuple

from app.layout.graph_layout import NodeStyle
from compiler.report import Node, NodeKind, TensorInfo

OP_PX = 12.0  # font size of an op's label
SHAPE_PX = 10.0  # font size of shapes, stubs and badges
TITLE_HEIGHT = 26.0  # the strip at a group's top

# Mean advance of a character as a share of the font size, for a wide sans serif; narrower fonts leave air.
_BOLD_ADVANCE = 0.66
_ADVANCE = 0.62

_DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip


class Size(NamedTuple):
    """Width and height in pixels at scale 1."""

    width: float
    height: float


def op_label(op: str) -> str:
    """The short name of an op: "aten.add.Tensor" is "add", "prims.convert_element_type.default" its middle part."""
    parts = op.split(".")
    return parts[1] if len(parts) >= 2 and parts[1] else op


def node_title(node: Node) -> str:
    """The first line of a node's box: the op of a call, the name of anything else."""
    return op_label(node.op) if node.kind is NodeKind.CALL else node.name


def shape_text(tensor: TensorInfo) -> str:
    """A shape as "8×1024×768"; "scalar" for no dimensions."""
    return "×".join(map(str, tensor.shape)) if tensor.shape else "scalar"


def dtype_text(dtype: str) -> str:
    """A dtype in the short form of compilers: "bfloat16" is "bf16"."""
    return _DTYPES.get(dtype, dtype)


def node_subtitle(node: Node) -> str:
    """The second line of a node's box: the shape of its first output and how many more there are."""
    if not node.outputs:
        return ""
    more = len(node.outputs) - 1
    return shape_text(node.outputs[0]) + (f" +{more}" if more else "")


def node_size(node: Node, style: NodeStyle) -> Size:
    """The box of a node."""
    if style is NodeStyle.PILL:
        return Size(_round_up(_width(node.name, SHAPE_PX, _ADVANCE) + 22), 20.0)
    text = max(
        _width(node_title(node), OP_PX, _BOLD_ADVANCE),
        _width(node_subtitle(node), SHAPE_PX, _ADVANCE),
    )
    if style is NodeStyle.EXTERN:
        return Size(_round_up(max(text, 84.0) + 40), 42.0)
    if style is NodeStyle.OUTPUT:
        return Size(_round_up(text + 40), 36.0 if node.outputs else 26.0)
    return Size(_round_up(max(text, 40.0) + 22), 36.0)


def stub_size(label: str) -> Size:
    """The box of a stub's label."""
    return Size(_round_up(_width(label, SHAPE_PX, _ADVANCE) + 14), 18.0)


def title_width(name: str) -> float:
    """The width that a group's title wants; long kernel names are elided at 260 pixels."""
    return min(_round_up(_width(name, SHAPE_PX, _BOLD_ADVANCE) + 44), 260.0)


def _width(text: str, pixels: float, advance: float) -> float:
    return len(text) * pixels * advance


def _round_up(width: float) -> float:
    """Widths in steps of 8, so that "add" and "sub" make equal boxes and equal groups share one inner layout."""
    return -(-width // 8) * 8.0
