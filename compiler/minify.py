"""The smallest graph that still fails: a compilation that stops, or numbers that differ from eager's.

The model is captured as for any compilation, but each ATen graph runs as it is, with a check on its real inputs. The
first graph on which the check fails is made smaller, step by step, for as long as it keeps failing in the same way:
torch's own search cuts its end off and turns its nodes into inputs; then sizes are halved.
"""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from compiler.errors import CompileError
from compiler.report import Target
from compiler.runtime.compare import compare_outputs

# What is wrong with a graph on these inputs, as (kind, sentence), or None where nothing is. Two failures with the same
# kind count as the same failure.
Check = Callable[[torch.fx.GraphModule, Sequence[Any]], "Failure | None"]


@dataclass(frozen=True)
class Failure:
    """How a graph fails: ``kind`` tells failures apart, ``text`` is the sentence for people."""

    kind: str
    text: str


@dataclass(frozen=True)
class Minified:
    """The smallest failing graph that was found, its inputs, and the graph that it came from."""

    graph: torch.fx.GraphModule
    inputs: tuple[Any, ...]
    failure: Failure
    region: str  # kind of the graph: "inference", "forward", "backward"
    nodes: int  # calls in it
    nodes_before: int


def minify_model(model: Any, inputs: Sequence[Any], check: Check, *, training: bool) -> Minified | None:
    """Find the first graph of a model that fails the check and make it smaller; None where every graph passes.

    Raises:
        CompileError: the model cannot be captured.
    """
    found = find_failing(model, inputs, check, training=training)
    if found is None:
        return None
    kind, graph, values, failure = found
    return minify_graph(graph, values, check, failure, kind)


# --- checks --------------------------------------------------------------------------------------------------------


