"""Remove stores of values that may be anything.

A[i] = undef()               ->    B[i] = 1
B[i] = 1
"""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir.expr import BufferLoad, Call, Var
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import NO_OP, BufferStore, LetStmt, Stmt
from tvm.tir.transform.common import contains, prim_func_pass
from tvm.tir.transform.remove_no_op import NoOpRemover

UNDEF = INTRINSICS["undef"]


class UndefStoreRemover(Rewriter):
    """Drops stores of undefined values, also of variables bound to some."""

    def __init__(self) -> None:
        self.undefined: dict[Var, None] = {}
        self.found = False

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        if not self._is_undefined(let.value):
            return self.rewrite_children(let)
        self.undefined[let.var] = None
        self.found = True
        body: Stmt = self.visit(let.body)
        return body

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        for index in store.indices:
            if self._is_undefined(index):
                raise LoweringError(
                    f"a store needs an index that is defined, got {index}", at=store
                )
        if self._indexes_undefined(store.value):
            raise LoweringError("a load needs an index that is defined", at=store)
        if not self._is_undefined(store.value):
            return store
        self.found = True
        return NO_OP

    def _indexes_undefined(self, e: PrimExpr) -> bool:
        def indexes(node: object) -> bool:
            return isinstance(node, BufferLoad) and any(map(self._is_undefined, node.indices))

        return contains(e, indexes)

    def _is_undefined(self, e: PrimExpr) -> bool:
        return contains(
            e, lambda node: node in self.undefined if type(node) is Var else is_undef(node)
        )


def is_undef(node: object) -> bool:
    """Whether a node is a value that may be anything."""
    return isinstance(node, Call) and node.op is UNDEF


@prim_func_pass("tir.RemoveStoreUndef")
def remove_store_undef(func: PrimFunc) -> PrimFunc:
    """Remove stores of undefined values; an undefined value that is left is an error."""
    remover = UndefStoreRemover()
    body = remover.visit(func.body)
    if remover.found:
        body = NoOpRemover().visit(body)
    if contains(body, is_undef):
        raise LoweringError("an undefined value may only be stored, it is used otherwise", at=body)
    return func.with_body(body)


RemoveStoreUndef = remove_store_undef.factory
