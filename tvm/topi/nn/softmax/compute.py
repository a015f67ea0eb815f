"""Softmax: exponentials of what is below the maximum, divided by their sum."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from ...utils import real_axis


def _without(i: Any, axis: int) -> Any:
    return (*i[:axis], *i[axis + 1 :])


def _row_reduction(x: te.Tensor, axis: int, reduce: Any, name: str) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[axis]), name="k")
    return te.compute(
        _without(x.shape, axis),
        lambda *i: reduce(x(*i[:axis], k.var, *i[axis:]), axis=k),
        name=name,
    )


def softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """Normalised exponentials along one axis."""
    at = real_axis(axis, len(x.shape))
    largest = _row_reduction(x, at, te.max, "T_softmax_maxelem")
    exponentials = te.compute(
        x.shape,
        lambda *i: tir.exp(x(*i) - largest(*_without(i, at))),
        name="T_softmax_exp",
    )
    total = _row_reduction(exponentials, at, te.sum, "T_softmax_expsum")
    return te.compute(
        x.shape,
        # one division a row, then multiplications
        lambda *i: exponentials(*i) * (tir.const(1.0, x.dtype) / total(*_without(i, at))),
        name="T_softmax_norm",
        tag="softmax_output",
        attrs={"axis": at},
    )


def log_softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """The logarithm of softmax."""
    at = real_axis(axis, len(x.shape))
    largest = _row_reduction(x, at, te.max, "T_softmax_maxelem")
    k = te.reduce_axis((0, x.shape[at]), name="k")
    total = te.compute(
        _without(x.shape, at),
        lambda *i: te.sum(tir.exp(x(*i[:at], k.var, *i[at:]) - largest(*i)), axis=k),
        name="T_softmax_expsum",
    )
    return te.compute(
        x.shape,
        lambda *i: x(*i) - largest(*_without(i, at)) - tir.log(total(*_without(i, at))),
        name="T_log_softmax",
        tag="log_softmax_output",
        attrs={"axis": at},
    )


fast_softmax = softmax


def softmax_common(x: te.Tensor, axis: int, use_fast_exp: bool) -> te.Tensor:
    """Normalised exponentials along an axis; a fast exponential may be less exact."""
    return fast_softmax(x, axis) if use_fast_exp else softmax(x, axis)
