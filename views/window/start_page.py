"""The first page: what the app does, recorded samples, the gallery, recent files, Open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from app.session import open_session
from app.sources.gallery import ExampleInfo
from app.titles import compiler_title
from views.background.jobs import Job
from views.look.icons import pixmap
from views.look.resources import resource
from views.look.sizes import fitted, px
from views.look.theme import Theme
from views.run.modes import mode_title
from views.sessions.places import name_and_folder
from views.widgets.basic import ElidedLabel, label, push_button
from views.widgets.cards import Card, CardGrid
from views.widgets.tab_order import follow

_WIDTH = 1120
_BEFORE_HEADING = 10  # pixels, beside the column's own
_AFTER_PAINT_MS = 30
_INTRO = (
    "See how PyTorch compiles a model for a GPU: what fuses into which kernel and why, the generated Triton, "
    "CUDA Graph replay, and CPU time against GPU time."
)


def samples() -> list[Path]:
    """The recorded sessions shipped with the app."""
    return sorted(resource("samples").glob("*.fscope"))


def describe_sample(path: Path) -> tuple[str, str, str, str]:
    """(source, compiler, text, GPU) of a shipped session, read from the file itself."""
    report = open_session(path).report
    gpu = next((m.gpu for m in report.measurements), "")
    modes = [mode_title(mode) for mode in dict.fromkeys(m.mode for m in report.measurements)]
    groups = sum(len(region.groups) for region in report.regions)
    text = f"{groups} fusion groups for {report.target.title}."
    if modes:
        listed = ", ".join([modes[0], *(mode if "Inductor" in mode else mode.lower() for mode in modes[1:])])
        text += f" Iterations play back in the Run panel: {listed}."
    return report.source, compiler_title(report.compiler), text, gpu


class StartPage(QScrollArea):
    """Shown while there is no report."""

    example_chosen = Signal(str, bool)  # SOURCE, training
    path_chosen = Signal(str)
    open_requested = Signal()
    tour_requested = Signal()

    def __init__(self, theme: Theme, gallery: list[ExampleInfo], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setAccessibleName("Start page")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._theme = theme
        self._unread: dict[Path, Card] = {}  # samples whose cards do not say yet what is in them
        page = QWidget()
        outer = QHBoxLayout(page)
        outer.setContentsMargins(28, 26, 28, 26)
        inner = QWidget()
        fitted(inner, lambda: inner.setMaximumWidth(px(_WIDTH)))
        inner.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        outer.addStretch(0)
        outer.addWidget(inner, 1)
        outer.addStretch(0)
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addLayout(self._hero())
        column.addSpacing(_BEFORE_HEADING)
        self._samples_heading = label("Recorded samples: no GPU and no torch needed", "heading")
        self.sample_grid = CardGrid("Recorded samples", 380)
        column.addWidget(self._samples_heading)
        column.addWidget(self.sample_grid)
        self._recent_part = QWidget()
        recent = QVBoxLayout(self._recent_part)
        recent.setContentsMargins(0, _BEFORE_HEADING, 0, 0)
        recent.setSpacing(6)
        recent.addWidget(label("Recent", "heading"))
        self._recent = QVBoxLayout()
        self._recent.setSpacing(0)
        recent.addLayout(self._recent)
        column.addWidget(self._recent_part)
        column.addSpacing(_BEFORE_HEADING)
        column.addWidget(label("Gallery: one click compiles it", "heading"))
        self.gallery = CardGrid("Gallery")
        column.addWidget(self.gallery)
        column.addStretch(1)
        self.setWidget(page)
        self._titles = {f"example:{info.name}": info.title for info in gallery}
        self._fill_samples()
        self._fill_gallery(gallery)

    def set_theme(self, theme: Theme) -> None:
        """Redraw icons in the theme's colours."""
        self._theme = theme
        self._sign.setPixmap(pixmap("app", theme.accent, 52))
        for card in (*self.gallery.cards, *self.sample_grid.cards):
            card.set_theme(theme)

    def set_recent(self, sources: list[str]) -> None:
        """Show the latest sources and sessions."""
        while item := self._recent.takeAt(0):
            if widget := item.widget():
                widget.deleteLater()
        self._recent_part.setVisible(bool(sources))
        links = []
        for source in sources[:5]:
            name, folder = name_and_folder(source)
            row = QWidget()
            line = QHBoxLayout(row)
            line.setContentsMargins(0, 0, 0, 0)
            line.setSpacing(12)
            links.append(push_button(name, self._chooser(source), "link", tip=f"Open {source}"))
            line.addWidget(links[-1])
            line.addWidget(ElidedLabel(folder, "muted"), 1)
            self._recent.addWidget(row)
        if self.sample_grid.cards:
            follow(self.sample_grid.cards[-1], links)

    def _hero(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(16)
        self._sign = QLabel()
        self._sign.setPixmap(pixmap("app", self._theme.accent, 52))
        row.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        texts = QVBoxLayout()
        texts.setSpacing(3)
        texts.addWidget(label("Fusescope", "hero"))
        texts.addWidget(label(_INTRO, "muted", wrap=True))
        row.addLayout(texts, 1)
        row.addSpacing(24)
        actions = QVBoxLayout()
        actions.setSpacing(6)
        tip = "Open a session, a .py file or a .pt2 program"
        button = push_button("Open…", self.open_requested.emit, "primary", tip)
        button.setMinimumWidth(150)
        actions.addWidget(button)
        hint = label("or drop a .py, .pt2 or .fscope file here", "muted")
        hint.setAlignment(Qt.AlignmentFlag.AlignRight)
        actions.addWidget(hint)
        tour = push_button("Take the tour: six steps", self.tour_requested.emit, "link")
        actions.addWidget(tour, 0, Qt.AlignmentFlag.AlignRight)
        row.addLayout(actions)
        return row

    def _fill_gallery(self, found: list[ExampleInfo]) -> None:
        cards = []
        for info in found:
            icon = "train" if info.training else "group"
            title = info.title.removesuffix(", training")  # the tag says it
            card = Card(title, info.description, "training" if info.training else "", icon, self._theme)
            card.setObjectName(f"example:{info.name}")
            card.clicked.connect(lambda _=False, i=info: self.example_chosen.emit(f"example:{i.name}", i.training))
            cards.append(card)
        self.gallery.set_cards(cards)

    def _fill_samples(self) -> None:
        paths = samples()
        self._samples_heading.setVisible(bool(paths))
        self.sample_grid.setVisible(bool(paths))
        cards = []
        for path in paths:
            card = Card(path.stem, "Reading…", "", "recorded", self._theme)
            card.setObjectName(f"sample:{path.stem}")
            card.clicked.connect(lambda _=False, path=path: self.path_chosen.emit(str(path)))
            self._unread[path] = card
            cards.append(card)
        self.sample_grid.set_cards(cards)

    def showEvent(self, event: QShowEvent) -> None:
        """Read the samples once the page has been painted: another thread would slow that down."""
        super().showEvent(event)
        QTimer.singleShot(_AFTER_PAINT_MS, self, self._read_samples)

    def _read_samples(self) -> None:
        while self._unread:
            self._read_sample(*self._unread.popitem())

    def _read_sample(self, path: Path, card: Card) -> None:
        job = Job(lambda cancelled: describe_sample(path), self)
        job.done.connect(lambda facts: self._describe(card, facts))
        job.start()

    def _describe(self, card: Card, facts: tuple[str, str, str, str]) -> None:
        source, compiler, text, gpu = facts
        title = self._titles.get(source, source.removeprefix("example:"))  # as in the gallery
        card.set_texts(f"{title} by {compiler}", text, f"Recorded on {gpu}" if gpu else "")

    def _chooser(self, source: str) -> Callable[[], None]:
        return lambda: self.path_chosen.emit(source)

