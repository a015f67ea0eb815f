"""All matches of a pattern in a program that do not overlap, those near the result first."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.op import Op
from tvm.relay.expr import Call, Constant
from tvm.relay.function import Function
from tvm.relay.traverse import operands, post_order, post_order_by

from . import pattern as patterns
from .matcher import Found, matched

PARTITIONED = "PartitionedFromPattern"
_COMPOSITE = (
    patterns.CallPattern, patterns.TuplePattern, patterns.TupleGetItemPattern, patterns.IfPattern, patterns.LetPattern, patterns.FunctionPattern,
)  # fmt: skip


@dataclass
class Group:
    """One match: its result, the expressions inside it, what they take from outside."""

    root: RelayExpr
    found: Found
    inside: dict[int, RelayExpr]
    inputs: list[RelayExpr]
    order: list[RelayExpr]  # inside and inputs, operands first

    def node_map(self) -> dict[patterns.DFPattern, list[RelayExpr]]:
        """The expressions that each part of the pattern stands for."""
        result: dict[patterns.DFPattern, list[RelayExpr]] = {}
        for pattern, expr in self.found:
            result.setdefault(pattern, []).append(expr)
        return result


def find_groups(pattern: patterns.DFPattern, expr: RelayExpr) -> dict[int, Group]:
    """The matches by the identity of their result."""
    order = post_order(expr)
    users = _users(order)
    heads = _head_types(pattern)
    taken = _partitioned_before(order)
    groups: dict[int, Group] = {}
    for node in reversed(order):
        if id(node) in taken or not _may_match(node, heads):
            continue
        if (found := matched(pattern, node)) is None:
            continue
        group = _group(node, found)
        if _is_free(group, taken, users):
            groups[id(node)] = group
            taken.update([i for i, inner in group.inside.items() if not _is_shared(inner)])
    return groups


def _users(order: list[RelayExpr]) -> dict[int, list[int]]:
    users: dict[int, list[int]] = {}
    for node in order:
        for operand in operands(node):
            users.setdefault(id(operand), []).append(id(node))
    return users


def _partitioned_before(order: list[RelayExpr]) -> set[int]:
    """What is inside functions that partitioning made before."""
    return {
        id(inner)
        for node in order
        if isinstance(node, Function) and node.attrs.get(PARTITIONED)
        for inner in post_order(node)
    }


def _group(root: RelayExpr, found: Found) -> Group:
    inside = {id(root): root}
    embedded: set[int] = set()
    for pattern, expr in found:
        if isinstance(pattern, _COMPOSITE):
            inside[id(expr)] = expr
        elif isinstance(pattern, (patterns.ConstantPattern, patterns.ExprPattern)):
            embedded.add(id(expr))
    inputs: dict[int, RelayExpr] = {}
    for node in inside.values():
        for operand in () if isinstance(node, Function) else operands(node):
            is_embedded = isinstance(operand, Constant) and id(operand) in embedded
            if id(operand) not in inside and not _is_global(operand) and not is_embedded:
                inputs.setdefault(id(operand), operand)
    order = _order_of(root, inside)
    return Group(root, found, inside, [n for n in order if id(n) in inputs], order)


def _order_of(root: RelayExpr, inside: dict[int, RelayExpr]) -> list[RelayExpr]:
    """The expressions of a group and its inputs, operands first."""

    def below(node: RelayExpr) -> tuple[RelayExpr, ...]:
        return operands(node) if id(node) in inside and type(node) is not Function else ()

    return post_order_by([root], below)


def _is_free(group: Group, taken: set[int], users: dict[int, list[int]]) -> bool:
    """Whether no other match has a part of it, and what uses one outside leads to its result alone.

    That part is computed twice then, inside of the group and for who uses it outside.
    """
    for i, node in group.inside.items():
        if _is_shared(node):
            continue
        if i in taken:
            return False
        if node is group.root:
            continue
        outside = [user for user in users.get(i, ()) if user not in group.inside]
        if outside and not _lead_to(outside, id(group.root), users):
            return False
    return True


def _lead_to(starts: list[int], root: int, users: dict[int, list[int]]) -> bool:
    """Whether every way from some expressions to the end of the program goes through one."""
    stack, seen = list(starts), {root}
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        above = users.get(node)
        if not above:
            return False
        stack += above
    return True


def _is_shared(node: RelayExpr) -> bool:
    return isinstance(node, (Function, Constant)) or _is_global(node)


def _is_global(node: RelayExpr) -> bool:
    return isinstance(node, (Op, GlobalVar, Function))


def _may_match(node: RelayExpr, heads: set[Op] | None) -> bool:
    """A quick look: whether the operator called is one that the pattern begins with."""
    if isinstance(node, (Op, GlobalVar)):
        return False
    return heads is None or not isinstance(node, Call) or node.op in heads


def _head_types(pattern: patterns.DFPattern, depth: int = 0) -> set[Op] | None:
    """The operators that a call matched by `pattern` may have; None if any."""
    if depth > 20:
        return None
    if isinstance(pattern, patterns.CallPattern):
        if not isinstance(pattern.op, patterns.ExprPattern) or not isinstance(pattern.op.expr, Op):
            return None
        name = pattern.op.expr.name
        products = {Op.get("multiply"), Op.get("divide")}  # (a * b) / c is a * (b / c)
        return products if name in ("multiply", "divide") else {pattern.op.expr}
    if isinstance(pattern, patterns.AltPattern):
        left, right = _head_types(pattern.left, depth + 1), _head_types(pattern.right, depth + 1)
        return None if left is None or right is None else left | right
    if isinstance(
        pattern,
        (
            patterns.TypePattern,
            patterns.DataTypePattern,
            patterns.ShapePattern,
            patterns.AttrPattern,
        ),
    ):
        return _head_types(pattern.pattern, depth + 1)
    if isinstance(pattern, patterns.DominatorPattern):
        return _head_types(pattern.child, depth + 1)
    if isinstance(pattern, patterns.WildcardPattern):
        return None if pattern.pattern is None else _head_types(pattern.pattern, depth + 1)
    return None if isinstance(pattern, patterns.ExprPattern) else set()
