"""Products with a transposed matrix as one loop program, which reads it where it is.

matmul(x, permute_dims(w, [1, 0]))    ->    call_tir(NT_matmul, (x, w))
"""

from __future__ import annotations

from typing import Any

from tvm import te, tir
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Call
from tvm.relax.op.legalize import has_known_shape
from tvm.topi.utils import equal_const_int

from .reorder_permute_dims_after_concat import permutation
from .rewrite_calls import definition, rewriting_pass

_MATMUL, _PERMUTE = Op.get("relax.matmul"), Op.get("relax.permute_dims")


def _rule(call: Call, builder: BlockBuilder) -> RelayExpr | None:
    moved = definition(call.args[1], builder) if call.op is _MATMUL else None
    if not isinstance(moved, Call) or moved.op is not _PERMUTE:
        return None
    x, w = call.args[0], moved.args[0]
    rank = w.struct_info.ndim
    is_known = all([has_known_shape(e.struct_info_) for e in (x, w)])
    if not is_known or rank < 2 or x.struct_info.ndim < 2:
        return None
    if permutation(moved) != (*range(rank - 2), rank - 1, rank - 2):
        return None
    kind = call.struct_info.dtype

    def product(a: te.Tensor, b: te.Tensor) -> te.Tensor:
        return _product(a, b, kind)

    return builder.call_te(product, x, w, primfunc_name_hint="NT_matmul")


def _product(a: te.Tensor, b: te.Tensor, kind: Any) -> te.Tensor:
    """The rows of one with the rows of the other, batch axes broadcast."""
    batch = [list(a.shape)[:-2], list(b.shape)[:-2]]
    count = max([len(dims) for dims in batch])
    padded = [[*[tir.IntImm("int64", 1)] * (count - len(dims)), *dims] for dims in batch]
    lead = [y if equal_const_int(x, 1) else x for x, y in zip(*padded, strict=True)]
    k = te.reduce_axis((0, a.shape[-1]), name="k")

    def places(dims: list[Any], indices: tuple[Any, ...]) -> list[Any]:
        own = indices[count - len(dims) : count]
        return [0 if equal_const_int(d, 1) else i for d, i in zip(dims, own, strict=True)]

    def element(*i: Any) -> Any:
        left = a(*places(batch[0], i), i[-2], k)
        right = b(*places(batch[1], i), i[-1], k)
        if a.dtype != kind:
            left, right = left.astype(kind), right.astype(kind)
        return te.sum(left * right, axis=k)

    return te.compute([*lead, a.shape[-2], b.shape[-2]], element, name="NT_matmul")


def FuseTransposeMatmul() -> Pass:
    """Fuse transpositions of right matrices into products."""
    return rewriting_pass("FuseTransposeMatmul", lambda func, mod: _rule)
