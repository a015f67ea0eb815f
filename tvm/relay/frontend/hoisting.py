"""What a loop uses that was computed before it, bound around it.

A recursive function computes whatever stands in its body at each call, so

    y = conv(x, w)                          let once = conv(x, w)
    while c: i = i + sum(y)        ->       let loop = fn (i) { ... loop(i + sum(once)) }
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tvm.ir.expr import RelayExpr
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, If, Let, Tuple, TupleGetItem, Var
from tvm.relay.traverse import operands, post_order, rewrite_post_order

Bindings = list[tuple[Var, RelayExpr]]

_COMPUTED = (Call, If, Let, TupleGetItem)
_AT_ONCE = (Call, Tuple, TupleGetItem)  # whose operands are computed wherever they stand


def bound_before(
    exprs: Sequence[RelayExpr], known: Iterable[RelayExpr]
) -> tuple[Bindings, list[RelayExpr]]:
    """Expressions over variables for what `known` expressions consist of, and those variables."""
    reached = post_order(*known, is_opaque=lambda node: not isinstance(node, _AT_ONCE))
    outside = {id(node) for node in reached if isinstance(node, _COMPUTED)}
    body = Tuple(exprs)
    bindings = [
        (Var("once", infer_type_of(node)), node)
        for node in post_order(body, is_opaque=lambda node: id(node) in outside)
        if id(node) in outside
    ]
    done: dict[int, RelayExpr] = {id(node): name for name, node in bindings}
    return bindings, list(operands(rewrite_post_order(body, lambda _, new: new, done=done)))


def with_bindings(bindings: Bindings, expr: RelayExpr) -> RelayExpr:
    """`expr` in the scope of the bindings."""
    for name, value in reversed(bindings):
        expr = Let(name, value, expr)
    return expr
