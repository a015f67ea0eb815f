"""Programs whose values of some types are kept as integers: what their types have to become."""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.ir.type import PointerType, PrimType
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.buffer import Buffer
from tvm.tir.expr import Let, Var, pointer_type
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, AttrStmt, LetStmt, Stmt
from tvm.tir.stmt_functor import BufferRewriter


class StorageChanger(BufferRewriter):
    """Changes the types of buffers, pointers and variables, as ``storage`` says."""

    def __init__(self) -> None:
        super().__init__()
        self.variables: dict[Var, Var] = {}

    def storage(self, dtype: DType) -> DType:
        """The type that values of a type are kept in."""
        raise NotImplementedError

    def function(self, func: PrimFunc) -> PrimFunc:
        """The function with its parameters, buffers and body changed."""
        body = self.visit(func.body)
        params = tuple([self.variable(param) for param in func.params])
        buffers = {self.variable(p): self.buffer(b) for p, b in func.buffer_map.items()}
        olds = (func.body, *func.params, *func.buffer_map.values())
        news = (body, *params, *buffers.values())
        if all([new is old for new, old in zip(news, olds, strict=True)]):
            return func
        return func.replace(params=params, body=body, buffer_map=buffers)

    def variable(self, var: Var) -> Var:
        """The variable, or one that holds integers or points to some."""
        known = self.variables.get(var)
        if known is None:
            known = self.variables[var] = self._changed(var)
        return known

    def _changed(self, var: Var) -> Var:
        kind = var.type_annotation
        if isinstance(kind, PointerType) and isinstance(kind.element_type, PrimType):
            element = as_dtype(kind.element_type.dtype)
            storage = self.storage(element)
            if storage is not element:
                return Var(var.name, pointer_type(storage, kind.storage_scope))
            return var
        storage = self.storage(var.dtype)
        return var if storage is var.dtype else Var(var.name, storage)

    def visit_var(self, var: Var) -> PrimExpr:
        return self.variable(var)

    def map_buffer(self, buffer: Buffer) -> Buffer:
        new = super().map_buffer(buffer)
        dtype = self.storage(buffer.dtype)
        return new if dtype is buffer.dtype else new.replace(dtype=dtype)

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        var, dtype = self.variable(alloc.buffer_var), self.storage(alloc.dtype)
        new = self.rewrite_children(alloc)
        return new if dtype is alloc.dtype else new.replace(buffer_var=var, dtype=dtype)

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        var = self.variable(let.var)
        new = self.rewrite_children(let)
        return new if var is let.var else new.replace(var=var)

    def visit_let(self, let: Let) -> PrimExpr:
        var = self.variable(let.var)
        new = self.rewrite_children(let)
        return new if var is let.var else new.replace(var=var)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        new = self.rewrite_children(attr)
        named = self.variable(attr.node) if isinstance(attr.node, Var) else attr.node
        return new if named is attr.node else new.replace(node=named)
