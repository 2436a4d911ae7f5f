"""Lines of the lower levels lead back to lines of the Triton source: small texts, and kernels really compiled."""

from __future__ import annotations

import re

import pytest

from compiler.codegen.linemap import definition_file, ir_lines, is_code, with_call_sites

MLIR = """\
#loc = loc("/tmp/k.py":5:0)
#loc1 = loc(unknown)
#loc4 = loc("std.py":293:36)
#loc5 = loc("/tmp/k.py":8:10)
#loc9 = loc("in_ptr0"(#loc))
module {
  tt.func public @k(%in_ptr0: !tt.ptr<f32> loc("in_ptr0"(#loc))) attributes {noinline = false} {
    %c = arith.constant 768 : i32 loc(#loc1)
    %a = "tt.reduce"(%c) <{axis = 1 : i32}> ({
    ^bb0(%x: f32 loc(callsite(#loc1 at #loc5)), %y: f32 loc(callsite(#loc1 at #loc5))):
      %b = arith.addf %x, %y : f32 loc(callsite(#loc4 at #loc5))
      tt.reduce.return %b : f32 loc(#loc12)
    }) : (f32) -> f32 loc(#loc12)
    %d:2 = scf.for %i = %c to %c step %c iter_args(%e = %c) -> (i32) : i32 {
      %f = arith.addi %i, %e : i32 loc("tmp1"("/tmp/k.py":11:3 to :9))
      scf.yield %f : i32 loc(#loc14)
    } loc(#loc14)
    %g = arith.muli %a, %a : i32 loc(fused<"meta">[#loc1, #loc13, #loc5])
    tt.return loc("other.py":3:1)
  } loc(#loc)
} loc(#loc)
#loc12 = loc(callsite(#loc4 at #loc5))
#loc13 = loc("k.py":12:4)
#loc14 = loc("tmp0"("/tmp/k.py":10:4))
"""


def test_mlir_locations() -> None:
    assert definition_file(MLIR) == "/tmp/k.py"
    lines = ir_lines("ttir", MLIR, "/tmp/k.py")
    assert lines == [0, 0, 0, 0, 0, 5, 5, 0, 8, 8, 8, 8, 8, 10, 11, 10, 10, 12, 0, 5, 5, 0, 0, 0]
    assert ir_lines("ttgir", MLIR, "k.py", shift=4)[8] == 4
    code = [line.split()[0] for line in MLIR.splitlines() if is_code("ttir", line)]
    assert code == ["tt.func", "%c", "%a", "%b", "tt.reduce.return", "%d:2", "%f", "scf.yield", "%g", "tt.return"]


def test_a_location_that_refers_to_itself_ends() -> None:
    text = "#loc1 = loc(callsite(#loc1 at #loc1))\n  tt.return loc(#loc1)"
    assert ir_lines("ttir", text, "k.py") == [0, 0]


LLIR = """\
define void @k(ptr %0) !dbg !3 {
  %1 = add i32 1, 2, !dbg !5
  %2 = add i32 1, 2, !dbg !6
  %3 = add i32 1, 2
  ret void, !dbg !9
}
!1 = !DIFile(filename: "k.py", directory: "/tmp")
!2 = !DIFile(filename: "std.py", directory: "triton")
!3 = distinct !DISubprogram(name: "k", scope: !1, file: !1, line: 5)
!4 = distinct !DILexicalBlockFile(scope: !3, file: !2, discriminator: 0)
!5 = !DILocation(line: 7, column: 3, scope: !3)
!6 = !DILocation(line: 263, column: 3, scope: !4, inlinedAt: !7)
!7 = !DILocation(line: 293, column: 3, scope: !4, inlinedAt: !8)
!8 = !DILocation(line: 9, column: 3, scope: !3)
!9 = !DILocation(line: 40, column: 3, scope: !4)
"""


def test_llvm_follows_inlined_code_to_its_call_site() -> None:
    assert ir_lines("llir", LLIR, "/tmp/k.py")[:6] == [5, 7, 9, 0, 0, 0]


PTX = """\
\t.loc\t1 5 0
$L__func_begin0:
\tmov.u32 \t%r1, %tid.x;
\t.loc\t2 263 15                        // std.py:263:15 @[ std.py:293:36 @[ k.py:9:24 ] ]
\t// begin inline asm
\t@%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];
$L__tmp2:
\t.loc\t2 7 1, function_name $L__info, inlined_at 1 8 2
\tadd.f32 \t%r70, %r58, %r59;
\t.loc\t1 0 0
\tret;
$L__func_end0:
}
\t.file\t1 "/tmp/k.py"
\t.file\t2 "std.py"
"""


