"""Making tensors of shapes that the run decides, and taking the first elements of an order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm import te, tir, topi
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TupleType, Type
from tvm.relay.expr import Call

from ..algorithm import topk
from ..attributes import as_ints
from ..broadcasting import InitOpAttrs
from ..registry import ops, zero_gradient
from ..schedules import EXTERN_SCHEDULES
from ..types import expect, expect_tensor, positive_axis, shape_of_type, tensor
from .declare import dynamic, entries, scalar, shape_tensor, unknowns, vector_length


def _filled(name: str, value: int, static: Op) -> Op:
    """Tensors of one number: `dyn.zeros(%shape)`."""

    def infer_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
        return tensor(unknowns(vector_length(arg_types[0], name, "shape")), attrs.dtype)

    return dynamic(
        name,
        InitOpAttrs,
        inputs=("shape",),
        reads=(0,),
        infer_type=infer_type,
        compute=lambda attrs, inputs, out_type: [topi.full(out_type.shape, attrs.dtype, value)],
        shape_func=lambda attrs, inputs, out_ndims: [shape_tensor(entries(inputs[0]))],
        static=lambda call, values: static(shape=as_ints(values[0]), dtype=call.attrs.dtype),
        gradient=zero_gradient,
    )


_filled("dyn.zeros", 0, ops.zeros)
_filled("dyn.ones", 1, ops.ones)


def _full_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    value = expect_tensor(arg_types[0], "dyn.full", "fill_value", rank=0)
    rank = vector_length(arg_types[1], "dyn.full", "shape")
    return tensor(unknowns(rank), attrs.dtype or value.dtype)


dynamic(
    "dyn.full",
    InitOpAttrs,
    inputs=("fill_value", "shape"),
    reads=(1,),
    infer_type=_full_type,
    compute=lambda attrs, inputs, out_type: [
        topi.full(out_type.shape, out_type.dtype, inputs[0]())
    ],
    shape_func=lambda attrs, inputs, out_ndims: [shape_tensor(entries(inputs[1]))],
    static=lambda call, values: ops.full(
        call.args[0], shape=as_ints(values[0]), dtype=call.attrs.dtype
    ),
)


def _topk_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    who = "dyn.topk"
    data = expect_tensor(arg_types[0], who)
    expect_tensor(arg_types[1], who, "k")
    shape = list(shape_of_type(data))
    shape[positive_axis(attrs.axis, len(shape), who)] = unknowns(1)[0]
    values, indices = tensor(shape, data.dtype), tensor(shape, attrs.dtype)
    found = {"values": values, "indices": indices, "both": TupleType((values, indices))}
    expect(
        attrs.ret_type in found,
        f"{who} requires a ret_type of both, values or indices, got {attrs.ret_type!r}",
    )
    return found[attrs.ret_type]


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


def _static_topk(call: Call, values: list[np.ndarray]) -> RelayExpr:
    return Call(ops.topk, call.args[:1], call.attrs.replace(k=int(values[0].reshape(-1)[0])))


dynamic(
    "dyn.topk",
    topk.op.attrs_type,
    inputs=("data", "k"),
    reads=(1,),
    infer_type=_topk_type,
    compute=_topk_compute,
    shape_func=_topk_shape,
    static=_static_topk,
    schedules=EXTERN_SCHEDULES,
)
