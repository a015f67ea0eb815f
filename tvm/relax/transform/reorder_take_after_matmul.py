"""Products with weights that are taken from a table become products with the table.

matmul(x, take(weights, routing, axis=1))    ->    take(matmul(x, weights), routing, axis=1)

Where each element of a batch takes a matrix of its own, all matrices of the table stand side by side in
one product, and each element takes its result.
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Call
from tvm.relax.op.binary import add
from tvm.relax.op.create import arange
from tvm.relax.op.index import take
from tvm.relax.op.linear_algebra import matmul
from tvm.relax.op.manipulate import permute_dims, reshape
from tvm.relax.struct_info import TensorStructInfo

from .rewrite_calls import definition, rewriting_pass

_MATMUL, _TAKE = Op.get("relax.matmul"), Op.get("relax.take")


def _rule(call: Call, builder: BlockBuilder) -> RelayExpr | None:
    taken = definition(call.args[1], builder) if call.op is _MATMUL else None
    if not isinstance(taken, Call) or taken.op is not _TAKE or taken.attrs.axis is None:
        return None
    x, (weights, indices) = call.args[0], taken.args
    infos = [e.struct_info for e in (x, weights, indices)]
    if not all([isinstance(i, TensorStructInfo) and i.ndim >= 0 for i in infos]):
        return None
    if infos[1].ndim < 2 or infos[2].ndim != 1:
        return None
    axis = taken.attrs.axis % infos[1].ndim
    if axis == infos[1].ndim - 1:
        whole = matmul(x, weights, call.attrs.out_dtype)
        found: RelayExpr = take(whole, indices, axis=call.struct_info.ndim - 1)
        return found
    if axis == 0 and infos[0].ndim == infos[1].ndim == 3:
        return _of_batch(call, x, weights, indices)
    return None


def _of_batch(call: Call, x: RelayExpr, weights: RelayExpr, indices: RelayExpr) -> RelayExpr | None:
    """Element i of the batch takes the result of matrix indices[i]."""
    left, right = x.struct_info.dimensions, weights.struct_info.dimensions
    if left is None or right is None:
        return None
    batch, rows, inner = left
    count, _, columns = right
    side_by_side = reshape(permute_dims(weights, [1, 0, 2]), (inner, count * columns))
    whole = matmul(x, side_by_side, call.attrs.out_dtype)
    split = reshape(whole, (batch, rows, count, columns))
    table = reshape(permute_dims(split, [0, 2, 1, 3]), (batch * count, rows, columns))
    kind = indices.struct_info.dtype
    start = arange(0, batch * count, count, kind)
    found: RelayExpr = take(table, add(start, indices), axis=0)
    return found


def ReorderTakeAfterMatmul() -> Pass:
    """Take results of products rather than weights."""
    return rewriting_pass("ReorderTakeAfterMatmul", lambda func, mod: _rule)
