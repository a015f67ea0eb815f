"""Loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.tir import op
from tvm.tir import stmt as s
from tvm.tir.expr import IterVar, Range, Var, as_expr
from tvm.tir.linear import difference
from tvm.tir.stmt import ForKind, Stmt

from .frame import ElseFrame, ForFrame, IfFrame, ThenFrame, WhileFrame


def _loop(kind: ForKind, name: str) -> Callable[..., ForFrame]:
    def build(
        start: Any, stop: Any = None, *, annotations: Mapping[str, Any] | None = None
    ) -> ForFrame:
        return _one_loop(kind, start, stop, None, annotations)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"A loop of kind {kind.name.lower()}."
    return build


def _one_loop(
    kind: ForKind, start: Any, stop: Any, thread: str | None, annotations: Any
) -> ForFrame:
    if stop is None:
        start, stop = 0, start
    low, high = op.unify(start, stop)
    for bound in (low, high):
        if not (bound.dtype.is_int or bound.dtype.is_uint):
            raise TypeError(f"a loop requires integers as its bounds, got {bound}")
    dom = Range.from_min_extent(low, difference(high, low))
    binding = None
    if thread is not None:
        binding = IterVar(None, Var("iter", low.dtype), IterVar.ThreadIndex, thread)
    notes = dict(annotations or {})

    def make(variables: Sequence[Var], doms: Sequence[Range], body: Stmt) -> Stmt:
        return s.For(variables[0], dom.min, dom.extent, kind, body, binding, notes)

    return ForFrame([Var("", low.dtype)], [dom], make)


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
) -> ForFrame:
    """A loop whose iterations are threads of an axis such as ``"threadIdx.x"``."""
    if isinstance(stop, str) and thread is None:
        stop, thread = None, stop
    if not isinstance(thread, str):
        raise ValueError("T.thread_binding requires the name of a thread axis")
    return _one_loop(ForKind.THREAD_BINDING, start, stop, thread, annotations)


def grid(*extents: Any) -> ForFrame:
    """Nested serial loops from zero."""
    ranges = [Range(as_expr(extent)) for extent in extents]

    def make(variables: Sequence[Var], doms: Sequence[Range], body: Stmt) -> Stmt:
        for variable, dom in reversed(list(zip(variables, doms, strict=True))):
            body = s.For(variable, dom.min, dom.extent, ForKind.SERIAL, body)
        return body

    return ForFrame([Var("", dom.extent.dtype) for dom in ranges], ranges, make)


def While(condition: Any) -> WhileFrame:
    """Repeat as long as a condition holds."""
    return WhileFrame(as_expr(condition))


def If(condition: Any) -> IfFrame:
    """A choice between the ``T.Then`` and ``T.Else`` inside."""
    if isinstance(condition, bool):
        condition = as_expr(condition)
    return IfFrame(as_expr(condition))


def Then() -> ThenFrame:
    """What runs if the condition holds."""
    return ThenFrame()


def Else() -> ElseFrame:
    """What runs otherwise."""
    return ElseFrame()
