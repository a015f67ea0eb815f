"""What the quantised operators share: parameters as constants, dtype ranges, type checks.

A quantised tensor q stands for the real numbers (q - zero_point) * scale; scale and zero point are
scalars, or vectors along one axis.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm import tir
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Constant, const
from tvm.relay.op.registry import ops
from tvm.relay.op.types import (
    MUST_FIT,
    TypeRelation,
    equal_extents,
    expect,
    expect_tensor,
    is_known,
    leave_to_run,
    positive_axis,
    shape_of_type,
    show,
    tensor,
)


def constant_array(expr: RelayExpr) -> np.ndarray | None:
    """The value of a constant parameter, None if only the run knows it."""
    return expr.data.numpy() if isinstance(expr, Constant) else None


def scalar_value(expr: RelayExpr) -> float | None:
    """The value of a constant parameter of one element."""
    array = constant_array(expr)
    return None if array is None or array.size != 1 else array.reshape(-1)[0].item()


def is_zero(expr: RelayExpr) -> bool:
    """Whether a parameter is certainly zero everywhere."""
    array = constant_array(expr)
    return array is not None and not array.any()


def are_equal(a: RelayExpr, b: RelayExpr) -> bool:
    """Whether two parameters are certainly the same."""
    left, right = constant_array(a), constant_array(b)
    if left is None or right is None:
        return a is b
    return np.array_equal(left.reshape(-1), right.reshape(-1))


def along_axis(param: RelayExpr, rank: int, axis: int) -> RelayExpr:
    """A scalar or a vector in the shape that broadcasts along one axis of a tensor."""
    shape = shape_of_type(infer_type_of(param))
    if not shape or (shape == (1,) and rank > 0):
        return param
    if rank == 0:
        return ops.reshape(param, newshape=())
    trailing = rank - 1 - axis % rank
    if trailing == 0:
        return param
    if (array := constant_array(param)) is not None:
        return const(array.reshape(-1, *(1,) * trailing), array.dtype.name)
    return ops.expand_dims(param, axis=1, num_newaxis=trailing)


def cast(expr: RelayExpr, dtype: str) -> RelayExpr:
    """The elements in another dtype; constants and what has the dtype already need no operator."""
    if tensor_type_of(expr).dtype == dtype:
        return expr
    if isinstance(expr, Constant) and expr.data.numpy().size == 1:
        return const(expr.data.numpy(), dtype)
    return ops.cast(expr, dtype=dtype)


def add_zero_point(expr: RelayExpr, zero_point: RelayExpr) -> RelayExpr:
    """`expr + zero_point` in the dtype of `expr`."""
    if is_zero(zero_point):
        return expr
    return ops.add(expr, cast(zero_point, tensor_type_of(expr).dtype))


def subtract_zero_point(expr: RelayExpr, zero_point: RelayExpr) -> RelayExpr:
    """`expr - zero_point` in the dtype of `expr`."""
    if is_zero(zero_point):
        return expr
    return ops.subtract(expr, cast(zero_point, tensor_type_of(expr).dtype))


def saturate(expr: RelayExpr, dtype: str) -> RelayExpr:
    """Integers clipped to the range of a dtype, in that dtype."""
    have_low, have_high = integer_range(tensor_type_of(expr).dtype)
    low, high = integer_range(dtype)
    if low <= have_low and have_high <= high:
        return cast(expr, dtype)
    return ops.cast(ops.clip(expr, a_min=low, a_max=high), dtype=dtype)


def integer_range(dtype: str) -> tuple[float, float]:
    """The least and the greatest number of an integer dtype."""
    limits = np.iinfo(dtype)
    return float(limits.min), float(limits.max)


def expect_dtype(ty: Type, allowed: Sequence[str], who: str, argument: str) -> TensorType:
    """A tensor of one of the dtypes."""
    found = expect_tensor(ty, who, argument)
    expect(
        found.dtype in allowed,
        f"{who} requires {argument} of dtype {' or '.join(allowed)}, got {found.dtype}",
    )
    return found


def expect_scale(
    ty: Type, who: str, argument: str, data: Type | None = None, axis: int = 0
) -> None:
    """A float32 scalar, or a vector as long as an axis of the data."""
    _expect_param(expect_dtype(ty, ("float32",), who, argument), who, argument, data, axis)


def expect_zero_point(
    ty: Type, who: str, argument: str, data: Type | None = None, axis: int = 0
) -> None:
    """An int32 scalar, or a vector as long as an axis of the data."""
    _expect_param(expect_dtype(ty, ("int32",), who, argument), who, argument, data, axis)


def _expect_param(param: TensorType, who: str, argument: str, data: Type | None, axis: int) -> None:
    shape = shape_of_type(param)
    if shape in ((), (1,)):
        return
    expect(
        data is not None and len(shape) == 1,
        f"{who} requires a scalar{' or a vector' if data is not None else ''} for {argument}, "
        f"got shape {show(shape)}",
    )
    have = shape_of_type(data)  # type: ignore[arg-type]
    extent = have[positive_axis(axis, len(have), who)]
    if not is_known(shape[0], extent):

        def fits() -> PrimExpr:
            return tir.any(*[equal_extents(shape[0], length) for length in (1, extent)])

        leave_to_run(fits, MUST_FIT, shape[0], extent)
        return
    expect(
        shape[0] == extent,
        f"{who} requires one number for each of the {extent} elements along axis {axis} "
        f"for {argument}, got {shape[0]}",
    )


def like_data(who: str, dtypes: Sequence[str], pairs: int = 2) -> TypeRelation:
    """Operators that keep type and have pairs of a scalar scale and zero point."""

    def relation(attrs: object, arg_types: Sequence[Type]) -> Type:
        """A tensor of the operand's shape and dtype."""
        data = expect_dtype(arg_types[0], dtypes, who, "x")
        for i in range(pairs):
            side = ("input", "output")[i]
            expect_scale(arg_types[1 + 2 * i], who, f"{side}_scale")
            expect_zero_point(arg_types[2 + 2 * i], who, f"{side}_zero_point")
        return tensor(shape_of_type(data), data.dtype)

    return relation
