"""The work behind ``minify``: load a source, search, and print what was found as a Python file."""

from __future__ import annotations

from dataclasses import dataclass

from app.sources import SourceError, parse_source
from app.sources.load import load_source
from app.worker.own_faults import work_on


@dataclass(frozen=True)
class MinifyResult:
    """The file's text, the failure in one sentence, and how many calls are left of how many."""

    text: str
    failure: str
    nodes: int
    nodes_before: int


def minify_source(
    source: str, target_name: str, *, accuracy: bool, interpret: bool, training: bool, allow_unsafe: bool
) -> MinifyResult | None:
    """The smallest graph of the source that still fails; None where nothing fails.

    With ``interpret`` this process must have been started with TRITON_INTERPRET=1.

    Raises:
        SourceError: the source is at fault, or (code "no_gpu") there is no GPU to run kernels on.
        CompileError: the model cannot be captured.
    """
    from compiler.targets import local_target, resolve

    spec = parse_source(source)
    if accuracy and not interpret and local_target() is None:
        message = "This machine has no GPU to run the kernels on."
        raise SourceError(message, "Add --interpret to run them through Triton's interpreter.", code="no_gpu")
    from compiler.minified_source import minified_source
    from compiler.minify import crashes, differs, minify_model
    from compiler.pipeline import to_gpu

    try:
        target = resolve(target_name)
    except ValueError as error:
        raise SourceError(str(error)) from error
    on_gpu = target.local and not interpret
    loaded = load_source(spec, allow_unsafe=allow_unsafe, device="cuda" if on_gpu else "cpu")
    model, inputs = to_gpu(loaded.model, tuple(loaded.inputs)) if on_gpu else (loaded.model, tuple(loaded.inputs))
    check = differs(target) if accuracy else crashes(target)
    training = training or loaded.training
    found = work_on(loaded, training, lambda: minify_model(model, inputs, check, training=training))
    if found is None:
        return None
    command = "verify" if accuracy else "compile"
    text = minified_source(found, check, source=source, command=command)
    return MinifyResult(text, found.failure.text.splitlines()[0], found.nodes, found.nodes_before)
