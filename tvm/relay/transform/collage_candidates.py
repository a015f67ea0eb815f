"""The parts of a function that one compiler could take as a whole.

A part has one result: it starts at a unit, an operator or the match of a pattern, and grows by units
below all of whose uses are inside already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tvm._ffi import get_global_func
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.relay.dataflow_pattern.groups import PARTITIONED, Group, find_groups
from tvm.relay.dataflow_pattern.rewrite import as_function
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tvm.relay.function import Function
from tvm.relay.op.registry import OpPattern
from tvm.relay.transform.operators import is_operator_call
from tvm.relay.traverse import operands, post_order_by, with_operands
from tvm.runtime.name_transforms import sanitize_name
from tvm.target import Target

PATTERNS = "tvm.relay.collage.get_pattern_table"
# what may be fused below what, the rules of FuseOps
_FUSIBLE = (
    (OpPattern.OUT_ELEMWISE_FUSABLE, OpPattern.BROADCAST),
    (OpPattern.BROADCAST, OpPattern.COMM_REDUCE),
    (OpPattern.INJECTIVE, OpPattern.INJECTIVE),
)
# wide graphs have parts without number; so many with the same result are looked at
_MOST_PARTS = 256


@dataclass(eq=False)
class Part:
    """Expressions of which only `outputs` are used outside.

    `composites` are the matches of patterns in it, by the identity of their result; `height` says of
    each expression how many units there are from it up to the output.
    """

    outputs: tuple[RelayExpr, ...]
    inside: dict[int, RelayExpr]
    target: Target
    kind: OpPattern
    composites: dict[int, tuple[str, Group]] = field(default_factory=dict)
    height: dict[int, int] = field(default_factory=dict)

    def inputs(self) -> list[RelayExpr]:
        """What the part takes from outside, without constants, in the order in which it needs them."""
        return [n for n in self._order() if id(n) not in self.inside and not _is_plain(n)]

    def function(self) -> Function:
        """The part as a function of its inputs, with composite functions in the place of matches."""
        inputs = self.inputs()
        params = [Var(f"FunctionVar_{i}", e.checked_type) for i, e in enumerate(inputs)]
        done: dict[int, RelayExpr] = {id(e): p for e, p in zip(inputs, params, strict=True)}
        hidden = {i for _, group in self.composites.values() for i in group.inside}
        for node in self._order():
            if (found := self.composites.get(id(node))) is not None:
                name, group = found
                called = as_function(group, len(done), {"Composite": name})
                args = [done.get(id(i), i) for i in group.inputs]
                done[id(node)] = Call(called.without_attr(PARTITIONED), args)
            elif id(node) in self.inside and id(node) not in hidden:
                done[id(node)] = with_operands(node, [done.get(id(o), o) for o in operands(node)])
        results = [done[id(output)] for output in self.outputs]
        return Function(params, results[0] if len(results) == 1 else Tuple(results))

    def label(self, place: dict[int, int]) -> str:
        """The names of the operators, in the order of the program."""
        nodes = sorted(self.inside.values(), key=lambda node: place[id(node)])
        names = [sanitize_name(n.operator.name) for n in nodes if is_operator_call(n)]
        return "_".join(["", *names]) if len(self.outputs) == 1 and self.height else ""

    def _order(self) -> list[RelayExpr]:
        return post_order_by(self.outputs, lambda n: operands(n) if id(n) in self.inside else ())


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

    def external(self, target: Target, depth: int, fusion: str) -> list[Part]:
        """What the compiler of a target's kind takes: its patterns' matches, and neighbours joined.

        Parameters
        ----------
        depth : the most matches on a way through a part.
        fusion : "NoFusion", "TVMFusion" by the rules of our kernels, or "ArbitraryFusion".
        """
        units = self._matches(target)
        if fusion == "NoFusion":
            return units
        return self._grown(units, depth, may_fuse if fusion == "TVMFusion" else _always)

    def native(self, target: Target, depth: int) -> list[Part]:
        """What becomes one kernel of ours: an operator, and what fuses with it."""
        units = [self._unit(node, target) for node in self.order if _is_step(node)]
        return self._grown(units, depth, may_fuse)

    def _matches(self, target: Target) -> list[Part]:
        compiler = target.kind.name
        found: list[Part] = []
        for name, pattern, *check in get_global_func(PATTERNS)(compiler) or ():
            for group in find_groups(pattern, self.body).values():
                if not check or check[0](group.root):
                    composite = {id(group.root): (str(name), group)}
                    found.append(self._unit(group.root, target, group.inside, composite))
        for node in self.order:
            if is_operator_call(node):
                takes = node.operator.get_attr(f"target.{compiler}")
                if takes is not None and takes(node):
                    found.append(self._unit(node, target))
        return found

    def _unit(
        self,
        root: RelayExpr,
        target: Target,
        inside: dict[int, RelayExpr] | None = None,
        composites: dict[int, tuple[str, Group]] | None = None,
    ) -> Part:
        inside = dict(inside or {id(root): root})
        kind = max([_kind(n) for n in inside.values() if _is_step(n)])
        return Part((root,), inside, target, kind, composites or {}, dict.fromkeys(inside, 1))

    def _grown(
        self, units: Sequence[Part], depth: int, fuses: Callable[[OpPattern, OpPattern], bool]
    ) -> list[Part]:
        """The units, and what they grow to."""
        at: dict[int, list[Part]] = {}
        for unit in units:
            at.setdefault(id(unit.outputs[0]), []).append(unit)
        found: dict[frozenset[int], Part] = {}
        for unit in units:
            latest, made = [unit], {frozenset(unit.inside): unit}
            while latest and len(made) < _MOST_PARTS:
                latest = [
                    joined
                    for part in latest
                    for below in self._below(part, at)
                    if fuses(below.kind, part.kind)
                    and (joined := self._joined(below, part, depth)) is not None
                    and made.setdefault(frozenset(joined.inside), joined) is joined
                ]
            for inside, part in made.items():
                found.setdefault(inside, part)
        return list(found.values())

    def _below(self, part: Part, at: dict[int, list[Part]]) -> list[Part]:
        """The units whose results are used in a part and nowhere else."""
        needed = {id(o): o for n in part.inside.values() for o in operands(n)}
        return [
            unit
            for i in needed
            if i not in part.inside and i != id(self.body)
            for unit in at.get(i, ())
            if unit.inside.keys().isdisjoint(part.inside)
            and all([user in part.inside for user in self.users[i]])
        ]

    def _joined(self, below: Part, above: Part, depth: int) -> Part | None:
        """Both as one, unless a way through it is longer than `depth`."""
        users = self.users[id(below.outputs[0])]
        height = 1 + max([above.height[user] for user in users])
        if height > depth:
            return None
        return Part(
            above.outputs,
            {**below.inside, **above.inside},
            above.target,
            max(below.kind, above.kind),
            {**below.composites, **above.composites},
            {**dict.fromkeys(below.inside, height), **above.height},
        )


def may_fuse(below: OpPattern, above: OpPattern) -> bool:
    """Whether our kernels compute parts of these kinds together."""
    return any([below <= most and above <= most_above for most, most_above in _FUSIBLE])


def _always(_below: OpPattern, _above: OpPattern) -> bool:
    return True


def _is_plain(node: RelayExpr) -> bool:
    """Whether a part has an operand inside it, wherever it is used."""
    return isinstance(node, (Constant, Op, Function, GlobalVar))


def _is_step(node: RelayExpr) -> bool:
    """Whether an expression is something that a part computes."""
    return isinstance(node, (Call, Tuple, TupleGetItem))


def _kind(node: RelayExpr) -> OpPattern:
    if isinstance(node, (Tuple, TupleGetItem)):
        return OpPattern.INJECTIVE
    if not is_operator_call(node) or node.operator.fuse is None:
        return OpPattern.OPAQUE
    return OpPattern(node.operator.fuse)
