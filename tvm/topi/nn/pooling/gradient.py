"""Gradients of pooling: each input element collects from the windows that hold it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError
from tvm.tir.reduction import least

from ...layout import axis_positions
from ...utils import dims, equals
from .compute import window_size


def pool_grad(
    grads: te.Tensor,
    data: te.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    pool_type: str,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NCHW",
    dilation: Sequence[int] = (1, 1),
) -> te.Tensor:
    """The gradient of the input of a pooling over two axes.

    Parameters
    ----------
    grads, data : te.Tensor
        The gradient of the pooling's result, and its input.
    kernel, stride, padding, pool_type, ceil_mode, count_include_pad, layout, dilation
        The pooling's parameters; padding is (top, left, bottom, right).
    """
    if pool_type not in ("max", "avg"):
        raise RuntimeValueError(f"pool_grad requires a pool_type of max or avg, got {pool_type!r}")
    at = axis_positions(layout, "HW")
    extents, counts = dims(data.shape), dims(grads.shape)
    first = _first_maximum(data, counts, at, kernel, stride, padding, dilation)
    windows = [
        te.reduce_axis((0, k), name=f"k{axis}") for k, axis in zip(kernel, "hw", strict=True)
    ]

    def share(where: Sequence[Any]) -> Any:
        """What the window at `where` gives to the element at offset `windows`."""
        if pool_type == "max":
            offset = windows[0].var * kernel[1] + windows[1].var
            zero = tir.const(0, grads.dtype)
            return tir.Select(tir.EQ(first(*where), offset), grads(*where), zero)
        count = window_size(
            where, at, extents, kernel, stride, dilation, padding, count_include_pad, ceil_mode
        )
        divisor = tir.const(count, "int32") if isinstance(count, int) else count
        return grads(*where) / divisor.astype(grads.dtype)

    def element(*i: Any) -> Any:
        where, inside = list(i), []
        for k, axis in enumerate(at):
            # the element is at index * stride - padding + offset * dilation
            reach = i[axis] + padding[k] - windows[k].var * dilation[k]
            where[axis] = tir.indexdiv(reach, stride[k])
            inside += [reach >= 0, equals(tir.indexmod(reach, stride[k]), 0)]
            inside.append(where[axis] < counts[axis])
        zero = tir.const(0, grads.dtype)
        return te.sum(tir.if_then_else(tir.all(*inside), share(where), zero), axis=windows)

    return te.compute(data.shape, element, name=f"pool_{pool_type}_grad", tag="pool_grad")


def _first_maximum(
    data: te.Tensor,
    counts: Sequence[Any],
    at: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> te.Tensor:
    """The offset of the first greatest element in each window."""
    extents = dims(data.shape)

    def in_window(i: Sequence[Any], windows: Sequence[Any], otherwise: Any, value: Any) -> Any:
        where, inside = list(i), []
        for k, axis in enumerate(at):
            where[axis] = i[axis] * stride[k] - padding[k] + windows[k].var * dilation[k]
            inside += [where[axis] >= 0, where[axis] < extents[axis]]
        return tir.if_then_else(tir.all(*inside), value(where), otherwise)

    def axes() -> list[Any]:
        return [
            te.reduce_axis((0, k), name=f"w{axis}") for k, axis in zip(kernel, "hw", strict=True)
        ]

    over = axes()
    greatest = te.compute(
        list(counts),
        lambda *i: te.max(
            in_window(i, over, least(data.dtype), lambda where: data(*where)), axis=over
        ),
        name="greatest",
    )
    offsets = axes()
    none = tir.const(kernel[0] * kernel[1], "int32")

    def offset(i: Sequence[Any]) -> Any:
        here = offsets[0].var * kernel[1] + offsets[1].var
        return in_window(
            i, offsets, none, lambda where: tir.Select(data(*where) >= greatest(*i), here, none)
        )

    return te.compute(
        list(counts), lambda *i: te.min(offset(i), axis=offsets), name="first_maximum"
    )
