"""One compilation at a time: ask for consent where code will run, send, follow, and say clearly how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.settings import Settings
from app.sources import SourceError, SourceKind, parse_source
from app.worker.ended import exit_cause, exit_text
from app.worker.protocol import Compile, Compiled, Failed, Ready, WorkerDied
from compiler.options import describe_options
from views.compile.worker_bridge import WorkerBridge
from views.window.message_bar import Message
from views.window.toolbar import DEFAULT_TARGET

Ask = Callable[[str, str, str], bool]  # (title, text, text of the button that agrees) -> agreed


@dataclass(frozen=True)
class Request:
    """What the user wants compiled."""

    source: str
    target: str
    compiler: str
    training: bool
    allow_unsafe: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    compare: bool = False  # with the report that is on screen when it is done


class CompileControl(QObject):
    """Drives the worker for the window."""

    began = Signal(object)  # Request
    ended = Signal()
    cancelled = Signal()
    compiled = Signal(object, object)  # Report, Request
    message = Signal(object)  # Message

    def __init__(self, bridge: WorkerBridge, settings: Settings, ask: Ask, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._settings = settings
        self._ask = ask
        self._request: Request | None = None
        self._id = 0
        self._ready: Ready | None = None
        bridge.ready.connect(self._on_ready)
        bridge.compiled.connect(self._on_compiled)
        bridge.failed.connect(self._on_failed)
        bridge.died.connect(self._on_died)

    @property
    def is_busy(self) -> bool:
        """Whether a compilation is waiting or in progress."""
        return self._request is not None

    @property
    def current_id(self) -> int:
        """The id of the command in progress; 0 while it waits for the worker."""
        return self._id

    def start(self, request: Request) -> None:
        """Compile; where the worker is not up yet, as soon as it is. One at a time: what runs goes on."""
        if self._request is not None:
            text = f"{self._request.source} is being compiled."
            self.message.emit(Message("info", text, "Esc cancels that; then compile again."))
            return
        try:
            spec = parse_source(request.source)
        except SourceError as error:
            self.message.emit(Message("error", error.message, error.hint))
            return
        if spec.kind in (SourceKind.FILE, SourceKind.PROGRAM) and spec.path and not self._may_run(spec.path):
            return
        self._request = request
        self._id = 0
        self.began.emit(request)
        if self._ready is not None:
            self._send()
        else:
            self._bridge.start()

    def cancel(self) -> None:
        """End it now."""
        if not self.is_busy:
            return
        self._finish()
        self._bridge.cancel()
        self.cancelled.emit()
        self.message.emit(Message("info", "The compilation was cancelled.", "What is on screen stays."))

    def _may_run(self, path: Path) -> bool:
        """Consent to run the code in ``path``, asked once for each state of the file."""
        try:
            changed = path.stat().st_mtime_ns
        except OSError:
            return True  # the worker says clearly what is wrong with the file
        key = str(path.resolve())
        if self._settings.trusted.get(key) == changed:
            return True
        text = f"{path.name} is code, and compiling it runs it on this machine. Go on only if you trust its origin."
        if not self._ask("This file will run", text, "Run it"):
            return False
        self._settings.trusted[key] = changed
        return True

    def _send(self) -> None:
        request = self._request
        if request is None:
            return
        self._id = self._bridge.new_id()
        target = request.target or ("local" if self._ready and self._ready.gpu else DEFAULT_TARGET)
        self._bridge.send(
            Compile(
                self._id,
                request.source,
                target,
                compiler=request.compiler,
                training=request.training,
                options=dict(request.options),
                allow_unsafe=request.allow_unsafe,
            )
        )

    def _finish(self) -> None:
        self._request = None
        self._id = 0
        self.ended.emit()

    def _on_ready(self, event: Ready) -> None:
        self._ready = event
        if self._request is not None and self._id == 0:
            self._send()

    def _on_compiled(self, event: Compiled) -> None:
        request = self._request
        if request is None or event.id != self._id:
            return
        self._finish()
        self.compiled.emit(event.report, request)

    def _on_failed(self, event: Failed) -> None:
        request = self._request
        if request is None or event.id != self._id:
            return
        if event.code == "unsafe" and not request.allow_unsafe:
            agreed = self._ask("This file can run code", f"{event.message} {event.hint}".strip(), "Load it anyway")
            if self._request is request:  # else the worker ended while the user was asked
                self._finish()
                if agreed:
                    self.start(replace(request, allow_unsafe=True))
            return
        self._finish()
        self.message.emit(Message("error", event.message, event.hint, event.detail))

    def _on_died(self, event: WorkerDied) -> None:
        was_up = self._ready is not None
        self._ready = None
        if event.cancelled:
            return
        request = self._request
        if request is None:
            if was_up:
                doing, cause = (f" while it {event.doing}", exit_cause(event.exit_code)) if event.doing else ("", "")
                text = f"The worker process ended{doing} ({exit_text(event.exit_code)}); a new one starts."
                hint = f"{cause} The report stays. Compile again to run it.".lstrip()
                self.message.emit(Message("warning", text, hint, event.stderr_tail))
            return
        self._finish()
        self.message.emit(died_message(event, was_up))


def died_message(event: WorkerDied, was_up: bool) -> Message:
    """What to say when the worker ended while it was to compile a source."""
    if "No module named 'torch'" in event.stderr_tail:
        return Message(
            "error",
            "Compiling needs torch, which is not installed here.",
            "Install it with: pip install 'fusescope[compile]'. Sessions open without it.",
            event.stderr_tail,
        )
    if not was_up:
        return Message(
            "error",
            f"The worker process did not start ({exit_text(event.exit_code)}).",
            "Its last words are in the details. Compile again to start another.",
            event.stderr_tail,
        )
    return Message(
        "error",
        f"The worker process ended while it {event.doing} ({exit_text(event.exit_code)}).",
        f"{exit_cause(event.exit_code)} Nothing else is lost: what is on screen stays, and a new worker starts. "
        "Compile again, or see the details.".lstrip(),
        event.stderr_tail,
    )


def shared_options(options: Mapping[str, str]) -> dict[str, str]:
    """Those that are for the model and not for one compiler alone."""
    own = {info.name for info in describe_options()}
    return {name: value for name, value in options.items() if name not in own and "." not in name}
