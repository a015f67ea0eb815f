"""ONNX pooling beyond sums: indices, norms, and the way back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, extremes, scalar_like
from tvm.relay.frontend.dynamic_extents import (
    as_vector,
    broadcast,
    difference_of,
    element,
    extent,
    iota,
    product_of,
    quotient_of,
    reshaped,
    sum_of,
)
from tvm.relay.frontend.indexing import SLICE_END, along_axis
from tvm.relay.frontend.normalization import p_norm
from tvm.relay.frontend.windows import pool, within_data

from .nn import window_of, with_borders
from .registry import OnnxNode, onnx_op, onnx_ops, static_ints


@dataclass(frozen=True)
class Windows:
    """The positions that windows look at."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]  # all begins, then all ends
    dilations: tuple[int, ...]
    is_rounded_up: bool  # the last window may reach behind the border

    @classmethod
    def of(cls, node: OnnxNode) -> Windows:
        """Those of a pooling node."""
        kernel = tuple(node.attr("kernel_shape"))
        strides, padding, dilations = window_of(node, list(kernel))
        ceil = bool(node.attr("ceil_mode", 0))
        return cls(kernel, tuple(strides), tuple(padding), tuple(dilations), ceil)

    def bordered(self, x: RelayExpr, fill: float) -> RelayExpr:
        """The data with all that windows reach around it."""
        rank = len(self.kernel)
        more = [step - 1 if self.is_rounded_up else 0 for step in self.strides]
        ends = [end + extra for end, extra in zip(self.padding[rank:], more, strict=True)]
        width = [(0, 0), (0, 0), *zip(self.padding[:rank], ends, strict=True)]
        return _op.nn.pad(x, width, fill)

    def parts(self, x: RelayExpr, fill: float) -> list[RelayExpr]:
        """What each kernel position sees, one tensor with all windows for each."""
        padded, axes = self.bordered(x, fill), list(range(2, 2 + len(self.kernel)))
        found = []
        for position in itertools.product(*[range(k) for k in self.kernel]):
            begin = [p * d for p, d in zip(position, self.dilations, strict=True)]
            behind = [
                (k - 1) * d - b for k, d, b in zip(self.kernel, self.dilations, begin, strict=True)
            ]
            end = [-left if left else SLICE_END for left in behind]
            found.append(_op.strided_slice(padded, begin, end, list(self.strides), axes=axes))
        return found

    def trimmed(self, x: RelayExpr, pooled: RelayExpr) -> RelayExpr:
        """What was pooled, without windows that start behind the data."""
        return within_data(x, pooled, self.strides, self.padding) if self.is_rounded_up else pooled


@onnx_op("MaxPool", "AveragePool")
def _pool(node: OnnxNode) -> list[RelayExpr]:
    return [pool_of(node), *([_max_indices(node)] if node.output_count > 1 else [])]


def pool_of(node: OnnxNode) -> RelayExpr:
    """Largest elements or means of windows."""
    kernel = node.attr("kernel_shape")
    options: dict[str, Any] = {"ceil_mode": bool(node.attr("ceil_mode", 0))}
    is_mean = node.op_type == "AveragePool"
    if is_mean:
        options["count_include_pad"] = bool(node.attr("count_include_pad", 0))
    if len(kernel) > 3:
        raise node.unsupported("pooling over more than three axes")
    view, x = with_borders(node, node[0], kernel, 0.0 if is_mean else extremes(node.dtype(0))[0])
    result = _pooled(view, x, options)
    if is_mean and x is not node[0] and not options["count_include_pad"]:
        ones = _op.ones_like(node[0])
        result = result / _pooled(view, with_borders(node, ones, kernel)[1], options)
    return result


def _pooled(node: OnnxNode, x: RelayExpr, options: Mapping[str, Any]) -> RelayExpr:
    kernel = node.attr("kernel_shape")
    strides, padding, dilations = window_of(node, kernel)
    kind = "avg" if node.op_type == "AveragePool" else "max"
    return pool(kind, x, kernel, strides, padding, dilations, **options)


def _max_indices(node: OnnxNode) -> RelayExpr:
    """Where the largest elements are in the input, laid out by rows or by columns."""
    windows, x = Windows.of(node), node[0]
    seen = _op.stack(windows.parts(x, extremes(node.dtype(0))[0]), 0)
    winner = windows.trimmed(x, _op.cast(_op.argmax(seen, axis=0), "int64"))
    rank = len(windows.kernel)
    extents = [extent(x, axis) for axis in range(2 + rank)]
    planes = product_of(extents[:2])
    firsts = iota(planes) * as_vector(product_of(extents[2:]))
    total: RelayExpr = reshaped(firsts, [*extents[:2], *[1] * rank])
    for i in range(rank):
        inner = math.prod(windows.kernel[i + 1 :])
        position = _op.floor_mod(
            _op.floor_divide(winner, constant(inner, "int64")), constant(windows.kernel[i], "int64")
        )
        starts = iota(extent(winner, 2 + i)) * constant(windows.strides[i], "int64")
        starts = starts - constant(windows.padding[i], "int64")
        at = position * constant(windows.dilations[i], "int64")
        at = at + _op.reshape(starts, along_axis(2 + i, 2 + rank))
        within = extents[2 : 2 + i] if node.attr("storage_order", 0) else extents[3 + i :]
        total = total + at * as_vector(product_of(within))
    return total


