"""What ``T`` has for statements: buffers, loops, scopes, blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tvm.ir.expr import PrimExpr
from tvm.runtime import ndarray
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir import op
from tvm.tir import stmt as s
from tvm.tir.buffer import Buffer, content_dtype
from tvm.tir.buffer import decl_buffer as make_buffer
from tvm.tir.expr import (
    BufferLoad,
    IterVar,
    Range,
    Var,
    as_expr,
    as_exprs,
    const,
    pointer_type,
)
from tvm.tir.linear import difference
from tvm.tir.stmt import BufferRegion, ForKind, Stmt

from .builder import BlockFrame, Frame, InitFrame, LoopFrame, current_builder
from .values import DTypeCall, let_expr

# ---- buffers


def buffer(
    shape: Any,
    dtype: Any = "float32",
    data: Var | None = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
) -> Buffer:
    """A buffer of the given shape; nothing provides its memory."""
    kind = dtype.dtype if isinstance(dtype, DTypeCall) else as_dtype(dtype)
    extents = as_exprs(shape)
    if strides is not None:
        index = extents[0].dtype if extents else None
        strides = [Var(v, index) if isinstance(v, str) and index else v for v in strides]
    return make_buffer(
        extents, kind, "", data, strides, elem_offset, scope, align if align > 0 else -1,
        offset_factor, {"auto": "auto_broadcast", "default": ""}.get(buffer_type, buffer_type),
        axis_separators,
    )  # fmt: skip


class BufferType:
    """``T.Buffer((16,), "float32")``, also written ``T.Buffer[(16,), "float32"]``."""

    def __call__(self, *args: Any, **keywords: Any) -> Buffer:
        return buffer(*args, **keywords)

    def __getitem__(self, args: Any) -> Buffer:
        if isinstance(args, tuple) and len(args) == 2 and isinstance(args[1], (str, DTypeCall)):
            return buffer(*args)
        return buffer(args)


def match_buffer(
    param: Any,
    shape: Any = None,
    dtype: Any = "float32",
    data: Var | None = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "default",
    axis_separators: Sequence[int] | None = None,
) -> Buffer:
    """The buffer that a handle parameter is bound to, or in a block a view of a region."""
    builder = current_builder("T.match_buffer")
    if isinstance(param, Var):
        if shape is None:
            raise ValueError("T.match_buffer of a parameter requires a shape")
        found = buffer(
            shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type,
            axis_separators,
        )  # fmt: skip
        if not any(param is known for known in builder.function.params):
            raise ValueError("T.match_buffer requires a parameter of the function or a region")
        builder.function.buffer_map[param] = found
        return found
    region = as_region(param)
    if shape is None:
        shape = [item.extent for item in region.region]
    found = buffer(
        shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type,
        axis_separators,
    )  # fmt: skip
    builder.block("T.match_buffer").match_buffers.append(s.MatchBufferRegion(found, region))
    return found


def as_region(value: Any) -> BufferRegion:
    """A region: a buffer, an element or a slice of it."""
    if isinstance(value, BufferRegion):
        return value
    if isinstance(value, Buffer):
        return BufferRegion(value, tuple([Range(0, extent) for extent in value.shape]))
    if isinstance(value, BufferLoad):
        pairs = zip(value.indices, value.buffer.shape, strict=True)
        ranges = [s.range_of_index(i, extent) for i, extent in pairs]
        return BufferRegion(value.buffer, tuple(ranges))
    raise TypeError(f"a region of a buffer is required, got {type(value).__name__}")


def alloc_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: Var | None = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "default",
    axis_separators: Sequence[int] | None = None,
) -> Buffer:
    """A buffer that the block around it (or the function) allocates."""
    builder = current_builder("T.alloc_buffer")
    found = buffer(
        shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type,
        axis_separators,
    )  # fmt: skip
    owner = builder.blocks[-1] if builder.blocks else builder.function
    owner.alloc_buffers.append(found)
    return found


def decl_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: Var | None = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
) -> Frame:
    """A view of the memory that ``data`` points to; without ``data``, memory of its own."""
    found = buffer(
        shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type,
        axis_separators,
    )  # fmt: skip

    def close(body: Stmt) -> Stmt:
        declared = s.DeclBuffer(found, body)
        if data is not None:
            return declared
        return s.Allocate(found.data, found.dtype, found.shape, const(True), declared)

    return Frame(close, found)


def allocate(
    extents: Any,
    dtype: Any,
    scope: str = "global",
    condition: Any = None,
    annotations: Mapping[str, Any] | None = None,
) -> Frame:
    """Memory; the value is a pointer to it."""
    kind = as_dtype(dtype)
    pointer = Var("", pointer_type(content_dtype(kind), scope))
    guard = const(True) if condition is None else condition
    sizes = as_exprs(extents)
    return Frame(
        lambda body: s.Allocate(pointer, kind, sizes, guard, body, dict(annotations or {})), pointer
    )


def allocate_const(
    data: Any,
    dtype: Any,
    extents: Any,
    annotations: Mapping[str, Any] | None = None,
) -> Frame:
    """Constant data; the value is a pointer to it."""
    kind = as_dtype(dtype)
    pointer = Var("", pointer_type(content_dtype(kind)))
    shape = [int(extent) for extent in extents]
    values = data.numpy() if hasattr(data, "numpy") else np.array(data, kind)
    # data may be given short of the extents: as an example of what the memory holds
    array = ndarray.array(values.reshape(shape) if values.size == prod(shape) else values)
    return Frame(
        lambda body: s.AllocateConst(pointer, kind, extents, array, body, dict(annotations or {})),
        pointer,
    )


def realize(buffer_slice: Any, storage_scope: str = "", condition: Any = True) -> Frame:
    """Memory for a region of a buffer; the scope is the buffer's own."""
    region = as_region(buffer_slice)
    del storage_scope
    return Frame(lambda body: s.BufferRealize(region.buffer, region.region, condition, body))


