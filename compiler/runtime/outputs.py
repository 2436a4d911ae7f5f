"""How the tensors that a graph writes reach the caller, and when the graph may write them again.

An output is one of the inputs, a view of one, or memory of the graph. Memory of the graph is handed out as it is, with
no copy; the graph then must not run again while the caller, a view, or a backward to come still holds it. Outputs that
callers hold on to are cloned instead.

What is saved for a backward, of which a large model has hundreds, is handed out as the same tensors at every call: it
does not go to the user, and making and dropping new ones took a large part of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from sys import getrefcount
from typing import Any

import torch
from torch import Tensor
from torch._C._dynamo import guards

from compiler.runtime.signature import copy_all, copyable, new_with_layout
from compiler.runtime.views import View, view_of

_use_count: Callable[[int], int] = torch._C._storage_Use_Count
reinterpret: Callable[..., Tensor] = guards._reinterpret_tensor  # type: ignore[attr-defined]  # not in torch's stubs


def _references_tell() -> bool:
    """Whether a tensor that C++ alone holds has a reference more, as in all torch that there is since 2.11."""
    with torch.inference_mode(False), torch._C._DisableTorchDispatch():  # whatever the first call is made in
        tensor = torch.empty(1)
        before = getrefcount(tensor)
        view = tensor.view(1)  # holds its base where Python does not see it
        return view.numel() == 1 and getrefcount(tensor) > before


_SAME_TENSORS = _references_tell()


@dataclass(frozen=True)
class Constant:
    """An output that is no tensor; it depends on nothing but the signature."""

    value: Any


@dataclass(frozen=True)
class ViewOfInput:
    """An output in an input's memory. ``view`` is None where the output is the input itself."""

    index: int
    view: View | None


@dataclass(frozen=True)
class Owned:
    """An output in the graph's memory. ``slot`` counts the distinct ones."""

    slot: int


