"""The gradient of a convolution's kernel, as an operator."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te, topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type

from ..layout_shapes import axes_extents, shape_in_layout
from ..registry import OpPattern, Precision, define_op, ops
from ..types import apply, expect, expect_tensor, shape_of_type, tensor
from .conv import PLAIN_SCHEDULES, Conv2DAttrs, conv_attrs

_WHO = "nn.conv2d_backward_weight"

# the attributes of a convolution, whose data is here the gradient, its kernel the data, its
# output the kernel


def _type(attrs: Conv2DAttrs, arg_types: Sequence[Type]) -> Type:
    grad = expect_tensor(arg_types[0], _WHO, "grad", rank=4)
    data = expect_tensor(arg_types[1], _WHO, rank=4)
    expect(attrs.kernel_size is not None, f"{_WHO} requires a kernel_size")
    given = axes_extents(shape_of_type(grad), attrs.data_layout, _WHO)
    have = axes_extents(shape_of_type(data), attrs.kernel_layout, _WHO)
    kernel = {
        "O": given["C"],
        "I": apply(lambda c: c // attrs.groups, have["C"]),
        "H": attrs.kernel_size[0],  # type: ignore[index]
        "W": attrs.kernel_size[1],  # type: ignore[index]
    }
    shape = shape_in_layout(kernel, attrs.out_layout or "OIHW")
    return tensor(shape, attrs.out_dtype or data.dtype)


def _compute(attrs: Conv2DAttrs, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
    layouts = (attrs.data_layout, attrs.kernel_layout, attrs.out_layout or "OIHW")
    assert attrs.kernel_size is not None
    return [
        topi.nn.conv2d_backward_weight(
            *inputs, attrs.kernel_size, attrs.padding, attrs.strides, attrs.dilation, attrs.groups,
            out_type.dtype, layouts,  # type: ignore[attr-defined]
        )
    ]  # fmt: skip


define_op(
    _WHO,
    Conv2DAttrs,
    inputs=("grad", "data"),
    infer_type=_type,
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=_compute,
    schedules=PLAIN_SCHEDULES,
    precision=Precision.ALWAYS,
)


def conv2d_backward_weight(
    grad: RelayExpr,
    data: RelayExpr,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilation: int | Sequence[int] = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    grad_layout: str = "NCHW",
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_dtype: str = "",
) -> RelayExpr:
    """The gradient of the kernel of `conv2d`.

    Parameters
    ----------
    grad, data : relay.Expr
        The gradient of the convolution's result, and its data.
    strides, padding, dilation, groups, channels, kernel_size
        The convolution's parameters; the kernel's extents are required.
    grad_layout, data_layout, kernel_layout : str
        The layouts of the gradient, the data and the result.
    out_dtype : str
        The dtype of the sums, the data's by default.
    """
    return ops.nn.conv2d_backward_weight(
        grad,
        data,
        **conv_attrs(strides, padding, dilation, groups, channels, kernel_size, 2),
        data_layout=grad_layout,
        kernel_layout=data_layout,
        out_layout=kernel_layout,
        out_dtype=out_dtype or "",
    )
