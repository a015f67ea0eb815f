"""Making tensors of shapes that the run decides, and taking the first elements of an order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir, topi
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TupleType, Type
from tvm.relay.expr import Call

from ..algorithm import topk, values_or_indices
from ..attributes import as_ints
from ..broadcasting import InitOpAttrs
from ..registry import ops, zero_gradient
from ..schedules import EXTERN_SCHEDULES
from ..types import expect_tensor, positive_axis, shape_of_type, tensor, unknown
from .declare import (
    Values,
    dynamic,
    entries,
    given_shape,
    scalar,
    shape_tensor,
    unknowns,
    vector_length,
)


def _filled(name: str, value: int, static: Op) -> Op:
    """Tensors of one number: `dyn.zeros(%shape)`."""

    def infer_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
        return tensor(unknowns(vector_length(arg_types[0], name, "shape")), attrs.dtype)

    @dynamic(
        name,
        InitOpAttrs,
        infer_type=infer_type,
        compute=lambda attrs, inputs, out_type: [topi.full(out_type.shape, attrs.dtype, value)],
        shape_func=given_shape(0),
        gradient=zero_gradient,
    )
    def declared(attrs: Any, shape: Values) -> RelayExpr:
        return static(shape=as_ints(shape), dtype=attrs.dtype)

    return declared


_filled("dyn.zeros", 0, ops.zeros)
_filled("dyn.ones", 1, ops.ones)


def _full_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    value = expect_tensor(arg_types[0], "dyn.full", "fill_value", rank=0)
    rank = vector_length(arg_types[1], "dyn.full", "shape")
    return tensor(unknowns(rank), attrs.dtype or value.dtype)


@dynamic(
    "dyn.full",
    InitOpAttrs,
    infer_type=_full_type,
    compute=lambda attrs, inputs, out_type: [
        topi.full(out_type.shape, out_type.dtype, inputs[0]())
    ],
    shape_func=given_shape(1),
)
def _full(attrs: Any, fill_value: RelayExpr, shape: Values) -> RelayExpr:
    return ops.full(fill_value, shape=as_ints(shape), dtype=attrs.dtype)


def _topk_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    who = "dyn.topk"
    data = expect_tensor(arg_types[0], who)
    expect_tensor(arg_types[1], who, "k")
    shape = list(shape_of_type(data))
    shape[positive_axis(attrs.axis, len(shape), who)] = unknown()
    return values_or_indices(attrs, shape, data.dtype, who)


def _topk_compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
    results = out_type.fields if isinstance(out_type, TupleType) else (out_type,)
    first = expect_tensor(results[0], "dyn.topk")
    count = first.shape[attrs.axis % len(first.shape)]
    found = topi.topk(inputs[0], count, attrs.axis, attrs.ret_type, attrs.is_ascend, attrs.dtype)
    return found if isinstance(found, list) else [found]


def _topk_shape(
    attrs: Any, inputs: Sequence[te.Tensor], out_ndims: Sequence[object]
) -> list[te.Tensor]:
    dims = entries(inputs[0])
    axis = attrs.axis % len(dims)
    count = scalar(inputs[1]).astype("int64")
    dims[axis] = tir.Select(count < 1, dims[axis], tir.min(count, dims[axis]))
    return [shape_tensor(dims) for _ in range(2 if attrs.ret_type == "both" else 1)]


@dynamic(
    "dyn.topk",
    topk,
    infer_type=_topk_type,
    compute=_topk_compute,
    shape_func=_topk_shape,
    schedules=EXTERN_SCHEDULES,
)
def _topk(attrs: Any, data: RelayExpr, k: Values) -> RelayExpr:
    return Call(ops.topk, (data,), attrs.replace(k=int(k.reshape(-1)[0])))