# ---- the function


def func_attr(attrs: Mapping[str, Any]) -> None:
    """Attributes of the function."""
    current_builder("T.func_attr").function.attrs.update(attrs)


def evaluate(value: Any) -> None:
    """A statement that evaluates an expression."""
    current_builder("T.evaluate").emit(s.Evaluate(value))


def buffer_store(
    target: Buffer, value: Any, indices: Sequence[Any], predicate: PrimExpr | None = None
) -> None:
    """Store at indices, among them slices."""
    current_builder("T.buffer_store").emit(store(target, value, indices, predicate))


def store(
    target: Buffer, value: Any, indices: Sequence[Any], predicate: PrimExpr | None = None
) -> Stmt:
    """The statement of :func:`buffer_store`; a scalar is broadcast to the lanes of the index."""
    positions = [_store_index(index, target) for index in indices]
    element = as_expr(value, target.dtype.element)
    lanes = target.dtype.lanes * (positions[-1].dtype.lanes if positions else 1)
    if element.dtype.lanes == 1 and lanes > 1:
        element = op.cast(element, element.dtype.with_lanes(lanes))
    wanted = target.dtype.with_lanes(lanes)
    if element.dtype != wanted and _converts(element.dtype, wanted):
        element = op.cast(element, wanted)
    if element.dtype != wanted:
        raise TypeError(
            f"a store to {target.name} requires {wanted}, got {element.dtype}; hint: convert it with T.Cast or astype"
        )
    return s.BufferStore(target, element, positions, predicate)


def _converts(source: DType, wanted: DType) -> bool:
    """Whether a store converts: between integers, between floats, and integers to floats."""
    are_integers = (source.is_int or source.is_uint) and (wanted.is_int or wanted.is_uint)
    becomes_float = wanted.is_float and not source.is_handle
    return source.lanes == wanted.lanes and (are_integers or becomes_float)


def _store_index(index: Any, target: Buffer) -> PrimExpr:
    if isinstance(index, slice):
        if index.step is not None:
            return target._ramp(index)
        covered = s.range_of_index(index, as_expr(0))
        return s.index_of_range(covered, BufferRegion(target, (covered,)))
    return as_expr(index)


def prefetch(target: Buffer, bounds: Sequence[Range]) -> None:
    """Bring a region near."""
    current_builder("T.prefetch").emit(s.Prefetch(target, tuple(bounds)))


# ---- scopes


def attr(node: Any, attr_key: str, value: Any) -> Frame:
    """Annotate the statements inside."""
    return Frame(lambda body: s.AttrStmt(node, attr_key, as_expr(value), body))


