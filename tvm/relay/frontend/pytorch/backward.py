"""Gradients that ATen has operators for, as graphs of exported training steps hold them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like

from .products import matrix_product
from .registry import CONVERTERS, as_ints, as_number, spread, torch_op


@torch_op("convolution_backward")
def _convolution_backward(
    grad: RelayExpr, x: RelayExpr, weight: RelayExpr, bias_sizes: Any, strides: Any, padding: Any,
    dilation: Any, transposed: bool, output_padding: Any, groups: int, wanted: Sequence[bool],
) -> list[Any]:  # fmt: skip
    rank = len(infer_shape(x)) - 2
    steps, borders, gaps = [list(spread(v, rank)) for v in (strides, padding, dilation)]
    of_data, of_weight, of_bias = [bool(as_number(flag)) for flag in wanted]
    convolve = CONVERTERS["aten::convolution"]
    results: list[Any] = [None, None, None]
    if of_data and transposed:
        results[0] = convolve(
            grad, weight, None, steps, borders, gaps, False, [0] * rank, groups
        )  # fmt: skip
    elif of_data:
        missing = [
            size - ((out - 1) * step - 2 * border + gap * (extent - 1) + 1)
            for size, out, extent, step, border, gap in zip(
                infer_shape(x)[2:], infer_shape(grad)[2:], infer_shape(weight)[2:],
                steps, borders, gaps, strict=True,
            )
        ]  # fmt: skip
        results[0] = convolve(grad, weight, None, steps, borders, gaps, True, missing, groups)
    if of_weight:
        pair = (grad, x) if transposed else (x, grad)
        extents = infer_shape(weight)[2:]
        results[1] = _weight_gradient(*pair, extents, steps, borders, gaps, groups)
    if of_bias:
        results[2] = _op.sum(grad, axis=[1], exclude=True)
    return results


def _weight_gradient(
    x: RelayExpr, grad: RelayExpr, extents: Sequence[int], strides: list[int], padding: list[int],
    dilation: list[int], groups: int,
) -> RelayExpr:  # fmt: skip
    """A convolution whose kernel is the gradient: images are its channels, and steps its gaps."""
    batch, channels, *sizes = infer_shape(x)
    inside = channels // groups
    order = [2, 1, 0, *range(3, 3 + len(sizes))]
    grouped = _op.transpose(_op.reshape(x, (batch, groups, inside, *sizes)), order)
    data = _op.reshape(grouped, (inside, groups * batch, *sizes))
    kernel = _op.transpose(grad, [1, 0, *range(2, 2 + len(sizes))])
    found = CONVERTERS["aten::convolution"](
        data, kernel, None, dilation, padding, strides, False, [0] * len(sizes), groups
    )
    axes = list(range(2, 2 + len(sizes)))
    cut = _op.strided_slice(found, [0] * len(sizes), list(extents), [1] * len(sizes), axes)
    return _op.transpose(cut, [1, 0, *axes])


@torch_op("avg_pool2d_backward")
def _avg_pool2d_backward(
    grad: RelayExpr, x: RelayExpr, kernel: Any, strides: Any, padding: Any, ceil: bool,
    with_border: bool, divisor: Any = None,
) -> RelayExpr:  # fmt: skip
    extents = spread(kernel, 2)
    divided = as_number(divisor)
    if divided is not None and ceil:
        raise OpAttributeUnImplemented("avg_pool2d_backward of ceil_mode takes no divisor")
    steps = spread(strides, 2) if as_ints(strides or []) else extents
    found = _op.nn.avg_pool2d_grad(
        _batched(grad), _batched(x), extents, steps, spread(padding, 2), ceil_mode=ceil,
        count_include_pad=with_border or divided is not None,
    )  # fmt: skip
    if divided is not None:
        found = found * scalar_like(math.prod(extents) / divided, found)
    return _op.reshape(found, infer_shape(x))


def _batched(x: RelayExpr) -> RelayExpr:
    return x if len(infer_shape(x)) == 4 else _op.expand_dims(x, 0)


@torch_op("_adaptive_avg_pool2d_backward")
def _adaptive_avg_pool2d_backward(grad: RelayExpr, x: RelayExpr) -> RelayExpr:
    """Pooling is a product with a matrix on each side, and so is its gradient."""
    rows, columns = [
        constant(_means(size, out), infer_dtype(x))
        for size, out in zip(infer_shape(x)[-2:], infer_shape(grad)[-2:], strict=True)
    ]
    return matrix_product(matrix_product(_op.transpose(rows), grad), columns)


def _means(size: int, count: int) -> np.ndarray[Any, Any]:
    """One row for each window: the share that each element has in its mean."""
    result = np.zeros((count, size))
    for i in range(count):
        begin, end = i * size // count, -(-(i + 1) * size // count)
        result[i, begin:end] = 1 / (end - begin)
    return result


@torch_op("resize_")
def _resized(x: RelayExpr, shape: Any, *_: Any) -> RelayExpr:
    """The first elements in another shape; what is added is not defined."""
    sizes = as_ints(shape)
    have, wanted = math.prod(infer_shape(x)), math.prod(sizes)
    flat = _op.reshape(x, (have,))
    if wanted > have:
        flat = _op.concatenate([flat, constant(np.zeros(wanted - have), infer_dtype(x))], 0)
    return _op.reshape(_op.strided_slice(flat, [0], [wanted], [1]), sizes)
