"""Autocast as a GPU has it, while a model is traced on the CPU.

A model asks for it by the GPU's name, and torch switches that off where there is no GPU; or by the name of its tensors'
device, the CPU, which casts for other ops than a GPU. So both are the CPU's here, with the GPU's rules: those of
torch's ``autocast_mode.h``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey, DispatchKeySet
from torch.amp import autocast_mode
from torch.utils import _pytree as pytree

from compiler.patching import replaced

_KEY = DispatchKey.AutocastCPU
_KEYS = ("AutocastCPU", "AutocastCUDA")
# In float32 whatever they are given; of these with a dtype for the result, float32 is its default.
SINGLE = frozenset(
    "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus layer_norm "
    "native_layer_norm group_norm rms_norm frobenius_norm nuclear_norm norm cosine_similarity poisson_nll_loss "
    "cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss "
    "margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss "
    "binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp upsample_nearest1d upsample_nearest2d "
    "upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d "
    "upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d upsample_bicubic2d "
    "_upsample_bicubic2d_aa".split()
)
SINGLE_RESULT = frozenset(
    "prod softmax log_softmax cumprod cumsum linalg_vector_norm linalg_matrix_norm sum".split()
)
# In the widest dtype among what they are given.
WIDEST = frozenset(
    "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add".split()
)
AS_GIVEN = frozenset(["binary_cross_entropy"])  # torch refuses it under autocast


@contextmanager
def autocast_as_on_gpu() -> Iterator[None]:
    """While it lasts, a traced model casts as it casts on a GPU."""
    rules = {op: _rule(op) for op in ops_of_autocast()}
    with ExitStack() as stack:
        stack.enter_context(replaced(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False))
        stack.enter_context(replaced(torch.cuda, "is_bf16_supported", lambda including_emulation=True: True))
        stack.enter_context(replaced(autocast_mode.autocast, "__enter__", _entering(autocast_mode.autocast.__enter__)))
        stack.enter_context(replaced(autocast_mode.autocast, "__exit__", _leaving(autocast_mode.autocast.__exit__)))
        library = stack.enter_context(torch.library._scoped_library("aten", "IMPL"))
        for op, rule in rules.items():
            if casts(op, "AutocastCPU"):
                op.py_kernels[_KEY] = rule
            else:  # the dispatcher passes such a key by, and asks no rule of Python's
                library.impl(op.name(), rule, "AutocastCPU")
            op._dispatch_cache.clear()
        try:
            yield
        finally:
            for op in rules:
                op.py_kernels.pop(_KEY, None)
                op._dispatch_cache.clear()


def ops_of_autocast() -> list[Any]:
    """Every op that autocast casts for, on the CPU or on a GPU."""
    ops = []
    for name in torch._C._dispatch_get_all_op_names():
        space, _, rest = name.partition("::")
        packet, _, overload = rest.partition(".")
        if space == "aten" and any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in _KEYS):
            ops.append(getattr(getattr(torch.ops.aten, packet), overload or "default"))
    return ops


def casts(op: Any, key: str) -> bool:
    """Whether an autocast, by its dispatch key, does something for the op."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key)


def _rule(op: Any) -> Callable[..., Any]:
    name = op.overloadpacket.__name__
    on_gpu = casts(op, "AutocastCUDA")
    names = [argument.name for argument in op._schema.arguments]

    def call(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(DispatchKeySet(_KEY)):
            if name in SINGLE_RESULT and on_gpu:
                given = {**dict(zip(names, args, strict=False)), **kwargs}
                if given.get("dtype") is None and _is_cast(args[0]):
                    return op(*args[: names.index("dtype")], **{**kwargs, "dtype": torch.float32})
            elif on_gpu and name not in AS_GIVEN:
                args, kwargs = pytree.tree_map_only(Tensor, _caster(name, (args, kwargs)), (args, kwargs))
            return op(*args, **kwargs)

    return call


def _caster(name: str, given: Any) -> Callable[[Tensor], Tensor]:
    dtype = torch.get_autocast_dtype("cpu")
    if name in SINGLE:
        dtype = torch.float32
    elif name in WIDEST:
        tensors = [t for t in pytree.tree_leaves(given) if isinstance(t, Tensor) and _is_cast(t)]
        dtype = torch.float32 if any(t.dtype is torch.float32 for t in tensors) else dtype
    return lambda tensor: tensor.to(dtype) if _is_cast(tensor) else tensor


def _is_cast(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.dtype is not torch.float64


def _entering(real: Callable[..., Any]) -> Callable[..., Any]:
    def enter(self: Any) -> Any:
        entered = real(self)
        if self.device == "cuda":
            self.on_cpu_before = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
            _set_on_cpu(self._enabled, self.fast_dtype)
        return entered

    return enter


def _leaving(real: Callable[..., Any]) -> Callable[..., Any]:
    def leave(self: Any, *raised: Any) -> Any:
        if self.device == "cuda":
            _set_on_cpu(*self.on_cpu_before)
        return real(self, *raised)

    return leave


def _set_on_cpu(enabled: bool, dtype: torch.dtype) -> None:
    torch.set_autocast_enabled("cpu", enabled)
    torch.set_autocast_dtype("cpu", dtype)
