"""From every line of a kernel's lower levels to the line of its Triton source that it came from, by their debug
information. Pure functions of texts, no torch.

Code that was inlined (``tl.sum``'s body, helpers above the kernel) belongs to the line of the kernel that called it:
of a chain of call sites the outermost one in the kernel's own file counts. 0 stands for "no line".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from compiler.report import Kernel

_FILE_LINE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_NAME = re.compile(r'"(?:[^"\\]|\\.)*"')
_ALIAS = re.compile(r"#loc\d*")
_DEFINITION = re.compile(r"^(#loc\d*) = loc\((.*)\)$")


def definition_file(ttir: str) -> str:
    """The file that the kernel of a TTIR or TTGIR text is defined in, as its locations name it; "" where none says."""
    aliases = _aliases(ttir)
    for line in ttir.splitlines():
        if "tt.func public" in line:
            for start in (m.end() for m in re.finditer(r"loc\(", line)):
                found = _Locations(aliases).files(line[start:])
                if found:
                    return found[-1]
    return ""


def ir_lines(level: str, text: str, file: str, shift: int = 0) -> list[int]:
    """For each line of ``text`` (a level's: "ttir", "ttgir", "llir", "ptx", "amdgcn", "sass") the source line, or 0.

    Args:
        file: the kernel's file as its locations name it (``definition_file``); only its last component counts.
        shift: taken off every line number, where the source shown begins below the file's first line.
    """
    read = _READERS.get(level)
    if read is None or not file:
        return [0] * len(text.splitlines())
    lines = read(text, _base(file))
    return [max(line - shift, 0) for line in lines] if shift else lines


def kernel_lines(kernel: Kernel, level: str) -> list[int]:
    """The source lines of a kernel's level: as recorded, else read off its texts (sessions made elsewhere)."""
    known = kernel.ir_lines.get(level)
    if known is not None:
        return known
    file = definition_file(kernel.irs.get("ttir", "")) or definition_file(kernel.irs.get("ttgir", ""))
    return ir_lines(level, kernel.irs.get(level, ""), file)


def is_code(level: str, line: str) -> bool:
    """Whether a line of a level is an operation or instruction, and not a label, a directive, a comment or a brace."""
    pattern = _CODE.get(level)
    return bool(pattern and pattern.match(line))


_MLIR_CODE = re.compile(r'^\s+(?:%[\w$]+(?::\d+)?(?:, %[\w$]+(?::\d+)?)* = )?"?[a-z_]+\.[\w.]+"?[^\w]')
_CODE: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "ttir": _MLIR_CODE,
        "ttgir": _MLIR_CODE,
        "llir": re.compile(r"^  (?:%[\w.]+ = )?[a-z]"),
        "ptx": re.compile(r"^\s+(?:\{?\s*@!?%?\w+\s+)?\{?\s*[a-z][\w.]*(?:\s|;)[^:]*"),
        "amdgcn": re.compile(r"^\t[a-z]\w+"),
        "sass": re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+[A-Z@{]"),
    }
)


def _base(file: str) -> str:
    return file.rsplit("/", 1)[-1]


# --- TTIR and TTGIR ------------------------------------------------------------------------------------------------


def _aliases(text: str) -> dict[str, str]:
    return {m[1]: m[2] for m in map(_DEFINITION.match, text.splitlines()) if m}


