"""How buffers are declared and accessed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.type import PointerType, PrimType
from tvm.tir import op
from tvm.tir import stmt as s
from tvm.tir.buffer import DEFAULT_ALIGNMENT, Buffer, BufferType
from tvm.tir.expr import BufferLoad, IntImm, ProducerLoad, Ramp, Range, SizeVar, Var

from ..doc import (
    AssignDoc,
    Doc,
    ExprDoc,
    ExprStmtDoc,
    IdDoc,
    IndexDoc,
    LiteralDoc,
    SliceDoc,
    TupleDoc,
)
from ..docsifier import Frame, IRDocsifier, Path, literal, variable_name
from ..usage import variables_of

# the options of a buffer in the order in which they are written
_OPTIONS = (
    "data", "strides", "elem_offset", "scope", "align", "offset_factor", "buffer_type",
    "axis_separators",
)  # fmt: skip


# ---- variables


@IRDocsifier.register(Var)
def print_var(var: Var, path: Path, d: IRDocsifier) -> Doc:
    """A variable by its name; one that nothing defines is defined around all its uses."""
    if not d.is_defined(var):
        frame = d.frame_around_uses(var)
        lhs = define_var(var, frame, d)
        frame.stmts.append(AssignDoc(lhs, new_variable(var, path, d)))
    found = d.defined(var)
    assert found is not None
    return found


def define_var(var: Var, frame: Frame, d: IRDocsifier) -> ExprDoc:
    """Name a variable, unless it has a name."""
    return d.defined(var) or d.define(var, frame, variable_name(var))


def type_doc(var: Var, path: Path, d: IRDocsifier) -> ExprDoc:
    """The type of a variable."""
    kind = PrimType(var.dtype) if var.type_annotation is None else var.type_annotation
    return d.expr(kind, path.attr("type_annotation"))


def new_variable(var: Var, path: Path, d: IRDocsifier) -> ExprDoc:
    """``T.int32()``"""
    options = {"is_size_var": LiteralDoc(True)} if isinstance(var, SizeVar) else {}
    kind = var.type_annotation
    if isinstance(kind, PointerType) and isinstance(kind.element_type, PrimType):
        content = LiteralDoc(str(kind.element_type.dtype))
        return d.tir("handle").call(content, LiteralDoc(kind.storage_scope), **options)
    return d.tir(str(var.dtype)).call(**options)


# ---- declarations


def define_buffer(buffer: Buffer, frame: Frame, d: IRDocsifier) -> IdDoc:
    """Name a buffer."""
    return d.define(buffer, frame, buffer.name or "buffer")


@IRDocsifier.register(Buffer)
def print_buffer(buffer: Buffer, path: Path, d: IRDocsifier) -> Doc:
    """A buffer by its name; one that nothing defines is declared around all its uses."""
    if not d.is_defined(buffer):
        frame = d.frame_around_uses(buffer)
        lhs = define_buffer(buffer, frame, d)
        rhs = declaration(buffer, "Buffer", [], path, frame, d)
        frame.stmts.append(AssignDoc(lhs, rhs))
    found = d.defined(buffer)
    assert found is not None
    return found


def declaration(
    buffer: Buffer,
    method: str,
    args: Sequence[ExprDoc],
    path: Path,
    frame: Frame,
    d: IRDocsifier,
    gives_memory: bool = True,
) -> ExprDoc:
    """``T.method(args, (16,), "int8", data=p)``

    The variables that the buffer brings are defined in the frame, ahead of it where they must be;
    its pointer is among them if the construct gives it memory.
    """
    options = _Declaration(buffer, path, frame, d).options(gives_memory)
    plain = [options[name] for name in ("shape", "dtype") if name in options]
    named = {name: options[name] for name in _OPTIONS if name in options}
    return d.tir(method).call(*args, *plain, **named)


def annotation(buffer: Buffer, path: Path, frame: Frame, d: IRDocsifier) -> ExprDoc:
    """``T.Buffer((16,), "float32")``, the type of a parameter."""
    options = _Declaration(buffer, path, frame, d).options(gives_memory=True)
    dtype = options.get("dtype") or LiteralDoc(str(buffer.dtype))
    return d.tir("Buffer").call(options["shape"], dtype)


class _Declaration:
    """The options of one buffer's declaration."""

    def __init__(self, buffer: Buffer, path: Path, frame: Frame, d: IRDocsifier) -> None:
        self.buffer, self.path, self.frame, self.d = buffer, path, frame, d
        self.ahead: list[tuple[ExprDoc, ExprDoc]] = []
        self.uses = variables_of(buffer)

    def options(self, gives_memory: bool) -> dict[str, ExprDoc]:
        """The options that are not as usual; new variables are defined on the way."""
        result: dict[str, ExprDoc] = {"shape": self._shape()}
        buffer, d = self.buffer, self.d
        if buffer.dtype != d.config.buffer_dtype:
            result["dtype"] = self._literal(str(buffer.dtype), "dtype")
        if not (gives_memory and self._defines(buffer.data, self._data)):
            result["data"] = self._part(buffer.data, self.path.attr("data"))
        if buffer.strides:
            result["strides"] = self._strides()
        offset = buffer.elem_offset
        own_offset = self._defines(offset, self._offset)
        if not own_offset and not _is(offset, 0):
            result["elem_offset"] = self._part(offset, self.path.attr("elem_offset"))
        if buffer.scope() != "global":
            result["scope"] = self._literal(buffer.scope(), "data")
        if buffer.data_alignment != DEFAULT_ALIGNMENT:
            result["align"] = self._literal(buffer.data_alignment, "data_alignment")
        if buffer.offset_factor != 1 or own_offset:
            result["offset_factor"] = self._literal(buffer.offset_factor, "offset_factor")
        if buffer.buffer_type is BufferType.AUTO_BROADCAST:
            result["buffer_type"] = self._literal("auto", "buffer_type")
        if buffer.axis_separators:
            path = self.path.attr("axis_separators")
            result["axis_separators"] = d.expr(buffer.axis_separators, path)
        self._define_ahead()
        return result

    def _literal(self, value: str | int, field: str) -> ExprDoc:
        return literal(value, self.path.attr(field))

    def _part(self, expr: PrimExpr, path: Path) -> ExprDoc:
        """An expression; if it is a new variable, that is defined ahead of the buffer."""
        d = self.d
        if isinstance(expr, Var) and not d.is_defined(expr):
            lhs = define_var(expr, self.frame, d)
            self.ahead.append((lhs, new_variable(expr, path, d)))
        return d.expr(expr, path)

    def _shape(self) -> ExprDoc:
        path = self.path.attr("shape")
        shape = enumerate(self.buffer.shape)
        return TupleDoc([self._part(extent, path.array_index(i)) for i, extent in shape])

    def _strides(self) -> ExprDoc:
        """Strides; a variable of the buffer's own is given by its name as a text."""
        path = self.path.attr("strides")
        result: list[ExprDoc] = []
        index_dtype = self.buffer.shape[0].dtype if self.buffer.shape else None
        for i, stride in enumerate(self.buffer.strides):
            if (
                isinstance(stride, Var)
                and stride.dtype is index_dtype
                and type(stride) is Var
                and self._defines(stride, self._stride(i))
            ):
                result.append(LiteralDoc(variable_name(stride)))
            else:
                result.append(self._part(stride, path.array_index(i)))
        return TupleDoc(result)

    def _defines(self, expr: PrimExpr, make: Callable[[], ExprDoc]) -> bool:
        """Whether a variable is new and named once, so that the buffer's own text stands for it."""
        if not isinstance(expr, Var) or self.d.is_defined(expr):
            return False
        if sum([expr is other for other in self.uses]) > 1:
            return False
        self.d.define_as(expr, self.frame, make)
        return True

    def _data(self) -> ExprDoc:
        return self.d.expr(self.buffer, self.path).attr("data")

    def _offset(self) -> ExprDoc:
        return self.d.expr(self.buffer, self.path).attr("elem_offset")

    def _stride(self, index: int) -> Callable[[], ExprDoc]:
        return lambda: self.d.expr(self.buffer, self.path).attr("strides")[LiteralDoc(index)]

    def _define_ahead(self) -> None:
        if len(self.ahead) == 1:
            self.frame.stmts.append(AssignDoc(*self.ahead[0]))
        elif self.ahead:
            left, right = zip(*self.ahead, strict=True)
            self.frame.stmts.append(AssignDoc(TupleDoc(left), TupleDoc(right)))


