"""Running sums and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type

from .attributes import as_int
from .registry import OpPattern, define_op, ops
from .types import expect_tensor, positive_axis, product, shape_of_type, tensor
from .unary import numpy_dtype


class ScanopAttrs(Attrs, key="relay.attrs.ScanopAttrs"):
    """The axis (None: the flattened tensor), the dtype, and whether an element counts itself."""

    axis: int | None = None
    dtype: str = ""
    exclusive: bool = False


def _scan(
    name: str,
    compute: Callable[..., te.Tensor],
    fold: Callable[..., np.ndarray],
    identity: int,
) -> Op:
    def infer_type(attrs: ScanopAttrs, arg_types: Sequence[Type]) -> Type:
        data = expect_tensor(arg_types[0], name)
        shape = shape_of_type(data)
        if attrs.axis is None:
            return tensor((product(shape),), attrs.dtype or data.dtype)
        positive_axis(attrs.axis, len(shape), name)
        return tensor(shape, attrs.dtype or data.dtype)

    def fold_scan(
        attrs: ScanopAttrs, arrays: Sequence[np.ndarray], out_type: Type
    ) -> list[np.ndarray]:
        found = fold(arrays[0], axis=attrs.axis, dtype=numpy_dtype(out_type.dtype))  # type: ignore[attr-defined]
        if not attrs.exclusive or found.size == 0:
            return [found]
        axis = attrs.axis or 0
        first = np.full_like(np.take(found, [0], axis=axis), identity)
        before = np.take(found, range(found.shape[axis] - 1), axis=axis)
        return [np.concatenate([first, before], axis=axis)]

    return define_op(
        name,
        ScanopAttrs,
        inputs=("data",),
        infer_type=infer_type,
        fuse=OpPattern.OPAQUE,
        compute=lambda attrs, inputs, out_type: [
            compute(inputs[0], attrs.axis, out_type.dtype, attrs.exclusive)
        ],
        schedules={
            "generic": lambda attrs, outs, target: topi.generic.schedule_extern(outs),
            "cpu": lambda attrs, outs, target: topi.generic.schedule_extern(outs),
        },
        fold=fold_scan,
    )


_scan("cumsum", topi.cumsum, np.cumsum, 0)
_scan("cumprod", topi.cumprod, np.cumprod, 1)


def cumsum(
    data: RelayExpr,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> RelayExpr:
    """Running sums along an axis.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    axis : int, optional
        The axis; the flattened tensor by default.
    dtype : str, optional
        The dtype of the sums, the data's by default.
    exclusive : bool, optional
        Leave each element out of its own sum.
    """
    return ops.cumsum(
        data,
        axis=None if axis is None else as_int(axis),
        dtype=dtype or "",
        exclusive=bool(exclusive),
    )


def cumprod(
    data: RelayExpr,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> RelayExpr:
    """Running products along an axis; parameters as in `cumsum`."""
    return ops.cumprod(
        data,
        axis=None if axis is None else as_int(axis),
        dtype=dtype or "",
        exclusive=bool(exclusive),
    )
