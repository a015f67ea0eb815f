"""How statements are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.tir import stmt as s
from tvm.tir.buffer import DEFAULT_ALIGNMENT, Buffer, BufferType, content_dtype
from tvm.tir.expr import Call, IntImm, IterVar, Range, Var
from tvm.tir.stmt import ForKind, Stmt

from .base import LinePrinter, pointee, storage_scope
from .expr import producer_name
from .plan import is_launch, same_extents

LOOP_NAMES = {
    ForKind.SERIAL: "serial",
    ForKind.PARALLEL: "parallel",
    ForKind.VECTORIZED: "vectorized",
    ForKind.UNROLLED: "unroll",
    ForKind.THREAD_BINDING: "thread_binding",
}


class StmtPrinter(LinePrinter):
    """Writes statements, blocks apart."""

    # ---- suites

    def suite(self, stmt: Stmt) -> None:
        """An indented body, with names of its own."""
        self.indent += 1
        self.names.enter()
        self.body(stmt)
        self.names.leave()
        self.indent -= 1

    def body(self, stmt: Stmt) -> None:
        """Statements to the end of a suite, after the buffers to be declared there."""
        outer, self.last = self.last, True
        for buffer in self.plan.declared_in.get(id(stmt), ()):
            if buffer not in self.names.texts:
                self.declare(buffer)
        self.visit(stmt)
        self.last = outer

    # ---- sequences

    def visit_seq_stmt(self, node: s.SeqStmt) -> None:
        if not node.seq:
            self.line()
            self.out.append("pass")
            return
        outer, self.last = self.last, False
        for stmt in node.seq[:-1]:
            self.visit(stmt)
        self.last = outer
        self.visit(node.seq[-1])

    def visit_evaluate(self, node: s.Evaluate) -> None:
        self.line()
        if isinstance(node.value, Call):
            self.visit(node.value)
        else:
            self.call("evaluate", node.value)

    def visit_buffer_store(self, node: s.BufferStore) -> None:
        self.line()
        self.out.append(self.buffer_name(node.buffer))
        if node.predicate is not None:
            self.out.append(".vstore(")
            self.argument(node.indices)
            self.out.append(", ")
            self.visit(node.value)
            self.out.append(", predicate=")
            self.visit(node.predicate)
            self.out.append(")")
            return
        self.indices(node.indices)
        self.out.append(" = ")
        self.visit(node.value)

    def visit_prefetch(self, node: s.Prefetch) -> None:
        self.line()
        self.out.append(f"{self.T}.prefetch({self.buffer_name(node.buffer)}, [")
        self.items(node.bounds)
        self.out.append("])")

    # ---- scopes: a line of their own for the rest of the suite, or `with`

    def scope(self, head: str, stmt: Stmt, name: str | None = None) -> None:
        """``name = head`` and the rest at the same level, or ``with head as name:``."""
        if self.last:
            self.line()
            self.out.append(head if name is None else f"{name} = {head}")
            self.body(stmt)
            return
        self.line()
        self.out.append(f"with {head}:" if name is None else f"with {head} as {name}:")
        self.indent += 1
        self.body(stmt)
        self.indent -= 1

    def visit_let_stmt(self, node: s.LetStmt) -> None:
        value = self.text_of(self.visit, node.value)
        var = node.var
        if not self.last:
            self.names.enter()
            kind = self.type_text(var.type_annotation, var.dtype)
            plain = var.dtype is node.value.dtype and var.type_annotation is None
            head = f"{self.T}.LetStmt({value})" if plain else f"{self.T}.LetStmt({value}, {kind})"
            self.scope(head, node.body, self.names.define(var, var.name))
            self.names.leave()
            return
        if var in self.names.texts:
            self.scope(f"{self.T}.LetStmt({value}, var={self.name_of(var)})", node.body)
            return
        name = self.names.define(var, var.name)
        self.line()
        self.out.append(f"{name}: {self.type_text(var.type_annotation, var.dtype)} = {value}")
        self.body(node.body)

    def visit_assert_stmt(self, node: s.AssertStmt) -> None:
        condition = self.text_of(self.visit, node.condition)
        message = self.text_of(self.visit, node.message)
        if self.last:
            self.line()
            self.out.append(f"assert {condition}, {message}")
            self.body(node.body)
        else:
            self.scope(f"{self.T}.Assert({condition}, {message})", node.body)

    def visit_allocate(self, node: s.Allocate) -> None:
        if self._is_declared_whole(node):
            self._declared_allocation(node)
            return
        self._allocation(node, self.text_of(self._allocate_head, node))

    def _allocation(self, node: Any, head: str) -> None:
        if not self.last:
            self.names.enter()
        name = self.names.define(node.buffer_var, node.buffer_var.name)
        last = self.last
        self.scope(head, node.body, name)
        if not last:
            self.names.leave()

    def _allocate_head(self, node: s.Allocate) -> None:
        self.out.append(f"{self.T}.allocate([")
        self.items(node.extents)
        self.out.append(f'], "{node.dtype}", "{storage_scope(node.buffer_var)}"')
        if not (type(node.condition) is IntImm and node.condition.value == 1):
            self.out.append(", condition=")
            self.visit(node.condition)
        self.annotations(node.annotations)
        self.out.append(")")

    def _is_declared_whole(self, node: s.Allocate) -> bool:
        """An allocation and the buffer that is all of it are written as one."""
        decl = node.body
        if not self.config.syntax_sugar or not isinstance(decl, s.DeclBuffer) or node.annotations:
            return False
        buffer = decl.buffer
        return (
            buffer.data is node.buffer_var
            and buffer.dtype is node.dtype
            and self._is_plain(buffer)
            and same_extents(buffer.shape, node.extents)
            and type(node.condition) is IntImm
            and node.condition.value == 1
            and buffer.data not in self.names.texts
            and pointee(buffer.data) is content_dtype(buffer.dtype)
        )

    @staticmethod
    def _is_plain(buffer: Buffer) -> bool:
        offset = buffer.elem_offset
        return (
            not buffer.strides
            and not buffer.axis_separators
            and type(offset) is IntImm
            and offset.value == 0
            and buffer.data_alignment == DEFAULT_ALIGNMENT
            and buffer.offset_factor == 1
            and buffer.buffer_type is BufferType.DEFAULT
        )

    def _declared_allocation(self, node: s.Allocate) -> None:
        decl = node.body
        assert isinstance(decl, s.DeclBuffer)
        last = self.last
        if not last:
            self.names.enter()
        head = self.text_of(self._decl_head, decl.buffer, None)
        self.scope(head, decl.body, self.define_buffer(decl.buffer))
        if not last:
            self.names.leave()

    def _decl_head(self, buffer: Buffer, pointer: str | None) -> None:
        self.out.append(f"{self.T}.decl_buffer(")
        self.buffer_arguments(buffer, pointer)
        self.out.append(")")

    def visit_decl_buffer(self, node: s.DeclBuffer) -> None:
        last = self.last
        if not last:
            self.names.enter()
        self.define_free(node.buffer)
        head = self.text_of(self._decl_head, node.buffer, self.name_of(node.buffer.data))
        self.scope(head, node.body, self.define_buffer(node.buffer))
        if not last:
            self.names.leave()

    def visit_allocate_const(self, node: s.AllocateConst) -> None:
        if node.data is not None:
            data = repr(node.data.numpy().ravel().tolist())
        else:
            data = f"data_idx={int(node.irmod_storage_idx)}"  # type: ignore[call-overload]
        extents = self.text_of(self.argument, node.extents)
        notes = self.text_of(self.annotations, node.annotations)
        head = f'{self.T}.allocate_const({data}, "{node.dtype}", {extents}{notes})'
        self._allocation(node, head)

    def visit_buffer_realize(self, node: s.BufferRealize) -> None:
        region = self.text_of(self.region, node.bounds)
        name = self.buffer_name(node.buffer)
        condition = node.condition
        rest = ""
        if not (type(condition) is IntImm and condition.value == 1):
            rest = f", {self.text_of(self.visit, condition)}"
        self.scope(f'{self.T}.realize({name}{region}, "{node.buffer.scope()}"{rest})', node.body)

    def visit_producer_store(self, node: s.ProducerStore) -> None:
        self.line()
        self.out.append(producer_name(node.producer))
        self.indices(node.indices)
        self.out.append(" = ")
        self.visit(node.value)

    def visit_producer_realize(self, node: s.ProducerRealize) -> None:
        region = self.text_of(self.region, node.bounds)
        name = producer_name(node.producer)
        self.scope(f'{self.T}.ProducerRealize({name}{region}, "{node.storage_scope}")', node.body)

    def visit_attr_stmt(self, node: s.AttrStmt) -> None:
        axis = node.node
        if is_launch(node):
            self._launch(axis, node)
            return
        named = self.text_of(self.value, axis)
        value = self.text_of(self.visit, node.value)
        self.scope(f'{self.T}.attr({named}, "{node.attr_key}", {value})', node.body)

    def _launch(self, axis: IterVar, node: s.AttrStmt) -> None:
        """``threadIdx_x = T.launch_thread("threadIdx.x", 32)``"""
        extent = self.text_of(self.visit, node.value)
        if axis.var in self.names.texts:
            self.scope(f"{self.T}.launch_thread({self.name_of(axis.var)}, {extent})", node.body)
            return
        last = self.last
        if not last:
            self.names.enter()
        name = self.names.define(axis.var, axis.var.name)
        self.scope(f'{self.T}.launch_thread("{axis.thread_tag}", {extent})', node.body, name)
        if not last:
            self.names.leave()

    # ---- loops and branches

    def visit_for(self, loop: s.For) -> None:
        nest = self._grid(loop)
        self.names.enter()
        if len(nest) > 1:
            head = self.text_of(self._grid_head, nest)
        else:
            head = self.text_of(self._loop_head, loop)
        names = [self.names.define(inner.loop_var, inner.loop_var.name) for inner in nest]
        self.line()
        self.out.append(f"for {', '.join(names)} in {head}:")
        for inner in nest:
            self.loops[inner.loop_var] = Range._make(inner.min, inner.extent, None)
        self.suite(nest[-1].body)
        self.names.leave()

    def _grid(self, loop: s.For) -> list[s.For]:
        """The loops that ``T.grid`` can write as one."""
        nest = [loop]
        if not self.config.syntax_sugar or not is_simple_loop(loop):
            return nest
        variables = {loop.loop_var: None}
        while isinstance(inner := nest[-1].body, s.For):
            # buffers are declared at the start of a body, which this one then has to have
            if not is_simple_loop(inner) or id(inner) in self.plan.declared_in:
                break
            if _mentions(inner.extent, variables):
                break
            variables[inner.loop_var] = None
            nest.append(inner)
        return nest

    def _grid_head(self, nest: Sequence[s.For]) -> None:
        self.call("grid", *[inner.extent for inner in nest])

    def _loop_head(self, loop: s.For) -> None:
        plain = loop.kind is ForKind.SERIAL and not loop.annotations
        self.out.append("range(" if plain else f"{self.T}.{LOOP_NAMES[loop.kind]}(")
        if type(loop.min) is IntImm and loop.min.value == 0:
            self.visit(loop.extent)
        else:
            self.slice(loop.min, loop.extent, colon=", ")
        if loop.kind is ForKind.THREAD_BINDING and loop.thread_binding is not None:
            self.out.append(f', thread="{loop.thread_binding.thread_tag}"')
        self.annotations(loop.annotations)
        self.out.append(")")

    def visit_while(self, node: s.While) -> None:
        self.line()
        self.out.append("while ")
        self.visit(node.condition)
        self.out.append(":")
        self.suite(node.body)

    def visit_if_then_else(self, node: s.IfThenElse) -> None:
        self.line()
        self.out.append("if ")
        self.visit(node.condition)
        self.out.append(":")
        self.suite(node.then_case)
        if node.else_case is not None:
            self.line()
            self.out.append("else:")
            self.suite(node.else_case)


def is_simple_loop(loop: s.For) -> bool:
    """Whether the loop is serial, from zero, and without annotations."""
    return (
        loop.kind is ForKind.SERIAL
        and type(loop.min) is IntImm
        and loop.min.value == 0
        and not loop.annotations
        and loop.thread_binding is None
    )


def _mentions(expr: PrimExpr, variables: dict[Var, None]) -> bool:
    pending: list[Any] = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, Var) and node in variables:
            return True
        pending += node.children()
    return False
