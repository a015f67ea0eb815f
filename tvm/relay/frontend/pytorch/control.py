"""Branches and loops of scripted modules whose conditions depend on data.

What they write in place, put into lists and set in objects becomes results of the branch or loop:

    if c:                        y1 = if (c) { y + 1 } else { y }
        y.add_(1)         ->
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import If, Tuple, TupleGetItem
from tvm.relay.frontend.common import infer_dtype, infer_shape

from .nested import (
    are_same_contents,
    containers,
    copied,
    filled,
    flattened,
    is_same,
    merged,
    refill,
)
from .registry import as_dtype, is_tensor, promote_dtypes

if TYPE_CHECKING:
    from .importer import GraphImporter


@dataclass(frozen=True)
class State:
    """What the names of a graph stand for at one moment."""

    values: dict[str, Any]
    contents: dict[int, tuple[Any, Any]]  # of containers, by their identity
    views: dict[str, Any]
    derived: dict[str, list[str]]

    @staticmethod
    def of(importer: GraphImporter, known: State | None = None) -> State:
        """The state now; the containers of an earlier one are looked at too."""
        found = list(containers([*importer.values.values(), *importer.fields.values()]))
        if known is not None:
            found += [container for container, _ in known.contents.values()]
        return State(
            dict(importer.values),
            {id(c): (c, copied(c)) for c in [*found, importer.fields]},
            dict(importer.views),
            {name: list(views) for name, views in importer.derived.items()},
        )

    def expressions(self) -> list[RelayExpr]:
        """The tensors among the values, in containers too."""
        leaves: list[Any] = []
        flattened(
            [list(self.values.values()), [copy for _, copy in self.contents.values()]], leaves
        )
        return [leaf for leaf in leaves if is_tensor(leaf)]

    def restore(self, importer: GraphImporter) -> None:
        importer.values = dict(self.values)
        importer.views = dict(self.views)
        importer.derived = {name: list(views) for name, views in self.derived.items()}
        for container, content in self.contents.values():
            refill(container, content)

    def changes(self, after: State, inner: set[str]) -> tuple[list[str], list[int]]:
        """The names and the containers from outside that are other ones after a block."""
        names = [
            name for name, value in self.values.items()
            if name not in inner and not is_same(after.values[name], value)
        ]  # fmt: skip
        held = [
            key for key, (_, content) in self.contents.items()
            if not are_same_contents(content, after.contents[key][1])
        ]  # fmt: skip
        return names, held


def names_within(node: Any) -> set[str]:
    """The names that the blocks of a node define."""
    found: set[str] = set()
    for block in node.blocks():
        found.update(value.debugName() for value in block.inputs())
        for inner in block.nodes():
            found.update(value.debugName() for value in inner.outputs())
            found |= names_within(inner)
    return found


def dynamic_branch(importer: GraphImporter, node: Any, condition: RelayExpr) -> list[Any]:
    """The results of one of two branches, by a condition that depends on data."""
    before = State.of(importer)
    results, after = [], []
    for block in node.blocks():
        results.append(importer.block_results(block))
        after.append(State.of(importer, before))
        before.restore(importer)
    inner = names_within(node)
    changes = [before.changes(state, inner) for state in after]
    names = list(dict.fromkeys(name for found, _ in changes for name in found))
    held = list(dict.fromkeys(key for _, found in changes for key in found))
    yes, no = (
        [*found, *[state.values[name] for name in names], *[state.contents[key][1] for key in held]]
        for found, state in zip(results, after, strict=True)
    )
    pairs: list[tuple[Any, Any]] = []
    patterns = [merged(a, b, pairs) for a, b in zip(yes, no, strict=True)]
    values = filled(patterns, _chosen(condition, pairs)) if pairs else patterns
    count = len(results[0])
    assign(importer, before, names, held, values[count:])
    return list(values[:count])


def assign(
    importer: GraphImporter, before: State, names: Sequence[str], held: Sequence[int],
    values: Sequence[Any],
) -> None:  # fmt: skip
    """Give names and containers their new values."""
    importer.values.update(zip(names, values, strict=False))
    for key, content in zip(held, values[len(names) :], strict=True):
        refill(before.contents[key][0], content)


def _chosen(condition: RelayExpr, pairs: Sequence[tuple[Any, Any]]) -> list[RelayExpr]:
    leaves = []
    for a, b in pairs:
        dtype = promote_dtypes(infer_dtype(a), infer_dtype(b))
        leaves.append((as_dtype(a, dtype), as_dtype(b, dtype)))
    chosen = If(as_flag(condition), Tuple([a for a, _ in leaves]), Tuple([b for _, b in leaves]))
    return [TupleGetItem(chosen, i) for i in range(len(leaves))]


def as_flag(condition: Any) -> RelayExpr:
    """A condition without axes."""
    flag = as_dtype(condition, "bool")
    return flag if infer_shape(flag) == () else _op.reshape(flag, ())
