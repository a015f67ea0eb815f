"""Reductions and scans."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.error import TypeCheckError
from tvm.tir import IntImm

from .infer import axes_of, axis_of, dims_of, made, product, tensors
from .legalize import topi_call
from .operator import DataType, Expr, Ints, documented, operator


def reduced(call: Any, info: Any, axes: Any, keepdims: bool, kind: Any) -> Any:
    """A tensor without some axes, or with ones in their places."""
    if axes is None:
        if keepdims and info.ndim >= 0:
            return made((1,) * info.ndim, kind, info.vdevice)
        if not keepdims:
            return made((), kind, info.vdevice)
        return made(None, kind, info.vdevice)
    if info.ndim < 0:
        return made(None, kind, info.vdevice)
    found = axes_of(call, axes, info.ndim)
    dims = dims_of(info)
    if dims is None:
        ndim = info.ndim if keepdims else info.ndim - len(found)
        if not keepdims and ndim == 0:
            return made((), kind, info.vdevice)
        if keepdims and len(found) == info.ndim:
            return made((1,) * info.ndim, kind, info.vdevice)
        return made(None, kind, info.vdevice, ndim)
    if keepdims:
        one = IntImm("int64", 1)
        return made([one if i in found else d for i, d in enumerate(dims)], kind, info.vdevice)
    return made([d for i, d in enumerate(dims) if i not in found], kind, info.vdevice)


def _infer(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `x` without the reduced axes, which have extent 1 if `keepdims`."""
    info = tensors(call, 1)[0]
    return reduced(call, info, call.attrs.axis, call.attrs.keepdims, info.dtype)


def _mean(x: Any, axis: Any, keepdims: bool) -> Any:
    count = _count(x, axis)
    return topi.divide(topi.sum(x, axis, keepdims), count.astype(x.dtype))


def _count(x: Any, axis: Any) -> Any:
    axes = range(len(x.shape)) if axis is None else [a % len(x.shape) for a in axis]
    return product([x.shape[a] for a in axes])


def _variance(x: Any, axis: Any, keepdims: bool) -> Any:
    difference = topi.subtract(x, _mean(x, axis, True))
    return _mean(topi.multiply(difference, difference), axis, keepdims)


def _std(x: Any, axis: Any, keepdims: bool) -> Any:
    return topi.sqrt(_variance(x, axis, keepdims))


def _reduction(name: str, function: Any, what: str) -> Any:
    def build(x: Expr, axis: Ints = None, keepdims: bool = False) -> Expr: ...

    doc = f"""{what}

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    axis : int or tuple of int, optional
        The axes; by default all.
    keepdims : bool
        Whether the axes stay, with one element.
    """
    legalize = topi_call(function, name, "axis", "keepdims")
    return operator(f"relax.{name}", "StatisticalAttrs", infer=_infer, FLegalize=legalize)(
        documented(build, name, __name__, doc)
    )


max = _reduction("max", topi.max, "The greatest elements.")
min = _reduction("min", topi.min, "The smallest elements.")
mean = _reduction("mean", _mean, "Means.")
prod = _reduction("prod", topi.prod, "Products.")
sum = _reduction("sum", topi.sum, "Sums.")
std = _reduction("std", _std, "Standard deviations.")
variance = _reduction("variance", _variance, "Variances.")


def _infer_scan(call: Any, bb: Any) -> Any:
    """A tensor of the shape of `data`, flat if there is no axis; of dtype `dtype`, or that of
    `data`."""
    info = tensors(call, 1)[0]
    kind = info.dtype if call.attrs.dtype.is_void else call.attrs.dtype
    if call.attrs.axis is not None:
        if info.ndim >= 0:
            axis_of(call, call.attrs.axis, info.ndim)
        if info.shape is not None:
            return made(info.shape, kind, info.vdevice)
        return made(None, kind, info.vdevice, info.ndim)
    dims = dims_of(info)
    if dims is None:
        return made(None, kind, info.vdevice, 1)
    return made((product(dims),), kind, info.vdevice)


def _scan(name: str, function: Any, what: str) -> Any:
    def legalize(bb: Any, call: Any) -> Any:
        attrs = call.attrs
        kind = None if attrs.dtype.is_void else attrs.dtype
        return bb.call_te(
            function, call.args[0], attrs.axis, kind, attrs.exclusive, primfunc_name_hint=name
        )

    def build(
        data: Expr, axis: int | None = None, dtype: DataType = None, exclusive: bool = False
    ) -> Expr:
        if exclusive not in (True, False, None, 0, 1):
            raise TypeCheckError(f"relax.{name} requires a bool as exclusive, got {exclusive}")
        return {"exclusive": bool(exclusive)}

    doc = f"""{what}

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    axis : int, optional
        The axis; by default the tensor is flattened.
    dtype : str, optional
        The data type of the result.
    exclusive : bool
        Whether each element is left out of its own result.
    """
    return operator(f"relax.{name}", "ScanopAttrs", infer=_infer_scan, FLegalize=legalize)(
        documented(build, name, __name__, doc)
    )


cumprod = _scan("cumprod", topi.cumprod, "Products of all elements so far.")
cumsum = _scan("cumsum", topi.cumsum, "Sums of all elements so far.")