class OutputPlan:
    """Turns the tensors a graph writes into what a call returns.

    Attributes:
        saved: positions of the outputs that are saved for a backward and do not go to the user.
        count: how often the graph's memory is held, in a form of its own; ``own_count`` while nobody else holds it.
        fresh: where new tensors on the memory of these are all that a call returns, these; else None.
    """

    fresh: list[Tensor] | None

    def __init__(
        self,
        outputs: Sequence[Any],
        arguments: Sequence[Any],
        cloned: set[int],
        *,
        clone_all: bool = False,
        saved: frozenset[int] = frozenset(),
    ) -> None:
        """
        Args:
            outputs: what the capture returned.
            arguments: the tensors and values that it was captured with; they are not kept.
            cloned: positions of ``outputs`` that are copied, shared by all graphs of a region, which add to it.
        """
        self.saved = saved
        self._cloned_positions = cloned
        self._clone_all = clone_all
        self._owned: list[Tensor] = []
        self._positions: list[list[int]] = []
        self.steps = [self._step(position, output, arguments) for position, output in enumerate(outputs)]
        # What ``data`` gives of an inference tensor is one too, wherever it is handed out.
        self._from_inference = any(tensor.is_inference() for tensor in self._owned)
        self._views = [copyable(tensor) for tensor in self._owned]
        storages = [tensor.untyped_storage()._cdata for tensor in self._owned]
        self._at: dict[int, list[int]] = {}  # storage -> positions
        for storage, positions in zip(storages, self._positions, strict=True):
            self._at.setdefault(storage, []).extend(positions)
        self._only_saved = {storage for storage, positions in self._at.items() if saved.issuperset(positions)}
        lasting = [
            slot
            for slot, storage in enumerate(storages)
            if _SAME_TENSORS and storage in self._only_saved and not clone_all
        ]
        anew = [slot for slot in range(len(storages)) if slot not in lasting]
        self._place = {slot: place for place, slot in enumerate([*anew, *lasting])}
        self._anew = self._sources(anew)
        self._lasting = self._made(self._sources(lasting))
        self._storages = list(self._at)
        self._held_by = [*self._storages, *(storages[slot] for slot in lasting)]  # whose storage each count is for
        # No method of its own: what is let go of is then freed at once, and with it the GPU's memory.
        self._count_all = partial(_count, self._storages, self._lasting)
        # What the graph itself and this plan hold; everything outside that holds a tensor adds to it.
        self._counts = self._count_all()
        # Most regions have one storage, and asking for that alone takes a fifth of the time.
        alone = len(self._held_by) == 1
        self.count: Callable[[], Any] = partial(_use_count, self._storages[0]) if alone else self._count_all
        self.own_count = self.count()
        self._constants = [step.value for step in self.steps if isinstance(step, Constant)]
        self._input_views = [
            (position, step.index, step.view)
            for position, step in enumerate(self.steps)
            if isinstance(step, ViewOfInput) and step.view is not None
        ]
        self._inputs = len(arguments)
        self._arrange()

    def _picks(self) -> Callable[[list[Any]], Sequence[Any]]:
        """Takes the results from the owned tensors, the copies of those that are also saved, the inputs and the
        constants, one after the other in a list; for a view of an input that input."""
        inputs = len(self._owned) + len(self._apart)
        constants = iter(range(inputs + self._inputs, inputs + self._inputs + len(self._constants)))
        places = []
        for position, step in enumerate(self.steps):
            if isinstance(step, Owned):
                apart = step.slot in self._apart and position not in self.saved
                place = self._place[step.slot]
                places.append(len(self._owned) + self._apart.index(step.slot) if apart else place)
            else:
                places.append(inputs + step.index if isinstance(step, ViewOfInput) else next(constants))
        return itemgetter(*places) if len(places) > 1 else lambda values: [values[place] for place in places]

    def _step(self, position: int, output: Any, arguments: Sequence[Any]) -> Constant | ViewOfInput | Owned:
        if not isinstance(output, Tensor):
            return Constant(output)
        for index, argument in enumerate(arguments):
            if output is argument:
                return ViewOfInput(index, None)
        for index, argument in enumerate(arguments):
            if isinstance(argument, Tensor) and (view := view_of(output, argument)) is not None:
                return ViewOfInput(index, view)
        for slot, owned in enumerate(self._owned):
            if owned is output:
                self._positions[slot].append(position)
                return Owned(slot)
        self._owned.append(output)
        self._positions.append([position])
        return Owned(len(self._owned) - 1)

    def _arrange(self) -> None:
        """Everything that a call needs, as far as it does not change from call to call."""
        cloned = {
            slot
            for slot, positions in enumerate(self._positions)
            if self._clone_all or not self._cloned_positions.isdisjoint(positions)
        }
        # Of an output that is also saved the user gets a copy, and the backward the memory that its graph reads.
        self._apart = [slot for slot in sorted(cloned) if not self._clone_all and self._is_saved(slot)]
        self._pick = self._picks()
        groups: dict[torch.dtype, list[int]] = {}
        for slot in sorted(cloned):
            groups.setdefault(self._owned[slot].dtype, []).append(slot)
        self._groups = [
            (
                slots,
                [self._views[slot] for slot in slots],
                all(self._views[slot] is self._owned[slot] for slot in slots),
            )
            for slots in groups.values()
        ]
        in_order = all(isinstance(step, Owned) and step.slot == at for at, step in enumerate(self.steps))
        self._plain = in_order and not self._apart and not self._lasting
        self.fresh = self._owned if self._plain and not groups and not self._from_inference else None

    def _is_saved(self, slot: int) -> bool:
        return not self.saved.isdisjoint(self._positions[slot])

    @property
    def copied_bytes(self) -> int:
        """Bytes that are copied out at every call."""
        return sum(view.numel() * view.element_size() for _, views, _ in self._groups for view in views)

    def free(self) -> bool:
        """Whether nobody holds memory of the graph any more, so that it may run again."""
        return bool(self.count() == self.own_count)

    def _held(self) -> set[int]:
        """The storages that somebody holds."""
        counts = zip(self._held_by, self._count_all(), self._counts, strict=True)
        return {storage for storage, now, own in counts if now != own}

    def pending(self) -> bool:
        """Whether memory that only a backward got is held: one is still to come."""
        return not self._only_saved.isdisjoint(self._held())

    def hold(self, inputs: Sequence[Any]) -> bool:
        """Whether one of the tensors is in the graph's memory."""
        return any(
            isinstance(value, Tensor) and value.untyped_storage()._cdata in self._at for value in inputs
        )

    def clone_kept(self) -> None:
        """Return what somebody holds, but what is saved for a backward, as copies at every later call, of this graph
        and of later ones of its region."""
        kept = {position for storage in self._held() for position in self._at[storage]}
        self._cloned_positions.update(kept - self.saved)
        self._arrange()

    def results(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of the replay just submitted, given the caller's inputs."""
        owned = self._made(self._anew)
        apart = self._replace_by_clones(owned) if self._groups else ()
        if self._plain:
            return owned
        results = list(self._pick([*owned, *self._lasting, *apart, *inputs, *self._constants]))
        if self._input_views:
            with torch.no_grad():
                for position, index, view in self._input_views:
                    results[position] = view.of(inputs[index])
        return results

    def _sources(self, slots: Sequence[int]) -> list[tuple[Tensor, tuple[int, ...], tuple[int, ...]]]:
        return [(self._owned[slot], tuple(self._owned[slot].shape), self._owned[slot].stride()) for slot in slots]

    def _made(self, sources: Sequence[tuple[Tensor, tuple[int, ...], tuple[int, ...]]]) -> list[Any]:
        """New tensors on the same memory."""
        if self._from_inference:
            return [reinterpret(tensor, size, stride, 0) for tensor, size, stride in sources]
        return [tensor.data for tensor, _, _ in sources]  # in half the time

    def _replace_by_clones(self, owned: list[Any]) -> list[Any]:
        """Puts copies in the places of outputs that are not handed out, and returns those that go beside."""
        made: dict[int, Any] = {}
        with torch.no_grad():
            for slots, sources, plain in self._groups:
                clones = [new_with_layout(self._owned[slot]) for slot in slots]
                copy_all(clones if plain else [copyable(clone) for clone in clones], sources)
                made.update(zip(slots, clones, strict=True))
        for slot in made.keys() - set(self._apart):
            owned[self._place[slot]] = made[slot]
        return [made[slot] for slot in self._apart]


def _count(storages: Sequence[int], tensors: Sequence[Tensor]) -> list[int]:
    """How often each is held."""
    return [*map(_use_count, storages), *map(getrefcount, tensors)]
