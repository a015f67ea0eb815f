"""Small programs for the tests of passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tir
from tvm.tir.buffer import Buffer
from tvm.tir.stmt import For, ForKind, Stmt

SERIAL, PARALLEL, VECTORIZED, UNROLLED = (
    ForKind.SERIAL,
    ForKind.PARALLEL,
    ForKind.VECTORIZED,
    ForKind.UNROLLED,
)


def loop(
    extent: Any, body: Callable[[tir.Var], Stmt], kind: ForKind = SERIAL, name: str = "i"
) -> For:
    """A loop from 0 whose body is built from its variable."""
    var = tir.Var(name, "int32")
    return For(var, 0, extent, kind, body(var))


def store(buffer: Buffer, indices: Any, value: Any) -> Stmt:
    """``buffer[indices] = value``"""
    return tir.BufferStore(buffer, value, indices if isinstance(indices, list) else [indices])


def function(params: Sequence[Any], body: Stmt, **attrs: Any) -> tir.PrimFunc:
    """A function called ``main``."""
    return tir.PrimFunc(params, body, attrs={"global_symbol": "main", **attrs})
