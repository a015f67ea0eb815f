"""Kernels of matrices, run over batches of them.

Each matrix of a batch is one step of a parallel loop: many small matrices, rather than a large one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr
from tvm.tir.ir_builder import BufferVar, IRBuilder

from ..utils import dims, prod, unravel_index


class Block:
    """One matrix, vector or number of a batch; the last axes are indexed."""

    def __init__(self, data: BufferVar, place: Sequence[Any]) -> None:
        self._data = data
        self._place = list(place)

    def __getitem__(self, index: Any) -> PrimExpr:
        return self._data[self._at(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._data[self._at(index)] = value

    def _at(self, index: Any) -> list[Any]:
        return [*self._place, *(index if isinstance(index, tuple) else (index,))]


# from the builder and the blocks of inputs and outputs: the work for one matrix
Kernel = Callable[..., None]


def over_batch(
    kernel: Kernel,
    inputs: Sequence[te.Tensor],
    shapes: Sequence[Sequence[Any]],
    dtypes: Sequence[str],
    name: str,
) -> list[te.Tensor]:
    """Tensors of ``(*batch, *shape)`` for each of ``shapes``; inputs are batches of matrices."""
    batch = dims(inputs[0].shape)[:-2]

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        with ib.for_range(0, prod(batch), name="matrix", kind="parallel") as number:
            position = unravel_index(number, batch) if batch else []
            kernel(ib, *[Block(ib.buffer_ptr(b), position) for b in (*ins, *outs)])
        return ib.get()

    full = [(*batch, *shape) for shape in shapes]
    found = te.extern(full, list(inputs), body, dtype=list(dtypes), name=name, tag=name)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def local(ib: IRBuilder, dtype: str, value: Any, name: str) -> BufferVar:
    """A variable of the loop body."""
    made = ib.allocate(dtype, 1, name, scope="local")
    made[0] = as_const(value, dtype)
    return made


def as_const(value: Any, dtype: str) -> Any:
    """Python's numbers as constants."""
    return tir.const(value, dtype) if isinstance(value, (int, float)) else value


def copy(ib: IRBuilder, source: Block, target: Block, rows: Any, columns: Any) -> None:
    """target = source"""
    with ib.for_range(0, rows, "i") as i, ib.for_range(0, columns, "j") as j:
        target[i, j] = source[i, j]


def identity(ib: IRBuilder, target: Block, rows: Any, columns: Any, dtype: str) -> None:
    """Ones on the diagonal."""
    with ib.for_range(0, rows, "i") as i, ib.for_range(0, columns, "j") as j:
        target[i, j] = tir.Select(tir.EQ(i, j), tir.const(1, dtype), tir.const(0, dtype))


def swap_rows(ib: IRBuilder, matrix: Block, a: Any, b: Any, columns: Any) -> None:
    """Exchange two rows."""
    with ib.for_range(0, columns, "j") as j:
        held = ib.let("held", matrix[a, j])
        matrix[a, j] = matrix[b, j]
        matrix[b, j] = held
