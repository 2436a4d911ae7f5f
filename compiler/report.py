"""What a compilation is, to whoever looks at it: plain records, importable without torch.

Every compiler (our own, Inductor) fills the same records; views and the command line read nothing else.
Units are in the field names: ``bytes``, ``flops``, ``us`` (microseconds), ``ms`` (milliseconds).
Estimated and measured figures have separate fields and are never mixed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

SCHEMA_VERSION = 1

# A time, a share, a rate. What is no number, endless or below zero is none: a file that says so is damaged.
Figure = Annotated[float, msgspec.Meta(ge=0.0, le=1e30)]
Moment = Annotated[float, msgspec.Meta(ge=-1e30, le=1e30)]  # in microseconds, before or after another one


class NodeKind(StrEnum):
    """What an FX node is in its graph."""

    PLACEHOLDER = "placeholder"
    GET_ATTR = "get_attr"
    CALL = "call"
    OUTPUT = "output"


class GroupKind(StrEnum):
    """How a fusion group is generated."""

    POINTWISE = "pointwise"
    REDUCTION = "reduction"
    TEMPLATE = "template"


class ExternReason(StrEnum):
    """Why a call runs through a library and not in a generated kernel."""

    LIBRARY_IS_FASTER = "library_is_faster"  # matmul, convolution, attention: a tuned library call exists
    NO_LOWERING = "no_lowering"  # no rule generates code for this op yet
    UNSUPPORTED_DTYPE = "unsupported_dtype"  # complex and other dtypes that Triton cannot hold
    DATA_DEPENDENT_SHAPE = "data_dependent_shape"  # the result's size is known only at run time
    MUTATION = "mutation"  # writes into a tensor that the caller sees
    RANDOM = "random"  # draws from the device's generator
    HOST_SYNC = "host_sync"  # moves a value to the CPU (.item(), .cpu())
    CPU_TENSOR = "cpu_tensor"  # lives on the CPU while the region runs on a GPU
    TOO_SMALL_TO_HELP = "too_small_to_help"
    COLLECTIVE = "collective"  # moves data between processes
    COMPILE_FAILED = "compile_failed"  # a stage failed on the region, and the option fallback=eager runs it as captured


class RefusalRule(StrEnum):
    """Which fusion rule kept two nodes apart. ``compiler/fusion.py`` states each rule beside its check."""

    EXTERN = "extern"
    DOMAIN_MISMATCH = "domain_mismatch"
    ACCESS_MISMATCH = "access_mismatch"
    CYCLE = "cycle"
    NO_SHARED_DATA = "no_shared_data"
    TOO_LARGE = "too_large"
    DEVICE = "device"
    MUTATION = "mutation"
    REDUCTION_SPLIT = "reduction_split"
    NOT_PROFITABLE = "not_profitable"
    OPTION = "option"  # an option of the compilation forbids it
    COMPILER_RULE = "compiler_rule"  # a rule of that compiler alone; its own words are in the detail
    NO_REASON_RECORDED = "no_reason_recorded"


class TensorInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """One tensor value. Sizes and strides are in elements; a symbolic size is its expression as text."""

    shape: list[int | str]
    dtype: str  # torch's name without the "torch." prefix: "float32", "bfloat16", "int64"
    stride: list[int | str] = []
    device: str = ""
    bytes: int = 0


class SourceLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the user's model. ``code`` is the line's own text so that a session shows it with no file at hand."""

    file: str
    line: int
    function: str = ""
    code: str = ""


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a node comes from: source frames innermost first, and the nn.Module path ("layers.0.attn")."""

    frames: list[SourceLine] = []
    module_path: str = ""
    module_type: str = ""
    exact: bool = True  # False where the link was inferred (for example copied from a neighbouring node)


class Node(msgspec.Struct, omit_defaults=True):
    """One FX node. ``inputs`` are node names of the same region, in argument order, without repeats."""

    name: str
    kind: NodeKind
    op: str  # "aten.add.Tensor"; for placeholders "input", "parameter" (or buffer), "tangent", "saved"
    inputs: list[str] = []
    args: str = ""  # the call as text, with node names for tensors
    outputs: list[TensorInfo] = []
    provenance: Provenance = Provenance()
    estimated_flops: int = 0
    estimated_bytes: int = 0  # inputs read plus outputs written if the node ran alone
    origin: str = ""  # the ATen op that it was decomposed from, where that is another op


class Group(msgspec.Struct, omit_defaults=True):
    """A fusion group: FX nodes that one generated kernel computes."""

    name: str
    kind: GroupKind
    nodes: list[str]  # FX nodes whose work this kernel does (a cheap node may be recomputed in several groups)
    kernel: str  # name of the Kernel; several groups may share one when their sources are the same
    reason: str  # one sentence: why these nodes are together
    rule: str = ""  # the rule's term: "vertical", "horizontal", "single", "inlined", "beside_a_call"
    score_bytes: int = 0  # memory traffic saved against running the nodes one kernel each (estimated)
    inputs: list[str] = []  # FX nodes read from memory
    outputs: list[str] = []  # FX nodes written to memory
    recomputed: list[str] = []  # the subset of ``nodes`` that another group computes too
    grid: list[int] = []
    estimated_bytes: int = 0
    estimated_flops: int = 0
    order: int = 0  # position in the schedule, over groups and extern calls together


class ExternCall(msgspec.Struct, omit_defaults=True):
    """A call into a library (ATen, cuBLAS, cuDNN, their likes for AMD)."""

    name: str
    nodes: list[str]
    op: str
    reason: ExternReason
    detail: str = ""  # one sentence with the specifics
    runs_as: str = ""  # the op a GPU target would get where the capture saw a CPU-only one
    estimated_bytes: int = 0
    estimated_flops: int = 0
    order: int = 0


class Refusal(msgspec.Struct, omit_defaults=True):
    """Why two neighbours are in different kernels. ``a`` and ``b`` are FX nodes; ``a`` comes first."""

    a: str
    b: str
    rule: RefusalRule
    detail: str
    bytes_lost: int = 0  # memory traffic that fusing them would have saved (estimated)


class SchedulerNode(msgspec.Struct, omit_defaults=True):
    """A loop nest or library call as the scheduler had it before fusion; ``unit`` says where it went."""

    name: str
    kind: str  # "computed", "template", "extern", "nop", "foreach", "result", "assert"
    nodes: list[str]  # FX nodes
    reads: list[str] = []  # buffers
    writes: list[str] = []
    bytes: int = 0  # read and written if it ran alone (estimated)
    unit: str = ""  # the group or extern call that it became part of; "" where it was dropped


class BufferPlan(msgspec.Struct, omit_defaults=True):
    """One buffer of the memory plan. Positions count the schedule's steps; ``last_use`` is inclusive."""

    name: str
    node: str
    bytes: int
    first_use: int
    last_use: int
    reuses: str = ""  # the buffer whose storage this one takes over
    saved: bool = False  # an input that the forward computed and saved, freed at its last use


