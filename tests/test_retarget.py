"""Our compiler's graphs for a GPU that is not here are those that it has there, and what runs is right on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch._C import DispatchKey
from torch._prims.rng_prims import graphsafe_run_with_rng_state
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint

from compiler.backend import Session, fusescope
from compiler.ir import Extern
from compiler.kernel_library import KernelLibrary
from compiler.pipeline import compile_model, run_once
from compiler.planning.donated import donated_inputs
from compiler.region import CompiledRegion
from compiler.report import ExternReason
from compiler.retarget.attention import Call, chosen
from compiler.retarget.autocast import AS_GIVEN, SINGLE_RESULT, WIDEST, casts, ops_of_autocast
from compiler.retarget.autocast import SINGLE as SINGLE_OPS
from compiler.retarget.compositions import composed_as_on_gpu
from compiler.retarget.tracing import traced_for
from compiler.targets import resolve
from tests.test_examples import SMALL, build, example_names

triton = pytest.importorskip("triton", reason="kernels are Triton's")
tl = pytest.importorskip("triton.language")
aten = torch.ops.aten
ATTENTION = "_scaled_dot_product_{}_attention{}"


def regions_of(
    model: Callable[..., Any], inputs: Sequence[Any], target: str, *, training: bool = False, dynamic: bool = False
) -> tuple[list[CompiledRegion], Callable[..., Any]]:
    """What the stages make of the model for a target, but for binaries; and what runs."""
    torch._dynamo.reset()
    found = resolve(target)
    session = Session(found, KernelLibrary(found, binaries=False, texts=False), elsewhere=True)
    backend = partial(fusescope, options={"session": session})
    with traced_for(found):
        compiled = torch.compile(model, backend=backend, dynamic=dynamic or None)
        run_once(compiled, tuple(inputs), training)
    assert session.regions
    return session.regions, compiled


def calls(region: CompiledRegion) -> list[fx.Node]:
    return [n for n in region.graph.graph.nodes if n.op == "call_function"]


def ops(region: CompiledRegion) -> list[str]:
    return [n.target.overloadpacket.__name__ for n in calls(region) if isinstance(n.target, torch._ops.OpOverload)]


def tensors(region: CompiledRegion) -> Iterator[Tensor]:
    for node in region.graph.graph.nodes:
        yield from (t for t in pytree.tree_leaves(node.meta.get("val")) if isinstance(t, Tensor))


def gradients(run: Callable[..., Any], inputs: Sequence[Any]) -> list[Tensor]:
    """Of the inputs that ask for one."""
    outputs = [t for t in pytree.tree_leaves(run(*inputs)) if t.requires_grad]
    asked = [x for x in inputs if x.requires_grad]
    torch.manual_seed(1)
    return list(torch.autograd.grad(outputs, asked, [torch.randn(t.shape).to(t.dtype) for t in outputs]))


DEEP = {"mobilenet_v3", "resnet18"}  # of the layers that conv_bn_relu has: what AMD's differ in is seen there
OF_EVERY_VENDOR = [(name, "h200") for name in example_names()] + [
    (name, "mi300x") for name in example_names() if name not in DEEP
]


@pytest.mark.parametrize(("name", "target"), OF_EVERY_VENDOR)
def test_no_op_of_the_gallery_is_the_cpus_alone(name: str, target: str) -> None:
    model, inputs, training = build(name, **SMALL.get(name, {}))
    regions, _ = regions_of(model, inputs, target, training=training)
    for region in regions:
        assert not [op for op in ops(region) if "for_cpu" in op or "mkldnn" in op]
        assert {t.device.type for t in tensors(region)} == {"cuda"}
        assert not [s for s in region.steps if getattr(s, "reason", None) is ExternReason.CPU_TENSOR]


# --- attention -----------------------------------------------------------------------------------------------------


def call_of(dtype: torch.dtype, head: int = 64, **rest: Any) -> Call:
    query, key, value = (torch.empty(2, 4, 16, head, dtype=dtype, device="meta") for _ in range(3))
    return Call(query, key, value, **rest)


HALF, SINGLE = torch.float16, torch.float32
CUDNN, FLASH = SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION
EFFICIENT, MATH = SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH
MASK = torch.zeros(16, 16, device="meta")


@pytest.mark.parametrize(
    ("target", "call", "kind"),
    [
        ("h100", call_of(HALF), CUDNN),
        ("b200", call_of(torch.bfloat16, mask=MASK.bfloat16()), CUDNN),
        ("b200", call_of(HALF, 256), FLASH),  # cuDNN's widest head is 128 but on Hopper
        ("h200", call_of(HALF, 256), CUDNN),
        ("h200", call_of(HALF, 12), FLASH),  # padded; cuDNN wants a multiple of 8
        ("h200", call_of(SINGLE), EFFICIENT),
        ("h200", call_of(SINGLE, 6), MATH),
        ("h200", call_of(torch.float64), MATH),
        ("a100", call_of(HALF), FLASH),
        ("a100", call_of(HALF, 264), EFFICIENT),
        ("a100", call_of(HALF, mask=MASK.half()), EFFICIENT),
        ("a100", call_of(HALF, 12, mask=MASK.half()), MATH),
        ("l4", call_of(SINGLE, mask=MASK, dropout=0.1), EFFICIENT),
        ("rtx5090", call_of(HALF, causal=True), FLASH),
        ("mi300x", call_of(HALF, 512), FLASH),
        ("mi300x", call_of(SINGLE), EFFICIENT),
        ("mi300x", call_of(HALF, mask=MASK), MATH),  # ROCm's mask has the dtype of the rest
    ],
)
def test_the_kernels_are_those_that_torch_takes(target: str, call: Call, kind: SDPBackend) -> None:
    assert chosen(resolve(target), call) is kind


def test_a_wide_head_is_not_trained_by_flash_on_small_gpus() -> None:
    query, key, value = (torch.empty(2, 4, 16, 200, dtype=HALF, requires_grad=True) for _ in range(3))
    assert chosen(resolve("rtx4090"), Call(query, key, value)) is EFFICIENT
    assert chosen(resolve("a100"), Call(query, key, value)) is FLASH
    with torch.no_grad():
        assert chosen(resolve("rtx4090"), Call(query, key, value)) is FLASH


def test_heads_of_the_query_share_one_of_the_key() -> None:
    query, key = torch.empty(2, 4, 16, 64, dtype=HALF), torch.empty(2, 2, 16, 64, dtype=HALF)
    assert chosen(resolve("a100"), Call(query, key, key, grouped=True)) is FLASH
    assert chosen(resolve("a100"), Call(query, key, key)) is MATH


def test_what_the_user_allows_is_asked_in_the_order_that_he_gives() -> None:
    call = call_of(HALF)
    with sdpa_kernel(EFFICIENT):
        assert chosen(resolve("h100"), call) is EFFICIENT
    with sdpa_kernel([EFFICIENT, FLASH], set_priority=True):
        assert chosen(resolve("h100"), call) is EFFICIENT


def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query * 2, key, value, is_causal=True)


@pytest.mark.parametrize(
    ("target", "dtype", "kind", "results"),
    [
        # as CUDA's and ROCm's kernels return them: output, logarithm of the sum, and what dropout was drawn from
        ("a100", HALF, "flash", [([2, 4, 16, 12], HALF), ([2, 4, 16], SINGLE), ([2], torch.uint64)]),
        ("h200", SINGLE, "efficient", [([2, 4, 16, 12], SINGLE), ([2, 4, 32], SINGLE), ([], torch.int64)]),
        ("h200", HALF, "cudnn", [([2, 4, 16, 16], HALF), ([2, 4, 16, 1], SINGLE), ([], torch.int64)]),
        ("mi300x", HALF, "flash", [([2, 4, 16, 12], HALF), ([2, 4, 16], SINGLE), ([], torch.int64)]),
    ],
)
def test_attention_is_the_targets_forward_and_backward(
    target: str, dtype: torch.dtype, kind: str, results: list[tuple[list[int], torch.dtype]]
) -> None:
    torch.manual_seed(0)
    head = results[0][0][-1]
    inputs = [torch.randn(2, 4, 16, head).to(dtype).requires_grad_() for _ in range(3)]
    (forward, backward), compiled = regions_of(attention, inputs, target, training=True)
    (call,) = (n for n in calls(forward) if "attention" in n.name)
    assert call.target is getattr(aten, ATTENTION.format(kind, "")).default
    assert ATTENTION.format(kind, "_backward") in ops(backward)
    names = {result.name: place for place, result in enumerate(call.target._schema.returns)}
    seed = names.get("rng_state", names.get("philox_seed"))
    found = [call.meta["val"][place] for place in (0, 1, seed)]
    padded = -(-head // 8) * 8 if kind == "flash" else head
    assert [(list(t.shape), t.dtype) for t in found] == [([2, 4, 16, padded], dtype), *results[1:]]
    torch.testing.assert_close(compiled(*inputs), attention(*inputs), rtol=2e-3, atol=2e-3)
    for mine, eager in zip(gradients(compiled, inputs), gradients(attention, inputs), strict=True):
        torch.testing.assert_close(mine, eager, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", [SINGLE, HALF])
def test_attention_with_dropout_is_a_kernels_too(dtype: torch.dtype) -> None:
    """The CPU would take it apart. Its backward drops what its forward has dropped."""

    def dropped(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=0.5)

    eye = torch.eye(16, dtype=dtype).expand(2, 4, 16, 16).clone()
    inputs = [torch.zeros_like(eye), torch.zeros_like(eye), eye]
    for x in inputs:
        x.requires_grad_()
    (forward, backward), compiled = regions_of(dropped, inputs, "a100", training=True)
    kind = "efficient" if dtype is SINGLE else "flash"
    assert ATTENTION.format(kind, "") in ops(forward)
    assert ATTENTION.format(kind, "_backward") in ops(backward)
    out = compiled(*inputs)  # the weights themselves
    assert set(out.detach().unique().tolist()) == {0.0, 2 / 16}
    (of_value,) = torch.autograd.grad(out, inputs[2], torch.eye(16, dtype=dtype).expand_as(out))
    torch.testing.assert_close(of_value, out.transpose(-2, -1))


@pytest.mark.parametrize("length", [13, 16])
def test_a_mask_is_laid_out_as_the_kernels_want_it(length: int) -> None:
    def masked(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, mask)

    inputs = [torch.randn(2, 4, length, 16, requires_grad=True) for _ in range(3)]
    inputs.append(torch.ones(length, length, dtype=torch.bool).tril())
    (forward, _), compiled = regions_of(masked, inputs, "h200", training=True)
    (call,) = (n for n in calls(forward) if "attention" in n.name)
    bias = call.args[3]
    assert isinstance(bias, fx.Node)
    value = bias.meta["val"]
    assert (list(value.shape), value.stride()[-2:]) == ([2, 4, length, length], (16, 1))
    torch.testing.assert_close(compiled(*inputs), masked(*inputs))
    for mine, eager in zip(gradients(compiled, inputs), gradients(masked, inputs), strict=True):
        torch.testing.assert_close(mine, eager, rtol=1e-4, atol=1e-4)


# --- other ops -----------------------------------------------------------------------------------------------------


def test_half_floats_are_normalised_in_float32() -> None:
    """The CPU rounds mean and deviation to the dtype of the input, and the backward reads them."""
    model = nn.LayerNorm(64).bfloat16()
    x = torch.randn(8, 64, dtype=torch.bfloat16, requires_grad=True)
    (forward, backward), compiled = regions_of(model, [x], "h100", training=True)
    saved = [n for n in backward.graph.graph.find_nodes(op="placeholder") if list(n.meta["val"].shape) == [8, 1]]
    assert {n.meta["val"].dtype for n in saved} == {SINGLE}
    copies = [n.meta["val"] for n in calls(forward) if n.target is aten._to_copy.default]
    assert [list(t.shape) for t in copies if t.dtype is torch.bfloat16] == [[8, 64]], "the result alone is rounded"
    torch.testing.assert_close(compiled(x), model(x))


def test_groups_are_normalised_as_on_a_gpu() -> None:
    """The CPU folds the scale into the deviation first."""
    model = nn.GroupNorm(2, 8)
    x = torch.randn(2, 8, 6, 6)
    ((region,), compiled) = regions_of(model, [x], "h100")
    full = [n for n in calls(region) if n.name.startswith("mul") and n.meta["val"].numel() == x.numel()]
    assert len(full) == 2
    assert len(region.steps) == 1
    torch.testing.assert_close(compiled(x), model(x))


def test_the_norm_by_root_mean_square_has_a_backward_of_its_own() -> None:
    model = nn.RMSNorm(32)
    x = torch.randn(4, 32, requires_grad=True)
    (_, backward), compiled = regions_of(model, [x], "h100", training=True)
    origins = {str(n.meta["original_aten"]) for n in calls(backward)}
    assert origins == {"aten._fused_rms_norm_backward.default"}
    torch.testing.assert_close(gradients(compiled, [x]), gradients(model, [x]))


class Casting(nn.Module):
    """Under autocast: a product, a norm, a sum and dtypes that are mixed."""

    def __init__(self, device: str, dtype: torch.dtype) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(16, 16), nn.LayerNorm(16)
        self.device, self.dtype = device, dtype

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        with torch.autocast(self.device, self.dtype):
            y = self.linear(x)
            with torch.autocast(self.device, enabled=False):
                plain = x @ x.mT
            wide = torch.addcmul(y, y, x), torch.dot(y[0], x[0]), torch.atan2(y, y)
            return y, self.norm(y), y.softmax(-1), y.sum(), y.exp(), torch.cat([y, x]), F.gelu(y), plain, *wide


@pytest.mark.parametrize(
    ("device", "dtype"), [("cuda", torch.float16), ("cuda", torch.bfloat16), ("cpu", torch.bfloat16)]
)
def test_autocast_has_the_rules_of_a_gpu(device: str, dtype: torch.dtype, recwarn: pytest.WarningsRecorder) -> None:
    """torch switches it off where it has no GPU, and the CPU keeps a norm in half floats. The dtypes are CUDA's."""
    model, x = Casting(device, dtype), torch.randn(4, 16)
    ((region,), compiled) = regions_of(model, [x], "h100")
    wanted = [dtype, *[SINGLE] * 5, dtype, *[SINGLE] * 3, dtype]
    with composed_as_on_gpu(True):
        assert [t.dtype for t in compiled(x)] == wanted
    (output,) = region.graph.graph.find_nodes(op="output")
    assert [n.meta["val"].dtype for n in output.args[0]] == wanted
    assert not [w for w in recwarn.list if "autocast" in str(w.message)]
    assert not torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("cuda")


