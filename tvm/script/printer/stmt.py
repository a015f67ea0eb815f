"""How statements are written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.type import PointerType, PrimType
from tvm.support.dtype import DType
from tvm.tir import stmt as s
from tvm.tir.buffer import DEFAULT_ALIGNMENT, Buffer, BufferType, content_dtype
from tvm.tir.expr import (
    Call,
    IntImm,
    IterVar,
    Let,
    Range,
    Reduce,
    SizeVar,
    Var,
)
from tvm.tir.stmt import ForKind, Stmt

from .config import PrinterConfig
from .expr import ExprPrinter, producer_name
from .plan import Plan

LOOP_NAMES = {
    ForKind.SERIAL: "serial",
    ForKind.PARALLEL: "parallel",
    ForKind.VECTORIZED: "vectorized",
    ForKind.UNROLLED: "unroll",
    ForKind.THREAD_BINDING: "thread_binding",
}
AXIS_NAMES = {
    IterVar.DataPar: "spatial",
    IterVar.CommReduce: "reduce",
    IterVar.Ordered: "scan",
    IterVar.DimInfo: "opaque",
}
AXIS_LETTERS = {IterVar.DataPar: "S", IterVar.CommReduce: "R"}


class StmtPrinter(ExprPrinter):
    """Writes statements line by line."""

    def __init__(self, config: PrinterConfig, plan: Plan) -> None:
        super().__init__(config)
        self.plan = plan
        self.indent = 0
        # nothing follows in the current suite: a binding may hold for the rest of it
        self.last = True
        self.loops: dict[Var, Range] = {}
        self.thread_axes: dict[Var, str] = {}

    # ---- lines

    def line(self) -> None:
        """Start a line."""
        self.out.append("\n" + " " * (self.indent * self.config.indent_spaces))

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

    # ---- buffers

    def declare(self, buffer: Buffer) -> None:
        """``A = T.Buffer((16,), data=p)``"""
        pointer = self.names.texts.get(buffer.data)
        self.define_free(buffer)
        name = self.define_buffer(buffer)
        self.line()
        self.out.append(f"{name} = {self.T}.Buffer(")
        self.buffer_arguments(buffer, pointer)
        self.out.append(")")

    def define_free(self, buffer: Buffer) -> None:
        """Define the variables of a buffer's shape, strides and offset that are not defined yet."""
        for expr in (*buffer.shape, *buffer.strides):
            self._define_free_in(expr)
        if not self.has_own_offset(buffer):
            self._define_free_in(buffer.elem_offset)

    def has_own_offset(self, buffer: Buffer) -> bool:
        """Whether the offset is a variable of which nothing but the factor is known."""
        offset = buffer.elem_offset
        return (
            isinstance(offset, Var)
            and offset not in self.names.texts
            and offset not in self.plan.variables
        )

    def _define_free_in(self, expr: PrimExpr) -> None:
        if isinstance(expr, Var):
            if expr not in self.names.texts:
                self.define_variable(expr)
            return
        for part in expr.children():
            self._define_free_in(part)  # type: ignore[arg-type]

    def define_variable(self, var: Var) -> None:
        """``n = T.int32()``"""
        name = self.names.define(var, var.name)
        self.line()
        kind = self.type_text(var.type_annotation, var.dtype)
        size = "is_size_var=True" if isinstance(var, SizeVar) else ""
        self.out.append(f"{name} = {kind}" if kind.endswith(")") else f"{name} = {kind}({size})")

    def buffer_arguments(self, buffer: Buffer, pointer: str | None) -> None:
        """The arguments that tell all of a buffer that is not as usual."""
        self.shape(buffer.shape)
        if buffer.dtype != self.config.buffer_dtype:
            self.out.append(f', "{buffer.dtype}"')
        if pointer is not None:
            self.out.append(f", data={pointer}")
        if buffer.strides:
            self.out.append(", strides=")
            self.shape(buffer.strides)
        offset = buffer.elem_offset
        own_offset = self.has_own_offset(buffer)
        if not own_offset and not (type(offset) is IntImm and offset.value == 0):
            self.out.append(", elem_offset=")
            self.visit(offset)
        if buffer.scope() != "global" and pointer is None:
            self.out.append(f', scope="{buffer.scope()}"')
        if buffer.data_alignment != DEFAULT_ALIGNMENT:
            self.out.append(f", align={buffer.data_alignment}")
        if buffer.offset_factor != 1 or own_offset:
            self.out.append(f", offset_factor={buffer.offset_factor}")
        if buffer.buffer_type is BufferType.AUTO_BROADCAST:
            self.out.append(', buffer_type="auto"')
        if buffer.axis_separators:
            separators = ", ".join([str(int(v)) for v in buffer.axis_separators])
            self.out.append(f", axis_separators=[{separators}]")

    # ---- values in attributes and annotations

    def value(self, value: Any) -> None:
        """A plain value, a node, or a container of them."""
        if isinstance(value, dict):
            separator = "{"
            for key, item in value.items():
                self.out.append(separator)
                self.value(key)
                self.out.append(": ")
                self.value(item)
                separator = ", "
            self.out.append("}" if value else "{}")
        elif isinstance(value, (list, tuple)):
            self.out.append("[")
            separator = ""
            for item in value:
                self.out.append(separator)
                self.value(item)
                separator = ", "
            self.out.append("]")
        elif isinstance(value, str):
            self.out.append(json.dumps(str(value)))
        elif hasattr(type(value), "visit_name"):
            self.visit(value)
        else:
            self.out.append(repr(value))

    def annotations(self, annotations: dict[str, Any]) -> None:
        """``, annotations={...}`` if there are any."""
        if annotations:
            self.out.append(", annotations=")
            self.value(annotations)

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
        self._define_lets(node.value)
        self.line()
        if isinstance(node.value, Call):
            self.visit(node.value)
        else:
            self.call("evaluate", node.value)

    def _define_lets(self, expr: PrimExpr) -> None:
        """The variables that expressions bind are made before the statement."""
        if self.plan.has_lets:
            self._find_lets(expr)

    def _find_lets(self, expr: Any) -> None:
        bound: tuple[Var, ...] = ()
        if type(expr) is Let:
            bound = (expr.var,)
        elif type(expr) is Reduce:
            bound = tuple([axis.var for axis in expr.axis])
        for var in bound:
            if var not in self.names.texts:
                self.define_variable(var)
        for part in expr.children():
            self._find_lets(part)

    def visit_buffer_store(self, node: s.BufferStore) -> None:
        for expr in (node.value, *node.indices):
            self._define_lets(expr)
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
        self._define_lets(node.value)
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
        if isinstance(axis, IterVar) and node.attr_key in ("thread_extent", "virtual_thread"):
            if is_launch(axis, node):
                self._launch(axis, node)
                return
        if isinstance(axis, IterVar):
            self.name_of(axis.var)
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
        self._define_lets(node.condition)
        self.line()
        self.out.append("if ")
        self.visit(node.condition)
        self.out.append(":")
        self.suite(node.then_case)
        if node.else_case is not None:
            self.line()
            self.out.append("else:")
            self.suite(node.else_case)

    # ---- blocks

    def visit_block_realize(self, node: s.BlockRealize) -> None:
        self._block(node.block, node)

    def visit_block(self, node: s.Block) -> None:
        self._block(node, None)

    def _block(self, block: s.Block, realize: s.BlockRealize | None) -> None:
        self.line()
        rest = "" if realize is not None else ", no_realize=True"
        self.out.append(f"with {self.T}.block({json.dumps(block.name_hint)}{rest}):")
        self.indent += 1
        self.names.enter()
        self.block_contents(block, realize)
        self.names.leave()
        self.indent -= 1

    def block_contents(self, block: s.Block, realize: s.BlockRealize | None) -> None:
        """Everything inside ``with T.block``."""
        self._axes(block, realize)
        if realize is not None and not _is_true(realize.predicate):
            self.line()
            self.call("where", realize.predicate)
        for match in block.match_buffers:
            self.define_free(match.buffer)
        self._regions("reads", block.reads)
        self._regions("writes", block.writes)
        if block.annotations:
            self.line()
            self.out.append(f"{self.T}.block_attr(")
            self.value(block.annotations)
            self.out.append(")")
        for buffer in block.alloc_buffers:
            self._bind_buffer(buffer, "alloc_buffer", "")
        for match in block.match_buffers:
            source = self.text_of(self.visit, match.source)
            self._bind_buffer(match.buffer, "match_buffer", f"{source}, ")
        if block.init is not None:
            self.line()
            self.out.append(f"with {self.T}.init():")
            self.suite(block.init)
        self.body(block.body)

    def _bind_buffer(self, buffer: Buffer, function: str, first: str) -> None:
        """``A = T.alloc_buffer((16,))``"""
        self.define_free(buffer)
        name = self.define_buffer(buffer)
        self.line()
        self.out.append(f"{name} = {self.T}.{function}({first}")
        self.buffer_arguments(buffer, None)
        self.out.append(")")

    def _regions(self, function: str, regions: Sequence[s.BufferRegion]) -> None:
        self.line()
        self.call(function, *regions)

    def _axes(self, block: s.Block, realize: s.BlockRealize | None) -> None:
        values = realize.iter_values if realize is not None else [None] * len(block.iter_vars)
        pairs = list(zip(block.iter_vars, values, strict=True))
        start = 0
        while start < len(pairs):
            end = start
            while end < len(pairs) and self._is_remapped(*pairs[end]):
                end += 1
            if end - start > 0 and self.config.syntax_sugar:
                self._remap(pairs[start:end])
                start = end
            else:
                self._axis(*pairs[start])
                start += 1

    def _is_remapped(self, iter_var: IterVar, value: PrimExpr | None) -> bool:
        """Whether the axis is a loop's variable over the loop's range."""
        if not isinstance(value, Var) or iter_var.iter_type not in AXIS_LETTERS:
            return False
        loop, dom = self.loops.get(value), iter_var.dom
        return (
            loop is not None
            and dom is not None
            and iter_var.var.dtype is value.dtype
            and same_extents((loop.min, loop.extent), (dom.min, dom.extent))
        )

    def _remap(self, pairs: Sequence[tuple[IterVar, Any]]) -> None:
        letters = "".join([AXIS_LETTERS[iter_var.iter_type] for iter_var, _ in pairs])
        values = self.text_of(self.argument, [value for _, value in pairs])
        names = [self.names.define(v.var, v.var.name) for v, _ in pairs]
        self.line()
        self.out.append(f'{", ".join(names)} = {self.T}.axis.remap("{letters}", {values})')

    def _axis(self, iter_var: IterVar, value: PrimExpr | None) -> None:
        dom = iter_var.dom
        assert dom is not None
        if type(dom.min) is IntImm and dom.min.value == 0:
            extent = self.text_of(self.visit, dom.extent)
        else:
            extent = f"({self.text_of(self.slice, dom.min, dom.extent, 1, ', ')})"
        bound = self.text_of(self.visit, value) if value is not None else "None"
        name = self.names.define(iter_var.var, iter_var.var.name)
        self.line()
        kind = AXIS_NAMES[iter_var.iter_type]
        self.out.append(f"{name} = {self.T}.axis.{kind}({extent}, {bound})")


