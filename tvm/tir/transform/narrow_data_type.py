"""Compute indices in 32 bits where they fit.

    for i in range(int64(8)):    ->    for i in range(8):
        B[i * int64(4)] = ...              B[i * 4] = ...

A loop variable is narrowed if every index that uses it fits, intermediate results included.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.support.dtype import dtype as as_dtype
from tvm.tir import op
from tvm.tir.expr import (
    BinaryOpExpr,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CmpExpr,
    IntImm,
    IterVar,
    Let,
    Ramp,
    Range,
    Select,
    Var,
    const,
)
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, BufferStore, For, LetStmt, Stmt
from tvm.tir.stmt_functor import BufferRewriter
from tvm.tir.transform.common import prim_func_pass

INT64 = as_dtype("int64")


@dataclass(frozen=True)
class NarrowDataTypeConfig:
    """To how many bits."""

    target_bits: int = 32


class WideVariableFinder(Visitor):
    """Collects 64-bit loop variables, and drops those of which some index might not fit."""

    def __init__(self, bits: int) -> None:
        self.limit = 1 << (bits - 1)
        self.analyzer = Analyzer()
        self.wide: dict[Var, None] = {}
        self.kept: dict[Var, None] = {}

    def visit_for(self, loop: For) -> None:
        self._bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
        self.visit_children(loop)

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if attr.attr_key in ("thread_extent", "virtual_thread") and isinstance(attr.node, IterVar):
            self._bind(attr.node.var, Range(attr.value))
        self.visit_children(attr)

    def _bind(self, var: Var, domain: Range) -> None:
        if var.dtype is INT64:
            self.analyzer.bind(var, domain, True)
            self.wide[var] = None

    def visit_binary_op_expr(self, e: BinaryOpExpr) -> None:
        if e.dtype is INT64 and not self._fits(e):
            self._keep(e)
        self.visit_children(e)

    def visit_var(self, var: Var) -> None:
        if var in self.wide and not self._fits(var):
            self.kept[var] = None

    def visit_let_stmt(self, let: LetStmt) -> None:
        self._keep(let.value)
        self.visit_children(let)

    def visit_let(self, let: Let) -> None:
        self._keep(let.value)
        self.visit_children(let)

    def _fits(self, e: PrimExpr) -> bool:
        bound = self.analyzer.const_int_bound(e)
        return -self.limit <= bound.min_value and bound.max_value < self.limit

    def _keep(self, e: PrimExpr) -> None:
        """What is part of a wide value stays wide."""
        collector = VariableFinder()
        collector.visit(e)
        self.kept.update(collector.found)


class VariableFinder(Visitor):
    """Collects variables, those of inner indices left out."""

    def __init__(self) -> None:
        self.found: dict[Var, None] = {}

    def visit_var(self, var: Var) -> None:
        self.found[var] = None

    def visit_buffer_load(self, load: BufferLoad) -> None:
        """An index is another value."""


class IndexNarrower(BufferRewriter):
    """Gives loops narrow variables; around a wide operand they are widened again."""

    def __init__(self, narrow: dict[Var, None], bits: int) -> None:
        super().__init__()
        self.dtype = as_dtype(f"int{bits}")
        self.narrow = narrow
        self.names: dict[Var, Var] = {}

    def visit_var(self, var: Var) -> PrimExpr:
        return self.names.get(var, var)

    def visit_for(self, loop: For) -> Stmt:
        if loop.loop_var not in self.narrow:
            return self.rewrite_children(loop)
        start = self._narrowed(self.visit(loop.min))
        extent = self._narrowed(self.visit(loop.extent))
        var = self.names[loop.loop_var] = Var(loop.loop_var.name, self.dtype)
        body = self.visit(loop.body)
        return loop.replace(loop_var=var, min=start, extent=extent, body=body)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        axis = attr.node
        if not isinstance(axis, IterVar) or axis.var not in self.narrow:
            return self.rewrite_children(attr)
        var = self.names[axis.var] = Var(axis.var.name, self.dtype)
        value = self._narrowed(self.visit(attr.value))
        domain = None if axis.dom is None else Range(value)
        node = axis.replace(var=var, dom=domain)
        return attr.replace(node=node, value=value, body=self.visit(attr.body))

    def visit_binary_op_expr(self, e: BinaryOpExpr) -> PrimExpr:
        return self._pair(e, e.a, e.b)

    def visit_cmp_expr(self, e: CmpExpr) -> PrimExpr:
        return self._pair(e, e.a, e.b)

    def _pair(self, e: BinaryOpExpr | CmpExpr, old_a: PrimExpr, old_b: PrimExpr) -> PrimExpr:
        a, b = self.visit(old_a), self.visit(old_b)
        if a is old_a and b is old_b:
            return e
        if a.dtype is not b.dtype:
            if isinstance(a, IntImm) or isinstance(b, IntImm):
                a, b = self._narrowed(a), self._narrowed(b)
            else:
                a, b = op.unify(a, b)
        return type(e)(a, b)

    def visit_select(self, e: Select) -> PrimExpr:
        condition = self.visit(e.condition)
        values = op.unify(self.visit(e.true_value), self.visit(e.false_value))
        same = condition is e.condition and values[0] is e.true_value and values[1] is e.false_value
        return e if same else Select(condition, *values)

    def visit_ramp(self, e: Ramp) -> PrimExpr:
        base = self.visit(e.base)
        return e if base is e.base else Ramp(base, op.cast(e.stride, base.dtype), e.lanes)

    def visit_broadcast(self, e: Broadcast) -> PrimExpr:
        return self.rewrite_children(e)

    def visit_cast(self, e: Cast) -> PrimExpr:
        value = self.visit(e.value)
        return e if value is e.value else op.cast(value, e.dtype)

    def visit_call(self, call: Call) -> PrimExpr:
        args = [self.visit(arg) for arg in call.args]
        if all([new is old for new, old in zip(args, call.args, strict=True)]):
            return call
        pairs = zip(args, call.args, strict=True)
        return call.replace(args=tuple([op.cast(new, old.dtype) for new, old in pairs]))

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        new = super().visit_buffer_store(node)
        if isinstance(new, BufferStore) and new.value.dtype.element is not node.value.dtype.element:
            return new.replace(value=op.cast(new.value, node.value.dtype))
        return new

    def _narrowed(self, e: PrimExpr) -> PrimExpr:
        if isinstance(e, IntImm):
            return const(e.value, self.dtype)
        return op.cast(e, self.dtype)


@prim_func_pass("tir.NarrowDataType", NarrowDataTypeConfig)
def narrow_data_type(func: PrimFunc, config: NarrowDataTypeConfig) -> PrimFunc:
    """Narrow loop variables and what is computed from them."""
    finder = WideVariableFinder(config.target_bits)
    finder.visit(func.body)
    narrow = {var: None for var in finder.wide if var not in finder.kept}
    if not narrow:
        return func
    return func.with_body(IndexNarrower(narrow, config.target_bits).visit(func.body))


NarrowDataType = narrow_data_type.factory
