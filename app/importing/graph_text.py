"""An FX graph as torch prints it, read back into nodes.

    class GraphModule(torch.nn.Module):
        def forward(self, primals_1: "f32[32, 16][16, 1]cuda:0", primals_2: "f32[32][1]cuda:0"):
            # File: model.py:8 in forward, code: return x.sin() + 1
            sin: "f32[32, 16][16, 1]cuda:0" = torch.ops.aten.sin.default(primals_1);  primals_1 = None
            getitem = var_mean[0]
            return (sin,)

Versions differ in what stands in the types (strides and device may be missing) and in how a signature is broken up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from compiler.dynamo.frames import is_torchs, users_function
from compiler.report import Node, NodeKind, Provenance, SourceLine, TensorInfo

# How torch abbreviates dtypes in these types: name and bytes.
DTYPES: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "f16": ("float16", 2), "bf16": ("bfloat16", 2), "f32": ("float32", 4), "f64": ("float64", 8),
        "i8": ("int8", 1), "i16": ("int16", 2), "i32": ("int32", 4), "i64": ("int64", 8), "b8": ("bool", 1),
        "u8": ("uint8", 1), "u16": ("uint16", 2), "u32": ("uint32", 4), "u64": ("uint64", 8),
        "c32": ("complex32", 4), "c64": ("complex64", 8), "c128": ("complex128", 16),
        "f8e4m3fn": ("float8_e4m3fn", 1), "f8e5m2": ("float8_e5m2", 1), "f8e4m3fnuz": ("float8_e4m3fnuz", 1),
        "f8e5m2fnuz": ("float8_e5m2fnuz", 1), "f8e8m0fnu": ("float8_e8m0fnu", 1),
    }
)  # fmt: skip
_TYPE = re.compile(r"^(?P<dtype>[a-z]+\d+\w*)\[(?P<sizes>[^\]]*)\](?:\[(?P<strides>[^\]]*)\])?(?P<device>[\w:]*)$")
_PARAMETER = re.compile(r"^\s*(?P<name>\w+)(?:\s*:\s*\"(?P<type>[^\"]*)\")?\s*$")
_STATEMENT = re.compile(r"^(?P<name>\w+)(?:\s*:\s*\"(?P<type>[^\"]*)\")? = (?P<call>.+)$")
_DROPPED = re.compile(r"\s+(?:\w+ = )+None")  # what a statement needs no longer, after its ";"
_MAX_DIMENSIONS = 64  # of a tensor in torch
_MAX_DIGITS = 18  # of a size, which is a signed 64-bit number
_MAX_PLACE = 2000  # characters; of a longer comment the rest is source code
_PLACE = re.compile(r"^# File: (?P<file>.+?):(?P<line>\d{1,9}) in (?P<function>[^,]+)(?:, code: (?P<code>.*))?$")
_CALL = re.compile(r"^(?P<target>[A-Za-z_][\w.]*)\((?P<args>.*)\)$", re.S)
_GETITEM = re.compile(r"^(?P<of>\w+)\[(?P<index>.+)\]$")
_ATTRIBUTE = re.compile(r"^self\.[\w.]+$")
_NAME = re.compile(r"(?<![\w.\"'])[A-Za-z_]\w*(?![\w\"'])")
_CLASS = re.compile(r"^(?P<indent>\s*)class [^:]*\(torch\.nn\.Module\):\s*$")


def read_graph(text: str, region_kind: str) -> list[Node]:
    """The nodes of the first graph in ``text`` in order; what is no statement of a graph is left out.

    Args:
        region_kind: "inference", "forward" or "backward"; says what a placeholder is.
    """
    nodes: dict[str, Node] = {}
    provenance = Provenance(exact=False)
    lines = list(_body(text))
    for number, line in enumerate(lines):
        if line.startswith("# "):
            provenance = _provenance(line)
            continue
        if line.startswith(("return ", "return(")):
            result = " ".join(part.partition("  #")[0].strip() for part in lines[number:])[len("return") :].strip()
            names = list(dict.fromkeys(_NAME.findall(result)))
            nodes["output"] = Node("output", NodeKind.OUTPUT, "output", names, result[:400])
            break
        match = _STATEMENT.match(line)
        if match is not None and "fx_pytree." not in match["call"]:
            node = _node(match["name"], match["type"] or "", _call_of(match["call"]), provenance)
            if node is not None:
                nodes[node.name] = node
    parameters = {name: _placeholder(name, type_, region_kind) for name, type_ in _signature(text)}
    found = [*parameters.values(), *(node for name, node in nodes.items() if name not in parameters)]
    return _with_costs(_linked(found))


def _call_of(text: str) -> str:
    """A statement's right side without its comment and without the names that it drops ("sin(x);  x = None  # …")."""
    code = text.partition(" # ")[0].rstrip()
    call, _, dropped = code.rpartition(";")
    return call.rstrip() if call and _DROPPED.fullmatch(dropped) else code