class MemoryOrder(StrEnum):
    """Which order of the schedule's steps was taken, of those that were tried."""

    CAPTURED = "captured"  # that of the captured graph
    FORWARD = "forward"  # a list schedule from the front: of what may run next, what leaves the least memory behind
    BACKWARD = "backward"  # one from the back: of what may run last, what needs the least memory kept for it
    BUDGET = "budget"  # the captured order wherever that keeps within the lowest peak found, else as FORWARD


class Memory(msgspec.Struct, omit_defaults=True):
    """The memory plan of a region: intermediate buffers, and in a backward what the forward saved for it."""

    buffers: list[BufferPlan] = []
    peak_bytes: int = 0  # planned peak of live buffers
    total_bytes: int = 0  # the same with no reuse at all
    order: MemoryOrder | None = None  # None where no other order was looked for
    captured_peak_bytes: int = 0  # the planned peak in the captured order
    moved_steps: int = 0  # the fewest steps to move to get from the captured order to the chosen one


class GraphNodeKind(StrEnum):
    """What a node of a captured CUDA Graph does, by the driver's own types."""

    KERNEL = "kernel"
    MEMCPY = "memcpy"
    MEMSET = "memset"
    HOST = "host"
    CHILD_GRAPH = "child_graph"
    EVENT_RECORD = "event_record"
    EVENT_WAIT = "event_wait"
    CONDITIONAL = "conditional"
    MEM_ALLOC = "mem_alloc"
    MEM_FREE = "mem_free"
    EMPTY = "empty"
    OTHER = "other"


