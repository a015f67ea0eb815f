"""PyTorch's functions that order elements: running extrema and sums of exponentials, medians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te, tir, topi
from tvm.ir.expr import PrimExpr
from tvm.relax import op as _op
from tvm.relax.expr import const
from tvm.relay.frontend.common import extremes
from tvm.relay.frontend.pytorch.registry import category

from .base_fx_graph_translator import EMITTERS, Emitter, NoEmitter, emitter
from .pointwise import Importer, size_tensor


def _axis(e: Importer, x: Any, dim: int) -> int:
    rank = len(e.shape_of(x))
    if rank == 0 or e.dtype_of(x) == "bool":
        raise NoEmitter("running values of a scalar, or of truth values")
    return dim % rank


def _is_nan(value: PrimExpr) -> PrimExpr:
    return tir.isnan(value) if value.dtype.is_float else tir.const(False, "bool")


def _running_extrema(compare: Callable[[Any, Any], PrimExpr]) -> Emitter:
    """The best element of each prefix, and the last place where it is; NaN is better than all."""

    def better(best: PrimExpr, new: PrimExpr) -> PrimExpr:
        return tir.Select(tir.any(_is_nan(best), compare(best, new)), best, new)

    def extrema(x: te.Tensor, axis: int) -> list[te.Tensor]:
        values = topi.scan.scanop(x, better, 0, "running_extrema", axis)

        def place(*i: Any) -> PrimExpr:
            is_best = tir.any(tir.EQ(x(*i), values(*i)), _is_nan(x(*i)))
            return tir.Select(is_best, i[axis].astype("int64"), tir.const(0, "int64"))

        places = te.compute(x.shape, place, name="places_of_extrema", tag="injective")
        return [values, topi.scan.scanop(places, tir.max, 0, "running_places", axis)]

    def emit(e: Importer, x: Any, dim: int) -> Any:
        axis = _axis(e, x, dim)
        return e.block_builder.emit_te(extrema, x, axis, primfunc_name_hint="running_extrema")

    return emit


EMITTERS.update(
    {
        "cummax": _running_extrema(lambda a, b: tir.GT(a, b)),
        "cummin": _running_extrema(lambda a, b: tir.LT(a, b)),
    }
)


def _log_add_exp(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """log(exp(a) + exp(b)) by the distance of both; infinities of one sign are no distance apart."""
    distance = tir.Select(tir.EQ(a, b), tir.const(0, a.dtype), tir.abs(a - b))
    total: PrimExpr = tir.max(a, b) + tir.log1p(tir.exp(-distance))
    return total


@emitter("logcumsumexp")
def _running_exponentials(e: Importer, x: Any, dim: int) -> Any:
    axis = _axis(e, x, dim)
    if category(e.dtype_of(x)) != 2:
        raise NoEmitter("exponentials of integers")

    def sums(x: te.Tensor, axis: int) -> te.Tensor:
        lowest = float("-inf")
        return topi.scan.scanop(x, _log_add_exp, lowest, "running_exponentials", axis)

    return e.block_builder.emit_te(sums, x, axis, primfunc_name_hint="running_exponentials")


@emitter("median")
def _median(e: Importer, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The lower one of two in the middle, NaN if there is one, and where it is."""
    dims = e.shape_of(x)
    if dims.are_known:
        raise NoEmitter("elements of known sizes")
    data = e.emit(_op.reshape(x, [-1])) if dim is None else x
    axis = 0 if dim is None else _axis(e, x, dim)
    is_real, kind = category(e.dtype_of(x)) == 2, e.dtype_of(x)
    order = data
    if is_real:
        missing = e.emit(_op.isnan(data))
        order = e.emit(_op.where(missing, const(extremes(kind)[1], kind), data))
    order = e.emit(_op.argsort(order, axis, dtype="int64"))
    middle = size_tensor(e, (e.shape_of(data)[axis] - 1) // 2, "int64")
    index = e.emit(_op.take(order, e.emit(_op.reshape(middle, [1])), axis))
    value = e.emit(_op.gather_elements(data, index, axis))
    if is_real:
        marks = e.emit(_op.astype(missing, "int32"))
        has_missing = e.emit(_op.greater(e.emit(_op.max(marks, axis, True)), const(0, "int32")))
        first = e.emit(_op.argmax(marks, axis, True))
        value = e.emit(_op.where(has_missing, const(float("nan"), kind), value))
        index = e.emit(_op.where(has_missing, first, index))
    if not keepdim:
        value, index = [e.emit(_op.squeeze(v, axis)) for v in (value, index)]
    return value if dim is None else [value, index]
