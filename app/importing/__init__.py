"""Logs that torch.compile wrote elsewhere, read into reports. They are data: nothing in them is executed."""

from app.importing.errors import ImportingError
from app.importing.folder import import_traces

__all__ = ["ImportingError", "import_traces"]