def test_every_op_that_autocast_casts_for_has_its_rule() -> None:
    """An op of a newer torch has to be looked up: what is in no list takes the lower precision."""
    names = {op.overloadpacket.__name__ for op in ops_of_autocast() if casts(op, "AutocastCUDA")}
    assert names - SINGLE_OPS - SINGLE_RESULT - WIDEST - AS_GIVEN <= set(
        "_convolution _cudnn_rnn _scaled_dot_product_flash_attention _thnn_fused_gru_cell _thnn_fused_lstm_cell addbmm "
        "addmm addmv addr baddbmm bmm chain_matmul conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d "
        "conv_transpose3d convolution cudnn_convolution cudnn_convolution_transpose einsum gru_cell linalg_multi_dot "
        "linalg_vecdot linear lstm_cell matmul mm mv prelu rnn_relu_cell rnn_tanh_cell "
        "scaled_dot_product_attention".split()
    )
    with composed_as_on_gpu(True):
        assert all(DispatchKey.AutocastCPU in op.py_kernels or casts(op, "AutocastCPU") for op in ops_of_autocast())
    assert not any(DispatchKey.AutocastCPU in op.py_kernels for op in ops_of_autocast())
    assert not casts(aten.softmax.int, "AutocastCPU")


def test_a_number_that_is_set_is_made_on_the_target() -> None:
    def step(x: Tensor) -> Tensor:
        x = x.clone()
        x[0] = 3
        x[1] = torch.tensor([1.0, 2.0])
        return x * 2

    x = torch.ones(3, 2)
    ((region,), compiled) = regions_of(step, [x], "h100")
    constants = region.graph.graph.find_nodes(op="get_attr")
    assert [list(n.meta["val"].shape) for n in constants] == [[2]]
    torch.testing.assert_close(compiled(x), step(x))