def crashes(target: Target) -> Check:
    """The check for a compilation that stops, kernels that do not compile for the target included."""

    def check(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Failure | None:
        try:
            library = _compile(graph, inputs, target, binaries=True)[1]
        except CompileError as error:
            return Failure(f"{error.stage} {error.message.partition(':')[0]}", str(error))
        failed = next((k for k in library.by_source.values() if k.error), None)
        return Failure("compile kernel", f"{failed.name}: {failed.error.splitlines()[0]}") if failed else None

    return check


def differs(target: Target) -> Check:
    """The check for wrong numbers: kernels run on this machine's GPU, or in Triton's interpreter."""
    from compiler.backend import executable_of
    from compiler.runtime.executable import interpreting

    def check(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Failure | None:
        try:
            region, library = _compile(graph, inputs, target, binaries=not interpreting())
        except CompileError:
            return None  # another failure than the one that is looked for
        eager = graph(*_copies(inputs))
        exact = in_float64(graph, inputs)
        result = executable_of(region, library, frozenset())(list(_copies(inputs)))
        compared = compare_outputs(_leaves(eager), _leaves(result), _leaves(exact))
        return None if compared.equal else Failure("numbers", compared.detail)

    return check


def _compile(graph: torch.fx.GraphModule, inputs: Sequence[Any], target: Target, *, binaries: bool) -> tuple[Any, Any]:
    from compiler.kernel_library import KernelLibrary
    from compiler.region import compile_region

    library = KernelLibrary(target, binaries=binaries, texts=False)
    fixed = with_fake_values(graph, inputs)
    return compile_region(fixed, name="minified", kind="inference", target=target, library=library), library


def with_fake_values(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> torch.fx.GraphModule:
    """A copy of the graph whose nodes carry fake values of the sizes that ``inputs`` lead to."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.passes.fake_tensor_prop import FakeTensorProp

    fixed = copy.deepcopy(graph)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [mode.from_tensor(x) if isinstance(x, torch.Tensor) else x for x in inputs]
    for node in fixed.graph.nodes:
        node.meta.pop("val", None)
    FakeTensorProp(fixed, mode).propagate_dont_convert_inputs(*fakes)
    for node, value in zip(fixed.graph.find_nodes(op="placeholder"), fakes, strict=True):
        node.meta["val"] = value
    return fixed


def in_float64(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
    """The graph's results with every floating-point tensor and dtype in float64."""
    wide: Any = copy.deepcopy(graph)
    for node in wide.graph.nodes:
        node.args, node.kwargs = pytree.tree_map_only(
            torch.dtype, lambda d: torch.float64 if d.is_floating_point else d, (node.args, node.kwargs)
        )
    wide.recompile()
    return wide(*pytree.tree_map_only(torch.Tensor, _widened, _copies(inputs)))


def _widened(value: torch.Tensor) -> torch.Tensor:
    return value.double() if value.is_floating_point() else value


def _copies(inputs: Sequence[Any]) -> list[Any]:
    return [x.detach().clone() if isinstance(x, torch.Tensor) else x for x in inputs]


def _leaves(results: Any) -> list[Any]:
    return [x for x in pytree.tree_leaves(results) if isinstance(x, torch.Tensor)]


# --- the search ----------------------------------------------------------------------------------------------------


def find_failing(
    model: Any, inputs: Sequence[Any], check: Check, *, training: bool
) -> tuple[str, torch.fx.GraphModule, list[Any], Failure] | None:
    """The first ATen graph that fails the check, with the inputs that it got; the model itself runs in eager."""
    from compiler.backend import through_aot
    from compiler.pipeline import run_once
    from compiler.runtime.calling import boxed, emptying

    found: list[tuple[str, torch.fx.GraphModule, list[Any], Failure]] = []

    def compiler_of(kind: str) -> Callable[[torch.fx.GraphModule, Sequence[Any]], Any]:
        def compile_graph(graph: torch.fx.GraphModule, example: Sequence[Any]) -> Any:
            def run(args: Sequence[Any]) -> tuple[Any, ...]:
                if not found and all(isinstance(x, torch.Tensor) for x in args):
                    lifted, values = lift_constants(graph, args)
                    failure = check(lifted, values)
                    if failure is not None:
                        found.append((kind, lifted, _copies(values), failure))
                return tuple(graph(*args))

            return boxed(emptying(run))

        return compile_graph

    torch._dynamo.reset()
    run_once(torch.compile(model, backend=lambda gm, x: through_aot(gm, x, compiler_of)), tuple(inputs), training)
    return found[0] if found else None


def lift_constants(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> tuple[torch.fx.GraphModule, list[Any]]:
    """The graph with its tensor attributes as further inputs, so that it is nothing but a list of calls."""
    lifted, values = copy.deepcopy(graph), list(inputs)
    places = lifted.graph.find_nodes(op="placeholder")
    for node in lifted.graph.find_nodes(op="get_attr"):
        value: Any = lifted
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if isinstance(value, torch.Tensor):
            with lifted.graph.inserting_after(places[-1]) if places else lifted.graph.inserting_before():
                place = lifted.graph.placeholder(node.name)
            place.meta.update(node.meta)
            node.replace_all_uses_with(place)
            lifted.graph.erase_node(node)
            places.append(place)
            values.append(value)
    lifted.recompile()
    return lifted, values


def minify_graph(
    graph: torch.fx.GraphModule, inputs: Sequence[Any], check: Check, failure: Failure, region: str
) -> Minified:
    """Make a failing graph smaller for as long as it fails in the same way."""
    from torch._functorch.fx_minifier import minifier

    latest = failure

    def fails(candidate: torch.fx.GraphModule, values: Sequence[Any]) -> bool:
        nonlocal latest
        try:
            again = check(candidate, values)
        except Exception:  # a candidate need not make sense: sizes that do not fit, an index out of range
            return False
        if again is None or again.kind != failure.kind:
            return False
        latest = again
        return True

    with _quiet():
        small, values = minifier(graph, list(inputs), fails, dump_state=lambda *_: None)
    small, values = _with_smaller_sizes(small, list(values), fails)
    fails(small, values)  # the sentence of what is returned, not of the last candidate that failed
    return Minified(small, tuple(values), latest, region, count_calls(small), count_calls(graph))


def count_calls(graph: torch.fx.GraphModule) -> int:
    """How many nodes compute something."""
    return len([n for n in graph.graph.nodes if n.op == "call_function"])


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """torch's search tells every step."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def _with_smaller_sizes(
    graph: torch.fx.GraphModule, inputs: list[Any], fails: Callable[[torch.fx.GraphModule, Sequence[Any]], bool]
) -> tuple[torch.fx.GraphModule, list[Any]]:
    """Every size of the inputs, the largest first, replaced by 1, 2, 3 or half as long as that still fails."""
    done: set[int] = set()
    while sizes := sorted({s for x in inputs for s in x.shape if s > 1} - done, reverse=True):
        size = sizes[0]
        for smaller in dict.fromkeys((1, 2, 3, size // 2)):
            if 0 < smaller < size:
                candidate, values = _resized(graph, inputs, size, smaller)
                if fails(candidate, values):
                    graph, inputs = candidate, values
                    break
        done.add(size)
    return graph, inputs


def _resized(
    graph: torch.fx.GraphModule, inputs: Sequence[Any], size: int, smaller: int
) -> tuple[torch.fx.GraphModule, list[Any]]:
    """The graph and its inputs with one size replaced wherever it stands as a dimension."""
    changed = copy.deepcopy(graph)
    for node in changed.graph.nodes:
        if node.op == "call_function":  # lists of numbers among the arguments are sizes, as of a view
            node.args = tuple(
                [smaller if x is size or (type(x) is int and x == size) else x for x in arg]
                if isinstance(arg, list | tuple)
                else arg
                for arg in node.args
            )
    changed.recompile()
    values = []
    for value in inputs:
        cut = value
        for dim, extent in enumerate(value.shape):
            if extent == size:
                cut = cut.narrow(dim, 0, smaller)
        values.append(cut if cut is value else torch.empty_like(cut).copy_(cut))
    return changed, values