def Assert(condition: Any, message: Any) -> Frame:
    """Check a condition first."""
    return Frame(lambda body: s.AssertStmt(condition, message, body))


def LetStmt(value: Any, type_annotation: Any = None, *, var: Var | None = None) -> Frame:
    """Bind a variable to a value."""
    if isinstance(type_annotation, DTypeCall):
        type_annotation = type_annotation()
    bound = as_expr(value, type_annotation.dtype if isinstance(type_annotation, Var) else None)
    target = var
    if target is None and isinstance(type_annotation, Var):
        target = type_annotation
    if target is None:
        target = Var("", bound.dtype)
    variable = target
    return Frame(lambda body: s.LetStmt(variable, bound, body), variable)


def let(v: Any, value: Any, body: Any = None) -> Any:
    """``T.let(x, value)`` binds a variable for statements, with ``body`` in an expression."""
    if body is None:
        return LetStmt(value, var=v)
    return let_expr(body, {v: value})


def env_thread(thread_tag: str, dtype: str = "int32") -> IterVar:
    """A thread axis, to be given its extent by ``T.launch_thread``."""
    return IterVar(None, Var("", dtype), IterVar.ThreadIndex, thread_tag)


def launch_thread(thread: IterVar | str, extent: Any) -> Frame:
    """Run the statements inside for each value of a thread axis."""
    size = as_expr(extent)
    if isinstance(thread, str):
        thread = IterVar(None, Var("", size.dtype), IterVar.ThreadIndex, thread)
    key = "virtual_thread" if thread.thread_tag.startswith("vthread") else "thread_extent"
    axis = IterVar(Range(0, size), thread.var, IterVar.ThreadIndex, thread.thread_tag)
    return Frame(lambda body: s.AttrStmt(axis, key, size, body), axis.var)


def While(condition: Any) -> Frame:
    """Repeat as long as a condition holds."""
    return Frame(lambda body: s.While(condition, body))


class IfFrame(Frame):
    """``with T.If(c):`` around ``with T.Then():`` and ``with T.Else():``."""

    def __init__(self, condition: PrimExpr) -> None:
        super().__init__(lambda body: body)
        self.condition = condition

    def close(self, body: Stmt) -> Stmt:
        cases = s.stmt_list(body)
        return s.IfThenElse(self.condition, *cases[:2])


def If(condition: Any) -> Frame:
    """A choice between the ``T.Then`` and ``T.Else`` inside."""
    return IfFrame(condition)


def Then() -> Frame:
    """What runs if the condition holds."""
    return Frame(lambda body: body)


def Else() -> Frame:
    """What runs otherwise."""
    return Frame(lambda body: body)


# ---- loops


def _loop(kind: ForKind, name: str) -> Callable[..., LoopFrame]:
    def build(
        start: Any, stop: Any = None, *, annotations: Mapping[str, Any] | None = None
    ) -> LoopFrame:
        return _one_loop(kind, start, stop, None, annotations)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"A loop of kind {kind.name.lower()}."
    return build


def _one_loop(
    kind: ForKind, start: Any, stop: Any, thread: str | None, annotations: Any
) -> LoopFrame:
    if stop is None:
        start, stop = 0, start
    low, high = op.unify(start, stop)
    dom = Range.from_min_extent(low, difference(high, low))
    binding = None
    if thread is not None:
        binding = IterVar(None, Var("iter", low.dtype), IterVar.ThreadIndex, thread)

    def close(variables: Sequence[Var], body: Stmt) -> Stmt:
        return s.For(
            variables[0], dom.min, dom.extent, kind, body, binding, dict(annotations or {})
        )

    return LoopFrame([Var("", low.dtype)], [dom], close)


serial = _loop(ForKind.SERIAL, "serial")
parallel = _loop(ForKind.PARALLEL, "parallel")
vectorized = _loop(ForKind.VECTORIZED, "vectorized")
unroll = _loop(ForKind.UNROLLED, "unroll")


def thread_binding(
    start: Any,
    stop: Any = None,
    thread: str | None = None,
    *,
    annotations: Mapping[str, Any] | None = None,
) -> LoopFrame:
    """A loop whose iterations are threads of an axis such as ``"threadIdx.x"``."""
    if isinstance(stop, str) and thread is None:
        stop, thread = None, stop
    if thread is None:
        raise ValueError("T.thread_binding requires the name of a thread axis")
    return _one_loop(ForKind.THREAD_BINDING, start, stop, thread, annotations)


