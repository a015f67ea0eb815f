"""The parts of a function that one compiler could take as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.relay.dataflow_pattern.groups import Group, find_groups
from tvm.relay.dataflow_pattern.rewrite import as_function
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tvm.relay.function import Function
from tvm.relay.op.pattern_tables import get_pattern_table
from tvm.relay.op.registry import OpPattern
from tvm.relay.transform.operators import is_operator_call
from tvm.relay.traverse import operands, with_operands
from tvm.target import Target


@dataclass
class Part:
    """Expressions of which only `root` is used outside.

    `composites` are the matches of patterns in it, by the identity of their result.
    """

    root: RelayExpr
    inside: dict[int, RelayExpr]
    target: Target
    composites: dict[int, tuple[str, Group]] = field(default_factory=dict)

    def inputs(self, order: Sequence[RelayExpr]) -> list[RelayExpr]:
        """What the part takes from outside, constants apart, in the order of the program."""
        below = {id(o) for node in self.inside.values() for o in operands(node)}
        return [
            node
            for node in order
            if id(node) in below
            and id(node) not in self.inside
            and not isinstance(node, (Constant, Op, Function))
        ]

    def function(self, order: Sequence[RelayExpr]) -> Function:
        """The part as a function of its inputs, with composite functions in the place of matches."""
        inputs = self.inputs(order)
        params = [Var(f"FunctionVar_{i}", e.checked_type) for i, e in enumerate(inputs)]
        done: dict[int, RelayExpr] = {id(e): p for e, p in zip(inputs, params, strict=True)}
        hidden = {
            i
            for _, group in self.composites.values()
            for i in group.inside
            if i not in self.composites
        }
        for node in order:
            if id(node) not in self.inside or id(node) in hidden:
                continue
            if (found := self.composites.get(id(node))) is not None:
                name, group = found
                called = as_function(group, len(done), {"Composite": name})
                done[id(node)] = Call(called, [done.get(id(i), i) for i in group.inputs])
            else:
                done[id(node)] = with_operands(node, [done.get(id(o), o) for o in operands(node)])
        return Function(params, done[id(self.root)])

    def joined(self, other: Part, root: RelayExpr) -> Part:
        """Both parts as one."""
        return Part(
            root,
            {**self.inside, **other.inside},
            self.target,
            {**self.composites, **other.composites},
        )


class PartFinder:
    """Finds parts of one function.

    Parameters
    ----------
    order : the expressions of the body, operands first.
    """

    def __init__(self, body: RelayExpr, order: Sequence[RelayExpr], mod: IRModule) -> None:
        self.body = body
        self.order = order
        self.mod = mod
        self.place = {id(node): i for i, node in enumerate(order)}
        self.users: dict[int, list[int]] = {}
        for node in order:
            for operand in operands(node):
                self.users.setdefault(id(operand), []).append(id(node))

    def external(self, target: Target, depth: int, joins: bool) -> list[Part]:
        """What the compiler of a target's kind takes: its patterns' matches, and neighbours joined.

        Parameters
        ----------
        depth : the most matches of a part.
        """
        compiler = target.kind.name
        single: list[Part] = []
        for name, pattern, *check in get_pattern_table(compiler) or ():
            for group in find_groups(pattern, self.body).values():
                if not check or check[0](group.root):
                    marks = {id(group.root): (str(name), group)}
                    single.append(Part(group.root, dict(group.inside), target, marks))
        for node in self.order:
            if is_operator_call(node):
                takes = node.operator.get_attr(f"target.{compiler}")
                if takes is not None and takes(node):
                    single.append(Part(node, {id(node): node}, target))
        return self._joined(single, depth) if joins else single

    def native(self, target: Target, depth: int) -> list[Part]:
        """What becomes one kernel of ours: an operator, and simple ones that follow it."""
        parts = []
        for node in self.order:
            if not _is_step(node):
                continue
            part = Part(node, {id(node): node}, target)
            parts.append(part)
            while len(part.inside) < depth and (after := self._follower(part)) is not None:
                part = part.joined(Part(after, {id(after): after}, target), after)
                parts.append(part)
        return parts

    def _follower(self, part: Part) -> RelayExpr | None:
        """The simple operator that alone uses a part."""
        users = set(self.users.get(id(part.root), ()))
        if len(users) != 1 or part.root is self.body:
            return None
        after = self.order[self.place[users.pop()]]
        if not is_operator_call(after):
            return None
        kind = OpPattern.OPAQUE if after.operator.fuse is None else OpPattern(after.operator.fuse)
        first = min(part.inside.values(), key=lambda n: self.place[id(n)])
        last = _kind(first)
        limit = OpPattern.BROADCAST if last > OpPattern.INJECTIVE else OpPattern.INJECTIVE
        return after if kind <= limit and last <= OpPattern.OUT_ELEMWISE_FUSABLE else None

    def _joined(self, single: Sequence[Part], depth: int) -> list[Part]:
        """The parts, and those of up to `depth` neighbours that have one result."""
        found = {frozenset(part.inside): part for part in single}
        latest = list(found.values())
        for _ in range(depth - 1):
            made: list[Part] = []
            for part in latest:
                for other in single:
                    joined = self._neighbours(part, other)
                    if joined is not None and frozenset(joined.inside) not in found:
                        found[frozenset(joined.inside)] = joined
                        made.append(joined)
            latest = made
        return list(found.values())

    def _neighbours(self, below: Part, above: Part) -> Part | None:
        """Both as one, if the second takes the first's result and nobody else does."""
        if not below.inside.keys().isdisjoint(above.inside):
            return None
        users = self.users.get(id(below.root), ())
        if below.root is self.body or not users or any([u not in above.inside for u in users]):
            return None
        return below.joined(above, above.root)


def _is_step(node: RelayExpr) -> bool:
    """Whether an expression is something that a part computes."""
    return isinstance(node, (Call, Tuple, TupleGetItem))


def _kind(node: RelayExpr) -> OpPattern:
    if not is_operator_call(node) or node.operator.fuse is None:
        return OpPattern.OPAQUE
    return OpPattern(node.operator.fuse)


def cheapest_cover(
    steps: Sequence[RelayExpr], parts: Iterable[Part], costs: Mapping[int, float]
) -> list[Part]:
    """The parts that together have every step once, at the least cost.

    Parameters
    ----------
    steps : the expressions, operands first.
    costs : by the identity of the part.
    """
    number = {id(node): i for i, node in enumerate(steps)}
    by_first: dict[int, list[tuple[int, Part]]] = {}
    for part in parts:
        places = [number[i] for i in part.inside if i in number]
        mask = sum([1 << place for place in places])
        by_first.setdefault(min(places), []).append((mask, part))
    everything = (1 << len(steps)) - 1
    # covered steps -> the least cost so far, the part that was added last and what it was added to
    best: dict[int, tuple[float, Part | None, int]] = {0: (0.0, None, 0)}
    waiting = {0: [0]}  # by the first step that is not covered
    for first in range(len(steps)):
        for covered in waiting.pop(first, ()):
            cost = best[covered][0]
            for mask, part in by_first.get(first, ()):
                if covered & mask:
                    continue
                total, now = cost + costs[id(part)], covered | mask
                if now not in best:
                    rest = ~now & everything
                    following = (rest & -rest).bit_length() - 1 if rest else len(steps)
                    waiting.setdefault(following, []).append(now)
                if now not in best or total < best[now][0]:
                    best[now] = (total, part, covered)
    chosen: list[Part] = []
    state = everything
    while state:
        _, last, state = best[state]
        assert last is not None
        chosen.append(last)
    return chosen[::-1]
