"""The options of a compiler, and whether those that a source came with are among them."""

from __future__ import annotations

from app.sources import SourceError
from app.sources.load import LoadedSource
from compiler.options import OptionInfo, describe_options, option_hint


def compiler_options(compiler: str) -> list[OptionInfo]:
    """The options that ``compiler`` takes, with their texts."""
    if compiler == "inductor":
        from compiler.inductor.options import describe_config

        return describe_config()
    return describe_options()


def check_options(compiler: str, loaded: LoadedSource) -> None:
    """A misspelt option must not pass for one that had its effect.

    Raises:
        SourceError: an option that neither the source's function nor the compiler has.
    """
    known = [info.name for info in compiler_options(compiler)]
    unknown = [name for name in loaded.remaining if name not in known]
    if unknown:
        names = ", ".join(f"'{name}'" for name in unknown)
        own = f"The options of {loaded.name}: {', '.join(loaded.parameters)}. " if loaded.parameters else ""
        hint = own + option_hint(unknown[0], known, compiler)
        raise SourceError(f"Neither {loaded.name} nor the compiler has an option {names}.", hint)
