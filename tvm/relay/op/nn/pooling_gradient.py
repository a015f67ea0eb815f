"""Gradients of pooling over two axes, as operators."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type

from ..attributes import padding_pairs, spread
from ..layout_shapes import moved
from ..registry import OpPattern, define_op, ops
from ..types import expect_dim, expect_tensor, shape_of_type
from .pooling import AvgPool2DAttrs, MaxPool2DAttrs, pool_type


def _pool_gradient(name: str, attrs_type: type[Attrs], kind: str) -> Op:
    def infer_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
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

    return define_op(
        name,
        attrs_type,
        inputs=("out_grad", "data"),
        infer_type=infer_type,
        fuse=OpPattern.OPAQUE,
        compute=compute,
        schedules={
            "generic": lambda attrs, outs, target: topi.generic.default_schedule(outs, True),
            "cpu": lambda attrs, outs, target: topi.x86.schedule_steps(outs),
        },
    )


_pool_gradient("nn.max_pool2d_grad", MaxPool2DAttrs, "max")
_pool_gradient("nn.avg_pool2d_grad", AvgPool2DAttrs, "avg")


def max_pool2d_grad(
    out_grad: RelayExpr,
    data: RelayExpr,
    pool_size: int | Sequence[int] = (1, 1),
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
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
    return ops.nn.max_pool2d_grad(
        out_grad, data, pool_size=spread(pool_size, 2), strides=spread(strides, 2),
        padding=padding_pairs(padding, 2), layout=layout, out_layout=out_layout,
        ceil_mode=bool(ceil_mode),
    )  # fmt: skip


def avg_pool2d_grad(
    out_grad: RelayExpr,
    data: RelayExpr,
    pool_size: int | Sequence[int] = (1, 1),
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> RelayExpr:
    """The gradient of `avg_pool2d`: it is shared by the elements of each window.

    Parameters
    ----------
    out_grad, data : relay.Expr
        The gradient of the pooling's result, and its input.
    pool_size, strides, padding, layout, out_layout, ceil_mode, count_include_pad
        The pooling's parameters.
    """
    return ops.nn.avg_pool2d_grad(
        out_grad, data, pool_size=spread(pool_size, 2), strides=spread(strides, 2),
        padding=padding_pairs(padding, 2), layout=layout, out_layout=out_layout,
        ceil_mode=bool(ceil_mode), count_include_pad=bool(count_include_pad),
    )  # fmt: skip
