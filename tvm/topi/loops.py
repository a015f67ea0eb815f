"""Loop nests written directly, for operators that are no map and no reduction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tir
from tvm.ir.expr import PrimExpr
from tvm.te.index_width import index_dtype


def loop(
    name: str, extent: Any, body: Callable[[tir.Var], tir.Stmt], parallel: bool = False
) -> tir.Stmt:
    """for name in range(extent): body(name)"""
    bound = extent if isinstance(extent, PrimExpr) else tir.const(extent, index_dtype())
    var = tir.Var(name, bound.dtype)
    kind = tir.ForKind.PARALLEL if parallel else tir.ForKind.SERIAL
    return tir.For(var, tir.const(0, bound.dtype), bound, kind, body(var))


def nest(names: str, extents: Sequence[Any], body: Callable[[list[tir.Var]], tir.Stmt]) -> tir.Stmt:
    """Loops over all of `extents`; the variables are called names0, names1, ..."""

    def level(outer: list[tir.Var]) -> tir.Stmt:
        depth = len(outer)
        if depth == len(extents):
            return body(outer)
        return loop(f"{names}{depth}", extents[depth], lambda v: level([*outer, v]))

    return level([])


def store(buffer: tir.Buffer, value: Any, indices: Sequence[Any]) -> tir.Stmt:
    """buffer[indices] = value"""
    return tir.BufferStore(buffer, value, list(indices))


def load(buffer: tir.Buffer, indices: Sequence[Any]) -> PrimExpr:
    """buffer[indices]"""
    return tir.BufferLoad(buffer, tuple(indices))
