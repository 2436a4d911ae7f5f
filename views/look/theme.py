"""The look of the app: colour tokens light and dark, fonts, and the one stylesheet built from them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette

from views.look.sizes import LEAST_POINTS, POINTS, enlarged

UI_FAMILIES = ("Inter", "Inter Variable", "Segoe UI", "SF Pro Text", "Noto Sans", "Roboto", "DejaVu Sans")
MONO_FAMILIES = ("JetBrains Mono", "Cascadia Mono", "SF Mono", "Consolas", "Noto Sans Mono", "DejaVu Sans Mono")

GROUP_COLORS = 12  # of a theme; more groups share them in turn


@dataclass(frozen=True)
class Syntax:
    """Colours of code, by token class."""

    keyword: QColor
    name: QColor
    type: QColor
    string: QColor
    number: QColor
    comment: QColor
    decorator: QColor
    operator: QColor


@dataclass(frozen=True)
class Theme:
    """Every colour that the views use. ``group_colors`` are told apart by people with any colour vision."""

    name: str
    window: QColor
    surface: QColor
    raised: QColor
    border: QColor
    text: QColor
    muted: QColor
    accent: QColor
    accent_text: QColor
    danger: QColor
    warning: QColor
    success: QColor
    extern_fill: QColor
    extern_border: QColor
    selection: QColor
    grid: QColor
    edge: QColor
    edge_highlight: QColor
    group_colors: tuple[QColor, ...]
    cpu_curve: QColor
    gpu_curve: QColor
    syntax: Syntax
    points: float = POINTS  # of the font of labels and controls; all other texts are larger or smaller by their ratio
    zoom: float = 1.0  # what pixels that texts must fit into are multiplied by

    def sized(self, points: float, dots: float) -> Theme:
        """With texts as large as the system's, whose font has ``points`` at ``dots`` to an inch."""
        return replace(self, points=points, zoom=enlarged(points, dots))

    def unzoomed(self) -> Theme:
        """For who draws through a painter that is scaled by ``zoom``."""
        return replace(self, points=self.points / self.zoom, zoom=1.0)

    @property
    def is_dark(self) -> bool:
        """Whether text is light on dark."""
        return self.window.lightness() < self.text.lightness()

    def text_points(self, points: float) -> float:
        """What ``points`` are where the system's font is another than the one that was drawn for; never too few."""
        return max(points * self.points / POINTS, LEAST_POINTS)

    def ui_font(self, points: float = POINTS) -> QFont:
        """The font of labels and controls."""
        font = QFont(_installed(UI_FAMILIES))
        font.setPointSizeF(self.text_points(points))
        font.setFeature(QFont.Tag("calt"), 0)  # Inter would write the x of "tile32x32" as a sign of multiplication
        return font

    def mono_font(self, points: float = POINTS) -> QFont:
        """The fixed-width font of code."""
        font = QFont(_installed(MONO_FAMILIES))
        font.setStyleHint(QFont.StyleHint.Monospace)
        font.setPointSizeF(self.text_points(points))
        return font

    def palette(self) -> QPalette:
        """The palette for Fusion, so that also what no stylesheet rule covers fits in."""
        palette = QPalette()
        role = QPalette.ColorRole
        for which, color in (
            (role.Window, self.window),
            (role.WindowText, self.text),
            (role.Base, self.surface),
            (role.AlternateBase, self.raised),
            (role.Text, self.text),
            (role.Button, self.raised),
            (role.ButtonText, self.text),
            (role.ToolTipBase, self.raised),
            (role.ToolTipText, self.text),
            (role.PlaceholderText, self.muted),
            (role.Highlight, self.accent),
            (role.HighlightedText, self.accent_text),
            (role.Link, self.accent),
            (role.Light, self.raised),
            (role.Midlight, self.raised),
            (role.Mid, self.border),
            (role.Dark, self.border),
            (role.Shadow, self.border),
        ):
            palette.setColor(which, color)
        for which in (role.WindowText, role.Text, role.ButtonText):
            palette.setColor(QPalette.ColorGroup.Disabled, which, mix(self.muted, self.window, 0.45))
        return palette


