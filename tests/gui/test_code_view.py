"""The text view of code by real key and mouse events: what is painted, selected, copied, found, told."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible, QColor, QImage, QWheelEvent
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from views.code.blocks import LINES
from views.code.code_view import CodeView
from views.look.resources import load_fonts
from views.look.theme import Theme, dark, light

KEY, LEFT = Qt.Key, Qt.MouseButton.LeftButton
SHIFT, CTRL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier
WORDS = "first line = 1\n\tadd.f32 %f1, 宽字;\n\nlast one"


def view(qtbot: QtBot, text: str, language: str = "ptx", theme: Theme | None = None) -> CodeView:
    load_fonts()
    code = CodeView(theme or light())
    qtbot.addWidget(code)
    code.resize(600, 400)
    code.set_code(text, language)
    code.show()
    code.setFocus()
    qtbot.waitUntil(code.hasFocus, timeout=5_000)
    QApplication.processEvents()
    return code


def long_text(lines: int = 20_000) -> str:
    return "\n".join(f"\tadd.f32 %f{i}, %f1, %f2;" for i in range(lines))


def at(code: CodeView, line: int, column: int) -> QPoint:
    """A point just behind the left edge of a character (line from 1, column from 0)."""
    place = code.place_rect((line - 1, column))
    return QPoint(round(place.left()) + 1, round(place.center().y()))


def clipboard() -> str:
    return QApplication.clipboard().text()


def colors_in(code: CodeView, line: int) -> set[str]:
    """The colours painted in a line, right of the gutter."""
    image = code.viewport().grab(code.line_rect(line)).toImage().convertToFormat(QImage.Format.Format_RGB32)
    return {
        image.pixelColor(x, y).name() for x in range(code.gutter_width(), image.width()) for y in range(image.height())
    }


def test_a_long_text_is_there_at_once_and_only_lines_on_screen_are_made(qtbot: QtBot) -> None:
    text = long_text()
    code = view(qtbot, text)
    assert (code.line_count, code.text) == (20_000, text)
    for first in (1, 7_001, 15_001, 20_000, 3):
        code.center_line(first)
        QApplication.processEvents()
        assert first in code.ready_lines
        assert len(code.ready_lines) <= 5 * (400 // code.line_rect(1).height() + 2 * LINES)
    code.mark_lines([5, 19_990], reveal=False)
    assert not code.is_on_screen(19_990)
    code.mark_lines([19_990])
    assert code.is_on_screen(19_990)
    seen = code.lines_on_screen()
    for line in (seen[0] - 1, seen[0], seen[-1], seen[-1] + 1):
        inside = 0 <= code.line_rect(line).center().y() < code.viewport().height()
        assert (line in seen) == inside
    code.set_code("short", "ptx")
    assert (code.text, code.line_count, code.verticalScrollBar().maximum(), code.marked_lines) == ("short", 1, 0, [])


def test_text_beyond_a_million_characters_is_cut_into_lines_when_asked_for(qtbot: QtBot) -> None:
    text = long_text(90_000) + "\n"
    assert len(text) > 2_000_000
    code = view(qtbot, text)
    assert code.line_count == 90_001
    qtbot.keyClick(code, KEY.Key_End, CTRL)
    assert code.caret.place == (90_000, 0)
    assert code.lines[89_999] == "\tadd.f32 %f89999, %f1, %f2;"
    assert list(code.lines) == text.split("\n")


def test_lines_have_their_colours_and_follow_the_theme(qtbot: QtBot) -> None:
    code = view(qtbot, WORDS)
    for theme in (light(), dark()):
        code.set_theme(theme)
        QApplication.processEvents()
        assert {theme.surface.name(), theme.syntax.keyword.name()} <= colors_in(code, 2)
    code.setFont(code.font())
    before = code.line_rect(2).top()
    code.zoom(4)
    assert code.line_rect(2).top() > before
    code.zoom(0)
    assert code.line_rect(2).top() == before


def test_marks_hints_and_the_line_under_the_mouse(qtbot: QtBot) -> None:
    code = view(qtbot, WORDS)
    theme = light()
    code.mark_lines([2])
    code.hint_lines([4])
    plain, marked, hinted = (colors_in(code, line) for line in (3, 2, 4))
    assert plain == {theme.surface.name()}
    assert theme.surface.name() not in marked | hinted
    assert (code.marked_lines, code.hinted_lines) == ([2], [4])
    with qtbot.waitSignal(code.line_hovered) as told:
        qtbot.mouseMove(code.viewport(), at(code, 2, 1))
    assert told.args == [2]
    with qtbot.waitSignal(code.line_hovered) as told:
        QApplication.sendEvent(code, QEvent(QEvent.Type.Leave))
    assert told.args == [0]


def test_a_click_is_told_a_selection_is_not(qtbot: QtBot) -> None:
    code = view(qtbot, WORDS)
    clicked: list[int] = []
    code.line_clicked.connect(clicked.append)
    qtbot.mouseClick(code.viewport(), LEFT, pos=at(code, 2, 3))
    qtbot.mouseClick(code.viewport(), LEFT, pos=QPoint(5, code.line_rect(4).center().y()))
    assert clicked == [2, 4]
    qtbot.keyClick(code, KEY.Key_Return)
    assert clicked == [2, 4, 4]
    qtbot.mousePress(code.viewport(), LEFT, pos=at(code, 1, 0))
    qtbot.mouseMove(code.viewport(), at(code, 2, 8))
    qtbot.mouseRelease(code.viewport(), LEFT, pos=at(code, 2, 8))
    assert clicked == [2, 4, 4]
    assert code.caret.text() == "first line = 1\n\tadd.f32"
    qtbot.mouseClick(code.viewport(), LEFT, SHIFT, at(code, 1, 5))
    assert code.caret.text() == "first"


def test_double_click_takes_a_word_triple_a_line_and_the_numbers_whole_lines(qtbot: QtBot) -> None:
    code = view(qtbot, WORDS)
    viewport = code.viewport()
    qtbot.mouseDClick(viewport, LEFT, pos=at(code, 2, 2))
    assert code.caret.text() == "add"
    qtbot.mousePress(viewport, LEFT, pos=at(code, 2, 2))
    assert code.caret.text() == "\tadd.f32 %f1, 宽字;\n"
    qtbot.mouseRelease(viewport, LEFT, pos=at(code, 2, 2))
    qtbot.mousePress(viewport, LEFT, pos=QPoint(8, code.line_rect(1).center().y()))
    qtbot.mouseMove(viewport, QPoint(8, code.line_rect(2).center().y()))
    qtbot.mouseRelease(viewport, LEFT, pos=QPoint(8, code.line_rect(2).center().y()))
    assert code.caret.text() == "first line = 1\n\tadd.f32 %f1, 宽字;\n"


def test_dragging_out_of_the_view_scrolls(qtbot: QtBot) -> None:
    code = view(qtbot, long_text(500))
    viewport = code.viewport()
    qtbot.mousePress(viewport, LEFT, pos=at(code, 1, 0))
    qtbot.mouseMove(viewport, QPoint(200, viewport.height() + 60))
    qtbot.waitUntil(lambda: code.caret.place[0] > 60, timeout=5_000)
    qtbot.mouseRelease(viewport, LEFT, pos=QPoint(200, viewport.height() + 60))
    assert code.caret.anchor == (0, 0)
    assert code.is_on_screen(code.caret.place[0] + 1)


@pytest.mark.parametrize(
    ("keys", "selected"),
    [
        ([(KEY.Key_Right, SHIFT)] * 5, "first"),
        ([(KEY.Key_Right, CTRL | SHIFT)] * 2, "first line "),
        ([(KEY.Key_Down, None), (KEY.Key_End, SHIFT)], "\tadd.f32 %f1, 宽字;"),
        ([(KEY.Key_End, None), (KEY.Key_Right, None), (KEY.Key_Right, SHIFT)], "\t"),
        ([(KEY.Key_End, None), (KEY.Key_Left, CTRL | SHIFT), (KEY.Key_Left, CTRL | SHIFT)], "= 1"),
        ([(KEY.Key_End, CTRL), (KEY.Key_Home, SHIFT)], "last one"),
        ([(KEY.Key_End, CTRL), (KEY.Key_Up, SHIFT)], "\nlast one"),
        ([(KEY.Key_End, CTRL | SHIFT)], WORDS),
        ([(KEY.Key_PageDown, SHIFT)], "first line = 1\n\tadd.f32 %f1, 宽字;\n\n"),
        ([(KEY.Key_A, CTRL)], WORDS),
        ([(KEY.Key_A, CTRL), (KEY.Key_Right, None), (KEY.Key_Left, SHIFT)], "e"),
    ],
)
def test_keys_select_and_copy(
    qtbot: QtBot, keys: list[tuple[Qt.Key, Qt.KeyboardModifier | None]], selected: str
) -> None:
    code = view(qtbot, WORDS)
    for key, modifiers in keys:
        qtbot.keyClick(code, key, modifiers or Qt.KeyboardModifier.NoModifier)
    QApplication.clipboard().clear()
    qtbot.keyClick(code, KEY.Key_C, CTRL)
    assert clipboard() == selected


def test_up_and_down_keep_the_cell_over_tabs_and_short_lines(qtbot: QtBot) -> None:
    code = view(qtbot, "0123456789\n\tabcdef\n\n宽宽宽宽宽宽")
    for _ in range(6):
        qtbot.keyClick(code, KEY.Key_Right)
    places = []
    for key in (KEY.Key_Down, KEY.Key_Down, KEY.Key_Down, KEY.Key_Up, KEY.Key_Up, KEY.Key_Up):
        qtbot.keyClick(code, key)
        places.append(code.caret.place)
    assert places == [(1, 3), (2, 0), (3, 3), (2, 0), (1, 3), (0, 6)]


def test_pages_scroll_and_ctrl_with_an_arrow_leaves_the_caret(qtbot: QtBot) -> None:
    code = view(qtbot, long_text(500))
    page = code.viewport().height() // code.line_rect(1).height() - 1
    qtbot.keyClick(code, KEY.Key_PageDown)
    qtbot.keyClick(code, KEY.Key_PageDown)
    assert code.caret.place == (2 * page, 0)
    assert code.is_on_screen(2 * page + 1)
    qtbot.keyClick(code, KEY.Key_PageUp)
    assert code.caret.place == (page, 0)
    before = code.verticalScrollBar().value()
    qtbot.keyClick(code, KEY.Key_Down, CTRL)
    assert code.verticalScrollBar().value() == before + code.line_rect(1).height()
    assert code.caret.place == (page, 0)


def test_a_touchpad_scrolls_by_pixels_a_wheel_by_lines_and_with_ctrl_the_font_grows(qtbot: QtBot) -> None:
    code = view(qtbot, "\n".join(["x" * 400] * 300))

    def turn(pixels: QPoint, angle: QPoint, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        event = QWheelEvent(
            QPointF(200, 200), QPointF(200, 200), pixels, angle, Qt.MouseButton.NoButton, modifiers,
            Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(code.viewport(), event)

    down, across = code.verticalScrollBar(), code.horizontalScrollBar()
    turn(QPoint(-5, -7), QPoint(0, 0))
    assert (down.value(), across.value()) == (7, 5)
    turn(QPoint(), QPoint(0, -120))
    assert down.value() == 7 + QApplication.wheelScrollLines() * code.line_rect(1).height()
    height = code.line_rect(1).height()
    turn(QPoint(), QPoint(0, 240), CTRL)
    assert code.line_rect(1).height() > height


def test_a_line_of_a_hundred_thousand_characters(qtbot: QtBot) -> None:
    line = "".join(f"{i:09d} " for i in range(10_000))
    code = view(qtbot, f"{line}\nshort\n\t宽{line}")
    qtbot.keyClick(code, KEY.Key_End)
    assert code.caret.place == (0, 100_000)
    assert code.horizontalScrollBar().value() > 0.95 * code.horizontalScrollBar().maximum()
    QApplication.processEvents()
    assert len(colors_in(code, 1)) > 2
    qtbot.keyClick(code, KEY.Key_Left, CTRL | SHIFT)
    assert code.caret.text() == "000009999 "
    qtbot.keyClick(code, KEY.Key_Down)
    assert code.caret.place == (1, 5)
    qtbot.keyClick(code, KEY.Key_End, CTRL)
    assert code.caret.place == (2, 100_002)
    assert len(colors_in(code, 3)) > 2


def test_finding_goes_from_match_to_match_and_round(qtbot: QtBot) -> None:
    code = view(qtbot, long_text(3_000))
    qtbot.keyClick(code, KEY.Key_F, CTRL)
    bar = code.finder.bar
    assert bar.isVisible()
    assert bar.edit.hasFocus()
    qtbot.keyClicks(bar.edit, "%F299,")
    qtbot.waitUntil(lambda: bar.told == "no match", timeout=5_000)
    bar.edit.clear()
    qtbot.keyClicks(bar.edit, "%f29")
    qtbot.waitUntil(lambda: bar.told == "1 of 111", timeout=5_000)
    assert (code.caret.text(), code.caret.place[0]) == ("%f29", 29)
    assert QColor(light().warning).name() not in colors_in(code, 1)
    qtbot.keyClick(bar.edit, KEY.Key_Return)
    assert code.caret.place[0] == 290
    assert code.is_on_screen(291)
    qtbot.keyClick(bar.edit, KEY.Key_Return, SHIFT)
    qtbot.keyClick(bar.edit, KEY.Key_F3, SHIFT)
    assert (bar.told, code.caret.place[0]) == ("111 of 111", 2_999)
    code.set_code("one %f29", "ptx")
    qtbot.waitUntil(lambda: bar.told == "1", timeout=5_000)
    qtbot.keyClick(bar.edit, KEY.Key_Escape)
    assert not bar.isVisible()
    assert code.hasFocus()
    assert code.finder.count == 0


def test_going_to_a_line(qtbot: QtBot) -> None:
    code = view(qtbot, long_text(3_000))
    qtbot.keyClick(code, KEY.Key_G, CTRL)
    bar = code.finder.bar
    qtbot.keyClicks(bar.edit, "2,345")
    assert code.is_on_screen(2_345)
    qtbot.keyClicks(bar.edit, "9")
    assert bar.told == "no line"
    qtbot.keyClick(bar.edit, KEY.Key_Backspace)
    qtbot.keyClick(bar.edit, KEY.Key_Return)
    assert not bar.isVisible()
    assert code.caret.place == (2_344, 0)


def test_the_menu_copies_and_selects(qtbot: QtBot) -> None:
    code = view(qtbot, WORDS)
    code.contextMenuEvent(_menu_event())
    menu = code.findChild(QMenu)
    by_name = {action.text(): action for action in menu.actions()}
    assert not by_name["Copy"].isEnabled()
    by_name["Copy everything"].trigger()
    assert clipboard() == WORDS
    by_name["Select all"].trigger()
    assert code.caret.text() == WORDS
    menu.close()


def _menu_event() -> object:
    from PySide6.QtGui import QContextMenuEvent

    return QContextMenuEvent(QContextMenuEvent.Reason.Mouse, QPoint(50, 50), QPoint(50, 50))


def test_a_screen_reader_is_told_the_line_of_the_caret(qtbot: QtBot) -> None:
    code = view(qtbot, WORDS)
    code.setAccessibleName("Generated source")
    qtbot.keyClick(code, KEY.Key_Down)
    told = QAccessible.queryAccessibleInterface(code)
    assert told.text(QAccessible.Text.Name) == "Generated source"
    assert told.text(QAccessible.Text.Description) == "Line 2 of 4: add.f32 %f1, 宽字;"


def test_a_view_that_goes_to_a_line_begins_with_a_whole_one(qtbot: QtBot) -> None:
    code = view(qtbot, long_text(400))
    for line in (120, 9, 1, 390):
        code.center_line(line)
        assert code.is_on_screen(line)
        first = next(number for number in range(1, 401) if code.line_rect(number).bottom() >= 0)
        assert code.line_rect(first).top() >= 0 or line == 390, line  # at the end there is nothing to scroll to
