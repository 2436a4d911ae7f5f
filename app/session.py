"""The ``.fscope`` session file: a zip with one member per text, readable with no torch and executing nothing.

Layout: ``manifest.json`` (format and schema version), ``report.msgpack`` (the report without its texts),
``meter.json`` (how much is traced back), ``regions/N/wrapper.py`` and ``fx.py``, ``kernels/N/source``, one member per
IR and ``lines`` (where their lines come from), ``sources/N``, ``layouts/N``.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from app.lazy import LazyLines, LazyTexts, peek_lines, peek_text
from app.pieces import decode_report
from app.places import PlaceError, replaced, told
from compiler.report import SCHEMA_VERSION, Kernel, Region, Report

if TYPE_CHECKING:
    from app.meter import Meter

FORMAT = "fusescope-session"
SUFFIX = ".fscope"
_MANIFEST = "manifest.json"
_REPORT = "report.msgpack"
_METER = "meter.json"
_MAX_UNPACKED = 4 << 30  # bytes; a zip that claims more is not one of ours
_LINES = "lines"
_UNREADABLE = (msgspec.MsgspecError, RecursionError)  # what decoding raises for data that is no record of ours
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_EPOCH = (1980, 1, 1, 0, 0, 0)  # zip's first date: the same report makes the same file


class SessionError(Exception):
    """A session cannot be read or written. ``message`` is one sentence, ``hint`` what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Manifest(msgspec.Struct):
    """What a session file says of itself before anything else of it is read. ``layouts`` are region names in order."""

    format: str
    schema: int
    compiler: str = ""
    source: str = ""
    target: str = ""
    created: str = ""
    layouts: list[str] = []


class Session:
    """An opened session. Texts of the IRs and layouts are inflated when first asked for.

    The file's compressed bytes are held in memory, so the file may be replaced or deleted meanwhile.
    """

    def __init__(self, path: Path, archive: zipfile.ZipFile, manifest: Manifest, report: Report) -> None:
        self.path = path
        self.manifest = manifest
        self.report = report
        self._archive = archive

    @cached_property
    def meter(self) -> Meter | None:
        """How much of the report was traced back when it was saved; None in sessions of older versions."""
        from app.meter import Meter, with_time

        if _METER not in self._archive.NameToInfo:
            return None
        try:
            stored = msgspec.json.decode(_read(self._archive, self.path, _METER), type=Meter)
            return with_time(stored, self.report)  # an older version may have joined less of what was traced
        except _UNREADABLE as error:
            raise _damaged(self.path, str(error)) from error

    @cached_property
    def layouts(self) -> dict[str, bytes]:
        """The stored layouts by region."""
        found = {region.name: self.layout(region.name) for region in self.report.regions}
        return {name: layout for name, layout in found.items() if layout is not None}

    def prepare(self) -> None:
        """Read what a window shows first, as on another thread before it is shown.

        Raises:
            SessionError: it is damaged.
        """
        _ = self.layouts, self.meter

    def layout(self, region: str) -> bytes | None:
        """The stored layout of the region called ``region``, or None."""
        if region not in self.manifest.layouts:
            return None
        return _read(self._archive, self.path, f"layouts/{self.manifest.layouts.index(region)}")


