"""Where variables and buffers are used: the innermost statement around all uses of each.

for i in range(4):                    the loop is around all uses of A_1,
    B[i] = A_1[i]                     so that A_1 is declared in its body
    A_1[i] = 0
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tvm.ir.module import IRModule
from tvm.ir.node import Role
from tvm.ir.visitor import Visitor
from tvm.support import deep
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, CommReducer, IterVar, Let, Reduce, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import BufferRegion, MatchBufferRegion, Stmt


class Scope:
    """A node whose text has lines of its own, inside another."""

    __slots__ = ("depth", "node", "parent")

    def __init__(self, node: Any, parent: Scope | None) -> None:
        self.node = node
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1

    def outwards(self) -> Iterator[Any]:
        """The node and those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope.node
            scope = scope.parent


class Usage(Visitor):
    """Walks a program once; ``scopes`` and ``counts`` are its result."""

    def __init__(self) -> None:
        self.scopes: dict[Any, Scope | None] = {}  # of each variable and buffer
        self.counts: dict[Var, int] = {}  # how often each variable is named
        self._scope: Scope | None = None
        self._parts: dict[Buffer, list[Var]] = {}
        self._fields: dict[type, list[str]] = {}

    @deep
    def add(self, root: Any) -> None:
        """Walk a program."""
        self._value(root)

    def is_around_all_uses(self, node: Any, variable: Any) -> bool:
        """Whether a statement has all uses of a variable in it."""
        scope = self.scopes.get(variable)
        return scope is not None and any([node is outer for outer in scope.outwards()])

    def _use(self, obj: Any) -> None:
        here = self._scope
        if obj not in self.scopes:
            self.scopes[obj] = here
            return
        known = self.scopes[obj]
        if known is None or known.parent is None:
            return  # it is used everywhere already
        while known is not here:
            if known is None or here is None:
                known = here = None
            elif known.depth >= here.depth:
                known = known.parent
            else:
                here = here.parent
        self.scopes[obj] = known

    def _value(self, value: Any) -> None:
        if isinstance(value, (tuple, list)):
            for item in value:
                self._value(item)
        elif isinstance(value, dict):
            for item in value.values():
                self._value(item)
        elif hasattr(value, "visit_name"):
            self.visit(value)

    def _inside(self, node: Any, parts: list[Any]) -> None:
        outer, self._scope = self._scope, Scope(node, self._scope)
        for part in parts:
            self._value(part)
        self._scope = outer

    def visit_ir_module(self, mod: IRModule) -> None:
        self._value(dict(mod.functions))

    def visit_prim_func(self, func: PrimFunc) -> None:
        self._inside(func, [func.params, list(func.buffer_map), func.buffer_map, func.body])

    def visit_stmt(self, stmt: Stmt) -> None:
        names = self._fields.get(type(stmt))
        if names is None:
            roles = (Role.CHILD, Role.BINDER, Role.REFERENCE)
            fields = [f for f in type(stmt).node_fields if f.role in roles]
            names = self._fields[type(stmt)] = [f.name for f in fields]
        self._inside(stmt, [getattr(stmt, name) for name in names])

    def visit_comm_reducer(self, reducer: CommReducer) -> None:
        parts = [reducer.lhs, reducer.rhs, reducer.result, reducer.identity_element]
        self._inside(reducer, parts)

    def visit_var(self, var: Var) -> None:
        self.counts[var] = self.counts.get(var, 0) + 1
        self._use(var)

    def visit_buffer(self, buffer: Buffer) -> None:
        self._use(buffer)
        parts = self._parts.get(buffer)
        if parts is None:
            parts = self._parts[buffer] = variables_of(buffer)
        for var in parts:
            self.visit_var(var)

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.visit_buffer(load.buffer)
        self.visit_children(load)

    def visit_buffer_region(self, region: BufferRegion) -> None:
        self.visit_buffer(region.buffer)
        self.visit_children(region)

    def visit_match_buffer_region(self, match: MatchBufferRegion) -> None:
        self.visit_buffer(match.buffer)
        self.visit(match.source)

    def visit_let(self, let: Let) -> None:
        self.visit_var(let.var)
        self.visit_children(let)

    def visit_iter_var(self, iter_var: IterVar) -> None:
        self.visit_var(iter_var.var)
        self.visit_children(iter_var)

    def visit_reduce(self, reduce: Reduce) -> None:
        self.visit_children(reduce)
        self._value(reduce.axis)


class _Variables(Visitor):
    def __init__(self) -> None:
        self.found: list[Var] = []

    def visit_var(self, var: Var) -> None:
        self.found.append(var)


def variables_of(buffer: Buffer) -> list[Var]:
    """The variables that a buffer is made of, once for each time that it names one."""
    visitor = _Variables()
    visitor.visit(buffer.data)
    for expr in (*buffer.shape, *buffer.strides, buffer.elem_offset):
        visitor.visit(expr)
    return visitor.found