def test_a_shape_that_only_the_device_knows_is_the_cpus() -> None:
    def quantised(x: Tensor) -> Tensor:
        return torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127)

    ((region,), _) = regions_of(quantised, [torch.randn(4, 4)], "h100")
    assert {t.device.type for t in tensors(region)} == {"cuda"}


def test_a_backward_owns_what_its_forward_saved() -> None:
    """AOTAutograd looks for such memory in the CPU's halves, which are others."""
    model = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 16))
    (_, backward), _ = regions_of(model, [torch.randn(4, 16)], "h100", training=True)
    names = {n.name for n in backward.graph.graph.find_nodes(op="placeholder")}
    owned = donated_inputs(backward.graph)
    assert owned
    assert owned <= {name for name in names if not name.startswith(("primals", "tangents"))}


def test_attention_that_is_computed_again_draws_what_it_drew() -> None:
    """The partitioner wraps it in a call that is no op, and says nothing of what that returns."""

    def dropped(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query * 2, key, value, dropout_p=0.5) + 1

    def repeated(*inputs: Tensor) -> Tensor:
        result: Tensor = checkpoint(dropped, *inputs, use_reentrant=False)
        return result

    eye = torch.eye(16).expand(2, 4, 16, 16).clone()
    inputs = [torch.zeros_like(eye, requires_grad=True), torch.zeros_like(eye), eye.requires_grad_()]
    regions, compiled = regions_of(repeated, inputs, "a100", training=True)
    for region in regions:
        (step,) = (s for s in region.steps if isinstance(s, Extern) and s.reason is ExternReason.RANDOM)
        assert step.target is graphsafe_run_with_rng_state
        assert [list(b.size) for b in step.outputs[:1] if b is not None] == [[2, 4, 16, 16]]
    out = compiled(*inputs)
    (of_value,) = torch.autograd.grad(out, inputs[2], torch.eye(16).expand_as(out))
    torch.testing.assert_close(of_value, (out - 1).transpose(-2, -1))


