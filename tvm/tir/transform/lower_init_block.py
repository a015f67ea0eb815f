"""Put the initialisation of a reduction block before its body.

block(vi, vk: reduce):       ->    block(vi, vk: reduce):
    init: C[vi] = 0                    if vk == 0:
    C[vi] += A[vi, vk]                     C[vi] = 0
                                       C[vi] += A[vi, vk]
"""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir import op
from tvm.tir.expr import IterVar
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Block, IfThenElse, Stmt, seq
from tvm.tir.transform.common import comes_from_te, is_const, prim_func_pass


class InitLowerer(Rewriter):
    """Makes initialisations conditional on the first point of the reduction."""

    def visit_block(self, block: Block) -> Stmt:
        block = self.rewrite_children(block)
        if block.init is None:
            return block
        conditions = first_point(block.iter_vars)
        init = IfThenElse(op.all(*conditions), block.init) if conditions else block.init
        return block.replace(init=None, body=seq([init, block.body]))


def first_point(iter_vars: tuple[IterVar, ...]) -> list[PrimExpr]:
    """What holds at the first iteration of all reduction axes."""
    return [
        op.equal(axis.var, axis.dom.min)
        for axis in iter_vars
        if axis.iter_type == IterVar.CommReduce
        and axis.dom is not None
        and not is_const(axis.dom.extent, 1)
    ]


@prim_func_pass("tir.LowerInitBlock")
def lower_init_block(func: PrimFunc) -> PrimFunc:
    """Lower initialisations of blocks."""
    return func if comes_from_te(func) else func.with_body(InitLowerer().visit(func.body))


LowerInitBlock = lower_init_block.factory
