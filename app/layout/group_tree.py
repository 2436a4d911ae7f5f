"""Fusion groups and extern calls as a tree of containers one level deep, to open and close them as modules are."""

from __future__ import annotations

from app.layout.module_tree import ModuleTree, TreeBuilder
from app.layout.ranks import Cancelled
from compiler.report import Region


def build_group_tree(region: Region, cancelled: Cancelled | None = None) -> ModuleTree:
    """Groups and calls of several nodes are containers; a recomputed node is in the first that computes it.

    Raises:
        LayoutCancelled: ``cancelled`` returned True.
    """
    return _GroupBuilder(region, cancelled).build()


class _GroupBuilder(TreeBuilder):
    def grow(self) -> None:
        self.containers[0].members = list(range(len(self.nodes)))
        index = {node.name: i for i, node in enumerate(self.nodes)}
        owner: dict[int, int] = {}
        found = [(group.name, group.kind.value, group.nodes) for group in self.region.groups]
        found += [(call.name, "extern", call.nodes) for call in self.region.extern_calls]
        boxes: list[tuple[str, str, list[int]]] = []
        for name, kind, names in found:
            members = sorted(i for node in names if (i := index.get(node, -1)) >= 0 and i not in owner)
            if len(members) > 1:
                owner.update(dict.fromkeys(members, len(boxes)))
                boxes.append((name, kind, members))
        made: dict[int, int] = {}
        for node in range(len(self.nodes)):
            box = owner.get(node)
            if box is None:
                self.containers[0].children.append(node)
            elif box not in made:
                name, kind, members = boxes[box]
                number = made[box] = self.add_box(0, name, name, kind)
                self.containers[number].members = members
                self.containers[number].children = list(members)
        self.number_children()
