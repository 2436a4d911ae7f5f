"""One iteration of a model in each of the ways that are compared: eager, compiled, in a CUDA Graph, by Inductor."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from compiler.dynamo.loggers import calls_of_loggers_left_out, is_at_logger
from compiler.options import DEFAULTS, Options, parse_options
from compiler.report import CudaGraph, SkipReason
from compiler.runtime import capture
from compiler.runtime.observe import Observer
from compiler.runtime.partitioned import merge_facts

if TYPE_CHECKING:
    from compiler.runtime.partitioned import PartitionedRegion

Model = Callable[..., Any]
MODES = ("eager", "compiled", "graph", "inductor", "inductor-graph")


class Iteration:
    """A forward, and in training a backward of the sum of its floating outputs' means, gradients set to None first."""

    def __init__(self, call: Model, model: Model, inputs: Sequence[Any], *, training: bool) -> None:
        """``call`` runs the model (compiled or not); ``model`` owns the parameters."""
        self._call = call
        self._inputs = tuple(inputs)
        self._training = training
        self.parameters: list[Tensor] = []
        if training and isinstance(model, nn.Module):
            self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def __call__(self) -> Any:
        """The outputs, in training as a flat list, without autograd history; gradients are left in the parameters."""
        if not self._training:
            if not torch.is_grad_enabled():  # entering the context anew takes a part of a small call
                return self._call(*self._inputs)
            with torch.no_grad():
                return self._call(*self._inputs)
        for parameter in self.parameters:
            parameter.grad = None
        outputs = pytree.tree_leaves(self._call(*self._inputs))
        means = [value.mean() for value in outputs if isinstance(value, Tensor) and value.requires_grad]
        if means:
            loss = means[0]
            for mean in means[1:]:
                loss = loss + mean
            loss.backward()
        # History would keep the accumulators of gradients alive, and with them the stream they were made on.
        return [value.detach() if isinstance(value, Tensor) else value for value in outputs]


class Step:
    """Runs one iteration at every call.

    Attributes:
        note: one sentence on how the iteration runs, or why not as asked.
    """

    def __init__(self, iteration: Iteration, note: str = "") -> None:
        self.iteration = iteration
        self.note = note
        self._latest: Any = []

    def __call__(self) -> None:
        # The outputs before are let go first, as a caller in a loop would.
        self._latest = []
        self._latest = self.iteration()

    def outputs(self) -> list[Any]:
        """Outputs of the last iteration as a flat list; in training followed by the gradients of all parameters."""
        return [*pytree.tree_leaves(self._latest), *(parameter.grad for parameter in self.iteration.parameters)]

    @property
    def cuda_graph(self) -> CudaGraph | None:
        """What capture made of the iteration; None in modes that capture nothing of their own."""
        return None


class WholeGraphStep(Step):
    """The whole iteration as one CUDA Graph, forward and backward, on the memory it was captured with."""

    def __init__(
        self, iteration: Iteration, device: torch.device, model: Model, observer: Observer | None = None
    ) -> None:
        """Captures. ``observer`` is that of the iteration's compiled regions.

        Raises:
            CaptureRefused: the iteration cannot be captured.
        """
        super().__init__(iteration)
        gc.collect()  # cycles keep earlier iterations' accumulators of gradients, which run on the stream they began on
        parameters = iteration.parameters
        buffers = list(model.buffers()) if isinstance(model, nn.Module) else []
        backups = [buffer.clone() for buffer in buffers]

        def restore() -> None:
            # Warm-up must not count as training: running statistics would move.
            with torch.no_grad():
                for buffer, backup in zip(buffers, backups, strict=True):
                    buffer.copy_(backup)

        def run() -> tuple[list[Any], list[Any]]:
            # Gradients are None when the backward begins, so it makes them in the graph's memory.
            return list(pytree.tree_leaves(iteration())), [parameter.grad for parameter in parameters]

        self._pool = torch.cuda.graph_pool_handle()
        try:
            self._recording = capture.record(run, device=device, pool=self._pool, restore=restore, observer=observer)
        finally:
            for parameter in parameters:
                parameter.grad = None
        self._outputs, self._gradients = self._recording.result
        self.note = f"The whole iteration is one CUDA Graph of {self._recording.facts.nodes} nodes."

    def __call__(self) -> None:
        self._recording.replay()

    def outputs(self) -> list[Any]:
        """Outputs and gradients of the last replay, in the graph's memory: the next replay overwrites them."""
        return self._outputs + self._gradients

    @property
    def cuda_graph(self) -> CudaGraph:
        return msgspec.structs.replace(
            self._recording.facts,
            captures=1,
            pool_bytes=capture.pool_bytes(self._pool),
            topology=self._recording.topology(),
        )


class RegionGraphsStep(Step):
    """Every compiled region behind its own CUDA Graph, with Dynamo and the user's own code between them."""

    def __init__(
        self, iteration: Iteration, regions: list[PartitionedRegion], why_not_whole: SkipReason | None
    ) -> None:
        """``why_not_whole`` is None where that was not tried."""
        super().__init__(iteration)
        self._regions = regions
        self._why_not_whole = why_not_whole

    @property
    def cuda_graph(self) -> CudaGraph:
        merged = merge_facts([region.facts() for region in self._regions])
        if self._why_not_whole is None:
            return merged
        reasons = [self._why_not_whole, *merged.skip_reasons]
        return msgspec.structs.replace(merged, capturable=False, skip_reasons=reasons)


