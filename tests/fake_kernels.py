"""The kernel of a synthetic report's group: texts of each level as a compiler's look, and the nodes of each line."""

from __future__ import annotations

from compiler.report import Group, Kernel, Region, Target


def kernel_of(region: Region, group: Group, target: Target) -> Kernel:
    """A readable Triton-like source with one line per node, and the lines' nodes."""
    lines = [
        "import triton",
        "import triton.language as tl",
        "",
        "",
        "@triton.jit",
        f"def {group.kernel}({', '.join(f'in_ptr{i}' for i in range(len(group.inputs)))}, out_ptr0, xnumel, "
        "XBLOCK: tl.constexpr):",
        "    offset = tl.program_id(0) * XBLOCK",
        "    index = offset + tl.arange(0, XBLOCK)",
        "    mask = index < xnumel",
    ]
    by_line: dict[int, list[str]] = {}
    values: dict[str, str] = {}
    for i, source in enumerate(group.inputs):
        lines.append(f"    tmp{i} = tl.load(in_ptr{i} + index, mask).to(tl.float32)  # {source}")
        by_line[len(lines)] = [f"{region.name}/{source}"]
        values[source] = f"tmp{i}"
    nodes = {node.name: node for node in region.nodes}
    for name in group.nodes:
        node = nodes[name]
        result = f"tmp{len(values)}"
        arguments = ", ".join(values.get(source, "0.5") for source in node.inputs)
        lines.append(f"    {result} = {node.op.split('.')[1] if '.' in node.op else node.op}({arguments})  # {name}")
        by_line[len(lines)] = [f"{region.name}/{name}"]
        values[name] = result
    lines.append(f"    tl.store(out_ptr0 + index, {values[group.outputs[0]]}, mask)")
    by_line[len(lines)] = [f"{region.name}/{group.outputs[0]}"]
    irs, ir_lines = _levels(group.kernel, sorted(by_line))
    return Kernel(
        name=group.kernel,
        source="\n".join(lines) + "\n",
        irs=irs,
        ir_lines=ir_lines,
        warps=4,
        stages=1,
        occupancy=0.75,
        grid=group.grid,
        config={"XBLOCK": 1024, "num_warps": 4, "num_stages": 1},
        registers=32,
        spills=0,
        shared_bytes=0,
        estimated_bytes=group.estimated_bytes,
        estimated_flops=group.estimated_flops,
        estimated_us=group.estimated_bytes / (target.bandwidth_gbs * 1e3),
        line_nodes=by_line,
    )


def _levels(name: str, source_lines: list[int]) -> tuple[dict[str, str], dict[str, list[int]]]:
    """Lower levels as they look: for every line that computes something an operation, and below it two instructions."""
    ttir = [("module {", 0), (f"  tt.func public @{name}() {{", 0)]
    ttir += [(f"    %v{line} = arith.addf %a, %b : tensor<1024xf32> loc(#loc{line})", line) for line in source_lines]
    ptx = [(".version 8.3", 0), (".target sm_90a", 0), (f".visible .entry {name}()", 0), ("{", 0)]
    for line in source_lines:
        ptx += [(f"\t.loc\t1 {line} 4", line), (f"\tadd.f32 \t%f{line}, %f1, %f2;", line)]
        ptx.append((f"\tmul.f32 \t%f{line}, %f{line}, %f3;", line))
    levels = {"ttir": [*ttir, ("  }", 0), ("}", 0)], "ptx": [*ptx, ("\tret;", 0), ("}", 0)]}
    texts = {level: "\n".join(text for text, _ in rows) + "\n" for level, rows in levels.items()}
    return texts, {level: [line for _, line in rows] for level, rows in levels.items()}
