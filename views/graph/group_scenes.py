"""The graph by fusion groups: each region is laid out once, off the GUI thread, or as its session kept it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, Signal

from app.layout import GraphLayout, layout_region
from compiler.report import Region
from views.background.jobs import Job
from views.canvas.scene import Scene


class GroupScenes(QObject):
    """Holds the scenes of one report."""

    made = Signal(object)  # the Region whose scene is there now
    failed = Signal(object)  # the exception

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._scenes: dict[str, Scene] = {}
        self._stored: dict[str, bytes] = {}
        self._jobs: dict[str, Job] = {}

    def set_stored(self, stored: dict[str, bytes]) -> None:
        """Another report, of which a session kept these layouts, by region."""
        self.cancel()
        self._scenes, self._stored = {}, stored

    def scene_of(self, region: Region) -> Scene | None:
        """A region's scene; None where it is only begun to be made."""
        if region.name not in self._scenes and region.name not in self._jobs:
            stored = self._stored.get(region.name)
            job = Job(lambda cancelled: _scene(region, stored, cancelled), self)
            job.done.connect(partial(self._take, region))
            job.failed.connect(partial(self._fail, region))
            self._jobs[region.name] = job.start()
        return self._scenes.get(region.name)

    def layout_bytes(self) -> Callable[[], dict[str, bytes]]:
        """Encodes the layouts made so far for the session, on any thread."""
        stored, made = dict(self._stored), dict(self._scenes)
        return lambda: {**stored, **{name: scene.layout.to_bytes() for name, scene in made.items()}}

    def cancel(self) -> None:
        """Stop what is being made."""
        for job in self._jobs.values():
            job.cancel()
        self._jobs = {}

    def _take(self, region: Region, scene: Scene) -> None:
        self._jobs.pop(region.name, None)
        self._scenes[region.name] = scene
        self.made.emit(region)

    def _fail(self, region: Region, fault: Exception) -> None:
        self._jobs.pop(region.name, None)
        self.failed.emit(fault)


def _scene(region: Region, stored: bytes | None, cancelled: Callable[[], bool]) -> Scene:
    made = Scene(region, _layout(region, stored, cancelled))
    made.prepare()
    return made


def _layout(region: Region, stored: bytes | None, cancelled: Callable[[], bool]) -> GraphLayout:
    if stored is not None:
        try:
            return GraphLayout.from_bytes(stored)
        except ValueError:
            pass  # of another version: make it anew
    return layout_region(region, cancelled=cancelled)