class GraphNode(msgspec.Struct, omit_defaults=True):
    """A node of a captured CUDA Graph as the driver tells it, joined to what it came from."""

    id: int  # position in the topology's list
    kind: GraphNodeKind
    name: str  # the kernel's demangled name, or what the node does in a few words
    dependencies: list[int] = []  # ids of the nodes that must end before this one begins
    grid: list[int] = []
    block: list[int] = []
    shared_bytes: int = 0  # dynamic shared memory of a kernel
    bytes: int = 0  # moved, set, allocated or freed
    region: str = ""
    unit: str = ""  # the fusion group or extern call that issued it
    exact: bool = True  # False where ``unit`` was inferred from order or name
    measured_us: Figure | None = None  # from a tracing pass of its own
    critical: bool = False  # on the longest path by measured time
    children: list[GraphNode] = []  # of a child graph or the body of a conditional


class InputRoute(msgspec.Struct, omit_defaults=True):
    """How one input of a captured region reaches the graph at a replay."""

    name: str
    route: str  # "static", "same_address", "patched", "copied", "host"
    bytes: int = 0
    nodes: int = 0  # graph nodes whose parameters are patched
    cost_us: Figure | None = None  # measured CPU time of serving it
    detail: str = ""


class CudaGraph(msgspec.Struct, omit_defaults=True):
    """What CUDA Graph capture made of a region. Times are zero where nothing was captured (no GPU)."""

    captured: bool = False
    capturable: bool = True  # the static answer: nothing in the region would refuse capture
    answered: bool = True  # False where what the report was read from does not say whether it is capturable
    partitions: int = 0
    skip_reasons: list[SkipReason] = []
    warmup_ms: Figure = 0.0
    capture_ms: Figure = 0.0
    instantiate_ms: Figure = 0.0
    upload_ms: Figure = 0.0
    first_replay_ms: Figure = 0.0
    pool_bytes: int = 0
    nodes: int = 0
    captures: int = 0  # graphs captured so far: one for each signature, again where an address changed
    recaptures: dict[str, int] = {}  # why more than one was captured -> how often
    copied_bytes: int = 0  # inputs copied into the graph's own memory before every replay
    topology: list[GraphNode] = []
    routes: list[InputRoute] = []
    covered_kernels: Figure | None = None  # share (0..1) of the kernels of an iteration that run inside graphs
    covered_time: Figure | None = None  # the same of their measured GPU time
    streams: int = 1  # branches that the graph was captured on
    one_stream_us: Figure | None = None  # measured time of a replay captured on one stream, where both ways were tried
    forked_us: Figure | None = None  # the same on several, joined at the end
    fills_as_kernels: int = 0  # nodes that the capture made fills of, and that launch kernels which fill the same


class SkipReason(msgspec.Struct, omit_defaults=True):
    """Why a region, or a part of it, is not captured."""

    rule: str  # "cpu_op", "host_sync", "data_dependent_shape", "mutated_input", ...
    detail: str
    node: str = ""
    source: SourceLine | None = None


class Stage(msgspec.Struct, omit_defaults=True):
    """A stage of the compilation and the wall time it took."""

    name: str
    ms: Figure
    region: str = ""


class Region(msgspec.Struct, omit_defaults=True):
    """One graph that Dynamo captured: the whole inference graph, a forward, or a backward."""

    name: str
    kind: str  # "inference", "forward", "backward"
    nodes: list[Node]
    groups: list[Group] = []
    extern_calls: list[ExternCall] = []
    refusals: list[Refusal] = []
    memory: Memory = msgspec.field(default_factory=Memory)
    cuda_graph: CudaGraph = msgspec.field(default_factory=CudaGraph)
    wrapper: str = ""  # the generated program that launches kernels and extern calls in order
    fx_text: str = ""  # the ATen graph as Python text
    scheduler_nodes: list[SchedulerNode] = []  # before fusion, where the compiler has such a stage
    graphs: dict[str, str] = {}  # further stages' graphs by name ("dynamo", "joint", "post_grad") as Python text
    sizes: dict[str, int] = {}  # what each symbolic size was in the example; estimates and grids are for these


class Trial(msgspec.Struct, frozen=True):
    """A configuration that was tried, and the median GPU time of one launch with cold caches in microseconds."""

    config: dict[str, int]
    us: Figure


