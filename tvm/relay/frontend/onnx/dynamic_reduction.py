"""Reductions over axes that only the run knows.

An element adds to the one that its coordinates along the kept axes name, in one scatter:

    out[sum of coordinate[a] * stride[a] over the kept axes] += x[coordinate]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import (
    constant,
    extremes,
    infer_dtype,
    infer_shape,
    is_static,
    scalar_like,
)
from tvm.relay.frontend.dynamic_extents import element, positions_along

from .dynamic_axes import flags_of_axes, kept_extents
from .registry import OnnxNode


@dataclass(frozen=True)
class Scatter:
    """Where the elements of a tensor go: ``extents`` with ones for the axes that are reduced."""

    extents: RelayExpr
    targets: RelayExpr  # of each element of the tensor, flat
    count: RelayExpr  # how many elements become one

    def reduced(self, x: RelayExpr, reduction: str) -> RelayExpr:
        """The reduction of a tensor, flat."""
        dtype = infer_dtype(x)
        work = {"bool": "uint8", "float16": "float32", "bfloat16": "float32"}.get(dtype, dtype)
        elements = _op.cast(_op.reshape(x, (-1,)), work)
        low, high = extremes(work)
        start = constant({"add": 0, "mul": 1, "min": high, "max": low}[reduction], work)
        size = _op.prod(self.extents, keepdims=True)
        total = _op.full(start, size, work)
        return _op.cast(_op.scatter_elements(total, self.targets, elements, 0, reduction), dtype)

    def spread(self, flat: RelayExpr, x: RelayExpr) -> RelayExpr:
        """A reduced element for each element of the tensor."""
        return _op.reshape_like(_op.take(flat, self.targets, 0), x)


def _scatter(x: RelayExpr, flags: RelayExpr) -> Scatter:
    rank, extents = len(infer_shape(x)), _op.shape_of(x, "int64")
    one = scalar_like(1, flags)
    kept = _op.where(_op.cast(flags, "bool"), one, extents)
    targets = None
    for axis in range(rank):
        stride = constant([1], "int64")
        for behind in range(axis + 1, rank):
            stride = stride * element(kept, behind)
        stride = stride * (one - element(flags, axis))
        part = positions_along(x, axis) * stride
        targets = part if targets is None else targets + part
    assert targets is not None
    count = _op.prod(_op.where(_op.cast(flags, "bool"), extents, _op.ones_like(extents)))
    return Scatter(kept, _op.reshape(targets, (-1,)), count)


Reducing = Callable[[RelayExpr, Scatter], RelayExpr]


def _mean(x: RelayExpr, to: Scatter) -> RelayExpr:
    total = to.reduced(x, "add")
    return total / _op.cast(to.count, infer_dtype(total))


def _log_sum_exp(x: RelayExpr, to: Scatter) -> RelayExpr:
    """Of the differences to the largest, so that nothing overflows."""
    largest = to.reduced(x, "max")
    finite = _op.where(_op.isfinite(largest), largest, _op.zeros_like(largest))
    return _op.log(to.reduced(_op.exp(x - to.spread(finite, x)), "add")) + finite


_REDUCTIONS: dict[str, Reducing] = {
    "ReduceSum": lambda x, to: to.reduced(x, "add"),
    "ReduceMean": _mean,
    "ReduceMax": lambda x, to: to.reduced(x, "max"),
    "ReduceMin": lambda x, to: to.reduced(x, "min"),
    "ReduceProd": lambda x, to: to.reduced(x, "mul"),
    "ReduceL1": lambda x, to: to.reduced(_op.abs(x), "add"),
    "ReduceL2": lambda x, to: _op.sqrt(to.reduced(x * x, "add")),
    "ReduceLogSum": lambda x, to: _op.log(to.reduced(x, "add")),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceSumSquare": lambda x, to: to.reduced(x * x, "add"),
}


def reduce_dynamic_axes(node: OnnxNode) -> RelayExpr:
    """A reduction over axes that come as input 1."""
    x, rank = node[0], len(node.shape(0))
    if rank == 0:
        return _op.reshape(_REDUCTIONS[node.op_type](_op.reshape(x, (1,)), _of_number()), ())
    flags = flags_of_axes(node[1], rank)
    if not node.attr("noop_with_empty_axes", 0) and not is_static(node.shape(1)):
        is_none = _op.equal(_op.sum(flags), constant(0, "int64"))
        flags = _op.where(is_none, _op.ones_like(flags), flags)
    to = _scatter(x, flags)
    found = _REDUCTIONS[node.op_type](x, to)
    if node.attr("keepdims", 1):
        return _op.reshape(found, to.extents, allowzero=True)
    extents = kept_extents(x, flags, rank - node.static_shape(1)[0])
    return _op.reshape(found, extents, allowzero=True)


def _of_number() -> Scatter:
    """A number is all there is to reduce."""
    return Scatter(constant([1], "int64"), constant([0], "int64"), constant(1, "int64"))
