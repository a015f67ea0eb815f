"""Gradients of pooling over two axes, as operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.relay.expr import Call

from ..layout_shapes import moved
from ..operator import Expr, OperatorFunction, OptionalStr, P, Padding2, R, Spatial2, operator
from ..parameters import more_parameters
from ..registry import OpPattern, ops
from ..schedules import default_schedules
from ..types import expect_dim, expect_tensor, shape_of_type
from .pooling import avg_pool2d, max_pool2d, pool_type


def _pool_gradient(
    name: str, pooling: OperatorFunction[..., Any], kind: str, **facets: Any
) -> Callable[[Callable[P, R | None]], OperatorFunction[P, R]]:
    def infer_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        """A tensor of the shape and dtype of `data`."""
        data = expect_tensor(arg_types[1], name)
        grad = expect_tensor(arg_types[0], name, "out_grad", len(data.shape))
        wanted = pool_type(name, "HW")(attrs, [data])
        for have, want in zip(shape_of_type(grad), shape_of_type(wanted), strict=True):
            expect_dim(have, want, name, "the pooling's extents")
        return data

    def compute(attrs: Attrs, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
        grad = moved(inputs[0], attrs.out_layout or attrs.layout, attrs.layout)
        return [
            topi.nn.pool_grad(
                grad, inputs[1], attrs.pool_size, attrs.strides, attrs.padding, kind, attrs.ceil_mode,
                kind == "avg" and attrs.count_include_pad, attrs.layout, attrs.dilation,
            )
        ]  # fmt: skip

    return operator(
        name,
        pooling,
        infer_type=infer_type,
        fuse=OpPattern.OPAQUE,
        compute=compute,
        schedules=default_schedules(topi.x86.schedule_steps),
        **facets,
    )


def _twice_avg(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    return [Call(ops.nn.avg_pool2d, (grad,), call.attrs), ops.zeros_like(call.args[1])]


@_pool_gradient("nn.max_pool2d_grad", max_pool2d, "max")
def max_pool2d_grad(
    out_grad: Expr,
    data: Expr,
    pool_size: Spatial2 = (1, 1),
    strides: Spatial2 = (1, 1),
    padding: Padding2 = (0, 0),
    layout: str = "NCHW",
    out_layout: OptionalStr = "",
    ceil_mode: bool = False,
) -> RelayExpr:
    """The gradient of `max_pool2d`: it goes to the first greatest element of each window.

    Parameters
    ----------
    out_grad, data : relay.Expr
        The gradient of the pooling's result, and its input.
    pool_size, strides, padding, layout, out_layout, ceil_mode
        The pooling's parameters.
    """


@_pool_gradient("nn.avg_pool2d_grad", avg_pool2d, "avg", gradient=_twice_avg)
@more_parameters(max_pool2d_grad)
def avg_pool2d_grad(count_include_pad: bool = False) -> None:
    """The gradient of `avg_pool2d`: it is shared by the elements of each window.

    Parameters
    ----------
    count_include_pad
        As of the pooling.
    """
