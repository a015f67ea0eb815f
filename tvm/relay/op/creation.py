"""Operators that make tensors of a shape: full, arange, shape_of and their kin."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tvm import te, tir, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type
from tvm.relay.expr import Call, Constant, const

from .attributes import as_ints, is_run_time
from .broadcasting import BroadcastAttrs as InitOpAttrs
from .registry import OpPattern, define_op, ops
from .types import expect, expect_tensor, is_known, shape_of_type, tensor, unknown
from .unary import numpy_dtype


def _filled_type(attrs: InitOpAttrs, arg_types: Sequence[Type]) -> Type:
    dtype = attrs.dtype or expect_tensor(arg_types[0], "full", "fill_value", rank=0).dtype
    return tensor(attrs.shape or (), dtype)


def _filled_with(value: int):  # type: ignore[no-untyped-def]
    def compute(attrs: Attrs, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
        return [topi.full(out_type.shape, out_type.dtype, value)]  # type: ignore[attr-defined]

    return compute


define_op(
    "full",
    InitOpAttrs,
    inputs=("fill_value",),
    infer_type=_filled_type,
    fuse=OpPattern.ELEMWISE,
    compute=lambda attrs, inputs, out_type: [
        topi.full(out_type.shape, out_type.dtype, inputs[0]())
    ],
    fold=lambda attrs, arrays, out_type: [
        np.full(out_type.concrete_shape, arrays[0], numpy_dtype(out_type.dtype))
    ],
)
define_op(
    "zeros",
    InitOpAttrs,
    inputs=(),
    infer_type=_filled_type,
    fuse=OpPattern.ELEMWISE,
    compute=_filled_with(0),
    fold=lambda attrs, arrays, out_type: [
        np.zeros(out_type.concrete_shape, numpy_dtype(out_type.dtype))
    ],
)
define_op(
    "ones",
    InitOpAttrs,
    inputs=(),
    infer_type=_filled_type,
    fuse=OpPattern.ELEMWISE,
    compute=_filled_with(1),
    fold=lambda attrs, arrays, out_type: [
        np.ones(out_type.concrete_shape, numpy_dtype(out_type.dtype))
    ],
)


def _full_like_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
    expect_tensor(arg_types[1], "full_like", "fill_value", rank=0)
    return expect_tensor(arg_types[0], "full_like")


define_op(
    "full_like",
    inputs=("data", "fill_value"),
    infer_type=_full_like_type,
    fuse=OpPattern.ELEMWISE,
    compute=lambda attrs, inputs, out_type: [topi.full_like(inputs[0], inputs[1]())],
    fold=lambda attrs, arrays, out_type: [np.full_like(arrays[0], arrays[1])],
)


class ArangeAttrs(Attrs, key="relay.attrs.ArangeAttrs"):
    """The bounds, where they are constants, and the dtype."""

    start: float | int | None = None
    stop: float | int | None = None
    step: float | int | None = None
    dtype: str = "float32"


def _arange_type(attrs: ArangeAttrs, arg_types: Sequence[Type]) -> Type:
    for ty, argument in zip(arg_types, ("start", "stop", "step"), strict=True):
        expect_tensor(ty, "arange", argument, rank=0)
    if attrs.start is None or attrs.stop is None or attrs.step is None:
        return tensor((unknown(),), attrs.dtype)
    expect(attrs.step != 0, "arange requires a step other than 0")
    count = (attrs.stop - attrs.start) / attrs.step
    expect(math.isfinite(count), f"arange requires finite bounds, got {attrs}")
    return tensor((max(math.ceil(count), 0),), attrs.dtype)


def _arange_compute(
    attrs: ArangeAttrs, inputs: Sequence[te.Tensor], out_type: Type
) -> list[te.Tensor]:
    start, _, step = [t() for t in inputs]
    return [topi.creation.ramp(start, step, out_type.shape[0], attrs.dtype)]  # type: ignore[attr-defined]


def _arange_shape(
    attrs: ArangeAttrs, inputs: Sequence[te.Tensor], out_ranks: Sequence[object]
) -> list[te.Tensor]:
    def count(_: object) -> tir.PrimExpr:
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
    return value.data.numpy().item()  # type: ignore[no-any-return]


define_op(
    "arange",
    ArangeAttrs,
    inputs=("start", "stop", "step"),
    shape_func=_arange_shape,
    shape_reads=(0, 1, 2),
    infer_type=_arange_type,
    fuse=OpPattern.INJECTIVE,
    compute=_arange_compute,
    make_static=_static_arange,
    fold=lambda attrs, arrays, out_type: [
        np.arange(*[a.item() for a in arrays]).astype(numpy_dtype(attrs.dtype))
    ],
)


class ShapeOfAttrs(Attrs, key="relay.attrs.ShapeOfAttrs"):
    """The dtype of the numbers."""

    dtype: str = "int32"


def _shape_of_type(attrs: ShapeOfAttrs, arg_types: Sequence[Type]) -> Type:
    return tensor((len(expect_tensor(arg_types[0], "shape_of").shape),), attrs.dtype)


def _known_shape(call: object, arg_types: Sequence[Type]) -> RelayExpr | None:
    shape = shape_of_type(arg_types[0])
    if not is_known(*shape):
        return None
    return const(np.array(shape, dtype=call.attrs.dtype))  # type: ignore[attr-defined]


define_op(
    "shape_of",
    ShapeOfAttrs,
    inputs=("data",),
    infer_type=_shape_of_type,
    fuse=OpPattern.OPAQUE,
    compute=lambda attrs, inputs, out_type: [topi.shape(inputs[0], attrs.dtype)],
    simplify=_known_shape,
    fold=lambda attrs, arrays, out_type: [np.array(arrays[0].shape, dtype=attrs.dtype)],
)


def _known_size(call: object, arg_types: Sequence[Type]) -> RelayExpr | None:
    shape = shape_of_type(arg_types[0])
    if not is_known(*shape):
        return None
    return const(np.array(math.prod(shape), dtype=call.attrs.dtype))  # type: ignore[attr-defined]


define_op(
    "ndarray_size",
    ShapeOfAttrs,
    inputs=("data",),
    infer_type=lambda attrs, arg_types: tensor((), attrs.dtype),
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [topi.ndarray_size(inputs[0], attrs.dtype)],
    simplify=_known_size,
    fold=lambda attrs, arrays, out_type: [np.array(arrays[0].size, dtype=attrs.dtype)],
)


def full(
    fill_value: RelayExpr, shape: Sequence[int] | RelayExpr = (), dtype: str = ""
) -> RelayExpr:
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
    if is_run_time(shape):
        return Op.get("dyn.full")(fill_value, shape, dtype=str(dtype))
    return ops.full(fill_value, shape=as_ints(shape), dtype=str(dtype))


def full_like(data: RelayExpr, fill_value: RelayExpr) -> RelayExpr:
    """A tensor of another's shape and dtype, filled with one value.

    Parameters
    ----------
    data : relay.Expr
        The tensor whose shape and dtype are taken.
    fill_value : relay.Expr
        A scalar.
    """
    return ops.full_like(data, fill_value)


def zeros(shape: Sequence[int] | RelayExpr, dtype: str) -> RelayExpr:
    """A tensor of zeros.

    Parameters
    ----------
    shape : sequence of int or relay.Expr
        The shape.
    dtype : str
        The dtype.
    """
    if is_run_time(shape):
        return Op.get("dyn.zeros")(shape, dtype=str(dtype))
    return ops.zeros(shape=as_ints(shape), dtype=str(dtype))


def ones(shape: Sequence[int] | RelayExpr, dtype: str) -> RelayExpr:
    """A tensor of ones; parameters as in `zeros`."""
    if is_run_time(shape):
        return Op.get("dyn.ones")(shape, dtype=str(dtype))
    return ops.ones(shape=as_ints(shape), dtype=str(dtype))


def arange(
    start: RelayExpr | float,
    stop: RelayExpr | float | None = None,
    step: RelayExpr | float | None = None,
    dtype: str = "float32",
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


def shape_of(data: RelayExpr, dtype: str = "int32") -> RelayExpr:
    """The shape as a tensor of rank one.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    dtype : str
        The dtype of the numbers.
    """
    return ops.shape_of(data, dtype=str(dtype))


def ndarray_size(data: RelayExpr, dtype: str = "int32") -> RelayExpr:
    """The number of elements as a scalar; parameters as in `shape_of`."""
    return ops.ndarray_size(data, dtype=str(dtype))
