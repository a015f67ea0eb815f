"""Weights of few bits, com.microsoft: unpacked at import, so that products see plain weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_shape
from tvm.relay.frontend.matmul import matmul

from .quantized import along
from .registry import OnnxNode, onnx_op

Array = np.ndarray[Any, Any]

# the numbers of the 16 codes of bitsandbytes: FP4 and NF4
_FP4 = np.array([0.0, 0.0052083333, 0.6666667, 1.0, 0.33333334, 0.5, 0.16666667, 0.25], "float32")
_NF4 = [
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
]  # fmt: skip
_CODES = (np.concatenate([_FP4, -_FP4]), np.array(_NF4, "float32"))


def low_bits(packed: Array, bits: int) -> Array:
    """The codes of bytes that hold several, the lowest bits first, along the last axis."""
    if bits == 8:
        return packed
    parts = [(packed >> shift) & (2**bits - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*packed.shape[:-1], -1)


def dequantized(codes: Array, scales: Array, zeros: Array | None, bits: int) -> Array:
    """(..., rows, columns) of codes, with scales and zero points of blocks of columns."""
    columns = codes.shape[-1]
    blocks = scales.reshape(*codes.shape[:-1], -1)
    block = -(-columns // blocks.shape[-1])

    def spread(values: Array) -> Array:
        return np.repeat(values.astype("float32"), block, -1)[..., :columns]

    points = 2.0 ** (bits - 1) if zeros is None else spread(zeros.reshape(blocks.shape))
    return (codes.astype("float32") - points) * spread(blocks)


@onnx_op("com.microsoft.MatMulNBits")
def _matmul_nbits(node: OnnxNode) -> RelayExpr:
    """A product with a weight of few bits, scaled by blocks along its inputs."""
    result = matmul(node[0], _op.transpose(_unpacked(node), (1, 0)))
    return result + node[5] if node.has(5) else result


def _unpacked(node: OnnxNode) -> RelayExpr:
    """The weight (N, K) in floating point."""
    rows, columns, bits = node.attr("N"), node.attr("K"), node.attr("bits", 4)
    block = node.attr("block_size")
    blocks = -(-columns // block)
    packed = node.require_value(1, "the weight").reshape(rows, blocks, -1)
    codes = low_bits(packed, bits)[..., :block].reshape(rows, -1)
    zeros = node.require_value(3, "the zero points") if node.has(3) else None
    if zeros is not None and zeros.dtype == np.uint8:
        zeros = low_bits(zeros.reshape(rows, -1), bits)[:, :blocks]
    scales = node.require_value(2, "the scales").reshape(rows, blocks)
    if node.has(4):
        groups = node.require_value(4, "the groups of columns")
        return constant(_grouped(codes, scales, zeros, groups, bits)[:, :columns], node.dtype(0))
    return constant(dequantized(codes, scales, zeros, bits)[:, :columns], node.dtype(0))


def _grouped(codes: Array, scales: Array, zeros: Array | None, groups: Array, bits: int) -> Array:
    """Columns whose scale is that of the group they are assigned to."""
    codes = codes[:, : groups.size]
    points = 2.0 ** (bits - 1) if zeros is None else zeros.astype("float32")[:, groups]
    weights: Array = (codes.astype("float32") - points) * scales.astype("float32")[:, groups]
    return weights


@onnx_op("com.microsoft.MatMulBnb4")
def _matmul_bnb4(node: OnnxNode) -> RelayExpr:
    """A product with a weight (N, K) whose codes, the first of a byte in its high bits, name
    numbers of a table."""
    rows, columns, block = node.attr("N"), node.attr("K"), node.attr("block_size")
    packed = node.require_value(1, "the weight").reshape(-1)
    codes = np.stack([packed >> 4, packed & 15], -1).reshape(-1)[: rows * columns]
    scales = node.require_value(2, "the scales").reshape(-1).astype("float32")
    values = _CODES[node.attr("quant_type")][codes] * np.repeat(scales, block)[: codes.size]
    weight = constant(values.reshape(rows, columns), node.dtype(0))
    return matmul(node[0], _op.transpose(weight, (1, 0)) if node.attr("transB", 1) else weight)


@onnx_op("com.microsoft.GatherBlockQuantized")
def _gather_block_quantized(node: OnnxNode) -> RelayExpr:
    """Slices of a table of few bits, in floating point; positions outside give zeros.

    The table stays packed: what is gathered is unpacked.
    """
    bits, is_packed = node.attr("bits", 4), node.dtype(0) == "uint8"
    rank = len(node.shape(0))
    axis, block = node.attr("gather_axis", 0) % rank, node.attr("block_size", 128)
    along_blocks = node.attr("quantize_axis", 1) % rank
    extent = infer_shape(node[0])[axis]
    positions = _op.where(
        _op.less(node[1], constant(0, node.dtype(1))),
        node[1] + constant(extent, node.dtype(1)), node[1],
    )  # fmt: skip

    def gathered(x: RelayExpr) -> RelayExpr:
        return _op.take(x, positions, axis, mode="clip")

    def codes(x: RelayExpr) -> RelayExpr:
        found = gathered(x)
        return _unpacked_last(found, bits) if is_packed and bits < 8 else found

    moved = along_blocks + (len(node.shape(1)) - 1 if along_blocks > axis else 0)
    data = _op.cast(codes(node[0]), "float32")
    shape = infer_shape(data)
    if node.has(3):
        zeros = _op.cast(codes(node[3]), "float32")
        count = infer_shape(gathered(node[2]))[moved]
        zeros = _op.strided_slice(zeros, [0], [count], axes=[moved])
        data = data - along(zeros, shape, moved, block)
    elif is_packed:
        data = data - constant(2.0 ** (bits - 1), "float32")
    scale = gathered(node[2])
    result = data * _op.cast(along(scale, shape, moved, block or shape[moved]), "float32")
    is_there = _op.logical_and(
        _op.greater_equal(positions, constant(0, node.dtype(1))),
        _op.less(positions, constant(extent, node.dtype(1))),
    )
    is_there = _op.expand_dims(is_there, axis + len(node.shape(1)), rank - 1 - axis)
    return _op.cast(_op.where(is_there, result, constant(0.0, "float32")), node.dtype(2))


def _unpacked_last(packed: RelayExpr, bits: int) -> RelayExpr:
    """`low_bits` of a tensor computed at run time."""
    shifts = constant(np.arange(0, 8, bits), "uint8")
    parts = _op.right_shift(_op.expand_dims(packed, -1), shifts)
    codes = _op.bitwise_and(parts, constant(2**bits - 1, "uint8"))
    shape = infer_shape(packed)
    return _op.reshape(codes, (*shape[:-1], shape[-1] * (8 // bits)))