def read_type(text: str) -> TensorInfo | None:
    """A type such as "f32[8, s0][8, 1]cuda:0"; None for what is no tensor's."""
    match = _TYPE.match(text.strip())
    known = DTYPES.get(match["dtype"]) if match else None
    if match is None or known is None or match["sizes"].count(",") >= _MAX_DIMENSIONS:
        return None
    shape = _sizes(match["sizes"])
    numbers = [size for size in shape if isinstance(size, int)]
    total = math.prod(numbers) * known[1] if len(numbers) == len(shape) else 0
    return TensorInfo(shape, known[0], _sizes(match["strides"] or ""), match["device"] or "", total)


def _sizes(text: str) -> list[int | str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return [int(part) if part.isdecimal() and len(part) <= _MAX_DIGITS else part for part in parts]


def _body(text: str) -> Iterator[str]:
    """The stripped lines of the first class in ``text`` below its signature; nested graphs come after it."""
    indent: str | None = None
    inside = False
    for line in text.splitlines():
        match = _CLASS.match(line)
        if match is not None:
            if indent is not None:
                return
            indent = match["indent"]
        elif not inside and line.rstrip().endswith("):"):
            inside = True
        elif inside and (stripped := line.strip()):
            yield stripped


def _signature(text: str) -> Iterator[tuple[str, str]]:
    """(name, type) of each parameter of the first forward."""
    start = text.find("def forward(")
    end = text.find("):", start)
    if start < 0 or end < 0:
        return
    inner = re.sub(r"#[^\n]*", "", text[start + len("def forward(") : end])
    for part in _split(inner):
        match = _PARAMETER.match(part)
        if match is not None and match["name"] != "self":
            yield match["name"], match["type"] or ""


def _split(text: str) -> list[str]:
    """``text`` at commas that are in no brackets and no quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for i, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif not quoted and character in "([{":
            depth += 1
        elif not quoted and character in ")]}":
            depth -= 1
        elif character == "," and not quoted and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def _placeholder(name: str, type_: str, region_kind: str) -> Node:
    if name.startswith("tangents"):
        op = "tangent"
    elif region_kind == "backward" and not name.startswith("primals"):
        op = "saved"
    else:
        op = "input"
    info = read_type(type_)
    return Node(name, NodeKind.PLACEHOLDER, op, args=name, outputs=[info] if info is not None else [])


def _node(name: str, type_: str, call: str, provenance: Provenance) -> Node | None:
    info = read_type(type_)
    outputs = [info] if info is not None else []
    if _ATTRIBUTE.match(call):
        return Node(name, NodeKind.GET_ATTR, "get_attr", [], call, outputs, provenance)
    if (match := _GETITEM.match(call)) is not None:
        args = f"{match['of']}, {match['index']}"
        return Node(name, NodeKind.CALL, "getitem", [match["of"]], args, outputs, provenance)
    if (match := _CALL.match(call)) is not None:
        op = match["target"].removeprefix("torch.ops.")
        inputs = list(dict.fromkeys(_NAME.findall(match["args"])))
        return Node(name, NodeKind.CALL, op, inputs, match["args"][:400], outputs, provenance)
    return None


def _linked(nodes: Sequence[Node]) -> list[Node]:
    """Each node's inputs are those of its names that are nodes before it."""
    seen: set[str] = set()
    for node in nodes:
        node.inputs = [name for name in node.inputs if name in seen]
        seen.add(node.name)
    return list(nodes)


def _provenance(comment: str) -> Provenance:
    match = _PLACE.match(comment[:_MAX_PLACE])
    if match is None or is_torchs(match["file"]):
        return Provenance(exact=False)
    function = users_function(match["function"].strip())
    return Provenance([SourceLine(match["file"], int(match["line"]), function, (match["code"] or "").strip())])


_VIEWS = ("getitem", *(f"aten.{op}." for op in (
    "view", "reshape", "_unsafe_view", "permute", "expand", "unsqueeze", "squeeze", "slice", "select", "t", "transpose",
    "as_strided", "alias", "detach", "split", "split_with_sizes", "unbind")))  # fmt: skip
_PRODUCTS = re.compile(r"^aten\.(?:mm|addmm|bmm|baddbmm)\.")


def _with_costs(nodes: Sequence[Node]) -> list[Node]:
    """Bytes read and written by each op alone, and FLOPs: of matrix products by their sizes, else one an element."""
    by_name = {node.name: node for node in nodes}
    for node in nodes:
        if node.kind is not NodeKind.CALL:
            continue
        read = [info for name in node.inputs for info in by_name[name].outputs]
        node.estimated_bytes = sum(info.bytes for info in (*read, *node.outputs))
        counts = [_count(info) for info in (*read, *node.outputs)]
        node.estimated_flops = max(counts, default=0)
        if _PRODUCTS.match(node.op) and len(read) >= 2 and node.outputs:
            inner = read[-2].shape[-1] if read[-2].shape else 0
            node.estimated_flops = 2 * _count(node.outputs[0]) * inner if isinstance(inner, int) else 0
        elif node.op.startswith(_VIEWS):
            node.estimated_flops = 0
    return list(nodes)


def _count(info: TensorInfo) -> int:
    numbers = [size for size in info.shape if isinstance(size, int)]
    return math.prod(numbers) if len(numbers) == len(info.shape) else 0