def is_plain(buffer: Buffer, in_any_scope: bool = False) -> bool:
    """Whether shape and data type (and the storage scope) say all of a buffer."""
    return (
        not buffer.strides
        and not buffer.axis_separators
        and _is(buffer.elem_offset, 0)
        and (in_any_scope or buffer.scope() == "global")
        and buffer.data_alignment == DEFAULT_ALIGNMENT
        and buffer.offset_factor == 1
        and buffer.buffer_type is BufferType.DEFAULT
    )


def _is(expr: PrimExpr, value: int) -> bool:
    return type(expr) is IntImm and expr.value == value


# ---- accesses


def indices(values: Sequence[PrimExpr], path: Path, d: IRDocsifier) -> list[ExprDoc | SliceDoc]:
    """Indices; ramps are slices."""
    return [_index(value, path.array_index(i), d) for i, value in enumerate(values)]


def _index(value: PrimExpr, path: Path, d: IRDocsifier) -> ExprDoc:
    if not (type(value) is Ramp and _is_slice(value)):
        return d.expr(value, path)
    stop = op.add(value.base, op.multiply(value.stride, value.lanes))
    step = None if _is(value.stride, 1) else d.expr(value.stride, path.attr("stride"))
    return SliceDoc(d.expr(value.base, path.attr("base")), d.expr(stop, path.attr("lanes")), step)