class Kernel(msgspec.Struct, omit_defaults=True):
    """A generated kernel and what its compilation for the target said of it."""

    name: str
    language: str = "triton"
    source: str = ""
    irs: dict[str, str] = {}  # "ttir", "ttgir", "llir", "ptx", "sass" -> text, as far as they were made
    grid: list[int] = []
    config: dict[str, int] = {}  # XBLOCK, RBLOCK, num_warps, num_stages
    registers: int | None = None
    spills: int | None = None  # bytes of local memory per thread that registers were spilled to
    shared_bytes: int | None = None
    estimated_bytes: int = 0
    estimated_flops: int = 0
    estimated_us: Figure | None = None  # bytes / bandwidth or flops / rate of the target, whichever is longer
    # GPU time of one launch in microseconds: the median over all launches of this kernel in an iteration, each of them
    # the median over the traced iterations. None where no launch of it was traced and joined to a group.
    measured_us: Figure | None = None
    # Launches of this kernel in one iteration over all regions, but for those in a branch or a loop, which only a run
    # can count: 0 where there are no others.
    launches: int = 1
    warps: int | None = None
    stages: int | None = None
    occupancy: Figure | None = None  # 0..1, of the multiprocessor's warps; computed from registers and shared memory
    ir_lines: dict[str, list[int]] = {}  # IR -> for each of its lines the line of ``source`` it came from, 0 for none
    line_nodes: dict[int, list[str]] = {}  # line of ``source`` (1-based) -> FX nodes "region/node" it computes
    lines_exact: bool = True  # False where ``line_nodes`` was inferred, not recorded as the line was written
    trials: list[Trial] = []  # empty where nothing was tuned: no GPU, or too little data for it to matter
    error: str = ""  # why compiling it for the target failed
    sizes: dict[str, str] = {}  # parameters for sizes known only at run time, and what the first launch gives them


class GraphBreak(msgspec.Struct, omit_defaults=True):
    """Where Dynamo ended one region and began another."""

    reason: str
    source: SourceLine | None = None
    detail: str = ""  # Dynamo's explanation and hints
    skipped_frame: bool = False  # Dynamo could not resume after it and left the whole function to eager


class Guard(msgspec.Struct, omit_defaults=True):
    """A condition that Dynamo checks before it runs a compiled region; where it fails, it recompiles."""

    code: str  # the check as Python text
    kind: str = ""  # Dynamo's name of it: "TENSOR_MATCH", "ID_MATCH", ...
    subject: str = ""  # what it checks: "L['x']"
    source: SourceLine | None = None


class Recompile(msgspec.Struct, omit_defaults=True):
    """A call for which no compiled region's guards held."""

    reason: str  # the guard that failed, in Dynamo's words
    function: str = ""
    source: SourceLine | None = None


class TraceEvent(msgspec.Struct, omit_defaults=True):
    """Something that a tracing pass saw: a launch on the CPU, or a kernel, copy or fill on the GPU."""

    name: str
    start_us: Moment  # since the iteration began
    duration_us: Figure
    lane: str  # "cpu" or "stream 7"
    launch: int = -1  # index in the trace's ``events`` of the launch that submitted this, or -1
    unit: str = ""  # "region/group" or "region/extern call" where known
    exact: bool = True  # False where ``unit`` was inferred from the order of names or ops (compiler/joining.py)
    op: str = ""  # of a launch on the CPU without a unit: the op that made it ("aten::mm")
    call: int = -1  # a number that only launches of the same call of that op have
    median_us: Figure | None = None  # of ``duration_us`` over all traced iterations, where they ran the same

    @property
    def us(self) -> float:
        """Microseconds that it takes: the median where several iterations were traced."""
        return self.duration_us if self.median_us is None else self.median_us


class Trace(msgspec.Struct, omit_defaults=True):
    """One traced iteration of one mode. Tracing slows what it watches: durations are the GPU's own, gaps are not."""

    mode: str
    gpu: str
    events: list[TraceEvent] = []
    span_us: Figure = 0.0
    iterations: int = 1  # how many were traced: ``events`` are the last one's, their ``median_us`` is over all


class Percentiles(msgspec.Struct, frozen=True):
    """Percentiles in microseconds."""

    p50: Figure
    p90: Figure
    p99: Figure


