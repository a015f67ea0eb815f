"""Replacing what matches a pattern, and moving it into functions of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.structural import structural_equal
from tvm.relay.analysis.infer import TypeInferencer, known_type
from tvm.relay.expr import Call, Tuple, TupleGetItem, Var
from tvm.relay.function import Function
from tvm.relay.traverse import operands, post_order, rewrite_post_order, with_operands
from tvm.support import deep

from .groups import PARTITIONED, Group, find_groups
from .matcher import matched
from .pattern import DFPattern, register_engine

_MOST_ROUNDS = 100
NodeMap = dict[DFPattern, list[RelayExpr]]


class DFPatternCallback:
    """A pattern and what to put in its place: derive, set `self.pattern`, define `callback`.

    Parameters
    ----------
    require_type : give the callback typed expressions.
    rewrite_once : look at the program once, rather than until nothing changes any more.
    """

    pattern: DFPattern | None = None

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.require_type = require_type
        self.rewrite_once = rewrite_once

    def rewrite(self, expr: RelayExpr) -> RelayExpr:
        """`expr` with all matches replaced."""
        return rewrite(self, expr)

    def callback(self, pre: RelayExpr, post: RelayExpr, node_map: NodeMap) -> RelayExpr:
        """The expression to put in place of a match.

        Parameters
        ----------
        pre : the match; post : the match over operands that were rewritten before.
        node_map : the rewritten expressions that each part of the pattern stands for.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define callback")


@deep
def match(pattern: DFPattern, expr: RelayExpr) -> bool:
    """Whether `expr` looks like `pattern`."""
    return matched(pattern, expr) is not None


@deep
def rewrite(
    callbacks: DFPatternCallback | Sequence[DFPatternCallback],
    expr: RelayExpr,
    mod: IRModule | None = None,
) -> RelayExpr:
    """`expr` with all matches of the callbacks' patterns replaced, until nothing changes."""
    if isinstance(callbacks, DFPatternCallback):
        callbacks = [callbacks]
    for callback in callbacks:
        if callback.pattern is None:
            raise TVMError(f"{type(callback).__name__} requires a pattern: set self.pattern")
    for turn in range(_MOST_ROUNDS):
        before, is_settled = expr, True
        for callback in callbacks:
            if turn and callback.rewrite_once:
                continue
            after = _rewrite_round(callback, expr, mod)
            is_settled &= callback.rewrite_once or after is expr
            expr = after
        if is_settled or structural_equal(before, expr):
            break
    return expr


def _rewrite_round(callback: DFPatternCallback, expr: RelayExpr, mod: IRModule | None) -> RelayExpr:
    assert callback.pattern is not None
    if callback.require_type and known_type(expr) is None:
        TypeInferencer(mod).infer(expr)
    groups = find_groups(callback.pattern, expr)
    if not groups:
        return expr
    done: dict[int, RelayExpr] = {}

    def replace(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if (group := groups.get(id(old))) is not None:
            done[id(old)] = new
            node_map = {
                pattern: [done.get(id(e), e) for e in exprs]
                for pattern, exprs in group.node_map().items()
            }
            new = callback.callback(old, new, node_map)
            if not isinstance(new, RelayExpr):
                raise TVMError(
                    f"{type(callback).__name__}.callback must return a relay expression, "
                    f"got {type(new).__name__}"
                )
        done[id(old)] = new
        return new

    return rewrite_post_order(expr, replace)


def _is_wanted(_: RelayExpr) -> bool:
    return True


@deep
def partition(
    pattern: DFPattern,
    expr: RelayExpr,
    attrs: Mapping[str, Any] | None = None,
    check: Callable[[RelayExpr], bool] = _is_wanted,
) -> RelayExpr:
    """`expr` with each match moved into a function, called in its place.

    Parameters
    ----------
    attrs : attributes of the functions.
    check : tells of each match whether to move it.
    """
    groups = find_groups(pattern, expr)
    groups = {i: group for i, group in groups.items() if check(group.root)}
    if not groups:
        return expr
    done: dict[int, RelayExpr] = {}
    numbers = {i: n for n, i in enumerate(reversed(list(groups)))}

    def replace(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if (group := groups.get(id(old))) is not None:
            function = as_function(group, numbers[id(old)], attrs or {})
            new = Call(function, [done[id(operand)] for operand in group.inputs])
        done[id(old)] = new
        return new

    return rewrite_post_order(expr, replace)


def as_function(group: Group, number: int, attrs: Mapping[str, Any]) -> Function:
    params = {
        id(operand): Var(f"FunctionVar_{number}_{i}") for i, operand in enumerate(group.inputs)
    }
    body = _over_params(group, params)
    noted = {PARTITIONED: _label(body), **attrs}
    return Function(list(params.values()), body, None, None, noted)


def _over_params(group: Group, params: Mapping[int, Var]) -> RelayExpr:
    """The expressions inside a group, over the parameters that stand for its inputs."""
    done: dict[int, RelayExpr] = dict(params)
    for node in group.order:
        if id(node) in group.inside and not isinstance(node, Function):
            new = [done.get(id(operand), operand) for operand in operands(node)]
            done[id(node)] = with_operands(node, new)
    return done[id(group.root)]


def _label(body: RelayExpr) -> str:
    """The names of the operators in a function, operands first."""
    parts = []
    for node in post_order(body):
        if isinstance(node, Call):
            parts.append(f"{node.op.name}_" if isinstance(node.op, Op) else "FunctionCall_")
        elif isinstance(node, Tuple):
            parts.append("Tuple_")
        elif isinstance(node, TupleGetItem):
            parts.append(f"TupleGetItem{node.index}_")
    return "".join(parts)


register_engine(match=match, partition=partition)
