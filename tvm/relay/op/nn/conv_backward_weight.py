"""The gradient of a convolution's kernel, as an operator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from tvm import te, topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call

from ..layout_shapes import axes_extents, shape_in_layout
from ..operator import Attribute, Expr, OptionalSpatial2, OptionalStr, Padding2, Spatial2, operator
from ..types import Tensor4, apply, expect, shape_of_type, tensor
from .conv import PLAIN_CONVOLUTION, conv2d
from .conv_gradient import conv2d_backward_weight_gradient

_WHO = "nn.conv2d_backward_weight"

# the attributes of a convolution, whose data is here the gradient, its kernel the data, its
# output the kernel


def _type(attrs: Any, grad: Tensor4, data: Tensor4) -> Type:
    """A tensor of the kernel's shape in `out_layout`, OIHW by default; of dtype `out_dtype`, or
    that of `data`."""
    expect(attrs.kernel_size is not None, f"{_WHO} requires a kernel_size")
    given = axes_extents(shape_of_type(grad), attrs.data_layout, _WHO)
    have = axes_extents(shape_of_type(data), attrs.kernel_layout, _WHO)
    kernel = {
        "O": given["C"],
        "I": apply(lambda c: c // attrs.groups, have["C"]),
        "H": attrs.kernel_size[0],
        "W": attrs.kernel_size[1],
    }
    shape = shape_in_layout(kernel, attrs.out_layout or "OIHW")
    return tensor(shape, attrs.out_dtype or data.dtype)


def _compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: TensorType) -> list[te.Tensor]:
    layouts = (attrs.data_layout, attrs.kernel_layout, attrs.out_layout or "OIHW")
    assert attrs.kernel_size is not None
    grad, data = inputs
    return [
        topi.nn.conv2d_backward_weight(
            grad, data, attrs.kernel_size, attrs.padding, attrs.strides, attrs.dilation,
            attrs.groups, out_type.dtype, layouts,
        )
    ]  # fmt: skip


def _mac_count(call: Call) -> int:
    """Elements of the kernel times the positions of the gradient, over all examples."""
    grad, kernel = [tensor_type_of(x).concrete_shape for x in (call.args[0], call)]
    channels = grad[str(call.attrs.data_layout).index("C")]
    return math.prod(kernel) * math.prod(grad) // channels


@operator(
    _WHO,
    conv2d,
    infer_type=_type,
    gradient=conv2d_backward_weight_gradient,
    **{**PLAIN_CONVOLUTION, "compute": _compute, "mac_count": _mac_count},
)
def conv2d_backward_weight(
    grad: Expr,
    data: Expr,
    strides: Spatial2 = (1, 1),
    padding: Padding2 = (0, 0),
    dilation: Spatial2 = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: OptionalSpatial2 = None,
    grad_layout: Annotated[str, Attribute("str", str, "data_layout")] = "NCHW",
    data_layout: Annotated[str, Attribute("str", str, "kernel_layout")] = "NCHW",
    kernel_layout: Annotated[str, Attribute("str", str, "out_layout")] = "OIHW",
    out_dtype: OptionalStr = "",
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
