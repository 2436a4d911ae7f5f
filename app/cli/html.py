"""A session as one HTML file with no scripts and nothing to fetch: summary, tables, generated sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from app.cli.summary import total_us
from app.cli.text import bytes_text, count_text, us_text
from compiler.report import Kernel, Measurement, Region, Report, SourceLine

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --muted: #777; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
p.facts, td.reason { color: var(--muted); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; } td.number, th.number { text-align: right; }
details { margin: .4rem 0; } summary { cursor: pointer; }
pre { overflow-x: auto; padding: .8rem; border: 1px solid var(--line); border-radius: 6px; font-size: 13px; }
"""


def report_html(report: Report) -> str:
    """The whole page."""
    title = f"{report.source} on {report.target.title}"
    body = "\n".join(_sections(report))
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}{_code_style()}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _sections(report: Report) -> Iterator[str]:
    groups = sum(len(region.groups) for region in report.regions)
    calls = sum(len(region.extern_calls) for region in report.regions)
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    yield f"<h1>{escape(report.source)}</h1>"
    yield (
        f'<p class="facts">Compiled by {escape(report.compiler)} for {escape(report.target.title)}. '
        f"{count_text(len(report.regions), 'region')}, {count_text(groups, 'fusion group')}, "
        f"{count_text(len(report.kernels), 'kernel')}, {count_text(calls, 'extern call')}, "
        f"{count_text(len(report.graph_breaks), 'graph break')}. {escape(versions)}. {escape(report.created)}</p>"
    )
    yield from (f"<p>{escape(note)}</p>" for note in report.notes)
    if report.measurements:
        yield _measurements(report.measurements)
    if report.kernels:
        yield _kernels(report)
    for region in report.regions:
        yield from _region(region)
    yield from _capture(report)
    if report.kernels:
        yield "<h2>Generated kernels</h2>"
        yield from (_source(kernel) for kernel in report.kernels)


def _capture(report: Report) -> Iterator[str]:
    """What Dynamo said: where it broke the graph, why it compiled again, what it checks before each call."""
    if report.graph_breaks:
        rows = [
            (
                fault.reason + ("; the whole function runs in eager" if fault.skipped_frame else ""),
                _place(fault.source),
                fault.detail,
            )
            for fault in report.graph_breaks
        ]
        yield "<h2>Graph breaks</h2>" + _table(("reason", "where", "detail"), rows)
    if report.recompiles:
        again = [(r.function, r.reason, _place(r.source)) for r in report.recompiles]
        yield "<h2>Recompiles</h2>" + _table(("function", "guard that failed", "where"), again)
    if report.guards:
        guards = [(guard.kind, guard.subject, guard.code, _place(guard.source)) for guard in report.guards]
        rows_text = _table(("kind", "of", "check", "where"), guards)
        yield f"<h2>Guards</h2><details><summary>{len(guards)} guards</summary>{rows_text}</details>"


def _place(source: SourceLine | None) -> str:
    return f"{source.file}:{source.line}" if source else ""


def _measurements(measurements: Iterable[Measurement]) -> str:
    rows = [
        (m.mode, m.gpu, m.iterations, *(us_text(v) for p in (m.cpu_us, m.gpu_us) for v in (p.p50, p.p90, p.p99)))
        for m in measurements
    ]
    headers = ("mode", "GPU", "iterations", "CPU p50 µs", "p90", "p99", "GPU p50 µs", "p90", "p99")
    return "<h2>Measured</h2>" + _table(headers, rows, numbers=range(2, 9))


def _kernels(report: Report) -> str:
    rows = [
        (
            kernel.name,
            kernel.launches or "-",
            bytes_text(kernel.estimated_bytes) if kernel.estimated_bytes else "-",
            us_text(kernel.estimated_us),
            us_text(kernel.measured_us),
            us_text(total_us(kernel)),
            _or_dash(kernel.registers),
            _or_dash(kernel.spills),
            "-" if kernel.shared_bytes is None else bytes_text(kernel.shared_bytes),
        )
        for kernel in sorted(report.kernels, key=total_us, reverse=True)
    ]
    headers = ("kernel", "launches", "bytes (estimated)", "µs (estimated)", "µs (measured)", "µs all launches")
    return "<h2>Kernels</h2>" + _table((*headers, "registers", "spills", "shared"), rows, numbers=range(1, 9))


def _region(region: Region) -> Iterator[str]:
    yield f"<h2>Region {escape(region.name)} ({escape(region.kind)}, {len(region.nodes)} nodes)</h2>"
    if region.groups:
        rows = [(g.name, g.kind.value, ", ".join(g.nodes), g.kernel, g.reason) for g in region.groups]
        yield _table(("fusion group", "kind", "nodes", "kernel", "why"), rows)
    if region.extern_calls:
        calls = [(c.name, c.op, ", ".join(c.nodes), c.reason.value, c.detail) for c in region.extern_calls]
        yield "<p></p>" + _table(("extern call", "op", "nodes", "reason", "detail"), calls)


def _source(kernel: Kernel) -> str:
    return f"<details><summary>{escape(kernel.name)}</summary>{_highlighted(kernel.source)}</details>"


def _highlighted(source: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return str(highlight(source, PythonLexer(), HtmlFormatter(cssclass="code")))


def _code_style() -> str:
    from pygments.formatters import HtmlFormatter

    light = HtmlFormatter(style="friendly", cssclass="code", nobackground=True).get_style_defs(".code")
    dark = HtmlFormatter(style="monokai", cssclass="code", nobackground=True).get_style_defs(".code")
    return f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}"


def _table(headers: Sequence[str], rows: Iterable[Sequence[object]], numbers: Iterable[int] = ()) -> str:
    right = set(numbers)

    def cell(tag: str, column: int, value: object) -> str:
        kind = ' class="number"' if column in right else ""
        return f"<{tag}{kind}>{escape(str(value))}</{tag}>"

    def cells(tag: str, values: Sequence[object]) -> str:
        return "".join(cell(tag, column, value) for column, value in enumerate(values))

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', headers)}</tr></thead>\n<tbody>{body}</tbody></table>"


def _or_dash(value: int | None) -> str:
    return "-" if value is None else str(value)
