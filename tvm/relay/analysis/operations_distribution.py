"""Which compiler runs each operator of a partitioned module."""

from __future__ import annotations

from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.relay.expr import Call
from tvm.relay.expr_functor import ExprVisitor
from tvm.relay.function import Function, relay_functions


class AnalyzeOperationsDistribution(ExprVisitor):
    """Counts the calls of operators and of fused functions, by compiler.

    After a visit `unique_op_ids` has for each number found in the calls' span names
    `[compiler, operator, function]`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.unique_op_ids: dict[int, list[str]] = {}
        self.func_name = ""
        self.func_id = 1
        self.compiler_name = ""

    def extract(self, call: Call) -> None:
        """Note one call."""
        if not isinstance(call.op, Op):
            return
        name = call.op.name
        self.unique_op_ids[len(self.unique_op_ids) + 1] = [
            self.compiler_name,
            name,
            self.func_name or name,
        ]

    def visit_call(self, call: Call) -> None:
        """Note a call and those inside of it."""
        super().visit_call(call)
        self.extract(call)

    def visit_function(self, fn: Function) -> None:
        """Calls inside of a composite function belong to it."""
        outer = self.func_name
        if fn.attrs.get("Composite"):
            self.func_name = str(fn.attrs["Composite"])
        super().visit_function(fn)
        self.func_name = outer


def analyze_operations_distribution(mod: IRModule) -> dict[int, list[str]]:
    """`{number: [compiler, operator, function]}` of all operators, in order.

    Operators that no external compiler takes belong to `generic`.
    """
    visitor = AnalyzeOperationsDistribution()
    for func in relay_functions(mod).values():
        visitor.compiler_name = str(func.attrs.get("Compiler", "generic"))
        visitor.visit(func)
    return visitor.unique_op_ids