def save_session(path: Path, report: Report, layouts: Mapping[str, bytes] | None = None) -> None:
    """Write ``report`` and the regions' encoded layouts to ``path``; a file already there stays whole on failure.

    Raises:
        SessionError: the place cannot be written.
    """
    path = Path(path)
    layouts = layouts or {}
    try:
        with told(path), replaced(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in _members(report, layouts):
                archive.writestr(_info(name), data)
    except PlaceError as error:
        raise SessionError(error.message, error.hint) from error


def open_session(path: Path) -> Session:
    """Open the session at ``path``. Reads data only; nothing in the file is executed.

    What was traced but joined to no unit, as versions before joining left it for Inductor, is joined here.

    Raises:
        SessionError: not a session, damaged, or of a newer version.
    """
    path = Path(path)
    archive = _archive(path)
    manifest = _manifest(path, archive)
    try:
        report = decode_report(_read(archive, path, _REPORT))
    except _UNREADABLE as error:
        raise _damaged(path, str(error)) from error
    _fill(path, archive, report)
    from compiler.joining import join_measured  # with the first session: the window opens without one

    join_measured(report)
    return Session(path, archive, manifest, report)


def _members(report: Report, layouts: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    from app.meter import meter  # with patterns that opening the window need not wait for

    manifest = Manifest(
        FORMAT,
        SCHEMA_VERSION,
        compiler=report.compiler,
        source=report.source,
        target=report.target.name,
        created=report.created,
        layouts=list(layouts),
    )
    yield _MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    yield _REPORT, msgspec.msgpack.encode(_without_texts(report))
    yield _METER, msgspec.json.encode(meter(report))
    for index, region in enumerate(report.regions):
        yield f"regions/{index}/wrapper.py", region.wrapper.encode()
        yield f"regions/{index}/fx.py", region.fx_text.encode()
    for index, kernel in enumerate(report.kernels):
        yield f"kernels/{index}/source", kernel.source.encode()
        for language in kernel.irs:
            yield f"kernels/{index}/{language}", peek_text(kernel.irs, language).encode()
        if kernel.ir_lines:
            yield f"kernels/{index}/{_LINES}", msgspec.msgpack.encode(peek_lines(kernel.ir_lines))
    for index, text in enumerate(report.sources.values()):
        yield f"sources/{index}", text.encode()
    for index, data in enumerate(layouts.values()):
        yield f"layouts/{index}", data


def _without_texts(report: Report) -> Report:
    """A copy with every long text emptied, and the keys of ``irs``, ``ir_lines`` and ``sources`` kept."""
    copy = msgspec.structs.replace(report)
    copy.regions = [msgspec.structs.replace(region, wrapper="", fx_text="") for region in report.regions]
    copy.kernels = [
        msgspec.structs.replace(
            kernel, source="", irs=dict.fromkeys(kernel.irs, ""), ir_lines={level: [] for level in kernel.ir_lines}
        )
        for kernel in report.kernels
    ]
    copy.sources = dict.fromkeys(report.sources, "")
    return copy


def _fill(path: Path, archive: zipfile.ZipFile, report: Report) -> None:
    def read(name: str) -> str:
        return _read(archive, path, name).decode("utf-8", errors="replace")

    def read_lines(name: str) -> dict[str, list[int]]:
        try:
            return msgspec.msgpack.decode(_read(archive, path, name), type=dict[str, list[int]])
        except _UNREADABLE as error:
            raise _damaged(path, str(error)) from error

    def fill_region(index: int, region: Region) -> None:
        region.wrapper = read(f"regions/{index}/wrapper.py")
        region.fx_text = read(f"regions/{index}/fx.py")

    def fill_kernel(index: int, kernel: Kernel) -> None:
        kernel.source = read(f"kernels/{index}/source")
        kernel.irs = LazyTexts({name: f"kernels/{index}/{name}" for name in kernel.irs}, read)
        if (member := f"kernels/{index}/{_LINES}") in archive.NameToInfo:  # else of an older version, in the record
            kernel.ir_lines = LazyLines(list(kernel.ir_lines), lambda: read_lines(member))

    for index, region in enumerate(report.regions):
        fill_region(index, region)
    for index, kernel in enumerate(report.kernels):
        fill_kernel(index, kernel)
    report.sources = {name: read(f"sources/{index}") for index, name in enumerate(report.sources)}


def no_file(path: Path) -> SessionError:
    """What to say where there is nothing at ``path``."""
    return SessionError(f"There is no file {path}.", "Check the name, and the folder it is relative to.")


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise no_file(path) from None
    except IsADirectoryError:
        hint = "Sessions are files that end in .fscope; 'import FOLDER -o X.fscope' makes one of torch's logs."
        raise SessionError(f"{path} cannot be read: it is a folder.", hint) from None
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {error.strerror}.", "Check its name and permissions.") from error
    if data[:2] != b"PK":
        what = "is empty" if not data else "is not a Fusescope session"
        raise SessionError(f"{path.name} {what}.", "Sessions end in .fscope; 'compile SOURCE -o X.fscope' writes one.")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, RuntimeError) as error:
        raise _damaged(path, "it is cut short or changed") from error
    if any(info.compress_type not in _COMPRESSIONS for info in archive.infolist()):
        raise _damaged(path, "it is packed in a way that sessions are not")
    if sum(info.file_size for info in archive.infolist()) > _MAX_UNPACKED:
        raise _damaged(path, "it claims to unpack to more than 4 GiB")
    return archive


def _manifest(path: Path, archive: zipfile.ZipFile) -> Manifest:
    if _MANIFEST not in archive.namelist():
        raise SessionError(f"{path.name} is a zip file but not a Fusescope session.", "Sessions end in .fscope.")
    try:
        manifest = msgspec.json.decode(_read(archive, path, _MANIFEST), type=Manifest)
    except _UNREADABLE as error:
        raise _damaged(path, str(error)) from error
    if manifest.format != FORMAT:
        raise SessionError(f"{path.name} is a zip file but not a Fusescope session.", "Sessions end in .fscope.")
    if manifest.schema > SCHEMA_VERSION:
        message = (
            f"{path.name} was saved by a newer Fusescope (session version {manifest.schema}, this one reads up to "
            f"{SCHEMA_VERSION})."
        )
        raise SessionError(message, "Update Fusescope to open it.")
    return manifest


def _read(archive: zipfile.ZipFile, path: Path, name: str) -> bytes:
    try:
        return archive.read(name)
    except KeyError as error:
        raise _damaged(path, f"{name} is missing") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        raise _damaged(path, f"{name} cannot be read") from error


def _damaged(path: Path, reason: str) -> SessionError:
    return SessionError(f"{path.name} is damaged: {reason}.", "Copy it again, or compile its source again.")


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info
