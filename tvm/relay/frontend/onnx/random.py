"""Random numbers: a counter-based generator whose key is the seed of the node, or made of its name.

The numbers are those of this generator, not of another runtime, and the same in each run.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import infer_dtype, scalar_like
from tvm.relay.frontend.composites import sampled

from .registry import OnnxNode, onnx_op, onnx_ops
from .tensors import dtype_or, tensor_dtype


def _key(node: OnnxNode) -> RelayExpr:
    seed = node.attr("seed")
    if seed is None:
        return _op.random.threefry_key(zlib.crc32(node.name.encode()))
    # seeds are floats; their bits also distinguish those with the same integer part
    return _op.random.threefry_key(int(np.float32(seed).view("uint32")))


def _sampled(node: OnnxNode, dtype: str, shape: Any) -> RelayExpr:
    """Numbers of the node's distribution."""
    is_normal = node.op_type.startswith("RandomNormal")
    names = {"mean": 0.0, "scale": 1.0} if is_normal else {"low": 0.0, "high": 1.0}
    draw = _op.random.normal if is_normal else _op.random.uniform
    parameters = [node.attr(name, default) for name, default in names.items()]
    return sampled(draw, _key(node), shape, dtype, *parameters)


onnx_ops({
    "RandomNormal RandomUniform": lambda dtype=1, *, shape, node: _sampled(
        node, tensor_dtype(dtype), shape
    ),
    "RandomNormalLike RandomUniformLike": lambda x, dtype=0, *, node: _sampled(
        node, dtype_or(dtype, x), node.static_shape(0)
    ),
    # one with the probability that the input gives (ONNX's own function has it the wrong way)
    "Bernoulli": lambda x, dtype=0, *, node: _op.cast(
        _op.less(_sampled(node, infer_dtype(x), node.static_shape(0)), x), dtype_or(dtype, x)
    ),
    # indices sampled by unnormalised logarithms of their probabilities
    "Multinomial": lambda x, sample_size=1, dtype=6, *, node: _op.cast(
        _op.random.multinomial(_key(node), _op.nn.softmax(x, axis=-1), sample_size)[1],
        tensor_dtype(dtype),
    ),
})  # fmt: skip


@onnx_op("Dropout")
def dropout(node: OnnxNode) -> list[RelayExpr]:
    """Nothing changes unless the model is training: then elements vanish, others grow."""
    x = node[0]
    is_training = node.has(2) and bool(node.require_scalar(2, "the training mode"))
    ratio = float(node.require_scalar(1, "the ratio")) if is_training and node.has(1) else 0.5
    if not is_training or ratio == 0:
        mask = _op.ones_like(x).astype("bool") if node.output_count > 1 else None
        return [x] if mask is None else [x, mask]
    numbers = sampled(_op.random.uniform, _key(node), node.static_shape(0), "float32")
    kept = _op.greater_equal(numbers, scalar_like(ratio, numbers))
    rest = x * scalar_like(1 / (1 - ratio) if ratio < 1 else 0.0, x)
    return [_op.where(kept, rest, _op.zeros_like(x)), kept][: node.output_count]
