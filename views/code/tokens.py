"""A line of an IR cut into coloured spans, by one regular expression a language."""

from __future__ import annotations

import re
from functools import cache

Span = tuple[int, int, str]  # start column, length, field of theme.Syntax

_MLIR = r"""
(?P<comment>//.*)|(?P<string>"(?:[^"\\]|\\.)*")|(?P<decorator>[#@!][\w.$]+)|(?P<name>%[\w.$#:]+)
|(?P<type>\b(?:tensor|memref|vector|index|none|[su]?i\d+|bf16|f\d+|tf32|x(?=[\[\dif]))\b|!?tt\.ptr\b)
|(?P<keyword>\b(?:tt|ttg|ttng|arith|math|scf|cf|module|attributes|loc|nvws|llvm|func|gpu|cluster)(?:\.[\w.]+)?\b)
|(?P<number>\b(?:0x[\da-fA-F]+|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\b)
"""
_LLVM = r"""
(?P<comment>;.*)|(?P<string>c?"[^"]*")|(?P<decorator>[@!#][\w.$]+)|(?P<name>%[\w.$]+)
|(?P<type>\b(?:i\d+|half|bfloat|float|double|void|ptr|label|metadata)\b)
|(?P<keyword>\b(?:define|declare|ret|br|call|tail|load|store|getelementptr|inbounds|add|sub|mul|sdiv|udiv|srem|urem|fadd
|fsub|fmul|fdiv|fcmp|icmp|select|phi|and|or|xor|shl|lshr|ashr|zext|sext|trunc|bitcast|insertvalue|extractvalue
|insertelement|extractelement|addrspace|align|attributes|target|source_filename|nuw|nsw|asm|sideeffect|to)\b)
|(?P<number>\b(?:0x[\da-fA-F]+|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\b)
"""
_PTX = r"""
(?P<comment>//.*)|(?P<string>"[^"]*")|(?P<decorator>^\s*\$?[\w$]+:|\$L[\w$]+)|(?P<name>%[\w.]+)
|(?P<type>\.(?:[bsuf]\d+(?:x\d+)?|bf16(?:x2)?|pred|v[248])\b)
|(?P<keyword>^\s*(?:@!?%\w+\s+)?\b[a-z][\w]*(?:\.[\w:]+)*|\.(?:version|target|address_size|visible|entry|param|reg
|shared|global|align|loc|file|section|maxntid|reqntid|minnctapersm|func|extern)\b)
|(?P<number>\b(?:0[xfd][\da-fA-F]+|\d+)\b)
"""
_SASS = r"""
(?P<comment>//.*|/\*.*?\*/)|(?P<decorator>^\s*\.?[\w.$]+:|@!?U?P\w+)|(?P<name>\b(?:UR|R|UP|P|SR_|B)\w*\b)
|(?P<keyword>\b[A-Z][A-Z0-9_]{2,}(?:\.[A-Z0-9_]+)*\b)
|(?P<number>\b(?:0x[\da-fA-F]+|-?\d+(?:\.\d+)?)\b)
"""
_DIFF = r"""
(?P<decorator>^(?:@@|---|\+\+\+).*)|(?P<string>^\+.*)|(?P<number>^-.*)
"""
_PATTERNS = {"diff": _DIFF, "ttir": _MLIR, "ttgir": _MLIR, "llir": _LLVM, "ptx": _PTX, "sass": _SASS, "amdgcn": _PTX}


def line_spans(language: str, text: str, end: int) -> list[Span]:
    """The spans of one line of an IR up to the column ``end``. A language without a pattern has none."""
    pattern = _pattern(language)
    if pattern is None:
        return []
    return [(m.start(), m.end() - m.start(), m.lastgroup or "") for m in pattern.finditer(text, 0, end)]


@cache
def _pattern(language: str) -> re.Pattern[str] | None:
    source = _PATTERNS.get(language)
    return re.compile(source.replace("\n", ""), re.MULTILINE) if source else None
