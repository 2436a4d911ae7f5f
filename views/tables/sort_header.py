"""A header that says beside the title, and not above it, which way a table is sorted."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRect, Qt
from PySide6.QtGui import QPainter, QPalette, QPen
from PySide6.QtWidgets import QHeaderView, QWidget

from views.look.sizes import px

_HALF, _DEEP = 3.5, 3.5  # pixels of the sign, to each side and from top to bottom
_AWAY = 9.0  # pixels from the title to the middle of the sign
SIGN = 12  # pixels that a column needs for it beside its title


class SortHeader(QHeaderView):
    """``pad`` is what the stylesheet leaves beside a title."""

    def __init__(self, parent: QWidget, pad: int) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._pad = pad
        self.setSectionsClickable(True)
        self.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)

    def paintSection(self, painter: QPainter, rect: QRect, section: int) -> None:
        """As the style does, with the sign before a title that stands right, and after one that stands left."""
        super().paintSection(painter, rect, section)
        if not self.isSortIndicatorShown() or section != self.sortIndicatorSection():
            return
        at = self.sign_at(rect, section)
        way = -1 if self.sortIndicatorOrder() is Qt.SortOrder.AscendingOrder else 1
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ink = self.palette().color(QPalette.ColorRole.Text)
        painter.setPen(QPen(ink, 1.5, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        tip = at + QPointF(0, way * _DEEP / 2)
        for side in (-_HALF, _HALF):
            painter.drawLine(at + QPointF(side, -way * _DEEP / 2), tip)
        painter.restore()

    def sign_at(self, rect: QRect, section: int) -> QPointF:
        """The middle of the sign, within the section however narrow it is."""
        model, role = self.model(), Qt.ItemDataRole
        title = str(model.headerData(section, Qt.Orientation.Horizontal, role.DisplayRole) or "")
        side = model.headerData(section, Qt.Orientation.Horizontal, role.TextAlignmentRole)
        width = self.fontMetrics().horizontalAdvance(title)
        if side is not None and side & Qt.AlignmentFlag.AlignRight:
            x = max(rect.right() + 1 - px(self._pad) - width - _AWAY, rect.left() + _HALF + 1)
        else:
            x = min(rect.left() + px(self._pad) + width + _AWAY, rect.right() - _HALF)
        return QPointF(x, rect.center().y() + 1.0)
