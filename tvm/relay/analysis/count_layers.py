"""The depth of a network in layers of given operators."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.relay.expr import Call
from tvm.relay.expr_functor import ExprVisitor
from tvm.relay.traverse import operands, post_order


class LayerCounter(ExprVisitor):
    """Counts the operators on the longest path."""

    def __init__(self, valid_ops: Sequence[str]) -> None:
        super().__init__()
        self.valid_ops = [Op.get(name) for name in valid_ops]
        self.depth_count = 0

    def visit(self, expr: RelayExpr) -> None:
        depth: dict[int, int] = {}
        for node in post_order(expr):
            below = max([depth.get(id(n), 0) for n in operands(node)], default=0)
            counts = isinstance(node, Call) and any(node.op is op for op in self.valid_ops)
            depth[id(node)] = below + int(counts)
        self.depth_count = depth[id(expr)]

    def count(self) -> int:
        """The number found."""
        return self.depth_count


def count_layers(expr: RelayExpr | IRModule, valid_ops: Sequence[str]) -> int:
    """How many of `valid_ops` the longest path of an expression, or of a module's `main`, has."""
    counter = LayerCounter(valid_ops)
    counter.visit(expr["main"] if isinstance(expr, IRModule) else expr)
    return counter.count()
