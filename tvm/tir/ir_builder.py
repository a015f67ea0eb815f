"""Build statements in the order in which they run.

ib = tvm.tir.ir_builder.create()
n = tvm.tir.Var("n", "int32")
A = ib.allocate("float32", 16, name="A")
with ib.for_range(0, 16, name="i") as i:
    with ib.if_scope((i % 2) == 0):
        A[i] = A[i] + 1
stmt = ib.get()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.support.scope import WithScope

from . import op as _op
from .buffer import Buffer, decl_buffer
from .expr import BufferLoad, Ramp, StringImm, Var, as_expr, as_exprs, const, pointer_type
from .stmt import (
    Allocate,
    AttrStmt,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    seq,
)

KINDS = {
    "serial": ForKind.SERIAL,
    "parallel": ForKind.PARALLEL,
    "vectorize": ForKind.VECTORIZED,
    "vectorized": ForKind.VECTORIZED,
    "unroll": ForKind.UNROLLED,
    "unrolled": ForKind.UNROLLED,
}
# a statement, or what becomes one with the statements after it as its body
Item = Stmt | Callable[[Stmt], Stmt]


class BufferVar:
    """A buffer whose elements are read with ``A[i]`` and stored with ``A[i] = value``."""

    def __init__(self, builder: IRBuilder, buffer: Buffer, content_type: DType) -> None:
        self._builder = builder
        self._buffer = buffer
        self._content_type = content_type

    def asobject(self) -> Buffer:
        """The buffer, which functions take as a parameter."""
        return self._buffer

    @property
    def buffer(self) -> Buffer:
        """The buffer, which functions take as a parameter."""
        return self._buffer

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._content_type

    def __getitem__(self, index: Any) -> PrimExpr:
        return BufferLoad(self._buffer, tuple(self._normalize_index(index)))

    def __setitem__(self, index: Any, value: Any) -> None:
        stored = as_expr(value, self._buffer.dtype.element)
        element = self._content_type.element
        if stored.dtype.element is not element:
            raise ValueError(
                f"a store to {self._buffer.name} requires {element} elements, got {stored.dtype}"
            )
        indices = self._normalize_index(index)
        lanes = stored.dtype.lanes // self._buffer.dtype.lanes
        if lanes > 1 and indices[-1].dtype.lanes == 1:
            indices[-1] = Ramp(indices[-1], const(1, indices[-1].dtype), lanes)
        self._builder.emit(BufferStore(self._buffer, stored, indices))

    def _normalize_index(self, index: Any) -> list[PrimExpr]:
        """A flat index of a vector type counts vectors."""
        items = index if isinstance(index, (tuple, list)) else (index,)
        indices = [as_expr(item) for item in items]
        lanes = self._content_type.lanes // self._buffer.dtype.lanes
        if lanes > 1 and indices[-1].dtype.lanes == 1:
            start = _op.multiply(indices[-1], lanes)
            indices[-1] = Ramp(start, const(1, start.dtype), lanes)
        return indices


class IRBuilder:
    """Collects statements; ``with`` scopes nest them."""

    def __init__(self) -> None:
        self._seq_stack: list[list[Item]] = [[]]
        self._unnamed_loops = 0

    def emit(self, stmt: Any) -> None:
        """Add a statement, an expression to evaluate, or a function of the statements after it."""
        if isinstance(stmt, PrimExpr):
            stmt = Evaluate(stmt)
        if not isinstance(stmt, Stmt) and not callable(stmt):
            raise TypeError(f"emit requires a statement, got {type(stmt).__name__}")
        self._seq_stack[-1].append(stmt)

    def _pop(self) -> Stmt:
        statements: list[Stmt] = []
        for item in reversed(self._seq_stack.pop()):
            if isinstance(item, Stmt):
                statements.insert(0, item)
            else:
                statements = [item(_together(statements))]
        return _together(statements)

    def _scope(self, value: Any, close: Callable[[Stmt], Any]) -> WithScope:
        self._seq_stack.append([])

        def leave() -> None:
            self.emit(close(self._pop()))

        return WithScope(value, leave)

    def scope_attr(self, node: Any, attr_key: str, value: Any) -> None:
        """Annotate the rest of the current scope."""
        named = StringImm(node) if isinstance(node, str) else node
        if isinstance(node, BufferVar):
            named = node.buffer.data
        self.emit(lambda body: AttrStmt(named, attr_key, as_expr(value), body))

    def for_range(
        self, begin: Any, end: Any, name: str = "i", dtype: Any = None, kind: str = "serial"
    ) -> WithScope:
        """A loop from ``begin`` to before ``end``; the scope's value is its variable.

        Parameters
        ----------
        begin, end : PrimExpr
        name : str
        dtype : str, optional
            The variable's data type, by default the bounds'.
        kind : str
            ``"serial"``, ``"parallel"``, ``"vectorize"`` or ``"unroll"``.
        """
        if kind not in KINDS:
            raise ValueError(f"for_range requires a kind of {sorted(KINDS)}, got {kind!r}")
        if name == "i":
            count = self._unnamed_loops
            name = chr(ord("i") + count) if count < 3 else f"i_{count - 3}"
            self._unnamed_loops += 1
        low, high = _op.unify(begin, end)
        if dtype is not None:
            low, high = _op.cast(low, dtype), _op.cast(high, dtype)
        loop_var = Var(name, low.dtype)
        extent = _op.subtract(high, low)
        return self._scope(loop_var, lambda body: For(loop_var, low, extent, KINDS[kind], body))

    def while_loop(self, condition: PrimExpr) -> WithScope:
        """A loop as long as the condition holds."""
        return self._scope(None, lambda body: While(condition, body))

    def if_scope(self, cond: Any) -> WithScope:
        """Statements that run if the condition holds."""
        return self._scope(None, lambda body: IfThenElse(cond, body, None))

    def else_scope(self) -> WithScope:
        """Statements that run if the condition of the ``if_scope`` just before does not hold."""
        current = self._seq_stack[-1]
        last = current.pop() if current else None
        if not isinstance(last, IfThenElse) or last.else_case is not None:
            raise RuntimeError("else_scope can only follow an if_scope")
        branch = last
        return self._scope(None, lambda body: branch.replace(else_case=body))

    def new_scope(self) -> WithScope:
        """A scope of its own for allocations and attributes."""
        return self._scope(None, lambda body: body)

    def let(self, var_name: str, value: Any) -> Var:
        """A new variable bound to a value for the rest of the scope."""
        bound = as_expr(value)
        var = Var(var_name, bound.dtype)
        self.emit(lambda body: LetStmt(var, bound, body))
        return var

    def allocate(
        self,
        dtype: Any,
        shape: Any,
        name: str = "buf",
        axis_separators: Sequence[int] | None = None,
        scope: str = "",
    ) -> BufferVar:
        """Memory for the rest of the scope."""
        element = as_dtype(dtype)
        data = Var(name, pointer_type(element, scope))
        extents = as_exprs(shape)
        buffer = decl_buffer(
            extents, element, name, data=data, scope=scope, axis_separators=axis_separators
        )
        self.emit(lambda body: Allocate(data, element, extents, const(True), body))
        return BufferVar(self, buffer, element)

    def pointer(self, content_type: Any, name: str = "ptr", scope: str = "") -> BufferVar:
        """A new pointer, with elements of the given type."""
        element = as_dtype(content_type)
        data = Var(name, pointer_type(element, scope))
        return BufferVar(self, decl_buffer([1], element, name, data=data), element)

    def buffer_ptr(self, buf: Buffer) -> BufferVar:
        """The elements of a buffer."""
        return BufferVar(self, buf, buf.dtype)

    def likely(self, expr: Any) -> PrimExpr:
        """The condition, marked as true most of the time."""
        return _op.likely(expr)

    def get(self) -> Stmt:
        """The finished statement."""
        if len(self._seq_stack) != 1:
            raise RuntimeError("get cannot be called inside a scope of the builder")
        return self._pop()


def _together(statements: list[Stmt]) -> Stmt:
    if len(statements) == 1:
        return statements[0]
    return SeqStmt(tuple(statements)) if statements else seq([])


def create() -> IRBuilder:
    """A new builder."""
    return IRBuilder()