def test_ptx() -> None:
    assert ir_lines("ptx", PTX, "/tmp/k.py")[:12] == [5, 0, 5, 9, 0, 9, 0, 8, 8, 0, 0, 0]
    marked = with_call_sites(PTX, "/tmp/k.py").splitlines()
    assert marked[3] == "\t.loc\t1 9 24"
    assert marked[7] == "\t.loc\t1 8 2"  # as Triton 3.8 and later say it
    changed = [i for i, (a, b) in enumerate(zip(PTX.splitlines(), marked, strict=True)) if a != b]
    assert changed == [3, 7]
    assert with_call_sites(PTX, "elsewhere.py") == PTX


def test_sass_headers_in_a_row_are_a_chain_of_call_sites() -> None:
    text = """\
\t.section\t.text.k
.text.k:
\t//## File "/tmp/k.py", line 7
        /*0000*/                   LDC R1, c[0x0][0x28] ;
\t//## File "std.py", line 3 inlined at "std.py", line 8
\t//## File "/tmp/k.py", line 9
        /*0010*/              @!P2 LDG.E.128 R4, desc[UR6][R28.64] ;
\t//## File "std.py", line 3
        /*0020*/                   EXIT ;
.L_x_0:
"""
    assert ir_lines("sass", text, "k.py") == [0, 0, 7, 7, 0, 9, 9, 0, 0, 0]


def test_unknown_levels_and_files_map_to_nothing() -> None:
    assert ir_lines("wasm", "a\nb", "k.py") == [0, 0]
    assert ir_lines("ptx", PTX, "") == [0] * len(PTX.splitlines())


# --- real kernels --------------------------------------------------------------------------------------------------

LOADS = {
    "ttir": "tt.load",
    "ttgir": "tt.load",
    "llir": r"ld\.global|= load <(?!.*addrspace\(3\))",  # space 3 is shared memory
    "ptx": r"ld\.global",
    "sass": r"LDG\.",
}
STORES = {
    "ttir": "tt.store",
    "ttgir": "tt.store",
    "llir": r"st\.global|^  store <(?!.*addrspace\(3\))",
    "ptx": r"st\.global",
    "sass": r"STG\.",
    "amdgcn": "global_store",
}


def test_lines_that_llvm_counts_in_inline_assembly_are_no_places() -> None:
    """As Triton 3.8 and later write it: the block is line 11's, whatever its own lines are called."""
    ptx = "\n".join(
        [
            '\t.file 1 "k.py"', "\t.loc 1 9 1", "\tadd.s64 \t%rd1, %rd5, %rd7;", "\t// begin inline asm",
            "\t.loc 1 11 12", "\tmov.u32 %r1, %r5;", "\t.loc 1 12 12", "\t@%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];",
            "\t// end inline asm", "\t.loc 1 12 12", "\tadd.f32 \t%r24, %r1, %r1;",
        ]
    )  # fmt: skip
    assert ir_lines("ptx", ptx, "k.py") == [0, 9, 9, 0, 11, 11, 11, 11, 0, 12, 12]
    assert with_call_sites(ptx, "k.py").count(".loc") == 3


@pytest.mark.parametrize(("target", "kind"), [("h100", "pointwise"), ("h100", "reduction"), ("mi300x", "reduction")])
def test_compiled_kernels(target: str, kind: str) -> None:
    torch = pytest.importorskip("torch")
    from compiler.codegen.binary import read_binary
    from compiler.kernel_library import KernelLibrary
    from compiler.targets import resolve
    from tests.graphs import compiled, launches

    x = torch.empty(512, 1024)
    region, _ = compiled(lambda x: (x * 2).relu() if kind == "pointwise" else x.softmax(1), x)
    library = KernelLibrary(resolve(target), binaries=True, texts=False)
    library.add(launches(region))
    (kernel,) = library.by_source.values()
    facts = read_binary(kernel.binary, resolve(target))
    source = kernel.text.splitlines()
    expected = {"ttir", "ttgir", "llir", *(("ptx", "sass") if target == "h100" else ("amdgcn",))}
    assert set(facts.irs) == set(facts.ir_lines) == expected
    for level, text in facts.irs.items():
        lines, shown = facts.ir_lines[level], text.splitlines()
        assert len(lines) == len(shown)
        code = [(line, number) for line, number in zip(shown, lines, strict=True) if is_code(level, line)]
        assert sum(number > 0 for _, number in code) >= 0.75 * len(code), level
        for patterns, call in ((LOADS, "tl.load"), (STORES, "tl.store")):
            found = [number for line, number in code if level in patterns and re.search(patterns[level], line)]
            assert level not in patterns or found, (level, call)
            assert all(call in source[number - 1] for number in found if number), (level, call)
    assert facts.registers
    assert facts.warps == kernel.config.num_warps
    assert facts.spills == 0
    assert facts.stages == 1
    assert facts.occupancy is not None
    assert 0 < facts.occupancy <= 1
    if kind == "reduction" and target == "h100":
        reached = {source[number - 1] for number in facts.ir_lines["sass"] if number}
        assert any("tl.sum(" in line for line in reached), "inlined code maps to its call"
