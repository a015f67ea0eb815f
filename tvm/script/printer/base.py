"""Lines, and what statements have in common: buffers with their options, values of annotations."""

from __future__ import annotations

import json
from typing import Any

from tvm.ir.codegen import is_node
from tvm.ir.expr import PrimExpr
from tvm.ir.op import Op
from tvm.ir.script_printer import PrinterConfig
from tvm.ir.type import PointerType, PrimType
from tvm.support.dtype import DType
from tvm.tir.buffer import DEFAULT_ALIGNMENT, Buffer, BufferType
from tvm.tir.expr import IntImm, IterVar, Range, SizeVar, Var

from .expr import ExprPrinter
from .plan import Plan


class LinePrinter(ExprPrinter):
    """Writes line by line."""

    def __init__(self, config: PrinterConfig, plan: Plan) -> None:
        super().__init__(config)
        self.plan = plan
        self.indent = 0
        # nothing follows in the current suite: a binding may hold for the rest of it
        self.last = True
        self.loops: dict[Var, Range] = {}

    # ---- lines

    def line(self) -> None:
        """Start a line."""
        self.out.append("\n" + " " * (self.indent * self.config.indent_spaces))

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
        elif hasattr(value, "export"):
            # a target: its configuration says all of it
            self.out.append(f"{self.T}.target(")
            self.value(value.export())
            self.out.append(")")
        elif isinstance(value, (PrimExpr, Buffer, IterVar, Op)):
            self.visit(value)
        elif is_node(value):
            self.out.append(json.dumps(str(value)))
        else:
            self.out.append(repr(value))

    def annotations(self, annotations: dict[str, Any]) -> None:
        """``, annotations={...}`` if there are any."""
        if annotations:
            self.out.append(", annotations=")
            self.value(annotations)


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