def _is_slice(ramp: Ramp) -> bool:
    return (
        type(ramp.stride) is IntImm
        and ramp.stride.value > 0
        and ramp.base.dtype.lanes == 1
        and not ramp.dtype.is_scalable
    )


def region(ranges: Sequence[Range], path: Path, d: IRDocsifier) -> list[ExprDoc]:
    """An index for each range of one element, else a slice."""
    return [_range(item, path.array_index(i), d) for i, item in enumerate(ranges)]


def _range(item: Range, path: Path, d: IRDocsifier) -> ExprDoc:
    start = d.expr(item.min, path.attr("min"))
    return start if _is(item.extent, 1) else SliceDoc(start, end_of(item.min, item.extent, path, d))


def end_of(start: PrimExpr, extent: PrimExpr, path: Path, d: IRDocsifier) -> ExprDoc:
    """``start + extent``, simplified."""
    return d.expr(op.add(start, extent), path.attr("extent"))


@IRDocsifier.register(BufferLoad)
def print_load(load: BufferLoad, path: Path, d: IRDocsifier) -> Doc:
    buffer = d.expr(load.buffer, path.attr("buffer"))
    if load.predicate is None:
        return IndexDoc(buffer, indices(load.indices, path.attr("indices"), d))
    position = d.expr(load.indices, path.attr("indices"))
    predicate = d.expr(load.predicate, path.attr("predicate"))
    return buffer.attr("vload").call(position, predicate=predicate)


@IRDocsifier.register(s.BufferStore)
def print_store(store: s.BufferStore, path: Path, d: IRDocsifier) -> Doc:
    buffer = d.expr(store.buffer, path.attr("buffer"))
    value = d.expr(store.value, path.attr("value"))
    if store.predicate is None:
        target = IndexDoc(buffer, indices(store.indices, path.attr("indices"), d))
        return AssignDoc(target, value)
    position = d.expr(store.indices, path.attr("indices"))
    predicate = d.expr(store.predicate, path.attr("predicate"))
    return ExprStmtDoc(buffer.attr("vstore").call(position, value, predicate=predicate))


@IRDocsifier.register(s.BufferRegion)
def print_region(node: s.BufferRegion, path: Path, d: IRDocsifier) -> Doc:
    buffer = d.expr(node.buffer, path.attr("buffer"))
    return IndexDoc(buffer, region(node.region, path.attr("region"), d))


@IRDocsifier.register(s.MatchBufferRegion)
def print_match(node: s.MatchBufferRegion, path: Path, d: IRDocsifier) -> Doc:
    frame = d.frames[-1]
    source = d.expr(node.source, path.attr("source"))
    lhs = define_buffer(node.buffer, frame, d)
    return AssignDoc(
        lhs, declaration(node.buffer, "match_buffer", [source], path.attr("buffer"), frame, d)
    )


def producer_name(producer: Any) -> str:
    """The name of a tensor."""
    return str(getattr(producer, "name", None) or producer.op.name)


@IRDocsifier.register(ProducerLoad)
def print_producer_load(load: ProducerLoad, path: Path, d: IRDocsifier) -> Doc:
    tensor = IdDoc(producer_name(load.producer))
    return IndexDoc(tensor, indices(load.indices, path.attr("indices"), d))


@IRDocsifier.register(s.ProducerStore)
def print_producer_store(store: s.ProducerStore, path: Path, d: IRDocsifier) -> Doc:
    tensor = IdDoc(producer_name(store.producer))
    target = IndexDoc(tensor, indices(store.indices, path.attr("indices"), d))
    return AssignDoc(target, d.expr(store.value, path.attr("value")))
