"""Operators that make tensors of a shape: full, arange, shape_of and their kin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from tvm import te, tir, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Call, Constant, const

from .broadcasting import InitOpAttrs
from .computes import computed_by
from .operator import Expr, Ints, Operand, operator
from .registry import OpPattern, ops, zero_gradient
from .run_time import RunTime
from .types import (
    Tensor0,
    expect,
    expect_countable,
    expect_tensor,
    is_known,
    shape_of_type,
    tensor,
    unknown,
)
from .unary import numpy_dtype


def _filled_type(attrs: InitOpAttrs, arg_types: Sequence[Type]) -> Type:
    """A tensor of the given shape and dtype; without a dtype, of that of the value."""
    dtype = attrs.dtype or expect_tensor(arg_types[0], "full", "fill_value", rank=0).dtype
    return tensor(attrs.shape or (), dtype)


_SHAPE = RunTime({"shape": None})


@operator(
    "full",
    InitOpAttrs,
    support_level=3,
    infer_type=_filled_type,
    fuse=OpPattern.ELEMWISE,
    compute=lambda attrs, inputs, out_type: [
        topi.full(out_type.shape, out_type.dtype, inputs[0]())
    ],
    fold=lambda attrs, arrays, out_type: [
        np.full(out_type.concrete_shape, arrays[0], numpy_dtype(out_type.dtype))
    ],
    gradient=lambda call, grad: [ops.cast_like(ops.sum(grad, axis=None), call.args[0])],
    run_time=_SHAPE,
)
def full(fill_value: Expr, shape: Ints = (), dtype: str = "") -> RelayExpr:
    """A tensor filled with one value.

    Parameters
    ----------
    fill_value : relay.Expr
        A scalar.
    shape : sequence of int or relay.Expr
        The shape.
    dtype : str
        The dtype, the fill value's by default.
    """


def _filled_with(value: int) -> dict[str, Any]:
    """What the operators that fill a tensor with one number have in common."""
    return {
        "infer_type": _filled_type,
        "fuse": OpPattern.ELEMWISE,
        "compute": lambda attrs, inputs, out_type: [
            topi.full(out_type.shape, out_type.dtype, value)
        ],
        "fold": lambda attrs, arrays, out_type: [
            np.full(out_type.concrete_shape, value, numpy_dtype(out_type.dtype))
        ],
        "gradient": zero_gradient,
        "run_time": replace(_SHAPE, gradient=zero_gradient),
    }


@operator("zeros", InitOpAttrs, support_level=3, **_filled_with(0))
def zeros(shape: Ints, dtype: str) -> RelayExpr:
    """A tensor of zeros.

    Parameters
    ----------
    shape : sequence of int or relay.Expr
        The shape.
    dtype : str
        The dtype.
    """


@operator("ones", InitOpAttrs, support_level=3, **_filled_with(1))
def ones(shape: Ints, dtype: str) -> RelayExpr:
    """A tensor of ones; parameters as in `zeros`."""


def _full_like_type(attrs: Attrs, data: TensorType, fill_value: Tensor0) -> Type:
    """A tensor of the shape and dtype of `data`."""
    return data


@operator(
    "full_like",
    support_level=3,
    infer_type=_full_like_type,
    fuse=OpPattern.ELEMWISE,
    compute=lambda attrs, inputs, out_type: [topi.full_like(inputs[0], inputs[1]())],
    fold=lambda attrs, arrays, out_type: [np.full_like(arrays[0], arrays[1])],
    gradient=lambda call, grad: [
        ops.zeros_like(call.args[0]), ops.cast_like(ops.sum(grad, axis=None), call.args[1])
    ],
)  # fmt: skip
def full_like(data: Expr, fill_value: Expr) -> RelayExpr:
    """A tensor of another's shape and dtype, filled with one value.

    Parameters
    ----------
    data : relay.Expr
        The tensor whose shape and dtype are taken.
    fill_value : relay.Expr
        A scalar.
    """


class ArangeAttrs(Attrs, key="relay.attrs.ArangeAttrs"):
    """The bounds, where they are constants, and the dtype."""

    start: float | int | None = None
    stop: float | int | None = None
    step: float | int | None = None
    dtype: str = "float32"


def _arange_type(attrs: ArangeAttrs, arg_types: Sequence[Type]) -> Type:
    """A vector of dtype `dtype`; its extent is the number of steps, rounded up, and at least 0."""
    for ty, argument in zip(arg_types, ("start", "stop", "step"), strict=True):
        expect_tensor(ty, "arange", argument, rank=0)
    if attrs.start is None or attrs.stop is None or attrs.step is None:
        return tensor((unknown(),), attrs.dtype)
    expect(attrs.step != 0, "arange requires a step other than 0")
    count = (attrs.stop - attrs.start) / attrs.step
    expect(math.isfinite(count), f"arange requires finite bounds, got {attrs}")
    return tensor((max(math.ceil(count), 0),), attrs.dtype)


def _arange_compute(
    attrs: ArangeAttrs, inputs: Sequence[te.Tensor], out_type: TensorType
) -> list[te.Tensor]:
    start, _, step = [t() for t in inputs]
    return [topi.creation.ramp(start, step, out_type.shape[0], attrs.dtype)]


def _arange_shape(
    attrs: ArangeAttrs, inputs: Sequence[te.Tensor], out_ranks: Sequence[object]
) -> list[te.Tensor]:
    def count(_: object) -> Any:
        start, stop, step = [t().astype("float64") for t in inputs]
        wanted = tir.ceil((stop - start) / step).astype("int64")
        return tir.max(wanted, tir.const(0, "int64"))

    return [te.compute((1,), count, name="shape")]


def _static_arange(call: Call) -> RelayExpr | None:
    attrs = call.attrs
    start, stop, step = [_number(arg) for arg in call.args]
    if None in (start, stop, step) or None not in (attrs.start, attrs.stop, attrs.step):
        return None
    return call.replace(attrs=attrs.replace(start=start, stop=stop, step=step))


def _number(value: RelayExpr) -> float | None:
    if not isinstance(value, Constant) or value.data.shape:
        return None
    found: float | None = value.data.numpy().item()
    return found


def _arange_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    # the numbers are start + i * step; the stop decides about their count alone
    start, stop, step = call.args
    positions = ops.divide(call - start, step)
    return [
        ops.sum(grad, axis=None),
        ops.zeros_like(stop),
        ops.sum(ops.multiply(grad, positions), axis=None),
    ]


Bound = Annotated[Any, Operand()]


@operator(
    "arange",
    ArangeAttrs,
    support_level=3,
    shape_func=_arange_shape,
    shape_reads=(0, 1, 2),
    infer_type=_arange_type,
    fuse=OpPattern.INJECTIVE,
    compute=_arange_compute,
    make_static=_static_arange,
    fold=lambda attrs, arrays, out_type: [
        np.arange(*[a.item() for a in arrays]).astype(numpy_dtype(attrs.dtype))
    ],
    gradient=_arange_gradient,
)
def arange(
    start: Bound, stop: Bound = None, step: Bound = None, dtype: str = "float32"
) -> RelayExpr:
    """Evenly spaced numbers: start, start + step, ... up to (not including) stop.

    Parameters
    ----------
    start, stop, step : relay.Expr or number
        Scalars; with one argument that is the stop, and the step is 1 by default.
    dtype : str
        The dtype of the numbers.
    """
    if stop is None:
        start, stop = const(0, dtype=dtype), start
    operands = [_scalar(v, dtype) for v in (start, stop, 1 if step is None else step)]
    start, stop, step = [_number(v) for v in operands]
    return ops.arange(*operands, start=start, stop=stop, step=step, dtype=str(dtype))


def _scalar(value: RelayExpr | float, dtype: str) -> RelayExpr:
    return value if isinstance(value, RelayExpr) else const(value, dtype=dtype)


def _shape_of_type(attrs: Any, data: TensorType) -> Type:
    """A vector of dtype `dtype`, with an element for each dimension of `data`."""
    shape = shape_of_type(data)
    expect_countable(shape, attrs.dtype, "shape_of")
    return tensor((len(shape),), attrs.dtype)


def _known_shape(call: Call, arg_types: Sequence[Type]) -> RelayExpr | None:
    shape = shape_of_type(arg_types[0])
    if not is_known(*shape):
        return None
    return const(np.array(shape, dtype=call.attrs.dtype))


@operator(
    "shape_of",
    infer_type=_shape_of_type,
    compute=computed_by(topi.shape, "dtype"),
    simplify=_known_shape,
    fold=lambda attrs, arrays, out_type: [np.array(arrays[0].shape, dtype=attrs.dtype)],
    gradient=zero_gradient,
)
def shape_of(data: Expr, dtype: str = "int32") -> RelayExpr:
    """The shape as a tensor of rank one.

    Parameters
    ----------
    dtype : str
        The dtype of the numbers.
    """


def _size_type(attrs: Any, data: TensorType) -> Type:
    """A scalar of dtype `dtype`."""
    shape = shape_of_type(data)
    if is_known(*shape):
        expect_countable([math.prod(shape)], attrs.dtype, "ndarray_size")
    return tensor((), attrs.dtype)


def _known_size(call: Call, arg_types: Sequence[Type]) -> RelayExpr | None:
    shape = shape_of_type(arg_types[0])
    if not is_known(*shape):
        return None
    return const(np.array(math.prod(shape), dtype=call.attrs.dtype))


@operator(
    "ndarray_size",
    shape_of,
    infer_type=_size_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.ndarray_size, "dtype"),
    simplify=_known_size,
    fold=lambda attrs, arrays, out_type: [np.array(arrays[0].size, dtype=attrs.dtype)],
    gradient=zero_gradient,
)
def ndarray_size(data: Expr, dtype: str = "int32") -> RelayExpr:
    """The number of elements as a scalar; parameters as in `shape_of`."""
