"""Marks of a region for an external compiler, as examples of code generators use them."""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.relay.expr import Call, Var
from tvm.relay.expr_functor import ExprMutator
from tvm.relay.op.annotation import compiler_begin, compiler_end
from tvm.relay.op.registry import ops
from tvm.relay.transform.operators import calls

_COMPILER = "ccompiler"


class CcompilerAnnotator(ExprMutator):
    """Gives `ccompiler` each chain of a sum, a difference and a product.

    multiply(subtract(add(%a, %b), %c), %d)
    ->
    end(multiply(subtract(add(begin(%a), begin(%b)), begin(%c)), begin(%d)))
    """

    def __init__(self) -> None:
        super().__init__()
        self.in_compiler = 0  # 1 below a product, 2 once the sum is found

    def visit_call(self, call: Call) -> RelayExpr:
        """The call, its arguments marked if it belongs to a chain."""
        if calls(call, ops.multiply):
            self.in_compiler = 1
            args = [_entering(self.visit(arg)) for arg in call.args]
            is_chain, self.in_compiler = self.in_compiler == 2, 0
            product = Call(ops.multiply, args)
            return compiler_end(product, _COMPILER) if is_chain else product
        if self.in_compiler == 1 and calls(call, ops.subtract):
            return Call(ops.subtract, [_entering(self.visit(arg)) for arg in call.args])
        if self.in_compiler == 1 and calls(call, ops.add):
            self.in_compiler = 2
            return Call(ops.add, [compiler_begin(self.visit(arg), _COMPILER) for arg in call.args])
        result: RelayExpr = super().visit_call(call)
        return result


def _entering(value: RelayExpr) -> RelayExpr:
    return compiler_begin(value, _COMPILER) if isinstance(value, Var) else value