def grid(*extents: Any) -> LoopFrame:
    """Nested serial loops from zero."""
    ranges = [Range(as_expr(extent)) for extent in extents]

    def close(variables: Sequence[Var], body: Stmt) -> Stmt:
        for variable, dom in reversed(list(zip(variables, ranges, strict=True))):
            body = s.For(variable, dom.min, dom.extent, ForKind.SERIAL, body)
        return body

    return LoopFrame([Var("", dom.extent.dtype) for dom in ranges], ranges, close)


# ---- blocks


def block(name: str = "", no_realize: bool = False) -> BlockFrame:
    """A unit of scheduling."""
    return BlockFrame(name, no_realize)


def init() -> InitFrame:
    """What runs before the first iteration of the block's reduction."""
    return InitFrame()


def where(predicate: Any) -> None:
    """The condition under which the block runs."""
    current_builder("T.where").block("T.where").predicate = as_expr(predicate)


def _regions(values: tuple[Any, ...]) -> list[BufferRegion]:
    if len(values) == 1 and isinstance(values[0], (list, tuple)):
        values = tuple(values[0])
    return [as_region(value) for value in values]


def reads(*buffer_slices: Any) -> None:
    """What the block reads."""
    current_builder("T.reads").block("T.reads").reads = _regions(buffer_slices)


def writes(*buffer_slices: Any) -> None:
    """What the block writes."""
    current_builder("T.writes").block("T.writes").writes = _regions(buffer_slices)


def block_attr(attrs: Mapping[str, Any]) -> None:
    """Annotations of the block (or of the function's root block)."""
    builder = current_builder("T.block_attr")
    if builder.blocks:
        builder.blocks[-1].annotations.update(attrs)
    else:
        builder.function.block_annotations.update(attrs)


_AXES = {"S": IterVar.DataPar, "R": IterVar.CommReduce}


class axis:
    """The iteration variables of a block."""

    @staticmethod
    def _new(dom: Any, binding: Any, kind: Any) -> Var:
        builder = current_builder("T.axis")
        frame = builder.block("T.axis")
        if isinstance(dom, Range):
            interval = dom
        elif isinstance(dom, (tuple, list)):
            low, high = op.unify(*dom)
            interval = Range.from_min_extent(low, difference(high, low))
        else:
            interval = Range(as_expr(dom))
        var = Var("", interval.extent.dtype)
        frame.iter_vars.append(IterVar(interval, var, kind))
        if binding is not None:
            frame.iter_values.append(as_expr(binding, var.dtype))
        return var

    @staticmethod
    def spatial(dom: Any, binding: Any, dtype: str = "int32") -> Var:
        """A variable whose iterations are independent."""
        return axis._new(dom, binding, IterVar.DataPar)

    S = spatial

    @staticmethod
    def reduce(dom: Any, binding: Any, dtype: str = "int32") -> Var:
        """A variable that is reduced over."""
        return axis._new(dom, binding, IterVar.CommReduce)

    R = reduce

    @staticmethod
    def scan(dom: Any, binding: Any, dtype: str = "int32") -> Var:
        """A variable whose iterations are ordered."""
        return axis._new(dom, binding, IterVar.Ordered)

    @staticmethod
    def opaque(dom: Any, binding: Any, dtype: str = "int32") -> Var:
        """A variable of which nothing is known."""
        return axis._new(dom, binding, IterVar.DimInfo)

    @staticmethod
    def remap(kinds: str, bindings: Sequence[Any], dtype: str = "int32") -> Any:
        """Variables over the ranges of loops: ``"SSR"`` and the loops' variables."""
        if len(kinds) != len(bindings):
            raise ValueError(f"T.axis.remap requires {len(kinds)} loops, got {len(bindings)}")
        builder = current_builder("T.axis.remap")
        variables = []
        for letter, loop_var in zip(kinds, bindings, strict=True):
            if letter not in _AXES:
                raise ValueError(f"T.axis.remap requires letters of 'S' and 'R', got {letter!r}")
            dom = builder.loops.get(loop_var)
            if dom is None:
                raise ValueError(f"T.axis.remap requires variables of loops, got {loop_var}")
            variables.append(axis._new(dom, loop_var, _AXES[letter]))
        return variables if len(variables) > 1 else variables[0]
