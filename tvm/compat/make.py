"""``tvm.make`` of old: constructors of nodes, some with the arguments they had then."""

from __future__ import annotations

from typing import Any

from tvm import ir, tir
from tvm.error import TVMError

from . import first_with

range_by_min_extent = ir.Range.from_min_extent
_cast = static_cast = tir.Cast
node = ir.make_node


def For(loop_var: Any, min: Any, extent: Any, for_type: int, device_api: int, body: Any) -> tir.For:
    """A loop; ``device_api`` had no meaning and has to be 0."""
    if device_api != 0:
        raise TVMError(f"make.For takes only device_api=0, got {device_api}")
    return tir.For(loop_var, min, extent, for_type, body)


def Block(first: tir.Stmt, rest: tir.Stmt) -> tir.SeqStmt:
    """One statement, then another."""
    return tir.SeqStmt((first, rest))


def Store(buffer_var: Any, value: Any, index: Any, predicate: Any = None) -> tir.Stmt:
    """Rejected: memory is stored to through buffers."""
    raise TVMError(
        f"make.Store cannot store through the pointer {buffer_var}",
        hint="buffer = tvm.tir.decl_buffer(shape, dtype, data=pointer); "
        "tvm.tir.BufferStore(buffer, value, [index])",
    )


def Load(dtype: Any, buffer_var: Any, index: Any, predicate: Any = None) -> Any:
    """Rejected: memory is read through buffers."""
    raise TVMError(
        f"make.Load cannot read through the pointer {buffer_var}",
        hint="buffer = tvm.tir.decl_buffer(shape, dtype, data=pointer); buffer[index]",
    )


def __getattr__(name: str) -> Any:
    return first_with(name, (tir,), "tvm.make")
