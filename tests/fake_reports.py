"""Synthetic reports, transformer-shaped and of any size, for tests and benchmarks that must not import torch.

Names, ops, shapes, groups and reasons follow what a real compilation of a decoder produces; figures are computed from
the shapes, and nothing here claims to be measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from compiler.report import (
    BufferPlan,
    CudaGraph,
    ExternCall,
    ExternReason,
    Group,
    GroupKind,
    Memory,
    Node,
    NodeKind,
    Provenance,
    Refusal,
    RefusalRule,
    Region,
    Report,
    SourceLine,
    Stage,
    Target,
    TensorInfo,
)
from tests.fake_kernels import kernel_of

Shape = tuple[int, ...]

_DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "int64": 8}
_BATCH, _LENGTH, _HEADS, _WIDTH = 8, 1024, 12, 768
_TOKENS = _BATCH * _LENGTH
_HIDDEN: Shape = (_BATCH, _LENGTH, _WIDTH)
_FLAT: Shape = (_TOKENS, _WIDTH)
_HEADED: Shape = (_BATCH, _HEADS, _LENGTH, _WIDTH // _HEADS)

H100 = Target(
    name="h100",
    title="NVIDIA H100 SXM",
    backend="cuda",
    arch=90,
    warp_size=32,
    multiprocessors=132,
    shared_bytes=232448,
    l2_bytes=52428800,
    bandwidth_gbs=3352.0,
    tflops_fp32=66.9,
    tflops_fp16=989.0,
    memory_gb=80.0,
    source="vendor data sheet",
)


def transformer_region(nodes: int = 600, *, name: str = "region_0", kind: str = "inference") -> Region:
    """A decoder's inference or forward graph of about ``nodes`` FX nodes (at least one layer).

    Every layer reads the same rotary tables and attention mask, as real decoders do.
    """
    builder = _Builder(name, kind)
    tokens = builder.placeholder("input_ids", "input", (_BATCH, _LENGTH), dtype="int64")
    wte = builder.placeholder("wte_weight", "parameter", (50257, _WIDTH))
    shared = _Shared(
        cos=builder.placeholder("rotary_cos", "buffer", (_LENGTH, _WIDTH // _HEADS)),
        sin=builder.placeholder("rotary_sin", "buffer", (_LENGTH, _WIDTH // _HEADS)),
        mask=builder.placeholder("attn_mask", "buffer", (_LENGTH, _LENGTH)),
    )
    builder.module("wte", "Embedding")
    hidden = builder.extern("embedding", "aten.embedding.default", [wte, tokens], _HIDDEN, ExternReason.NO_LOWERING)
    layer = 0
    while layer == 0 or len(builder.nodes) < nodes:
        hidden = _forward_layer(builder, layer, hidden, shared)
        layer += 1
    builder.module("ln_f", "LayerNorm")
    hidden = _layer_norm(builder, "ln_f", hidden)
    builder.close_group(GroupKind.REDUCTION)
    builder.module("lm_head", "Linear")
    flat = builder.call("view", "aten.view.default", [hidden], _FLAT, grouped=False)
    weight = builder.placeholder("lm_head_weight", "parameter", (_WIDTH, 50257))
    logits = builder.extern("mm", "aten.mm.default", [flat, weight], (_TOKENS, 50257))
    builder.output([logits, *builder.saved])
    return builder.region()


def backward_region(nodes: int = 600, *, name: str = "region_0_backward") -> Region:
    """A decoder's backward graph of about ``nodes`` FX nodes: tangents and saved activations in, gradients out."""
    builder = _Builder(name, "backward")
    cos = builder.placeholder("rotary_cos", "buffer", (_LENGTH, _WIDTH // _HEADS))
    sin = builder.placeholder("rotary_sin", "buffer", (_LENGTH, _WIDTH // _HEADS))
    grad = builder.placeholder("tangents_1", "tangent", _HIDDEN)
    gradients: list[str] = []
    layer = 0
    while layer == 0 or len(builder.nodes) < nodes:
        grad = _backward_layer(builder, layer, grad, cos, sin, gradients)
        layer += 1
    builder.output([*gradients, grad])
    return builder.region()


def transformer_report(nodes: int = 600, *, training: bool = False) -> Report:
    """A whole report of the fake decoder: one inference region, or a forward and a backward one."""
    if training:
        forward = transformer_region(nodes // 2, name="region_0_forward", kind="forward")
        regions = [forward, backward_region(nodes - nodes // 2)]
    else:
        regions = [transformer_region(nodes)]
    return Report(
        compiler="fusescope",
        source="example:gpt2",
        target=H100,
        versions={"torch": "2.13.0+cpu", "triton": "3.7.1", "python": "3.11.2", "fusescope": "0.1.0"},
        training=training,
        regions=regions,
        kernels=[kernel_of(region, group, H100) for region in regions for group in region.groups],
        stages=[
            Stage(stage, ms, region.name)
            for region in regions
            for stage, ms in (("capture", 812.0), ("lower", 41.5), ("fuse", 18.2), ("plan", 3.1), ("generate", 22.8))
        ],
        sources={"model.py": _MODEL_SOURCE},
        created="2026-01-01T00:00:00Z",
    )


def chain_region(ops: list[str]) -> Region:
    """One placeholder followed by the given pointwise ops in a single group, and the output."""
    builder = _Builder("region_0", "inference")
    value = builder.placeholder("x", "input", _HIDDEN)
    for op in ops:
        value = builder.call(op.split(".")[1], op, [value], _HIDDEN)
    builder.close_group(GroupKind.POINTWISE)
    builder.output([value])
    return builder.region()


_MODEL_SOURCE = """\
class Block(nn.Module):
    def forward(self, x, cos, sin, mask):
        x = x + self.attn(self.ln_1(x), cos, sin, mask)
        x = x + self.mlp(self.ln_2(x))
        return x
"""


@dataclass
class _Shared:
    """Inputs that every layer reads."""

    cos: str
    sin: str
    mask: str


@dataclass
class _Builder:
    """Grows one region node by node, in the topological order of an FX graph."""

    region_name: str
    kind: str
    nodes: list[Node] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    externs: list[ExternCall] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    saved: list[str] = field(default_factory=list)
    open_group: list[str] = field(default_factory=list)
    _shapes: dict[str, TensorInfo] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _inputs: dict[str, list[str]] = field(default_factory=dict)
    _module: tuple[str, str] = ("", "")

    def module(self, path: str, type_name: str) -> None:
        """Says which nn.Module the following nodes belong to."""
        self._module = (path, type_name)

    def placeholder(self, name: str, op: str, shape: Shape, dtype: str = "bfloat16") -> str:
        return self._add(name, NodeKind.PLACEHOLDER, op, [], shape, dtype)

    def call(self, base: str, op: str, inputs: list[str], shape: Shape, *, grouped: bool = True) -> str:
        name = self._add(base, NodeKind.CALL, op, inputs, shape, "bfloat16")
        if grouped:
            self.open_group.append(name)
        return name

    def extern(
        self,
        base: str,
        op: str,
        inputs: list[str],
        shape: Shape,
        reason: ExternReason = ExternReason.LIBRARY_IS_FASTER,
    ) -> str:
        name = self.call(base, op, inputs, shape, grouped=False)
        node = self.nodes[-1]
        inner = self._shapes[inputs[0]].shape[-1]
        node.estimated_flops = 2 * math.prod(shape) * int(inner)
        call = ExternCall(
            name=f"extern_{name}",
            nodes=[name],
            op=op,
            reason=reason,
            detail=f"{op} runs through a library call.",
            estimated_bytes=node.estimated_bytes,
            estimated_flops=node.estimated_flops,
            order=len(self.groups) + len(self.externs),
        )
        self.externs.append(call)
        for source in inputs:
            if any(source in group.nodes for group in self.groups[-2:]):
                self.refusals.append(Refusal(source, name, RefusalRule.EXTERN, f"{name} is an extern call."))
        return name

    def close_group(self, kind: GroupKind) -> None:
        """Ends the current fusion group."""
        members = set(self.open_group)
        inputs: dict[str, None] = {}
        for name in self.open_group:
            inputs.update(dict.fromkeys(source for source in self._inputs[name] if source not in members))
        ops = [name.rstrip("_0123456789") for name in self.open_group]
        prefix = {GroupKind.POINTWISE: "poi", GroupKind.REDUCTION: "red", GroupKind.TEMPLATE: "tem"}[kind]
        number = len(self.groups)
        group_name = f"{prefix}_{'_'.join(dict.fromkeys(ops[:4]))}_{number}"
        moved = sum(self._shapes[source].bytes for source in inputs) + self._shapes[self.open_group[-1]].bytes
        group = Group(
            name=group_name,
            kind=kind,
            nodes=list(self.open_group),
            kernel=f"triton_{group_name}",
            reason=f"{len(members)} nodes share one iteration space and their intermediates stay in registers.",
            rule="vertical" if len(members) > 1 else "single",
            score_bytes=2 * sum(self._shapes[node].bytes for node in self.open_group[:-1]),
            inputs=list(inputs),
            outputs=[self.open_group[-1]],
            grid=[_TOKENS],
            estimated_bytes=moved,
            estimated_flops=sum(math.prod(_ints(self._shapes[node])) for node in self.open_group),
            order=len(self.groups) + len(self.externs),
        )
        self.groups.append(group)
        self.open_group.clear()

    def output(self, inputs: list[str]) -> None:
        self.nodes.append(Node("output", NodeKind.OUTPUT, "output", list(dict.fromkeys(inputs))))

    def region(self) -> Region:
        return Region(
            name=self.region_name,
            kind=self.kind,
            nodes=self.nodes,
            groups=self.groups,
            extern_calls=self.externs,
            refusals=self.refusals,
            memory=self._memory(),
            cuda_graph=CudaGraph(capturable=True),
            wrapper="\n".join(["def call(args):", *(f"    {g.kernel}[grid](...)" for g in self.groups)]),
            fx_text="\n".join(f"%{n.name} = {n.op}({', '.join(n.inputs)})" for n in self.nodes),
        )

    def _add(self, base: str, kind: NodeKind, op: str, inputs: list[str], shape: Shape, dtype: str) -> str:
        count = self._counts.get(base, 0)
        self._counts[base] = count + 1
        name = f"{base}_{count}" if count else base
        strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        info = TensorInfo(list(shape), dtype, list(strides), "cuda:0", math.prod(shape) * _DTYPE_BYTES[dtype])
        self._shapes[name] = info
        self._inputs[name] = inputs
        path, type_name = self._module
        line = SourceLine("model.py", 3 + len(self.nodes) % 2, "forward", _MODEL_SOURCE.splitlines()[2])
        self.nodes.append(
            Node(
                name=name,
                kind=kind,
                op=op,
                inputs=list(dict.fromkeys(inputs)),
                args=", ".join(inputs),
                outputs=[info],
                provenance=Provenance([line] if inputs else [], path, type_name),
                estimated_flops=math.prod(shape) if inputs else 0,
                estimated_bytes=sum(self._shapes[source].bytes for source in inputs) + info.bytes if inputs else 0,
            )
        )
        return name

    def _memory(self) -> Memory:
        """A plan without reuse: every written value lives from its step to its last reader's."""
        step = {name: group.order for group in self.groups for name in group.nodes}
        step.update({name: call.order for call in self.externs for name in call.nodes})
        last = dict(step)
        for node in self.nodes:
            for source in node.inputs:
                if source in last:
                    last[source] = max(last[source], step.get(node.name, last[source]))
        written = [name for group in self.groups for name in group.outputs]
        written += [name for call in self.externs for name in call.nodes]
        plans = [
            BufferPlan(f"buf{i}", name, self._shapes[name].bytes, step[name], last[name])
            for i, name in enumerate(written)
        ]
        total = sum(plan.bytes for plan in plans)
        return Memory(plans, total, total)


def _ints(info: TensorInfo) -> list[int]:
    return [size for size in info.shape if isinstance(size, int)]


def _layer_norm(builder: _Builder, path: str, value: str) -> str:
    stem = path.replace(".", "_")
    weight = builder.placeholder(f"{stem}_weight", "parameter", (_WIDTH,))
    bias = builder.placeholder(f"{stem}_bias", "parameter", (_WIDTH,))
    row: Shape = (_BATCH, _LENGTH, 1)
    mean = builder.call("mean", "aten.mean.dim", [value], row)
    centred = builder.call("sub", "aten.sub.Tensor", [value, mean], _HIDDEN)
    square = builder.call("pow", "aten.pow.Tensor_Scalar", [centred], _HIDDEN)
    variance = builder.call("mean", "aten.mean.dim", [square], row)
    shifted = builder.call("add", "aten.add.Scalar", [variance], row)
    scale = builder.call("rsqrt", "aten.rsqrt.default", [shifted], row)
    normed = builder.call("mul", "aten.mul.Tensor", [centred, scale], _HIDDEN)
    scaled = builder.call("mul", "aten.mul.Tensor", [normed, weight], _HIDDEN)
    return builder.call("add", "aten.add.Tensor", [scaled, bias], _HIDDEN)


def _linear(builder: _Builder, path: str, value: str, width_in: int, width_out: int) -> str:
    stem = path.replace(".", "_")
    builder.module(path, "Linear")
    flat = builder.call("view", "aten.view.default", [value], (_TOKENS, width_in), grouped=False)
    weight = builder.placeholder(f"{stem}_weight", "parameter", (width_out, width_in))
    bias = builder.placeholder(f"{stem}_bias", "parameter", (width_out,))
    turned = builder.call("permute", "aten.permute.default", [weight], (width_in, width_out), grouped=False)
    return builder.extern("addmm", "aten.addmm.default", [bias, flat, turned], (_TOKENS, width_out))


def _rotary(builder: _Builder, value: str, shared: _Shared) -> str:
    half: Shape = (*_HEADED[:3], _HEADED[3] // 2)
    first = builder.call("slice", "aten.slice.Tensor", [value], half)
    second = builder.call("slice", "aten.slice.Tensor", [value], half)
    negated = builder.call("neg", "aten.neg.default", [second], half)
    turned = builder.call("cat", "aten.cat.default", [negated, first], _HEADED)
    left = builder.call("mul", "aten.mul.Tensor", [value, shared.cos], _HEADED)
    right = builder.call("mul", "aten.mul.Tensor", [turned, shared.sin], _HEADED)
    return builder.call("add", "aten.add.Tensor", [left, right], _HEADED)


def _gelu(builder: _Builder, value: str, shape: Shape) -> str:
    half = builder.call("mul", "aten.mul.Tensor", [value], shape)
    scaled = builder.call("mul", "aten.mul.Tensor", [value], shape)
    erf = builder.call("erf", "aten.erf.default", [scaled], shape)
    shifted = builder.call("add", "aten.add.Tensor", [erf], shape)
    return builder.call("mul", "aten.mul.Tensor", [half, shifted], shape)


def _forward_layer(builder: _Builder, layer: int, hidden: str, shared: _Shared) -> str:
    path = f"h.{layer}"
    builder.module(f"{path}.ln_1", "LayerNorm")
    normed = _layer_norm(builder, f"{path}.ln_1", hidden)
    builder.close_group(GroupKind.REDUCTION)
    projected = _linear(builder, f"{path}.attn.c_attn", normed, _WIDTH, 3 * _WIDTH)
    builder.module(f"{path}.attn", "Attention")
    heads = []
    for _ in range(3):
        part = builder.call("slice", "aten.slice.Tensor", [projected], _FLAT, grouped=False)
        heads.append(builder.call("view", "aten.view.default", [part], _HEADED, grouped=False))
    query = _rotary(builder, heads[0], shared)
    builder.close_group(GroupKind.POINTWISE)
    key = _rotary(builder, heads[1], shared)
    builder.close_group(GroupKind.POINTWISE)
    attended = builder.extern(
        "scaled_dot_product_attention",
        "aten._scaled_dot_product_flash_attention.default",
        [query, key, heads[2], shared.mask],
        _HEADED,
    )
    value = builder.call("getitem", "getitem", [attended], _HEADED, grouped=False)
    value = builder.call("permute", "aten.permute.default", [value], _HIDDEN, grouped=False)
    value = _linear(builder, f"{path}.attn.c_proj", value, _WIDTH, _WIDTH)
    builder.module(f"{path}.ln_2", "LayerNorm")
    value = builder.call("view", "aten.view.default", [value], _HIDDEN)
    residual = builder.call("add", "aten.add.Tensor", [hidden, value], _HIDDEN)
    normed = _layer_norm(builder, f"{path}.ln_2", residual)
    builder.close_group(GroupKind.REDUCTION)
    wide = _linear(builder, f"{path}.mlp.c_fc", normed, _WIDTH, 4 * _WIDTH)
    builder.module(f"{path}.mlp.act", "GELU")
    active = _gelu(builder, wide, (_TOKENS, 4 * _WIDTH))
    builder.close_group(GroupKind.POINTWISE)
    narrow = _linear(builder, f"{path}.mlp.c_proj", active, 4 * _WIDTH, _WIDTH)
    builder.module(path, "Block")
    if builder.kind == "forward":
        builder.saved += [normed, query, key, active]
    return builder.call("add", "aten.add.Tensor", [residual, narrow], _HIDDEN)


def _linear_backward(builder: _Builder, stem: str, grad: str, width_in: int, width_out: int, out: list[str]) -> str:
    weight = builder.placeholder(f"{stem}_weight", "parameter", (width_out, width_in))
    saved = builder.placeholder(f"{stem}_saved", "saved", (_TOKENS, width_in))
    into = builder.extern("mm", "aten.mm.default", [grad, weight], (_TOKENS, width_in))
    turned = builder.call("permute", "aten.permute.default", [grad], (width_out, _TOKENS), grouped=False)
    out.append(builder.extern("mm", "aten.mm.default", [turned, saved], (width_out, width_in)))
    out.append(builder.call("sum", "aten.sum.dim_IntList", [grad], (width_out,)))
    builder.close_group(GroupKind.REDUCTION)
    return into


def _norm_backward(builder: _Builder, stem: str, grad: str, out: list[str]) -> str:
    row: Shape = (_BATCH, _LENGTH, 1)
    weight = builder.placeholder(f"{stem}_weight", "parameter", (_WIDTH,))
    normed = builder.placeholder(f"{stem}_normed", "saved", _HIDDEN)
    scale = builder.placeholder(f"{stem}_rsqrt", "saved", row)
    weighted = builder.call("mul", "aten.mul.Tensor", [grad, weight], _HIDDEN)
    summed = builder.call("sum", "aten.sum.dim_IntList", [weighted], row)
    product = builder.call("mul", "aten.mul.Tensor", [weighted, normed], _HIDDEN)
    dotted = builder.call("sum", "aten.sum.dim_IntList", [product], row)
    spread = builder.call("mul", "aten.mul.Tensor", [normed, dotted], _HIDDEN)
    left = builder.call("sub", "aten.sub.Tensor", [weighted, summed], _HIDDEN)
    inner = builder.call("sub", "aten.sub.Tensor", [left, spread], _HIDDEN)
    result = builder.call("mul", "aten.mul.Tensor", [scale, inner], _HIDDEN)
    builder.close_group(GroupKind.REDUCTION)
    scaled = builder.call("mul", "aten.mul.Tensor", [grad, normed], _HIDDEN)
    out.append(builder.call("sum", "aten.sum.dim_IntList", [scaled], (_WIDTH,)))
    builder.close_group(GroupKind.REDUCTION)
    return result


def _backward_layer(builder: _Builder, layer: int, grad: str, cos: str, sin: str, out: list[str]) -> str:
    path = f"h.{layer}"
    stem = path.replace(".", "_")
    builder.module(f"{path}.mlp", "MLP")
    flat = builder.call("view", "aten.view.default", [grad], _FLAT, grouped=False)
    wide = _linear_backward(builder, f"{stem}_c_proj", flat, 4 * _WIDTH, _WIDTH, out)
    erf = builder.placeholder(f"{stem}_erf", "saved", (_TOKENS, 4 * _WIDTH))
    slope = builder.call("mul", "aten.mul.Tensor", [wide, erf], (_TOKENS, 4 * _WIDTH))
    bell = builder.call("exp", "aten.exp.default", [erf], (_TOKENS, 4 * _WIDTH))
    slope = builder.call("add", "aten.add.Tensor", [slope, bell], (_TOKENS, 4 * _WIDTH))
    builder.close_group(GroupKind.POINTWISE)
    narrow = _linear_backward(builder, f"{stem}_c_fc", slope, _WIDTH, 4 * _WIDTH, out)
    narrow = builder.call("view", "aten.view.default", [narrow], _HIDDEN, grouped=False)
    normed = _norm_backward(builder, f"{stem}_ln_2", narrow, out)
    middle = builder.call("add", "aten.add.Tensor", [grad, normed], _HIDDEN)
    builder.close_group(GroupKind.POINTWISE)
    builder.module(f"{path}.attn", "Attention")
    flat = builder.call("view", "aten.view.default", [middle], _FLAT, grouped=False)
    attended = _linear_backward(builder, f"{stem}_attn_proj", flat, _WIDTH, _WIDTH, out)
    saved = [builder.placeholder(f"{stem}_{part}", "saved", _HEADED) for part in ("q", "k", "v", "out")]
    heads = builder.extern(
        "sdpa_backward",
        "aten._scaled_dot_product_flash_attention_backward.default",
        [attended, *saved],
        _HEADED,
    )
    parts = [builder.call("getitem", "getitem", [heads], _HEADED, grouped=False) for _ in range(3)]
    turned = []
    for part in parts[:2]:
        left = builder.call("mul", "aten.mul.Tensor", [part, cos], _HEADED)
        right = builder.call("mul", "aten.mul.Tensor", [part, sin], _HEADED)
        turned.append(builder.call("sub", "aten.sub.Tensor", [left, right], _HEADED))
        builder.close_group(GroupKind.POINTWISE)
    joined = builder.call("cat", "aten.cat.default", [*turned, parts[2]], (_TOKENS, 3 * _WIDTH))
    builder.close_group(GroupKind.POINTWISE)
    into = _linear_backward(builder, f"{stem}_c_attn", joined, _WIDTH, 3 * _WIDTH, out)
    into = builder.call("view", "aten.view.default", [into], _HIDDEN, grouped=False)
    normed = _norm_backward(builder, f"{stem}_ln_1", into, out)
    result = builder.call("add", "aten.add.Tensor", [middle, normed], _HIDDEN)
    builder.close_group(GroupKind.POINTWISE)
    return result
