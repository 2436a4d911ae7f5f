"""Ways to name a model: the gallery, a Python file, an exported program, an importable function.

Loading one (``load.py``) is the worker's part, and the window starts sooner without it.
"""

from app.sources.errors import SourceError
from app.sources.gallery import ExampleInfo, examples
from app.sources.spec import SourceKind, SourceSpec, is_source, parse_source

__all__ = [
    "ExampleInfo",
    "SourceError",
    "SourceKind",
    "SourceSpec",
    "examples",
    "is_source",
    "parse_source",
]
