"""Attributes, checks, bindings and thread axes that hold for the statements inside them."""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.type import PrimType, Type
from tvm.tir import stmt as s
from tvm.tir.buffer import Buffer
from tvm.tir.expr import IterVar, Range, Var, as_expr

from ..base import IRBuilder
from .frame import (
    AssertFrame,
    AttrFrame,
    LaunchThreadFrame,
    LetFrame,
    PrimFuncFrame,
    add_to_parent,
)
from .values import DTypeCall, let_expr


def evaluate(value: Any) -> None:
    """A statement that evaluates an expression."""
    if isinstance(value, Buffer):
        raise TypeError(f"T.evaluate requires an expression, got buffer {value.name}")
    add_to_parent(s.Evaluate(as_expr(value)))


def attr(node: Any, attr_key: str, value: Any) -> AttrFrame:
    """Annotate the statements inside."""
    return AttrFrame(node, attr_key, as_expr(value))


def Assert(condition: Any, message: Any) -> AssertFrame:
    """Check a condition first."""
    return AssertFrame(as_expr(condition), as_expr(message))


def LetStmt(value: Any, type_annotation: Any = None, *, var: Var | None = None) -> LetFrame:
    """Bind a variable to a value."""
    if isinstance(type_annotation, DTypeCall):
        type_annotation = type_annotation()
    elif isinstance(type_annotation, Type):
        known = type_annotation.dtype if isinstance(type_annotation, PrimType) else type_annotation
        type_annotation = Var("", known)
    bound = as_expr(value, type_annotation.dtype if isinstance(type_annotation, Var) else None)
    target = var
    if target is None and isinstance(type_annotation, Var):
        target = type_annotation
    return LetFrame(Var("", bound.dtype) if target is None else target, bound)


def let(v: Any, value: Any, body: Any = None) -> Any:
    """``T.let(x, value)`` binds a variable for statements, with ``body`` in an expression."""
    if body is None:
        return LetStmt(value, var=v)
    return let_expr(body, {v: value})


def env_thread(thread_tag: str, dtype: str = "int32") -> Any:
    """The variable of a thread axis, to be given its extent by ``T.launch_thread``."""
    axis = IterVar(None, Var("", dtype), IterVar.ThreadIndex, thread_tag)
    function = IRBuilder.current().find_frame(PrimFuncFrame) if IRBuilder.is_in_scope() else None
    if function is None:
        return axis
    function.env_threads[axis.var] = axis
    return axis.var


def launch_thread(thread: IterVar | Var | str, extent: Any) -> LaunchThreadFrame:
    """Run the statements inside for each value of a thread axis."""
    size = as_expr(extent)
    axis = _axis(thread, size)
    key = "virtual_thread" if axis.thread_tag.startswith("vthread") else "thread_extent"
    axis = IterVar(Range(0, size), axis.var, IterVar.ThreadIndex, axis.thread_tag)
    return LaunchThreadFrame(axis, key, size)


def _axis(thread: IterVar | Var | str, size: PrimExpr) -> IterVar:
    if isinstance(thread, IterVar):
        return thread
    if isinstance(thread, str):
        return IterVar(None, Var("", size.dtype), IterVar.ThreadIndex, thread)
    function = IRBuilder.current().find_frame(PrimFuncFrame)
    axis = function.env_threads.get(thread) if function is not None else None
    if axis is None:
        raise ValueError(f"T.launch_thread requires a variable of T.env_thread, got {thread}")
    return axis
