"""Products of matrices that a library computes."""

from __future__ import annotations

from typing import Any

from tvm import te, tir


def matmul_by(
    function: str, lhs: te.Tensor, rhs: te.Tensor, transa: bool, transb: bool, **kwargs: Any
) -> te.Tensor:
    """The product of two matrices, or of two batches of them, by a packed function."""
    batch = [] if len(lhs.shape) == 2 else [tir.max(lhs.shape[0], rhs.shape[0])]
    rows = lhs.shape[-1] if transa else lhs.shape[-2]
    columns = rhs.shape[-2] if transb else rhs.shape[-1]

    def call(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.PrimExpr:
        return tir.call_packed(function, ins[0], ins[1], outs[0], transa, transb)

    return te.extern([*batch, rows, columns], [lhs, rhs], call, **{"name": "C", **kwargs})
