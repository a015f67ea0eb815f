"""Running sums and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from tvm import te, topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Call, const

from .known_shapes import known_shape
from .operator import Attribute, Expr, OptionalStr, operator
from .parameters import same_parameters
from .registry import ops
from .schedules import EXTERN_SCHEDULES
from .types import expect_tensor, positive_axis, product, shape_of_type, tensor
from .unary import numpy_dtype

OptionalBool = Annotated[bool | None, Attribute("bool", bool)]


def _scan(
    name: str, compute: Callable[..., te.Tensor], fold: Callable[..., np.ndarray], identity: int
) -> dict[str, Any]:
    """What running sums and products have in common."""

    def infer_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
        """A tensor of the shape of `data`, flat if there is no axis; of dtype `dtype`, or that of
        `data`."""
        data = expect_tensor(arg_types[0], name)
        shape = shape_of_type(data)
        if attrs.axis is None:
            return tensor((product(shape),), attrs.dtype or data.dtype)
        positive_axis(attrs.axis, len(shape), name)
        return tensor(shape, attrs.dtype or data.dtype)

    def fold_scan(
        attrs: Any, arrays: Sequence[np.ndarray], out_type: TensorType
    ) -> list[np.ndarray]:
        found = fold(arrays[0], axis=attrs.axis, dtype=numpy_dtype(out_type.dtype))
        if not attrs.exclusive or found.size == 0:
            return [found]
        axis = attrs.axis or 0
        first = np.full_like(np.take(found, [0], axis=axis), identity)
        before = np.take(found, range(found.shape[axis] - 1), axis=axis)
        return [np.concatenate([first, before], axis=axis)]

    return {
        "infer_type": infer_type,
        "compute": lambda attrs, inputs, out_type: [
            compute(inputs[0], attrs.axis, out_type.dtype, attrs.exclusive)
        ],
        "schedules": EXTERN_SCHEDULES,
        "fold": fold_scan,
        "accumulates": True,
    }


def _cumsum_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """Each element is part of the sums that come after it."""
    data, attrs = call.args[0], call.attrs
    shape = known_shape(data, "cumsum")
    axis = 0 if attrs.axis is None else attrs.axis
    backwards = ops.reverse(grad, axis=axis)
    total = Call(ops.cumsum, (ops.cast_like(backwards, data),), attrs.replace(axis=axis, dtype=""))
    found = ops.reverse(total, axis=axis)
    return [ops.reshape(found, newshape=shape) if attrs.axis is None else found]


@operator(
    "cumsum",
    "ScanopAttrs",
    support_level=3,
    gradient=_cumsum_gradient,
    **_scan("cumsum", topi.cumsum, np.cumsum, 0),
)
def cumsum(
    data: Expr, axis: int | None = None, dtype: OptionalStr = None, exclusive: OptionalBool = None
) -> RelayExpr:
    """Running sums along an axis.

    Parameters
    ----------
    axis : int, optional
        The axis; the flattened tensor by default.
    dtype : str, optional
        The dtype of the sums, the data's by default.
    exclusive : bool, optional
        Leave each element out of its own sum.
    """


def _cumprod_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """The slope of product i by element k is that of the other elements, zeros among them or not."""
    data, attrs = call.args[0], call.attrs
    shape = known_shape(data, "cumprod")
    lines = shape if attrs.axis is not None else (int(np.prod(shape)),)
    axis = 0 if attrs.axis is None else attrs.axis % len(lines)
    rank, extent = len(lines), lines[axis]
    order = (*[a for a in range(rank) if a != axis], axis)
    rows = ops.transpose(ops.reshape(data, newshape=lines), axes=order)
    given = ops.transpose(ops.reshape(ops.cast_like(grad, data), newshape=lines), axes=order)
    spread = ops.expand_dims(rows, axis=rank - 1, num_newaxis=1)
    others = ops.where(const(np.eye(extent, dtype=bool)), ops.ones_like(spread), spread)
    slopes = ops.cumprod(others, axis=rank, exclusive=attrs.exclusive)
    behind = ops.trilu(slopes, const(1 if attrs.exclusive else 0, "int32"), upper=True)
    total = ops.sum(
        ops.multiply(behind, ops.expand_dims(given, axis=rank - 1, num_newaxis=1)), axis=(rank,)
    )
    back = tuple([order.index(a) for a in range(rank)])
    return [ops.reshape(ops.transpose(total, axes=back), newshape=shape, allowzero=True)]


@operator(
    "cumprod",
    cumsum,
    support_level=3,
    gradient=_cumprod_gradient,
    **_scan("cumprod", topi.cumprod, np.cumprod, 1),
)
@same_parameters(cumsum)
def cumprod() -> None:
    """Running products along an axis; parameters as in `cumsum`."""