class Measurement(msgspec.Struct, omit_defaults=True):
    """Recorded iterations of one mode on one GPU.

    ``cpu_samples`` holds, per iteration, the CPU time to submit in microseconds (``perf_counter_ns`` around the call,
    no synchronise inside); ``gpu_samples`` the time between CUDA events around the same call.
    """

    mode: str  # "eager", "compiled", "graph", "inductor", "inductor-graph"
    gpu: str
    iterations: int
    cpu_us: Percentiles
    gpu_us: Percentiles
    wall_us: Percentiles | None = None  # until a synchronise after the call returns
    cpu_samples: list[Figure] = []
    gpu_samples: list[Figure] = []
    wall_samples: list[Figure] = []
    warmup: int = 0  # how many iterations ran before the first recorded one
    warmup_cpu_samples: list[Figure] = []  # of the last of them, where they were timed
    warmup_gpu_samples: list[Figure] = []
    max_error: float | None = None  # largest difference from eager, relative to the largest eager magnitude
    equal_to_eager: bool | None = None

    def __post_init__(self) -> None:
        """
        Raises:
            ValueError: an iteration has a CPU time and no GPU time, or the reverse.
        """
        pairs = (self.cpu_samples, self.gpu_samples), (self.warmup_cpu_samples, self.warmup_gpu_samples)
        if any(len(cpu) != len(gpu) for cpu, gpu in pairs):
            raise ValueError(f"an iteration of {self.mode} has only one of its two times")


class Target(msgspec.Struct, frozen=True, omit_defaults=True):
    """A GPU that code is generated for. ``source`` says where the figures come from."""

    name: str  # "h100"
    title: str  # "NVIDIA H100 SXM"
    backend: str  # "cuda" or "hip"
    arch: int | str  # 90, "gfx942"
    warp_size: int
    multiprocessors: int
    shared_bytes: int  # per block, opt-in maximum
    l2_bytes: int
    bandwidth_gbs: Figure
    tflops_fp32: Figure
    tflops_fp16: Figure
    memory_gb: Figure
    registers: int = 65536  # per multiprocessor
    local: bool = False
    source: str = ""

    def shortest_us(self, bytes_: int, flops: int) -> float | None:
        """Microseconds that moving the bytes takes, or the FLOPs, whichever is longer; None where the rates are not
        known, as a CPU's."""
        if not self.bandwidth_gbs or not self.tflops_fp32:
            return None
        return max(bytes_ / (self.bandwidth_gbs * 1e3), flops / (self.tflops_fp32 * 1e6))


class KernelCheck(msgspec.Struct, omit_defaults=True):
    """How one group's numbers compare with float64 eager. Errors are ||out - ref|| / ||ref||."""

    region: str
    group: str
    kernel: str
    error: float
    eager_error: float
    tolerance: float
    ok: bool
    detail: str = ""


class NodeCheck(msgspec.Struct, omit_defaults=True):
    """How far one value that a region writes to memory is from float64. Errors are ||value - ref|| / ||ref||.

    The reference is the region's own graph in float64 from the region's inputs on, so errors add up along the region.
    """

    region: str
    unit: str  # the group or extern call that wrote it
    node: str  # the FX node whose value it is
    error: float
    eager_error: float  # of eager, op by op in the same dtypes
    dtype: str


class Numerics(msgspec.Struct, omit_defaults=True):
    """One run of the regions with every value checked that they write."""

    device: str  # what ran the kernels: the GPU's title, or Triton's interpreter
    nodes: list[NodeCheck] = []


class Report(msgspec.Struct, omit_defaults=True):
    """One compilation of one source by one compiler for one target."""

    compiler: str  # "fusescope" or "inductor"
    source: str
    target: Target
    versions: dict[str, str] = {}  # "torch", "triton", "python", "fusescope"
    options: dict[str, str] = {}
    training: bool = False
    regions: list[Region] = []
    kernels: list[Kernel] = []
    graph_breaks: list[GraphBreak] = []
    guards: list[Guard] = []
    recompiles: list[Recompile] = []
    stages: list[Stage] = []
    measurements: list[Measurement] = []
    traces: list[Trace] = []
    checks: list[KernelCheck] = []
    numerics: Numerics | None = None
    sources: dict[str, str] = {}  # file name -> text of the user's source files that frames point into
    created: str = ""  # ISO 8601, UTC
    notes: list[str] = []

    def kernel(self, name: str) -> Kernel | None:
        """The kernel called ``name``, or None."""
        return next((k for k in self.kernels if k.name == name), None)
