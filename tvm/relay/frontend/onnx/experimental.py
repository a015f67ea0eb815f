"""Experimental operators of the first ONNX releases, which exporters of their time wrote."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype
from tvm.relay.frontend.composites import added, scaled

from .registry import CONVERTERS, OnnxNode, onnx_op, onnx_ops

onnx_ops({
    # an image times a scale, and a bias of each channel
    "ImageScaler": lambda x, scale=1.0, *, bias=None: added(
        scaled(x, scale), constant(np.reshape(bias, (-1, 1, 1)), infer_dtype(x)) if bias else None
    ),
    # as it is since opset 10
    "DynamicSlice": lambda node: CONVERTERS["Slice"](replace(node, op_type="Slice", opset=10)),
})  # fmt: skip


@onnx_op("Crop")
def _crop(node: OnnxNode) -> RelayExpr:
    """An image without its borders, or what begins behind them and has a given size."""
    left, top, right, bottom = node.attr("border", [0, 0, 0, 0])
    height, width = node.static_shape(0)[2:]
    end = [height - bottom, width - right]
    if (size := node.attr("scale")) is not None:
        end = [top + size[0], left + size[1]]
    return _op.strided_slice(node[0], [top, left], end, axes=[2, 3])


@onnx_op("GivenTensorFill")
def _given_tensor_fill(node: OnnxNode) -> RelayExpr:
    shape = list(node.attr("shape", []))
    if node.has(0):
        given = node.require_value(0, "the shape") if node.attr("input_as_shape", 0) else None
        found = node.static_shape(0) if given is None else [int(d) for d in given]
        shape = [*found, *node.attr("extra_shape", [])]
    return constant(np.reshape(node.attr("values"), shape), "float32")