def test_sparse_gradients_stay_where_torch_can_make_them() -> None:
    model = nn.EmbeddingBag(50, 16, mode="sum", sparse=True)
    (forward, _), _ = regions_of(model, [torch.randint(0, 50, (4, 3))], "h100", training=True)
    assert "_embedding_bag" in ops(forward)


@triton.jit
def plus_one(source, result, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(result + place, tl.load(source + place, mask=place < count) + 1, mask=place < count)


def launching(x: Tensor) -> Tensor:
    result = torch.empty_like(x)
    plus_one[(1,)](x, result, x.numel(), BLOCK=64)
    return result * 2


@pytest.mark.parametrize("compiler", ["fusescope", "inductor"])
def test_a_triton_kernel_of_the_models_own_is_a_call(compiler: str) -> None:
    """Dynamo captures it only where it believes in a GPU, and the kernel cannot run on the CPU."""
    compilation = compile_model(launching, (torch.ones(64),), source="l", target=resolve("h100"), compiler=compiler)
    (region,) = compilation.report.regions
    found = [call for call in region.extern_calls if any("triton_kernel" in name for name in call.nodes)]
    assert len(found) == 1
    assert len(region.groups) == 1
    assert any("are not run on the CPU" in note for note in compilation.report.notes)
    assert found[0].detail == "the model's own Triton kernel plus_one"
    if compiler == "fusescope":
        assert "kwargs={'source': arg0_1, 'result': ext_empty_permuted}" in region.wrapper
    assert triton.runtime.driver._active is None or torch.cuda.is_available()


def test_launches_of_a_kernel_of_the_models_own_are_counted_in_the_program() -> None:
    report = compile_model(
        lambda x: launching(launching(x)), (torch.ones(64),), source="l", target=resolve("h100"), compiler="inductor"
    ).report
    (own,) = (kernel for kernel in report.kernels if "plus_one" in kernel.name)
    assert own.launches == 2


def test_symbolic_sizes() -> None:
    def step(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.layer_norm(F.scaled_dot_product_attention(query, key, value), (16,))

    inputs = [torch.randn(2, 4, 12, 16, requires_grad=True) for _ in range(3)]
    (forward, backward), compiled = regions_of(step, inputs, "h200", training=True, dynamic=True)
    assert ATTENTION.format("efficient", "") in ops(forward)
    assert any(isinstance(s, torch.SymInt) for t in tensors(backward) for s in t.shape)
    longer = [torch.randn(2, 4, 20, 16) for _ in range(3)]
    torch.testing.assert_close(compiled(*longer), step(*longer))


def test_the_report_names_the_targets_ops() -> None:
    inputs = tuple(torch.randn(2, 4, 16, 16, dtype=HALF) for _ in range(3))
    report = compile_model(attention, inputs, source="a", target=resolve("mi300x")).report
    (region,) = report.regions
    assert [call.op for call in region.extern_calls] == ["aten._scaled_dot_product_flash_attention.default"]
    assert {t.device for node in region.nodes for t in node.outputs} == {"cuda:0"}
    assert "cuda" in region.wrapper
    assert "cpu" not in region.wrapper
