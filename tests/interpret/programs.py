"""Random small programs: lines of Python over tensors, written while running them, so that every line is legal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 16, 33)
MAX_ELEMENTS = 40_000
BOUND = 8.0  # values stay below this, so that rounding errors do not grow without limit


@dataclass
class Program:
    """``lines`` compute v0, v1, … from inputs x0, x1, …; ``outputs`` names what is returned."""

    inputs: list[Tensor]
    lines: list[str]
    outputs: list[str]
    dtypes: set[torch.dtype] = field(default_factory=set)

    def __str__(self) -> str:
        shapes = [f"# x{i}: {str(x.dtype)[6:]}{list(x.shape)} strides {x.stride()}" for i, x in enumerate(self.inputs)]
        return "\n".join([*shapes, *self.lines, f"return {', '.join(self.outputs)}"])

    def function(self) -> Callable[..., list[Tensor]]:
        """The program as a function of its inputs."""
        names = ", ".join(f"x{i}" for i in range(len(self.inputs)))
        body = "\n    ".join([*self.lines, f"return [{', '.join(self.outputs)}]"])
        namespace: dict[str, Any] = {"torch": torch, "F": F}
        exec(f"def program({names}):\n    {body}\n", namespace)
        function: Callable[..., list[Tensor]] = namespace["program"]
        return function

    def tolerance(self) -> float:
        """What the coarsest dtype on the way may cost over a dozen ops, relative to values of size one or more."""
        if torch.bfloat16 in self.dtypes:
            return 0.3
        if torch.float16 in self.dtypes:
            return 0.04
        single = torch.float32 in self.dtypes or any(".float()" in line for line in self.lines)
        return 2e-4 if single else 1e-9


def random_program(random: Random, length: int) -> Program:
    """A program of about ``length`` lines."""
    return _Writer(random).write(length)


class _Writer:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.values: dict[str, Tensor] = {}
        self.exact: set[str] = set()  # values that no order of evaluation changes: safe to compare and round
        self.program = Program([], [], [])
        self.generator = torch.Generator().manual_seed(random.randrange(1 << 30))

    def write(self, length: int) -> Program:
        for _ in range(self.random.randint(1, 3)):
            self._input()
        families = [
            self._unary, self._unary, self._binary, self._binary, self._binary, self._reduce, self._reduce, self._view,
            self._view, self._view, self._place, self._cast, self._choose, self._normalize, self._library, self._lookup,
            self._combine, self._put_back,
        ]  # fmt: skip
        for _ in range(length):
            self.random.choice(families)()
        computed = [name for name in self.values if name.startswith("v")]
        if not computed:
            self._emit(f"{self._pick()} + 1", exact=False)
            computed = ["v0"]
        extra = self.random.sample(computed, min(len(computed), self.random.randint(0, 2)))
        self.program.outputs = list(dict.fromkeys([computed[-1], *extra]))
        return self.program

    # --- lines -----------------------------------------------------------------------------------------------------

    def _input(self) -> None:
        random = self.random
        rank = random.choice((0, 1, 2, 2, 3, 3, 4))
        size = [random.choice(SIZES) for _ in range(rank)]
        if rank and random.random() < 0.06:
            size = [*size[:1], random.choice((300, 8200, 9001))][-rank:]
        while math.prod(size) > MAX_ELEMENTS:
            size[size.index(max(size))] = 2
        dtype = random.choice((*FLOATS, torch.int64, torch.int32, torch.bool))
        x = torch.randint(-24, 25, size, generator=self.generator) / 8
        x = (x > 0) if dtype is torch.bool else x.to(dtype)
        self._add(f"x{len(self.program.inputs)}", self._restride(x), exact=True)
        self.program.inputs.append(self.values[f"x{len(self.program.inputs)}"])

    def _restride(self, x: Tensor) -> Tensor:
        """The same elements in another memory order, with gaps, or broadcast."""
        way = self.random.randrange(6)
        if x.dim() < 1 or way < 3:
            return x
        if way == 3:
            order = self.random.sample(range(x.dim()), x.dim())
            back = [order.index(d) for d in range(x.dim())]
            return x.permute(order).contiguous().permute(back)
        if way == 4:
            wide = torch.zeros(*x.shape[:-1], 2 * x.shape[-1] + 1, dtype=x.dtype)
            wide[..., 1::2] = x
            return wide[..., 1::2]
        dim = self.random.randrange(x.dim())
        return x.select(dim, 0).unsqueeze(dim).expand(x.shape)

    def _add(self, name: str, value: Tensor, exact: bool) -> None:
        self.values[name] = value
        self.program.dtypes.add(value.dtype)
        if exact:
            self.exact.add(name)

    def _emit(self, text: str, exact: bool) -> None:
        """Add the line if it is legal and its result neither too large nor too wild."""
        try:
            value = eval(text, {"torch": torch, "F": F}, self.values)
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
            return
        if value.numel() > MAX_ELEMENTS or value.dim() > 5 or value.is_complex() or value.numel() == 0:
            return
        if not value.isfinite().all() or float(value.abs().max() if value.dtype is not torch.bool else 0) > BOUND:
            return
        name = f"v{len(self.program.lines)}"
        self.program.lines.append(f"{name} = {text}")
        self._add(name, value, exact)

    def _pick(self, want: Callable[[Tensor], bool] = lambda x: True, exact: bool = False) -> str:
        """A value, rather a late one; any value where none is wanted."""
        names = [n for n, x in self.values.items() if want(x) and (n in self.exact or not exact)]
        names = names or [n for n in self.values if n in self.exact]
        return names[-1] if self.random.random() < 0.4 else self.random.choice(names)

    def _dims(self, x: Tensor) -> list[int]:
        return sorted(self.random.sample(range(x.dim()), self.random.randint(1, x.dim()))) if x.dim() else []

    # --- families --------------------------------------------------------------------------------------------------

    def _unary(self) -> None:
        if self.random.random() < 0.4:
            a = self._pick(exact=True)
            forms = "-{0} {0}.abs() {0}.relu() {0}.floor() {0}.sign() {0}.round() {0}*0.5 {0}+1 {0}.clamp(-1,2) 1-{0}"
            exact = True
        else:
            a = self._pick(lambda x: x.dtype.is_floating_point)
            forms = (
                "{0}.sin() {0}.tanh() {0}.sigmoid() F.gelu({0}) F.silu({0}) {0}.clamp(-3,1).exp() {0}.abs().sqrt() "
                "({0}*{0}+1).rsqrt() 1/({0}.abs()+1) {0}.square() F.softplus({0}) F.elu({0}) ({0}.abs()+1).log()"
            )
            exact = False
        self._emit(self.random.choice(forms.split()).format(a), exact)

    def _binary(self) -> None:
        exact = self.random.random() < 0.4
        a = self._pick(exact=exact)
        b = self._compatible(a, exact)
        forms = "{0}+{1} {0}-{1} {0}*{1} torch.maximum({0},{1}) torch.minimum({0},{1}) {0}/({1}.abs()+1)".split()
        if exact:
            forms += "{0}<{1} {0}>={1} {0}=={1} torch.logical_and({0},{1}) torch.remainder({0},{1}.abs()+1)".split()
            forms += ["torch.add({0},{1},alpha=2)", "torch.div({0},{1}.abs()+1,rounding_mode='floor')"]
        form = self.random.choice(forms)
        self._emit(form.format(a, b), exact and "/(" not in form)

    def _compatible(self, a: str, exact: bool) -> str:
        """A value that broadcasts with ``a``."""

        def fits(x: Tensor) -> bool:
            try:
                torch.broadcast_shapes(x.shape, self.values[a].shape)
            except RuntimeError:
                return False
            return True

        return self._pick(fits, exact)

    def _reduce(self) -> None:
        a = self._pick(exact=self.random.random() < 0.3)
        x = self.values[a]
        dims, keep = self._dims(x), self.random.random() < 0.5
        forms = ["{0}.float().mean({1},{2})", "{0}.amax({1},{2})", "{0}.amin({1},{2})", "{0}.sum({1},{2})*0.1"]
        forms += ["torch.var({0}.float(),{1},correction=0,keepdim={2})"]
        exact = False
        if a in self.exact:
            forms += ["{0}.any({3},{2})", "{0}.all({3},{2})", "{0}.argmax({3},{2})%7", "{0}.argmin({3},{2})%7"]
            forms += ["{0}.max({3},{2})[0]", "{0}.min({3},{2})[1]%5", "{0}.max()"]
        form = self.random.choice(forms)
        exact = a in self.exact and not any(word in form for word in ("mean", "sum", "var"))
        self._emit(form.format(a, dims, keep, dims[0] if dims else 0), exact)

    def _view(self) -> None:
        a = self._pick()
        x = self.values[a]
        if not x.dim():
            self._emit(f"{a}.reshape(1,1).expand({self.random.choice(SIZES)},-1)", a in self.exact)
            return
        random = self.random
        d, e = random.randrange(x.dim()), random.randrange(x.dim())
        order = random.sample(range(x.dim()), x.dim())
        slices = ["{0}[..., ::2]", "{0}[1:]", "{0}[:, -2:]", "{0}[..., :-1]", "{0}[:, ::3]", "{0}[-1]"]
        forms = [
            f"{{0}}.permute({order})", f"{{0}}.transpose({d},{e})", f"{{0}}.reshape({self._factors(x.numel())})",
            f"{{0}}.reshape({self._factors(x.numel())})", "{0}.flatten()", f"{{0}}.unsqueeze({d})", "{0}.squeeze()",
            f"{{0}}.select({d},{random.randrange(x.shape[d])})", f"{{0}}.chunk(2,{d})[-1]", *slices,
            f"{{0}}.select({d},0).unsqueeze({d}).expand({list(x.shape)})", "{0}.contiguous()", "{0}.clone()",
        ]  # fmt: skip
        self._emit(random.choice(forms).format(a), a in self.exact)

    def _factors(self, count: int) -> list[int]:
        sizes = []
        while count > 1 and len(sizes) < 3:
            divisors = [d for d in range(1, count + 1) if count % d == 0] if count < 2000 else [1, count]
            sizes.append(self.random.choice(divisors))
            count //= sizes[-1]
        return [*sizes, count]

    def _place(self) -> None:
        a = self._pick()
        x = self.values[a]
        if not x.dim():
            return
        d, n = self.random.randrange(x.dim()), self.random.randint(-3, 5)
        b = self._pick(
            lambda y: y.dim() == x.dim() and y.shape[:d] + y.shape[d + 1 :] == x.shape[:d] + x.shape[d + 1 :]
        )
        forms = [
            f"torch.cat([{{0}},{{1}}],{d})", f"torch.cat([{{1}},{{0}},{{0}}],{d})", f"{{0}}.flip({d})",
            f"{{0}}.roll({n},{d})", f"F.pad({{0}},({n % 3},{(n + 1) % 2}))", "F.pad({0},(-1,2))", "{0}.tril()",
            f"{{0}}.triu({n - 1})", f"{{0}}.repeat({[2] * x.dim()})", f"torch.stack([{{0}},{{0}}],{d})",
        ]  # fmt: skip
        self._emit(self.random.choice(forms).format(a, b), a in self.exact and b in self.exact)

    def _combine(self) -> None:
        """Elements of a value, or of another, combined at places that repeat: also read from what is written."""
        a = self._pick(lambda x: x.dim() > 0)
        x = self.values[a]
        if not x.dim():
            return
        random = self.random
        d = random.randrange(x.dim())
        n = x.shape[d]
        b = self._pick(lambda y: y.dtype is x.dtype and y.shape == x.shape)
        source = b if self.values[b].shape == x.shape else a
        places = f"torch.arange({x.numel()}).reshape({list(x.shape)})*{random.choice((1, 3, 7))}%{n}"
        reduce = random.choice(("sum", "mean", "amax", "amin"))
        forms = [
            f"{a}.scatter_reduce({d},{places},{source},'{reduce}',include_self={random.random() < 0.5})",
            f"{a}.scatter_add({d},{places},{source})*0.1", f"{a}.scatter({d},{places},1)",
            f"{a}.index_add({d},torch.arange({n})//2,{source})*0.5", f"{a}.index_fill({d},torch.arange({n})//2,2)",
            f"{a}.index_put((torch.full((2,),-1),),{a}[0])", f"{a}.scatter({d},torch.zeros_like({a}).long(),1)",
        ]  # fmt: skip
        form = random.choice(forms)
        summed = "add" in form or reduce in ("sum", "mean")
        self._emit(form, a in self.exact and source in self.exact and not summed)

    def _put_back(self) -> None:
        """A part of a value computed in another dtype and put back."""
        a = self._pick(lambda x: x.dim() > 0)
        x = self.values[a]
        if not x.dim():
            return
        random = self.random
        d, dtype = random.randrange(x.dim()), random.choice((*FLOATS, torch.int64))
        n = x.shape[d]
        forms = [
            f"{a}.diagonal_scatter(({a}.diagonal({n % 3 - 1})+1).to({dtype}),{n % 3 - 1})",
            f"{a}.select_scatter(({a}.select({d},0)*2).to({dtype}),{d},-1)",
            f"{a}.slice_scatter(({a}.narrow({d},0,{(n + 1) // 2})+1).to({dtype}),{d},{n // 2})",
        ]
        exact = a in self.exact and not dtype.is_floating_point and not x.dtype.is_floating_point
        self._emit(random.choice(forms), exact)

    def _cast(self) -> None:
        dtype = self.random.choice(FLOATS)
        a = self._pick()
        if self.random.random() < 0.3 and a in self.exact:
            self._emit(f"{a}.to({self.random.choice(('torch.int32', 'torch.int64', 'torch.bool'))})", True)
        else:
            self._emit(f"{a}.to({dtype})", False)

    def _choose(self) -> None:
        c = self._pick(lambda x: x.dtype is torch.bool, exact=True)
        a = self._compatible(c, False)
        b = self._compatible(a, False)
        condition = c if self.values[c].dtype is torch.bool else f"({c} > 0)"
        form = self.random.choice(("torch.where({c},{a},{b})", "{a}.masked_fill({c},0.5)", "torch.where({c},{a},0)"))
        self._emit(form.format(c=condition, a=a, b=b), False)

    def _normalize(self) -> None:
        a = self._pick(lambda x: x.dtype.is_floating_point and x.dim() > 0)
        x = self.values[a]
        if not x.dim():
            return
        d = self.random.randrange(x.dim())
        forms = [
            f"{{0}}.softmax({d})", f"F.layer_norm({{0}},{list(x.shape[d:])})", f"{{0}}.softmax({d})",
            "{0}*({0}.float().pow(2).mean(-1,keepdim=True)+1e-2).rsqrt()",
            f"{{0}}-{{0}}.amax({d},keepdim=True)", f"{{0}}/({{0}}.abs().sum({d},keepdim=True)+1)",
        ]  # fmt: skip
        self._emit(self.random.choice(forms).format(a), False)

    def _library(self) -> None:
        a = self._pick(lambda x: x.dim() == 2 and x.dtype.is_floating_point and x.shape[1] <= 64)
        x = self.values[a]
        if x.dim() == 2 and x.shape[0] <= 64:
            self._emit(f"({a}@{a}.t())*0.05", False)
        elif x.dim():
            self._emit(f"{a}.cumsum(-1)*0.1", False)

    def _lookup(self) -> None:
        a = self._pick(lambda x: x.dim() > 0)
        i = self._pick(lambda x: x.dtype in (torch.int64, torch.int32) and x.dim() > 0, exact=True)
        if (
            not self.values[a].dim()
            or not self.values[i].dim()
            or self.values[i].dtype not in (torch.int64, torch.int32)
        ):
            return
        n, m = self.values[a].shape[0], self.values[a].shape[-1]
        forms = [f"{{0}}[{{1}}%{n}]", f"{{0}}[..., {{1}}%{m}]", f"{{0}}.index_select(0,({{1}}%{n}).flatten())"]
        forms += [f"{{0}}[{{1}}.clamp(-1,0)%{n},...]", f"F.embedding({{1}}%{n},{{0}})"]
        self._emit(self.random.choice(forms).format(a, i), a in self.exact)
