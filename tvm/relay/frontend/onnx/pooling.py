"""ONNX pooling beyond sums: indices, norms, and the way back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_shape, scalar_like

from .nn import window_of, within_data
from .registry import OnnxNode, onnx_op


@dataclass(frozen=True)
class Windows:
    """The places that windows look at, and how many windows there are along each axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]  # all begins, then all ends
    dilations: tuple[int, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, node: OnnxNode) -> Windows:
        """Those of a pooling node."""
        kernel = tuple(node.attr("kernel_shape"))
        strides, padding, dilations = window_of(node, list(kernel))
        rank = len(kernel)
        counts = []
        for i, extent in enumerate(node.static_shape(0)[2:]):
            room = extent + padding[i] + padding[rank + i] - (kernel[i] - 1) * dilations[i] - 1
            count = room // strides[i] + 1
            if node.attr("ceil_mode", 0):
                count = -(-room // strides[i]) + 1
                # no window may start behind the data
                count -= (count - 1) * strides[i] >= extent + padding[i]
            counts.append(count)
        return cls(kernel, tuple(strides), tuple(padding), tuple(dilations), tuple(counts))

    def parts(self, x: RelayExpr, fill: float) -> list[RelayExpr]:
        """What each place of the kernel sees, one tensor with all windows for each."""
        shape, rank = infer_shape(x), len(self.kernel)
        reach = [
            (n - 1) * s + (k - 1) * d + 1
            for n, s, k, d in zip(
                self.counts, self.strides, self.kernel, self.dilations, strict=True
            )
        ]
        width = [(0, 0), (0, 0)]
        for i, extent in enumerate(shape[2:]):
            width.append((self.padding[i], max(0, reach[i] - extent - self.padding[i])))
        padded = _op.nn.pad(x, width, fill)
        found = []
        for place in itertools.product(*[range(k) for k in self.kernel]):
            begin = [0, 0, *[p * d for p, d in zip(place, self.dilations, strict=True)]]
            end = [*shape[:2], *[
                begin[2 + i] + (self.counts[i] - 1) * self.strides[i] + 1 for i in range(rank)
            ]]  # fmt: skip
            found.append(_op.strided_slice(padded, begin, end, [1, 1, *self.strides]))
        return found


_POOLS: dict[str, Sequence[Callable[..., RelayExpr]]] = {
    "MaxPool": (_op.nn.max_pool1d, _op.nn.max_pool2d, _op.nn.max_pool3d),
    "AveragePool": (_op.nn.avg_pool1d, _op.nn.avg_pool2d, _op.nn.avg_pool3d),
}


@onnx_op("MaxPool", "AveragePool")
def pool(node: OnnxNode) -> Any:
    """Largest elements or means of windows."""
    kernel = node.attr("kernel_shape")
    strides, padding, dilations = window_of(node, kernel)
    options: dict[str, Any] = {"ceil_mode": bool(node.attr("ceil_mode", 0))}
    if node.op_type == "AveragePool":
        options["count_include_pad"] = bool(node.attr("count_include_pad", 0))
    if len(kernel) > 3:
        raise node.unsupported("pooling over more than three axes")
    result = _POOLS[node.op_type][len(kernel) - 1](
        node[0], pool_size=tuple(kernel), strides=tuple(strides), padding=padding,
        dilation=tuple(dilations), **options,
    )  # fmt: skip
    if options["ceil_mode"]:
        result = within_data(node[0], result, strides, padding)
    return result if node.output_count < 2 else [result, _max_indices(node)]


def _max_indices(node: OnnxNode) -> RelayExpr:
    """Where the largest elements are in the whole input, laid out by rows or by columns."""
    windows, shape = Windows.of(node), node.static_shape(0)
    lowest = -math.inf if "float" in node.dtype(0) else float(np.iinfo(node.dtype(0)).min)
    seen = _op.stack(windows.parts(node[0], lowest), 0)
    winner = _op.argmax(seen, axis=0).astype("int64")
    spatial, rank = shape[2:], len(windows.kernel)
    by_columns = node.attr("storage_order", 0)
    total: RelayExpr = constant(_first_of_planes(shape), "int64")
    for i in range(rank):
        inner = math.prod(windows.kernel[i + 1 :])
        place = _op.floor_mod(
            _op.floor_divide(winner, constant(inner, "int64")),
            constant(windows.kernel[i], "int64"),
        )
        starts = np.arange(windows.counts[i]) * windows.strides[i] - windows.padding[i]
        along = [-1 if axis == 2 + i else 1 for axis in range(2 + rank)]
        at = place * constant(windows.dilations[i], "int64")
        at = at + constant(starts.reshape(along), "int64")
        step = math.prod(spatial[:i]) if by_columns else math.prod(spatial[i + 1 :])
        total = total + at * constant(step, "int64")
    return total


def _first_of_planes(shape: Sequence[int]) -> np.ndarray[Any, Any]:
    planes = np.arange(shape[0] * shape[1]) * math.prod(shape[2:])
    return planes.reshape(shape[0], shape[1], *[1] * (len(shape) - 2))


@onnx_op("LpPool")
def _lp_pool(node: OnnxNode) -> RelayExpr:
    """The p-th root of the sum of powers."""
    x = _op.abs(node[0])
    power = scalar_like(float(node.attr("p", 2)), x)
    kernel, is_rounded_up = node.attr("kernel_shape"), node.attr("ceil_mode", 0)
    if not (all(isinstance(dim, int) for dim in node.shape(0)) or is_rounded_up or len(kernel) > 3):
        strides, padding, dilations = window_of(node, kernel)
        mean = _POOLS["AveragePool"][len(kernel) - 1](
            _op.power(x, power), pool_size=tuple(kernel), strides=tuple(strides), padding=padding,
            dilation=tuple(dilations), count_include_pad=True,
        )  # fmt: skip
        total = mean * scalar_like(float(math.prod(kernel)), x)
        return _op.power(total, scalar_like(1.0 / node.attr("p", 2), x))
    total = None
    for part in Windows.of(node).parts(_op.power(x, power), 0.0):
        total = part if total is None else total + part
    return _op.power(total, scalar_like(1.0 / node.attr("p", 2), x))


@onnx_op("GlobalLpPool")
def _global_lp_pool(node: OnnxNode) -> RelayExpr:
    x = _op.abs(node[0])
    power = scalar_like(float(node.attr("p", 2)), x)
    total = _op.sum(_op.power(x, power), list(range(2, len(node.shape(0)))), True)
    return _op.power(total, scalar_like(1.0 / node.attr("p", 2), x))


@onnx_op("MaxUnpool")
def _max_unpool(node: OnnxNode) -> RelayExpr:
    """Values back to where MaxPool found them, zeros elsewhere."""
    shape, kernel = node.static_shape(0), node.attr("kernel_shape")
    strides = node.attr("strides", [1] * len(kernel))
    pads = node.attr("pads", [0] * 2 * len(kernel))
    extents = [
        (shape[2 + i] - 1) * strides[i] + k - pads[i] - pads[len(kernel) + i]
        for i, k in enumerate(kernel)
    ]
    inner = (*shape[:2], *extents)
    flat = _op.full(scalar_like(0, node[0]), (math.prod(inner),), node.dtype(0))
    places, values = _op.reshape(node[1], (-1,)), _op.reshape(node[0], (-1,))
    result = _op.reshape(_op.scatter_elements(flat, places, values, 0), inner)
    if not node.has(2):
        return result
    wanted = node.ints("output_shape", 2)
    grown = [(0, max(0, want - have)) for have, want in zip(inner, wanted, strict=True)]
    return _op.strided_slice(_op.nn.pad(result, grown), [0] * len(inner), wanted, [1] * len(inner))


@onnx_op("Col2Im")
def _col2im(node: OnnxNode) -> RelayExpr:
    """Columns of blocks added up to the image that they were cut from."""
    image, block = node.ints("image_shape", 1), node.ints("block_shape", 2)
    rank = len(image)
    strides, dilations = node.attr("strides", [1] * rank), node.attr("dilations", [1] * rank)
    pads = node.attr("pads", [0] * 2 * rank)
    batch, columns, _ = node.static_shape(0)
    channels = columns // math.prod(block)
    padded = [image[i] + pads[i] + pads[rank + i] for i in range(rank)]
    places = np.zeros([1] * 2 * rank, "int64")
    for i in range(rank):
        count = (padded[i] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1
        inside = (np.arange(block[i]) * dilations[i]).reshape(
            [-1 if axis == i else 1 for axis in range(2 * rank)]
        )
        starts = (np.arange(count) * strides[i]).reshape(
            [-1 if axis == rank + i else 1 for axis in range(2 * rank)]
        )
        places = places + (inside + starts) * math.prod(padded[i + 1 :])
    rows = batch * channels
    indices = constant(np.broadcast_to(places.reshape(1, -1), (rows, places.size)), "int64")
    updates = _op.reshape(node[0], (rows, places.size))
    zeros = _op.full(scalar_like(0, node[0]), (rows, math.prod(padded)), node.dtype(0))
    result = _op.reshape(
        _op.scatter_elements(zeros, indices, updates, 1, "add"), (batch, channels, *padded)
    )
    ends = [p + i for p, i in zip(pads[:rank], image, strict=True)]
    return _op.strided_slice(
        result, [0, 0, *pads[:rank]], [batch, channels, *ends], [1] * (rank + 2)
    )