def _is_true(expr: PrimExpr) -> bool:
    return type(expr) is IntImm and expr.value == 1


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
    if isinstance(expr, Var):
        return expr in variables
    return any(_mentions(part, variables) for part in expr.children())  # type: ignore[arg-type]


def same_extents(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> bool:
    """Whether two sequences hold the same constants or objects."""
    return len(a) == len(b) and all(
        x is y or (type(x) is type(y) is IntImm and x.value == y.value and x.dtype is y.dtype)
        for x, y in zip(a, b, strict=True)
    )


def storage_scope(var: Var) -> str:
    """The storage scope of a pointer."""
    annotation = var.type_annotation
    return annotation.storage_scope if isinstance(annotation, PointerType) else "global"


def pointee(var: Var) -> DType | None:
    """The data type a pointer points to."""
    annotation = var.type_annotation
    if isinstance(annotation, PointerType) and isinstance(annotation.element_type, PrimType):
        return annotation.element_type.dtype
    return None


def is_launch(axis: IterVar, node: s.AttrStmt) -> bool:
    """Whether a thread axis has just the range that the statement gives it."""
    dom = axis.dom
    return axis.iter_type == IterVar.ThreadIndex and (
        dom is None
        or (
            type(dom.min) is IntImm
            and dom.min.value == 0
            and same_extents([dom.extent], [node.value])
        )
    )
