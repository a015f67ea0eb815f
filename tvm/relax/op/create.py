"""New tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import te, tir, topi
from tvm.arith import Analyzer
from tvm.error import TVMError
from tvm.ir.expr import PrimExpr
from tvm.relax.expr import Call, PrimValue, const
from tvm.relax.struct_info import PrimStructInfo, ShapeStructInfo, TensorStructInfo

from .infer import check_count, fail, made, shape_argument, tensor, tensors, with_dtype
from .legalize import scalar_or
from .operator import DataType, Expr, Shape, operator


def _infer_full(call: Any, bb: Any) -> Any:
    """A tensor of the given shape; of dtype `dtype`, or that of the value."""
    check_count(call, 2)
    info = call.args[0].struct_info
    if not isinstance(info, ShapeStructInfo):
        raise fail(call, f"requires a Shape, got {info}")
    fill = tensor(call, 1)
    if fill.ndim != 0:
        raise fail(call, f"requires a scalar as fill_value, got {fill}")
    kind = fill.dtype if call.attrs.dtype.is_void else call.attrs.dtype
    return _of_shape(call.args[0], kind, fill.vdevice)


def _of_shape(shape: Any, kind: Any, device: Any = None) -> Any:
    return TensorStructInfo(shape, kind, device)


def _fill(value: Any) -> Any:
    """A number as a constant."""
    if isinstance(value, (int, float, bool, np.generic)):
        return const(value)
    return value


def _legalize_full(is_like: bool, value: float | None) -> Any:
    def legalize(bb: Any, call: Call) -> Any:
        info = call.struct_info
        fill = scalar_or(call.args[1]) if value is None else tir.const(value, info.dtype)
        name = "full" if value is None else ("ones" if value else "zeros")
        return bb.call_te(
            lambda shape, number: (
                topi.full(shape, info.dtype, number)
                if not hasattr(number, "op")
                else topi.full(shape, info.dtype, number())
            ),
            info.shape,
            fill,
            primfunc_name_hint=name,
        )

    return legalize


@operator("relax.full", "InitAttrs", infer=_infer_full, FLegalize=_legalize_full(False, None))
def full(shape: Shape, fill_value: Expr, dtype: DataType = None) -> Expr:
    """A tensor of one value.

    Parameters
    ----------
    shape : tuple of int or PrimExpr, or Expr
        Its shape.
    fill_value : relax.Expr
        The value, a scalar.
    dtype : str, optional
        By default that of the value.
    """
    return {"fill_value": _fill(fill_value)}


def _infer_full_like(call: Any, bb: Any) -> Any:
    """A tensor of the shape of `x`; of dtype `dtype`, or that of `x`."""
    info, fill = tensors(call, 2)
    if fill.ndim != 0:
        raise fail(call, f"requires a scalar as fill_value, got {fill}")
    return with_dtype(info, info.dtype if call.attrs.dtype.is_void else call.attrs.dtype)


@operator(
    "relax.full_like", "InitAttrs", infer=_infer_full_like, FLegalize=_legalize_full(True, None)
)
def full_like(x: Expr, fill_value: Expr, dtype: DataType = None) -> Expr:
    """A tensor of one value, of the shape of another.

    Parameters
    ----------
    x : relax.Expr
        The tensor whose shape it has.
    fill_value : relax.Expr
        The value, a scalar.
    dtype : str, optional
        By default that of ``x``.
    """
    return {"fill_value": _fill(fill_value)}


def _infer_init(call: Any, bb: Any) -> Any:
    """A tensor of the given shape and dtype."""
    check_count(call, 1)
    shape_argument(call, 0)
    if call.attrs.dtype.is_void:
        raise fail(call, "requires a dtype")
    return _of_shape(call.args[0], call.attrs.dtype)


def _infer_init_like(call: Any, bb: Any) -> Any:
    """A tensor of the shape of `x`; of dtype `dtype`, or that of `x`."""
    info = tensors(call, 1)[0]
    return with_dtype(info, info.dtype if call.attrs.dtype.is_void else call.attrs.dtype)


def _init(name: str, value: float) -> Any:
    def build(shape: Shape, dtype: DataType) -> Expr: ...

    def build_like(x: Expr, dtype: DataType = None) -> Expr: ...

    made_functions = []
    for function, full_name, infer in (
        (build, name, _infer_init),
        (build_like, f"{name}_like", _infer_init_like),
    ):
        function.__name__ = function.__qualname__ = full_name
        function.__module__ = __name__
        function.__doc__ = f"A tensor of {name}."
        legalize = _legalize_full(False, value)
        made_functions.append(
            operator(f"relax.{full_name}", "InitAttrs", infer=infer, FLegalize=legalize)(function)
        )
    return made_functions


ones, ones_like = _init("ones", 1)
zeros, zeros_like = _init("zeros", 0)


def _infer_arange(call: Any, bb: Any) -> Any:
    """A vector of dtype `dtype`; its extent is the number of steps."""
    check_count(call, 3)
    values = []
    for arg in call.args:
        info = arg.struct_info
        if not isinstance(info, PrimStructInfo):
            raise fail(call, f"requires numbers, got {info}")
        values.append(info.value)
    kind = call.attrs.dtype
    if kind.is_void:
        raise fail(call, "requires a dtype")
    start, end, step = values
    if start is None or end is None or step is None:
        return made(None, kind, None, 1)
    if start.dtype.is_int and end.dtype.is_int and step.dtype.is_int:
        count = tir.floordiv(end - start + step - 1, step)
    else:
        length = (end - start).astype("float32") / step.astype("float32")
        count = tir.ceil(length).astype("int64")
    count = Analyzer().simplify(count)
    return made((count.astype("int64"),), kind)


def _legalize_arange(bb: Any, call: Call) -> Any:
    start, end, step = [arg.struct_info.value for arg in call.args]
    kind = call.attrs.dtype
    if all([isinstance(v, (tir.IntImm, tir.FloatImm)) for v in (start, end, step)]):
        return const(np.arange(start.value, end.value, step.value, dtype=kind.numpy), kind)
    return bb.call_te(topi.arange, start, end, step, kind)


@operator("relax.arange", "InitAttrs", infer=_infer_arange, FLegalize=_legalize_arange)
def arange(start: Expr, end: Expr = None, step: Expr = 1, dtype: DataType = None) -> Expr:
    """Numbers at equal distances.

    Parameters
    ----------
    start, end : int, float, PrimValue or PrimExpr
        The first number, and the bound; with one of them the first is zero.
    step : int, float, PrimValue or PrimExpr
        The distance.
    dtype : str, optional
        By default int64, or float32 if one of the numbers is a float.
    """
    if end is None:
        start, end = 0, start
    values = [v.value if isinstance(v, PrimValue) else v for v in (start, end, step)]
    if dtype is None:
        is_integer = all(
            [
                isinstance(v, (int, np.integer)) or getattr(v, "dtype", None) == "int64"
                for v in values
            ]
        )
        dtype = "int64" if is_integer else "float32"
    start, end, step = [PrimValue(v) for v in values]
    return {"start": start, "end": end, "step": step, "dtype": dtype}


def _integers(call: Any, args: Any) -> list[Any]:
    """The values of arguments that are integers, None for those that only the run knows."""
    for arg in args:
        info = arg.struct_info
        if not isinstance(info, PrimStructInfo) or not info.dtype.is_int:
            raise fail(call, f"requires integers, got {info}")
    return [None if arg.struct_info.value is None else _number(arg) for arg in args]


def _infer_eye(call: Any, bb: Any) -> Any:
    """A matrix of `n` rows, `m` columns and dtype `dtype`."""
    check_count(call, 3)
    rows, columns, _ = _integers(call, call.args)
    if call.attrs.dtype.is_void:
        raise fail(call, "requires a dtype")
    if rows is None or columns is None:
        return made(None, call.attrs.dtype, None, 2)
    return made((rows, columns), call.attrs.dtype)


def _infer_eye_like(call: Any, bb: Any) -> Any:
    """A matrix of the shape of `x`; of dtype `dtype`, or that of `x`."""
    check_count(call, 2)
    info = tensor(call, 0)
    _integers(call, call.args[1:])
    if info.ndim not in (-1, 2):
        raise fail(call, f"requires a matrix, got {info}")
    return with_dtype(info, info.dtype if call.attrs.dtype.is_void else call.attrs.dtype)


def _legalize_eye(bb: Any, call: Call) -> Any:
    info: Any = call.struct_info
    (k,) = _integers(call, call.args[-1:])
    if k is None:
        return call

    def compute(shape: Any, k: Any) -> Any:
        one, zero = [tir.const(value, info.dtype) for value in (1, 0)]
        return te.compute(
            shape,
            lambda i, j: tir.Select(j.astype("int64") - i.astype("int64") == k, one, zero),
            name="eye",
            tag="injective",
        )

    return bb.call_te(compute, info.shape, k, primfunc_name_hint="eye")


@operator("relax.eye", "InitAttrs", infer=_infer_eye, FLegalize=_legalize_eye)
def eye(n: Expr, m: Expr = None, k: Expr = 0, dtype: DataType = "float32") -> Expr:
    """A matrix with ones on a diagonal, and zeros elsewhere.

    Parameters
    ----------
    n : int, PrimExpr or PrimValue
        How many rows.
    m : int, PrimExpr or PrimValue, optional
        How many columns, by default as many.
    k : int, PrimExpr or PrimValue
        How far above the main diagonal the ones are.
    dtype : str
        The data type.
    """
    return {"m": n if m is None else m}


@operator("relax.eye_like", "InitAttrs", infer=_infer_eye_like, FLegalize=_legalize_eye)
def eye_like(x: Expr, k: Expr = 0, dtype: DataType = None) -> Expr:
    """A matrix with ones on a diagonal, of the shape of another.

    Parameters
    ----------
    x : relax.Expr
        The matrix whose shape it has.
    k : int, PrimExpr or PrimValue
        How far above the main diagonal the ones are.
    dtype : str, optional
        By default that of ``x``.
    """


def _infer_tri(call: Any, bb: Any) -> Any:
    """A tensor of the shape and dtype of the operand."""
    check_count(call, 2)
    info = tensor(call, 0)
    if 0 <= info.ndim < 2:
        raise fail(call, f"requires a tensor of two dimensions or more, got {info}")
    return info


def _number(value: Expr) -> PrimExpr:
    info = value.struct_info
    assert isinstance(info, PrimStructInfo) and info.value is not None
    return info.value.astype("int64")


def _legalize_tri(is_upper: bool) -> Any:
    def legalize(bb: Any, call: Call) -> Any:
        name = "triu" if is_upper else "tril"
        return bb.call_te(
            topi.trilu, call.args[0], _number(call.args[1]), upper=is_upper,
            primfunc_name_hint=name,
        )  # fmt: skip

    return legalize


@operator("relax.tril", infer=_infer_tri, FLegalize=_legalize_tri(False))
def tril(x: Expr, k: Expr = 0) -> Expr:
    """The lower triangles of matrices, with zeros above.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    k : int or PrimExpr
        How far above the main diagonal they end.
    """


@operator("relax.triu", infer=_infer_tri, FLegalize=_legalize_tri(True))
def triu(x: Expr, k: Expr = 0) -> Expr:
    """The upper triangles of matrices, with zeros below.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    k : int or PrimExpr
        How far above the main diagonal they begin.
    """


__all__ = [
    "TVMError", "arange", "eye", "eye_like", "full", "full_like", "ones", "ones_like", "tril",
    "triu", "zeros", "zeros_like",
]  # fmt: skip