class _Locations:
    """Reads MLIR locations. ``aliases`` are the texts behind ``#loc12``."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases
        self._known: dict[str, list[tuple[str, int]]] = {}

    def chain(self, text: str) -> list[tuple[str, int]]:
        """(file, line) of a location's text, the innermost callee first; nothing for an unknown one."""
        return self._read(text, 0)[0]

    def files(self, text: str) -> list[str]:
        """The files along ``chain``."""
        return [file for file, _ in self.chain(text)]

    def _read(self, text: str, at: int) -> tuple[list[tuple[str, int]], int]:
        """The location that begins at ``at``, and where it ends."""
        while at < len(text) and text[at] == " ":
            at += 1
        if match := _ALIAS.match(text, at):
            return self._alias(match[0]), match.end()
        if match := _FILE_LINE.match(text, at):
            end = match.end()
            to = re.compile(r" to (?:\d+)?:\d+").match(text, end)
            return [(match[1], int(match[2]))], to.end() if to else end
        if match := _NAME.match(text, at):
            if text[match.end() : match.end() + 1] != "(":
                return [], match.end()
            found, end = self._read(text, match.end() + 1)
            return found, end + 1
        if text.startswith("callsite(", at):
            callee, end = self._read(text, at + len("callsite("))
            caller, end = self._read(text, end + len(" at "))
            return [*callee, *caller], end + 1
        if text.startswith("fused", at):
            return self._fused(text, at)
        word = re.compile(r"[\w.]+").match(text, at)
        return [], word.end() if word else at

    def _fused(self, text: str, at: int) -> tuple[list[tuple[str, int]], int]:
        """Several places made one operation: the first that is known stands for it."""
        at = text.index("[", at) + 1
        first: list[tuple[str, int]] = []
        while True:
            found, at = self._read(text, at)
            first = first or found
            if text[at : at + 1] != ",":
                return first, at + 1
            at += 1

    def _alias(self, name: str) -> list[tuple[str, int]]:
        known = self._known.get(name)
        if known is None:
            self._known[name] = []  # a location never refers to itself, but a broken text must not recurse for ever
            known = self._known[name] = self.chain(self._aliases.get(name, ""))
        return known


def _mlir_lines(text: str, base: str) -> list[int]:
    """An operation with a region says its location where the region ends; its first line gets it too."""
    locations = _Locations(_aliases(text))
    result: list[int] = []
    opened: list[int] = []
    for number, line in enumerate(text.splitlines()):
        at = -1 if line.startswith("#") else line.rfind(" loc(")
        found = _outermost(locations.chain(line[at + len(" loc(") :]), base) if at >= 0 else 0
        result.append(found)
        bare = line.strip()
        first = opened.pop() if bare.startswith("}") and opened else number
        if bare.endswith("{"):
            opened.append(first)
        elif first != number and not result[first]:
            result[first] = found
    return result


def _outermost(chain: list[tuple[str, int]], base: str) -> int:
    return next((line for file, line in reversed(chain) if _base(file) == base), 0)


# --- LLVM IR -------------------------------------------------------------------------------------------------------

_METADATA = re.compile(r"^!(\d+) = (?:distinct )?!(DI\w+)\((.*)\)$")
_USE = re.compile(r"!dbg !(\d+)")


def _field(fields: str, name: str) -> str:
    match = re.search(rf'\b{name}: (?:!?(\d+)|"([^"]*)")', fields)
    return (match[1] or match[2] or "") if match else ""


def _llir_lines(text: str, base: str) -> list[int]:
    metadata = {m[1]: (m[2], m[3]) for m in map(_METADATA.match, text.splitlines()) if m}

    def file_of(scope: str) -> str:
        seen: set[str] = set()
        while scope in metadata and scope not in seen:
            seen.add(scope)
            kind, fields = metadata[scope]
            if kind == "DIFile":
                return _field(fields, "filename")
            scope = _field(fields, "file") or _field(fields, "scope")
        return ""

    def line_of(number: str) -> int:
        chain: list[tuple[str, int]] = []
        while number in metadata and len(chain) < 64:
            kind, fields = metadata[number]
            line = int(_field(fields, "line") or 0)
            chain.append((file_of(number if kind == "DISubprogram" else _field(fields, "scope")), line))
            number = _field(fields, "inlinedAt") if kind == "DILocation" else ""
        return _outermost(chain, base)

    known: dict[str, int] = {}
    result = []
    for line in text.splitlines():
        match = None if line.startswith("!") else _USE.search(line)
        if match and match[1] not in known:
            known[match[1]] = line_of(match[1])
        result.append(known[match[1]] if match else 0)
    return result


# --- PTX and AMD's assembly ----------------------------------------------------------------------------------------

_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_SITE = re.compile(r"@\[ (.*?):(\d+):(\d+)")
_INLINED = re.compile(r"inlined_at\s+(\d+)\s+(\d+)\s+(\d+)")


def _files(text: str) -> dict[str, str]:
    return {m[1]: m[3] or m[2] for m in map(_FILE.match, text.splitlines()) if m}


_Place = tuple[str, int, int]  # file, line, column


