"""Ways to name and load a model: the gallery, a Python file, an exported program, an importable function."""

from app.sources.errors import SourceError
from app.sources.gallery import ExampleInfo, examples
from app.sources.load import LoadedSource, load_source
from app.sources.spec import SourceKind, SourceSpec, parse_source

__all__ = [
    "ExampleInfo",
    "LoadedSource",
    "SourceError",
    "SourceKind",
    "SourceSpec",
    "examples",
    "load_source",
    "parse_source",
]