def mix(a: QColor, b: QColor, share: float) -> QColor:
    """The colour ``share`` (0..1) of the way from ``a`` to ``b``."""
    return QColor.fromRgbF(
        a.redF() + (b.redF() - a.redF()) * share,
        a.greenF() + (b.greenF() - a.greenF()) * share,
        a.blueF() + (b.blueF() - a.blueF()) * share,
    )


def soft(color: QColor, theme: Theme) -> QColor:
    """The fill of a box in a colour that texts are written over."""
    return mix(theme.surface, color, 0.4 if theme.is_dark else 0.62)


def selected_row(theme: Theme) -> QColor:
    """The ground of a row that is selected, on which texts of every colour can be read."""
    return mix(theme.surface, theme.accent, 0.14)


def _installed(families: tuple[str, ...]) -> list[str]:
    known = set(QFontDatabase.families())
    return [family for family in families if family in known] or list(families)


def _colors(*names: str) -> tuple[QColor, ...]:
    return tuple(QColor(name) for name in names)


def light() -> Theme:
    """Dark text on light surfaces."""
    return Theme(
        name="light",
        window=QColor("#f3f4f7"),
        surface=QColor("#ffffff"),
        raised=QColor("#f8f9fb"),
        border=QColor("#d8dce4"),
        text=QColor("#1a1e27"),
        muted=QColor("#566070"),
        accent=QColor("#205dd2"),
        accent_text=QColor("#ffffff"),
        danger=QColor("#bd2c27"),
        warning=QColor("#8a5600"),
        success=QColor("#0e7350"),
        extern_fill=QColor("#e6e8ed"),
        extern_border=QColor("#7b8494"),
        selection=QColor("#e8590c"),
        grid=QColor("#e6e9ef"),
        edge=QColor("#b0b7c4"),
        edge_highlight=QColor("#e8590c"),
        group_colors=_colors(
            "#0583da", "#9f641f", "#219d80", "#6b4399", "#2a9ecf",
            "#7f6a9d", "#96991c", "#9e3023", "#5a9544", "#6c6943", "#005bbb", "#a83d78",
        ),
        cpu_curve=QColor("#c2570c"),
        gpu_curve=QColor("#1670b8"),
        syntax=Syntax(
            keyword=QColor("#8431a8"),
            name=QColor("#1a5fb4"),
            type=QColor("#0a6a7c"),
            string=QColor("#277138"),
            number=QColor("#a8430b"),
            comment=QColor("#5f6878"),
            decorator=QColor("#8a5909"),
            operator=QColor("#4a5262"),
        ),
    )


def dark() -> Theme:
    """Light text on dark surfaces."""
    return Theme(
        name="dark",
        window=QColor("#14161b"),
        surface=QColor("#1a1d24"),
        raised=QColor("#22262f"),
        border=QColor("#313743"),
        text=QColor("#e4e7ee"),
        muted=QColor("#98a1b2"),
        accent=QColor("#5c9dff"),
        accent_text=QColor("#0b1220"),
        danger=QColor("#ff7b72"),
        warning=QColor("#e3b04b"),
        success=QColor("#57c98a"),
        extern_fill=QColor("#2b303a"),
        extern_border=QColor("#8b94a5"),
        selection=QColor("#ff9d4d"),
        grid=QColor("#20242c"),
        edge=QColor("#4b5361"),
        edge_highlight=QColor("#ff9d4d"),
        group_colors=_colors(
            "#298afd", "#dd951f", "#3ec0a3", "#c05369", "#0c9dbe",
            "#5877c4", "#ddcd67", "#d87b52", "#7fc675", "#af9473", "#8b95e2", "#fda9cd",
        ),
        cpu_curve=QColor("#ff9d4d"),
        gpu_curve=QColor("#5cb8ff"),
        syntax=Syntax(
            keyword=QColor("#d7a0f2"),
            name=QColor("#82b8ff"),
            type=QColor("#6fd3dc"),
            string=QColor("#9fd89a"),
            number=QColor("#f0a875"),
            comment=QColor("#929cae"),
            decorator=QColor("#e3c177"),
            operator=QColor("#b4bccb"),
        ),
    )


def by_name(name: str, system_dark: bool) -> Theme:
    """The theme for a setting: "light", "dark", or "system"."""
    return dark() if name == "dark" or (name != "light" and system_dark) else light()
