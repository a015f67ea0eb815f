"""Names of a graph that share memory: what is written in place to one is seen through all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay.frontend.common import ExprFolder

from .dynamic_lists import item
from .nested import copied, is_dynamic_list, refill
from .registry import is_tensor
from .views import Stale, View, put_same, views_of

_MAKERS = {"prim::ListConstruct", "prim::TupleConstruct", "prim::DictConstruct"}
_WRITERS = {"aten::append", "aten::insert", "aten::_set_item"}
_JOINERS = {"aten::add", "aten::add_", "aten::extend", "aten::list", "aten::copy", "aten::slice"}
_READERS = {
    "aten::__getitem__", "aten::pop", "aten::get", "prim::ListUnpack", "prim::TupleUnpack",
    "prim::TupleIndex",
}  # fmt: skip


class SharedMemory(ABC):
    """The values of names, and which names and containers see each other's writes."""

    folder: ExprFolder

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.views: dict[str, View] = {}  # by the name of the value that shares memory
        self.derived: dict[str, list[str]] = {}  # names of views by what they share memory with
        # the names whose values were put into a container, by its identity
        self.members: dict[int, tuple[Any, set[str]]] = {}

    @abstractmethod
    def apply(self, node: Any, args: Sequence[Any]) -> Any:
        """The result of a node's operator."""

    @abstractmethod
    def fold_results(self, result: Any, count: int) -> list[Any]:
        """A result as a list, constants folded."""

    def write(self, name: str, value: RelayExpr) -> None:
        """An in-place result: the new value of the input and of all that shares its memory."""
        before = dict(self.values) if self.members else {}
        written = [name]
        self.values[name] = value
        while (view := self.views.get(name)) is not None:
            name, base = view.base, self.values[view.base]
            if view.put is None or isinstance(base, Stale):
                self.values[name] = Stale(view.node.kind())
            else:
                args = [self.values.get(v.debugName()) for v in view.node.inputs()]
                value = self.folder.fold(view.put(base, self.values[written[-1]], *args[1:]))
                self.values[name] = value
            written.append(name)
        for base_name in reversed(written):
            self._refresh(base_name, written)
        for container, names in self.members.values():
            self._refresh_members(container, names, before)

    def _refresh(self, name: str, written: Sequence[str]) -> None:
        """Read anew the views of a value, and their views."""
        for derived in self.derived.get(name, ()):
            if derived in written:
                continue
            view = self.views[derived]
            node, source = view.node, self.values[view.base]
            inputs = [self.values.get(value.debugName()) for value in node.inputs()]
            if view.put is None:
                self.values[derived] = Stale(node.kind())
            elif view.put is put_same or isinstance(source, Stale):
                self.values[derived] = source
            else:
                (found,) = self.fold_results(self.apply(node, inputs), 1)
                if view.piece is not None:
                    found = item(found, view.piece) if is_dynamic_list(found) else found[view.piece]
                self.values[derived] = found
            self._refresh(derived, written)

    def note_alias(self, name: str, base: str | None, node: Any) -> None:
        """Two names of one value: what is written to one is seen through the other."""
        if (old := self.views.pop(name, None)) is not None and name in self.derived[old.base]:
            self.derived[old.base].remove(name)
        if base is not None and is_tensor(self.values.get(base)):
            self.views[name] = View(base, node, put_same)
            self.derived.setdefault(base, []).append(name)

    def owner(self, name: str, inner: set[str]) -> str | None:
        """The name from outside of a loop whose memory one inside has; None if a step made it."""
        while (view := self.views.get(name)) is not None and view.put is put_same:
            name = view.base
            if name not in inner:
                return name
        return None

    def note_views(self, node: Any) -> None:
        for output, view in views_of(node).items():
            self.views[output] = view
            self.derived.setdefault(view.base, []).append(output)

    def note_members(self, node: Any, args: Sequence[Any]) -> None:
        """Which names the values in lists, tuples and dictionaries have."""
        kind = node.kind()
        if kind in _MAKERS and _outlives_its_use(node.output()):
            self._join_members(self.values[node.output().debugName()], _tensor_names(node))
        elif kind in _WRITERS:
            self._join_members(args[0], _tensor_names(node))
        elif kind in _JOINERS and isinstance(args[0], list):
            found = [self.members[id(arg)][1] for arg in args if id(arg) in self.members]
            joined = self.values[node.output().debugName()] if node.outputsSize() else args[0]
            self._join_members(joined, set().union(*found))
        elif kind in _READERS and id(args[0]) in self.members:
            for value in node.outputs():
                self._note_read(value.debugName(), self.members[id(args[0])][1], node)

    def _join_members(self, container: Any, names: set[str]) -> None:
        if names and isinstance(container, (list, dict)):
            self.members.setdefault(id(container), (container, set()))[1].update(names)

    def _note_read(self, name: str, members: set[str], node: Any) -> None:
        """A value from a container is the one of the only member that it can be."""
        same = [m for m in members if m != name and self.values.get(m) is self.values[name]]
        if len(same) == 1 and is_tensor(self.values[name]):
            self.note_alias(name, same[0], node)

    def _refresh_members(self, container: Any, names: set[str], before: dict[str, Any]) -> None:
        changed = {
            id(before[name]): self.values[name]
            for name in names
            if name in before and before[name] is not self.values[name]
        }
        if not changed:
            return
        content = copied(container)
        if isinstance(content, dict):
            refill(container, {k: changed.get(id(v), v) for k, v in content.items()})
        else:
            refill(container, [changed.get(id(v), v) for v in content])


def _outlives_its_use(container: Any) -> bool:
    """Whether more happens to a container than that one operator computes with it."""
    users = [use.user.kind() for use in container.uses()]
    return len(users) > 1 or any(kind in _WRITERS | _JOINERS | _READERS for kind in users)


def _tensor_names(node: Any) -> set[str]:
    return {v.debugName() for v in node.inputs() if v.type().kind() == "TensorType"}
