"""The graph in boxes: which of them are open in each region, and their layouts, made off the GUI thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app.layout.folding import Folding
from app.layout.module_layouts import ModuleLayouts
from app.layout.module_tree import ModuleTree
from app.layout.ranks import Cancelled
from compiler.report import Region
from views.background.jobs import Job
from views.canvas.module_scene import ModuleScene

_Result = tuple[ModuleLayouts, Folding, ModuleScene]


class BoxView(QObject):
    """Keeps the folding of each region of a report. A new request ends the one before it."""

    ready = Signal(str, object, str)  # region, ModuleScene, the box or node that is to stay where it is
    failed = Signal(object)

    def __init__(self, parent: QObject, build: Callable[[Region, Cancelled | None], ModuleTree]) -> None:
        """``build`` makes the tree of boxes of a region."""
        super().__init__(parent)
        self._build = build
        self._made: dict[str, ModuleLayouts] = {}
        self._foldings: dict[str, Folding] = {}
        self._scenes: dict[str, ModuleScene] = {}
        self._job: Job | None = None

    def forget(self) -> None:
        """Another report is shown. Foldings stay: they are by module names, which a recompiled model keeps."""
        self.cancel()
        self._made, self._scenes = {}, {}

    def cancel(self) -> None:
        """Stop what is being laid out."""
        if self._job is not None:
            self._job.cancel()
            self._job = None

    def folding(self, region: str) -> Folding | None:
        """Which boxes of a region are open; None before it was ever shown."""
        return self._foldings.get(region)

    def set_folding(self, region: Region, folding: Folding | None, anchor: str = "") -> None:
        """Open these boxes of a region (those opened at first, for None) and lay it out."""
        if folding is not None:
            self._foldings[region.name] = folding
        self._start(region, lambda _layouts, known: known, anchor)

    def toggle(self, region: Region, key: str, *, whole_stack: bool) -> None:
        """Open or close a box, which stays where it is. A stack opens one of its modules unless all are asked for."""

        def change(layouts: ModuleLayouts, folding: Folding) -> Folding:
            box = layouts.tree.containers[layouts.number_of[key]]
            return folding.toggled(key, single=box.is_stack and not whole_stack)

        self._start(region, change, key)

    def open_all(self, region: Region, *, stacks: bool) -> None:
        """Open everything; of a stack one module unless ``stacks``."""
        self._start(region, lambda layouts, _: layouts.all_open(single=not stacks), "")

    def close_all(self, region: Region) -> None:
        """Show only the outermost modules."""
        self._start(region, lambda _layouts, _known: Folding(), "")

    def reveal(self, region: Region, node: int) -> None:
        """Open whatever hides a node."""
        self._start(region, lambda layouts, folding: layouts.revealing(folding, node), region.nodes[node].name)

    def _start(self, region: Region, change: Callable[[ModuleLayouts, Folding], Folding], anchor: str) -> None:
        self.cancel()
        made, known = self._made.get(region.name), self._foldings.get(region.name)
        shown = self._scenes.get(region.name)

        def work(cancelled: Callable[[], bool]) -> _Result:
            layouts = made or ModuleLayouts(region, cancelled, self._build)
            folding = change(layouts, layouts.first_folding() if known is None else known)
            layout = layouts.lay_out(folding, cancelled)
            return layouts, folding, ModuleScene(region, layout) if shown is None else shown.with_layout(layout)

        job = Job(work, self)
        job.done.connect(lambda result: self._finish(region.name, result, anchor))
        job.failed.connect(self.failed)
        self._job = job.start()

    def _finish(self, region: str, result: _Result, anchor: str) -> None:
        self._job = None
        self._made[region], self._foldings[region], scene = result
        self._scenes[region] = scene
        self.ready.emit(region, scene, anchor)