class _CallSites:
    """The chains of call sites of ``.loc`` directives, read in order.

    They are in the comment that LLVM adds. From Triton 3.8 on they are in the operands, one level each: the site of
    that site is the one of the last directive at its place.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._site_of: dict[_Place, _Place] = {}

    def chain(self, line: str, match: re.Match[str]) -> list[_Place]:
        """The directive's place and its call sites, the innermost first."""
        chain = [(self._files.get(match[1], ""), int(match[2]), int(match[3]))]
        commented = [(m[1], int(m[2]), int(m[3])) for m in _SITE.finditer(line)]
        if commented:
            return chain + commented
        if (site := _INLINED.search(line)) is not None:
            self._site_of[chain[0]] = (self._files.get(site[1], ""), int(site[2]), int(site[3]))
            while (outer := self._site_of.get(chain[-1])) is not None and outer not in chain:
                chain.append(outer)
        return chain


def _assembly_lines(level: str) -> Callable[[str, str], list[int]]:
    def read(text: str, base: str) -> list[int]:
        sites = _CallSites(_files(text))
        current = 0
        result = []
        lines = text.splitlines()
        counted = _counted_in_asm(lines)
        for number, line in enumerate(lines):
            match = _LOC.match(line)
            if number in counted:
                result.append(current)
            elif match:
                current = _outermost([(file, at) for file, at, _ in sites.chain(line, match)], base)
                result.append(current)
            else:
                result.append(current if is_code(level, line) else 0)
                if line.startswith(("}", ".Lfunc_end", "$L__func_end")):
                    current = 0
        return result

    return read


def _counted_in_asm(lines: Sequence[str]) -> set[int]:
    """Positions of the ``.loc`` after the first in a block of inline assembly.

    The LLVM of Triton 3.8 and later writes one for each line of the block and counts the source line up with it: only
    the first is the place that the block came from.
    """
    found: set[int] = set()
    inside = False
    before: tuple[str, int] | None = None
    for number, line in enumerate(lines):
        match = _LOC.match(line)
        if "// begin inline asm" in line:
            inside, before = True, None
        elif "// end inline asm" in line:
            inside = False
        elif inside and match is not None:
            here = match[1], int(match[2])
            if before is not None and here == (before[0], before[1] + 1):
                found.add(number)
            before = here
    return found


def with_call_sites(ptx: str, file: str) -> str:
    """PTX whose inlined code says that it is at its call site in ``file``, and inline assembly where it came from.

    The assembler keeps a line per instruction but not the chain of call sites; so that SASS maps to the kernel's own
    lines, they are put in place of the inlined ones before it runs. Instructions are not touched.
    """
    base = _base(file)
    files = _files(ptx)
    number = next((n for n, name in files.items() if _base(name) == base), None)
    if number is None:
        return ptx
    sites = _CallSites(files)

    def replaced(line: str) -> str:
        match = _LOC.match(line)
        if match is None:
            return line
        own = [place for place in sites.chain(line, match)[1:] if _base(place[0]) == base]
        return f"\t.loc\t{number} {own[-1][1]} {own[-1][2]}" if own else line

    lines = ptx.split("\n")
    counted = _counted_in_asm(lines)
    return "\n".join(replaced(line) for position, line in enumerate(lines) if position not in counted)


# --- SASS ----------------------------------------------------------------------------------------------------------

_SASS_LINE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)(.*)$')
_SASS_SITE = re.compile(r'inlined at "([^"]*)", line (\d+)')


def _sass_lines(text: str, base: str) -> list[int]:
    """Headers say the line of what follows; several in a row are a chain of call sites, the innermost first."""
    chain: list[tuple[str, int]] = []
    in_header = False
    result = []
    for line in text.splitlines():
        match = _SASS_LINE.match(line)
        if match:
            chain = chain if in_header else []
            chain.append((match[1], int(match[2])))
            chain += [(m[1], int(m[2])) for m in _SASS_SITE.finditer(match[3])]
            result.append(_outermost(chain, base))
        else:
            if line.lstrip().startswith((".section", "//-----")):
                chain = []
            result.append(_outermost(chain, base) if is_code("sass", line) else 0)
        in_header = match is not None
    return result


_READERS: Mapping[str, Callable[[str, str], list[int]]] = MappingProxyType(
    {
        "ttir": _mlir_lines,
        "ttgir": _mlir_lines,
        "llir": _llir_lines,
        "ptx": _assembly_lines("ptx"),
        "amdgcn": _assembly_lines("amdgcn"),
        "sass": _sass_lines,
    }
)
