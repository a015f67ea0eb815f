"""Sums over the slices of a tensor that belong together."""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import const

from .creation import shape_of, zeros
from .joining import concatenate
from .reduce import max as maximum_of
from .scatter import scatter_nd
from .shaping import expand_dims, reshape
from .slicing import strided_slice
from .types import is_known, shape_of_type
from .unary import cast


def segment_sum(
    data: RelayExpr, segment_ids: RelayExpr, num_segments: RelayExpr | int | None = None
) -> RelayExpr:
    """Add up the slices of a tensor that belong to one segment.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    segment_ids : relay.Expr
        For each slice along the first axis, the number of its segment.
    num_segments : relay.Expr or int, optional
        The number of segments; by default, one more than the largest in `segment_ids`.
    """
    ty = infer_type_of(data)
    assert isinstance(ty, TensorType)
    rest = shape_of_type(ty)[1:]
    if isinstance(num_segments, int) and is_known(*rest):
        sums = zeros((num_segments, *rest), ty.dtype)
        return scatter_nd(sums, expand_dims(segment_ids, 0), data, "add")
    if num_segments is None:
        count = maximum_of(segment_ids) + const(1, tensor_type_of(segment_ids).dtype)
    else:
        count = const(num_segments, "int64") if isinstance(num_segments, int) else num_segments
    parts = [reshape(cast(count, "int64"), (1,))]
    if rest:
        parts.append(strided_slice(shape_of(data, "int64"), [1], [len(rest) + 1]))
    sums = zeros(concatenate(parts, 0), ty.dtype)
    return scatter_nd(sums, expand_dims(segment_ids, 0), data, "add")
