"""One dtype for all indices, shapes and loops of a function.

for i in range(8): B[i + 1] = A[i]     ->     for i in range(T.int64(8)): B[i + T.int64(1)] = A[i]

Values keep their dtypes: an index that is stored is cast to that of its buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.support.dtype import DType
from tvm.tir import math_op, op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    BinaryOpExpr,
    BufferLoad,
    Call,
    CmpExpr,
    Div,
    FloorDiv,
    FloorMod,
    IterVar,
    Max,
    Min,
    Mod,
    Mul,
    Range,
    Select,
    Sub,
    Var,
)
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Block, BlockRealize, BufferRegion, BufferStore, For, LetStmt, Stmt
from tvm.tir.stmt_functor import BufferRewriter

from .schedule.intervals import in_dtype

FOLDING: dict[type, Callable[[Any, Any], PrimExpr]] = {
    Add: op.add, Sub: op.subtract, Mul: op.multiply, FloorDiv: op.floordiv,
    FloorMod: op.floormod, Div: op.truncdiv, Mod: op.truncmod, Min: op.minimum, Max: op.maximum,
    EQ: op.equal, NE: op.not_equal, LT: op.less, LE: op.less_equal, GT: op.greater,
    GE: op.greater_equal,
}  # fmt: skip


def with_index_dtype(func: PrimFunc, dtype: DType) -> PrimFunc:
    """The function with indices, shapes, loops and integer parameters of the dtype."""
    rewriter = _IndexCaster(dtype)
    sizes = [param for param in func.params if param not in func.buffer_map]
    params: list[Any] = []
    for size in sizes:
        if size.dtype.is_int:
            rewriter.renew(size)
    for buffer in func.buffer_map.values():
        rewriter.renew_sizes(buffer)  # an extent may be used before the buffer that tells it
    for param in func.params:
        bound = func.buffer_map.get(param)
        params.append(rewriter.visit(param) if bound is None else rewriter.buffer(bound))
    return PrimFunc(params, rewriter.visit(func.body), None, None, func.attrs)


class _IndexCaster(BufferRewriter):
    def __init__(self, dtype: DType) -> None:
        super().__init__()
        self.dtype = dtype
        self.renewed: dict[Var, Var] = {}

    def renew(self, var: Var) -> Var:
        """The variable in the dtype of indices."""
        if var not in self.renewed:
            self.renewed[var] = type(var)(var.name, self.dtype)
        return self.renewed[var]

    def index(self, expr: PrimExpr) -> PrimExpr:
        """An expression that is an index; vectors of them stay as they are."""
        new: PrimExpr = self.visit(expr)
        return in_dtype(new, self.dtype) if new.dtype.lanes == 1 else new

    def range(self, domain: Range) -> Range:
        """A range of indices."""
        return Range.from_min_extent(self.index(domain.min), self.index(domain.extent))

    def renew_sizes(self, buffer: Buffer) -> None:
        """Give the variables that a buffer tells the dtype of indices."""
        for number in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            if isinstance(number, Var):
                self.renew(number)

    def map_buffer(self, buffer: Buffer) -> Buffer:
        self.renew_sizes(buffer)
        return buffer.replace(
            shape=tuple([self.index(dim) for dim in buffer.shape]),
            strides=tuple([self.index(stride) for stride in buffer.strides]),
            # without dimensions there is no dtype of indices to follow
            elem_offset=self.index(buffer.elem_offset) if buffer.shape else buffer.elem_offset,
        )

    def visit_var(self, var: Var) -> PrimExpr:
        return self.renewed.get(var, var)

    def visit_binary_op_expr(self, expr: BinaryOpExpr) -> PrimExpr:
        return self._binary(expr)

    def visit_cmp_expr(self, expr: CmpExpr) -> PrimExpr:
        return self._binary(expr)

    def _binary(self, expr: Any) -> PrimExpr:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if a.dtype is expr.a.dtype and b.dtype is expr.b.dtype:
            unchanged = a is expr.a and b is expr.b
            rewritten: PrimExpr = expr if unchanged else expr.replace(a=a, b=b)
            return rewritten
        return FOLDING[type(expr)](a, b)

    def visit_select(self, expr: Select) -> PrimExpr:
        return op.select(*[self.visit(part) for part in expr.children()])

    def visit_call(self, call: Call) -> PrimExpr:
        if getattr(call.op, "name", "") == "tir.if_then_else":
            return math_op.if_then_else(*[self.visit(arg) for arg in call.args])
        return self.rewrite_children(call)

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        return BufferLoad(self.buffer(load.buffer), tuple([self.index(i) for i in load.indices]))

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        buffer = self.buffer(node.buffer)
        value = self.visit(node.value)
        if value.dtype.lanes == buffer.dtype.lanes:
            value = op.cast(value, buffer.dtype)
        return BufferStore(buffer, value, [self.index(i) for i in node.indices])

    def visit_buffer_region(self, node: BufferRegion) -> BufferRegion:
        return BufferRegion(self.buffer(node.buffer), tuple([self.range(r) for r in node.region]))

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        value = op.cast(self.visit(let.value), let.var.dtype)
        return LetStmt(let.var, value, self.visit(let.body))

    def visit_for(self, loop: For) -> Stmt:
        var = self.renew(loop.loop_var)
        low, extent = self.index(loop.min), self.index(loop.extent)
        return loop.replace(loop_var=var, min=low, extent=extent, body=self.visit(loop.body))

    def visit_iter_var(self, iv: IterVar) -> IterVar:
        domain = None if iv.dom is None else self.range(iv.dom)
        return IterVar(domain, self.renew(iv.var), iv.iter_type, iv.thread_tag)

    def visit_block(self, block: Block) -> Stmt:
        for iv in block.iter_vars:
            self.renew(iv.var)
        return super().visit_block(block)

    def visit_block_realize(self, node: BlockRealize) -> Stmt:
        values = tuple([self.index(value) for value in node.iter_values])
        predicate, block = self.visit(node.predicate), self.visit(node.block)
        return node.replace(iter_values=values, predicate=predicate, block=block)