def prepare(
    mode: str,
    model: Model,
    inputs: Sequence[Any],
    *,
    training: bool,
    compiled: Model | None = None,
    whole: bool | None = None,
    by_region: bool = True,
    observer: Observer | None = None,
    options: Mapping[str, Any] | None = None,
    dynamic: bool = False,
) -> Step:
    """A step of ``model`` on ``inputs``, compiled and captured, ready to be timed.

    Args:
        mode: "eager", "compiled", "graph", "inductor" or "inductor-graph".
        compiled: the model as Fusescope compiled it already.
        whole: whether ``compiled`` is one region with no Python between; None where that is not known.
        by_region: whether "graph" may capture region by region what is not one graph, which our backend does, on code
            of its own: False where ``compiled`` is another compiler's.
        observer: that of the regions of ``compiled``; what they run is then joined to their steps.
        options: of our compiler, by name; where some act on each region's graphs, regions are captured one by one.
        dynamic: whether our compiler takes sizes as symbols.

    Raises:
        ValueError: no such mode.
        CaptureRefused: the iteration is not one graph, and ``by_region`` is False.
    """
    given = dict(options or {})
    if mode == "eager":
        return Step(Iteration(model, model, inputs, training=training))
    if mode == "compiled":
        call = compiled
        if call is None:  # not "or": asking a compiled module for its truth would ask it for its length
            call = torch.compile(model, backend=_own_backend(), options=given or None, dynamic=dynamic or None)
        return _first_call(Step(Iteration(call, model, inputs, training=training)))
    if mode == "graph":
        call = compiled if whole else None
        return _prepare_graph(model, inputs, training, call, whole, by_region, observer or Observer(), given, dynamic)
    if mode == "inductor":
        return _first_call(Step(Iteration(torch.compile(model), model, inputs, training=training)))
    if mode == "inductor-graph":
        call = torch.compile(model, mode="reduce-overhead")
        # Its graphs record on the second call and replay from the third on.
        return _first_call(Step(Iteration(call, model, inputs, training=training)), calls=3)
    raise ValueError(f'There is no mode called "{mode}"; the modes are {", ".join(MODES)}.')


def _first_call(step: Step, calls: int = 1) -> Step:
    for _ in range(calls):
        step()
    return step


def _own_backend() -> Callable[..., Any]:
    """Our backend as a new function object: Dynamo reuses what it compiled for an equal backend, breaks and all."""
    from compiler.backend import fusescope

    def fusescope_backend(graph: torch.fx.GraphModule, example_inputs: list[Any], **keywords: Any) -> Any:
        return fusescope(graph, example_inputs, **keywords)

    return fusescope_backend


def _prepare_graph(
    model: Model,
    inputs: Sequence[Any],
    training: bool,
    compiled: Model | None,
    whole: bool | None,
    by_region: bool,
    observer: Observer,
    given: Mapping[str, Any],
    dynamic: bool,
) -> Step:
    """One graph of the whole iteration where nothing but GPU work is in it, else one for each region."""
    from torch._dynamo.exc import Unsupported

    from compiler.backend import session_for

    several = "The model is several regions, with Python code between them."
    why_not: SkipReason | None = SkipReason("graph_break", several)
    options: dict[str, Any] = {**given, "observer": observer}
    acting = acting_on_regions(parse_options(given))
    if acting and whole is not False:
        why_not = None
    elif whole is not False:
        call = compiled
        if call is None:
            call = torch.compile(
                model, backend=_own_backend(), fullgraph=True, options=options, dynamic=dynamic or None
            )
        iteration = Iteration(call, model, inputs, training=training)
        try:
            quiet = _without_breaks(iteration)
            step: Step = WholeGraphStep(iteration, _device_of(model, inputs), model, observer)
            step.note += " Calls of loggers are left out." if quiet else ""
            return step
        except Unsupported as error:
            # What Python does between the regions would be lost in a replay.
            why_not = SkipReason("graph_break", f"Dynamo breaks the graph: {str(error).strip().splitlines()[0]}")
        except capture.CaptureRefused as refused:
            why_not = refused.reason
    if not by_region and why_not is not None:
        raise capture.CaptureRefused(why_not)
    regions: list[PartitionedRegion] = []
    # One session for all regions, whose names then differ.
    options |= {"session": session_for(given), "cuda_graph": True}
    options |= {"on_graphed_region": lambda region: regions.append(region)}
    call = torch.compile(model, backend=_own_backend(), options=options, dynamic=dynamic or None)
    step = RegionGraphsStep(Iteration(call, model, inputs, training=training), regions, why_not)
    # The first call compiles and captures, the second shows which regions are really replayed.
    _first_call(step, calls=2)
    why = f"{acting} acts on each." if why_not is None else why_not.detail
    step.note = f"Captured region by region: {why}"
    return step


def _without_breaks(iteration: Iteration) -> bool:
    """Run the iteration once, which compiles it; whether calls of loggers had to be left out for want of breaks.

    Of a replay nobody expects that it logs: all of its Python ran when it was captured.
    """
    from torch._dynamo.exc import Unsupported

    try:
        iteration()
    except Unsupported as error:
        if not is_at_logger(str(error)):
            raise
        with calls_of_loggers_left_out():
            iteration()
        return True
    return False


def acting_on_regions(options: Options) -> str:
    """The graphs' options that were set and act on one region at a time, in words, or ""."""
    names = ("graph_streams", "graph_buckets", "graph_capacity", "graph_collectives")
    return ", ".join(name for name in names if getattr(options, name) != getattr(DEFAULTS, name))


def _device_of(model: Model, inputs: Sequence[Any]) -> torch.device:
    """The GPU the model runs on: of its first CUDA tensor, else the current one."""
    tensors = list(pytree.tree_leaves(tuple(inputs)))
    if isinstance(model, nn.Module):
        tensors += [*model.parameters(), *model.buffers()]
    for tensor in tensors:
        if isinstance(tensor, Tensor) and tensor.is_cuda:
            return tensor.device
    return torch.device("cuda", torch.cuda.current_device())