@onnx_op("LpPool")
def _lp_pool(node: OnnxNode) -> RelayExpr:
    """The p-th root of the sum of powers."""
    x = _op.abs(node[0])
    power = scalar_like(float(node.attr("p", 2)), x)
    kernel = node.attr("kernel_shape")
    if len(kernel) > 3:
        raise node.unsupported("pooling over more than three axes")
    view, powers = with_borders(node, _op.power(x, power), kernel)
    windows = Windows.of(view)
    mean = pool(
        "avg", windows.bordered(powers, 0.0), windows.kernel, windows.strides,
        [0] * 2 * len(kernel), windows.dilations,
    )  # fmt: skip
    total = windows.trimmed(powers, mean) * scalar_like(float(math.prod(kernel)), x)
    return _op.power(total, scalar_like(1.0 / node.attr("p", 2), x))


@onnx_op("MaxUnpool")
def _max_unpool(node: OnnxNode) -> RelayExpr:
    """Values back to where MaxPool found them, zeros elsewhere."""
    kernel = node.attr("kernel_shape")
    strides = node.attr("strides", [1] * len(kernel))
    pads = node.attr("pads", [0] * 2 * len(kernel))
    inner = [extent(node[0], axis) for axis in range(2)]
    for i, (size, step) in enumerate(zip(kernel, strides, strict=True)):
        rest = size - step - pads[i] - pads[len(kernel) + i]
        inner.append(sum_of(product_of([extent(node[0], 2 + i), step]), rest))
    flat = broadcast(_op.full(scalar_like(0, node[0]), (1,), node.dtype(0)), [product_of(inner)])
    positions, values = _op.reshape(node[1], (-1,)), _op.reshape(node[0], (-1,))
    result = reshaped(_op.scatter_elements(flat, positions, values, 0), inner)
    if not node.has(2):
        return result
    inner, wanted = list(node.static_shape(0)[:2]) + inner[2:], node.ints("output_shape", 2)
    grown = [(0, max(0, want - have)) for have, want in zip(inner, wanted, strict=True)]
    return _op.strided_slice(_op.nn.pad(result, grown), [0] * len(inner), wanted, [1] * len(inner))


@onnx_op("Col2Im")
def _col2im(node: OnnxNode) -> RelayExpr:
    """Columns of blocks added up to the image that they were cut from."""
    image, block = _sizes(node, 1, "image_shape"), _sizes(node, 2, "block_shape")
    rank = len(image)
    pads = node.attr("pads", [0] * 2 * rank)
    padded = [sum_of(image[i], pads[i] + pads[rank + i]) for i in range(rank)]
    planes = [extent(node[0], 0), quotient_of(extent(node[0], 1), product_of(block))]
    positions = _block_positions(node, padded, block)
    every = [product_of(planes), extent(positions, 1)]
    zero = _op.full(scalar_like(0, node[0]), (1, 1), node.dtype(0))
    zeros = broadcast(zero, [every[0], product_of(padded)])
    indices, updates = broadcast(positions, every), reshaped(node[0], every)
    result = reshaped(_op.scatter_elements(zeros, indices, updates, 1, "add"), [*planes, *padded])
    ends = [-end if end else SLICE_END for end in pads[rank:]]
    return _op.strided_slice(result, list(pads[:rank]), ends, axes=list(range(2, 2 + rank)))


def _sizes(node: OnnxNode, index: int, name: str) -> list[Any]:
    """The elements of an input, as extents: those of the run are vectors of one."""
    given = node.value_or_expr(index, name)
    if not isinstance(given, RelayExpr):
        return static_ints(given)
    return [element(given.astype("int64"), i) for i in range(node.static_shape(index)[0])]


def _block_positions(node: OnnxNode, padded: Sequence[Any], block: Sequence[Any]) -> RelayExpr:
    """Where the elements of all blocks lie in the padded image laid flat, of shape (1, n)."""
    rank = len(padded)
    strides, dilations = node.attr("strides", [1] * rank), node.attr("dilations", [1] * rank)
    positions: RelayExpr = constant(np.zeros([1] * 2 * rank), "int64")
    for i in range(rank):
        reach = sum_of(product_of([sum_of(block[i], -1), dilations[i]]), 1)
        count = sum_of(quotient_of(difference_of(padded[i], reach), strides[i]), 1)
        inside = iota(block[i]) * constant(dilations[i], "int64")
        starts = iota(count) * constant(strides[i], "int64")
        places = _op.reshape(inside, along_axis(i, 2 * rank)) + _op.reshape(
            starts, along_axis(rank + i, 2 * rank)
        )
        positions = positions + places * as_vector(product_of(padded[i + 1 :]))
    return _op.reshape(positions, (1, -1))


onnx_ops({
    "GlobalLpPool": lambda node: p_norm(
        node[0], float(node.attr("p", 2)), list(range(2, len(node.shape(0)))), True
    ),
})  # fmt: skip
