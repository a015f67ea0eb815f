"""Convolutions and pooling over one to three axes, for both importers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import Call
from tvm.relay.frontend.common import constant, infer_shape
from tvm.relay.frontend.dynamic_extents import with_static_extents

from .common import is_static

_CONVOLUTIONS = (_op.nn.conv1d, _op.nn.conv2d, _op.nn.conv3d)
_TRANSPOSED = (_op.nn.conv1d_transpose, _op.nn.conv2d_transpose, _op.nn.conv3d_transpose)
_POOLS: dict[str, Sequence[Callable[..., RelayExpr]]] = {
    "max": (_op.nn.max_pool1d, _op.nn.max_pool2d, _op.nn.max_pool3d),
    "avg": (_op.nn.avg_pool1d, _op.nn.avg_pool2d, _op.nn.avg_pool3d),
}


def convolution(
    x: RelayExpr, weight: RelayExpr, strides: Sequence[int], padding: Sequence[int],
    dilations: Sequence[int], groups: int, kernel: Sequence[int] = (),
) -> RelayExpr:  # fmt: skip
    """Convolution; the weight is (out, in / groups, ...)."""
    shape = infer_shape(weight)
    return _CONVOLUTIONS[len(shape) - 3](
        x, weight, strides=tuple(strides), padding=tuple(padding), dilation=tuple(dilations),
        groups=groups, channels=shape[0], kernel_size=tuple(kernel or shape[2:]),
    )  # fmt: skip


def conv_transpose(
    x: RelayExpr, weight: RelayExpr, strides: Sequence[int], padding: Sequence[int],
    dilations: Sequence[int], groups: int, extra: Sequence[int],
) -> RelayExpr:  # fmt: skip
    """Transposed convolution; the weight is (in, out / groups, ...)."""
    shape = infer_shape(weight)
    return _TRANSPOSED[len(shape) - 3](
        x, weight, strides=tuple(strides), padding=tuple(padding), dilation=tuple(dilations),
        groups=groups, channels=shape[1] * groups, kernel_size=tuple(shape[2:]),
        output_padding=tuple(extra),
    )  # fmt: skip


def pool(
    kind: str, x: RelayExpr, size: Sequence[int], strides: Sequence[int], padding: Sequence[int],
    dilations: Sequence[int] | None = None, **options: Any,
) -> RelayExpr:  # fmt: skip
    """Pooling ("max" or "avg") of windows that start in the data."""
    found = _POOLS[kind][len(size) - 1](
        x, pool_size=tuple(size), strides=tuple(strides), padding=tuple(padding),
        dilation=tuple(dilations or [1] * len(size)), **options,
    )  # fmt: skip
    return within_data(x, found, strides, padding) if options.get("ceil_mode") else found


def within_data(
    x: RelayExpr, pooled: RelayExpr, strides: Sequence[int], padding: Sequence[int]
) -> RelayExpr:
    """What was pooled, without windows that start behind the data (rounding up counts them)."""
    have, got = infer_shape(x), infer_shape(pooled)
    if not is_static(have[-len(strides) :]):
        if _start_in_data(pooled):
            return pooled
        return _within_dynamic_data(x, pooled, strides, padding)
    want = list(got)
    for i, (step, before) in enumerate(zip(strides, padding, strict=False)):
        axis = len(have) - len(strides) + i
        if (got[axis] - 1) * step >= have[axis] + before:
            want[axis] -= 1
    cut = [axis for axis, (a, b) in enumerate(zip(want, got, strict=True)) if a is not b]
    if not cut:
        return pooled
    return _op.strided_slice(pooled, [0] * len(cut), [want[axis] for axis in cut], axes=cut)


def _start_in_data(pooled: RelayExpr) -> bool:
    """Whether the windows of a pooling start in its data or in front of it, whatever its extents are.

    The last one ends no more than a step, less one element, behind the border.
    """
    if not (isinstance(pooled, Call) and hasattr(pooled.attrs, "pool_size")):
        return False
    attrs = pooled.attrs
    rank = len(attrs.pool_size)
    axes = zip(attrs.pool_size, attrs.dilation, attrs.strides, attrs.padding[rank:], strict=True)
    return all(
        behind + (step - 1 if attrs.ceil_mode else 0) < (size - 1) * gap + 1
        for size, gap, step, behind in axes
    )


def _within_dynamic_data(
    x: RelayExpr, pooled: RelayExpr, strides: Sequence[int], padding: Sequence[int]
) -> RelayExpr:
    """As `within_data`, for dynamic extents."""
    rank, got = len(infer_shape(x)), infer_shape(pooled)
    outer = rank - len(strides)
    before = constant(
        [0] * outer + [p + s - 1 for p, s in zip(padding, strides, strict=False)], "int64"
    )
    step = constant([1] * outer + list(strides), "int64")
    starting = _op.floor_divide(_op.shape_of(x, "int64") + before, step)
    # of windows the other axes have as many as there are
    end = _op.minimum(starting, _op.shape_of(pooled, "int64"))
    zero, one = [constant([value] * rank, "int64") for value in (0, 1)]
    return with_static_extents(
        _op.strided_slice(pooled, zero, end, one), [*got[:outer], *[None] * len(strides)]
    )
