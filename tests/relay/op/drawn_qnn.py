"""Drawn calls of the quantised operators: scales, zero points and axes in every place."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from tvm import relay

from .drawing import Array, Draw, Drawn
from .qnn_cases import clipped, requantized, scale, zero

OPS = relay.qnn.op
_SCALES = (0.05, 0.11, 0.3, 1.0)


def _codes(d: Draw, shape: Any, dtype: str) -> Array:
    limits = np.iinfo(dtype)
    return d.array(shape, dtype, max(limits.min, -40000), min(limits.max, 40000) + 1)


def _pair(d: Draw, count: int | None = None) -> tuple[Any, Any]:
    """A scale and a zero point, or one of both for each channel."""
    if count is None:
        return np.float32(d.pick(*_SCALES)), np.int32(d.number(-9, 20))
    rng = d.rng()
    return rng.uniform(0.05, 1, count).astype("float32"), rng.integers(-9, 20, count).astype("int32")  # fmt: skip


def affine(d: Draw) -> Drawn:
    shape = d.shape(1, 3, 1)
    axis, is_rows = d.axis(len(shape)), d.flag()
    step, origin = _pair(d, shape[axis] if is_rows else None)
    along = [-1 if is_rows and a == axis % len(shape) else 1 for a in range(len(shape))]
    steps, origins = np.reshape(step, along), np.reshape(origin, along)
    dtype = d.pick("int8", "uint8", "int16", "int32")
    kind = d.pick("quantize", "dequantize", "simulated_quantize", "simulated_dequantize")
    if kind[0] == "s" and dtype == "int16":
        dtype = "int8"  # what is simulated has no other
    data = d.array(shape, low=-9, high=9)
    if kind == "quantize":
        expected = clipped(np.rint(data / steps) + origins, dtype)
        return lambda x: OPS.quantize(x, scale(step), zero(origin), axis, dtype), [data], expected
    if kind == "simulated_quantize":
        expected = clipped(np.rint(data / steps) + origins, dtype).astype("float32")
        return lambda x: OPS.simulated_quantize(x, scale(step), zero(origin), axis, dtype), [data], expected  # fmt: skip
    if kind == "simulated_dequantize":
        expected = (data - origins).astype("float32") * steps
        return lambda x: OPS.simulated_dequantize(x, scale(step), zero(origin), axis, dtype), [data], expected  # fmt: skip
    codes = _codes(d, shape, dtype)
    out = d.pick("float32", "float16") if dtype in ("int8", "uint8") else "float32"
    expected = ((codes.astype("int64") - origins).astype("float32") * steps).astype(out)
    return lambda x: OPS.dequantize(x, scale(step), zero(origin), axis, out), [codes], expected


def requantizations(d: Draw) -> Drawn:
    shape = d.shape(1, 3, 1)
    axis, is_rows = d.axis(len(shape)), d.flag()
    step, origin = _pair(d, shape[axis] if is_rows else None)
    out_step, out_origin = _pair(d)
    source, dtype = d.pick("int8", "uint8", "int32"), d.pick("int8", "uint8", "int32")
    rounding = d.pick("UPWARD", "TONEAREST")
    codes = _codes(d, shape, source)
    rows = np.moveaxis(codes, axis, 0)
    if is_rows:
        found = np.stack([
            requantized(r, s, z, out_step, out_origin, dtype, rounding)
            for r, s, z in zip(rows, step, origin, strict=True)
        ])  # fmt: skip
        expected = np.moveaxis(found, 0, axis)
    else:
        expected = requantized(codes, step, origin, out_step, out_origin, dtype, rounding)
    return (
        lambda x: OPS.requantize(
            x, scale(step), zero(origin), scale(out_step), zero(out_origin), axis, rounding,
            out_dtype=dtype,
        ),
        [codes], expected,
    )  # fmt: skip


def elements(d: Draw) -> Drawn:
    shape, dtype = d.shape(1, 3, 1), d.pick("int8", "uint8")
    other = tuple([n if d.flag() else 1 for n in shape])
    name = d.pick("add", "subtract", "mul")
    left, right, out = _pair(d), _pair(d), _pair(d)
    x, y = _codes(d, shape, dtype), _codes(d, other, dtype)
    if name == "mul":
        product = (x.astype("int64") - left[1]) * (y.astype("int64") - right[1])
        expected = requantized(product, left[0] * right[0], 0, *out, dtype)
    else:
        a, b = [requantized(v, *p, *out, "int32").astype("int64") for v, p in ((x, left), (y, right))]  # fmt: skip
        expected = clipped(a + b - out[1] if name == "add" else a - b + out[1], dtype)
    params = [f(v) for p in (left, right, out) for f, v in zip((scale, zero), p, strict=True)]
    return lambda a, b: getattr(OPS, name)(a, b, *params), [x, y], expected


def joins(d: Draw) -> Drawn:
    shape, dtype, count = d.shape(1, 3, 1), d.pick("int8", "uint8"), d.number(1, 3)
    axis = d.axis(len(shape))
    pairs, out = [_pair(d) for _ in range(count)], _pair(d)
    parts = []
    for _ in range(count):
        extents = list(shape)
        extents[axis] = d.number(1, 4)
        parts.append(_codes(d, extents, dtype))
    found = [requantized(x, *p, *out, dtype) for x, p in zip(parts, pairs, strict=True)]
    return (
        lambda *x: OPS.concatenate(
            x, tuple([scale(s) for s, _ in pairs]), tuple([zero(z) for _, z in pairs]),
            scale(out[0]), zero(out[1]), axis,
        ),
        parts, np.concatenate(found, axis),
    )  # fmt: skip


def _whole(x: Array, origin: Any) -> torch.Tensor:
    return torch.from_numpy(x.astype("float64") - origin)


def convolutions(d: Draw) -> Drawn:
    is_transposed, is_last, groups = d.flag(), d.flag(), d.pick(1, 1, 2)
    kernel, strides = d.numbers(2, 1, 3), d.numbers(2, 1, 2)
    padding = tuple([d.number(0, (k - 1) // 2) for k in kernel])
    dilation = (1, 1) if is_transposed else d.numbers(2, 1, 2)
    inner, outer = groups * d.number(1, 5), d.number(1, 5)
    spatial = [(k - 1) * t + d.number(1, 4) for k, t in zip(kernel, dilation, strict=True)]
    dtype, weight_dtype = d.pick("int8", "uint8"), d.pick("int8", "uint8")
    data = _codes(d, (d.number(1, 2), inner, *spatial), dtype)
    (s, z), is_rows = _pair(d), d.flag() and not is_transposed
    channels = groups * outer
    shape = (inner, outer, *kernel) if is_transposed else (channels, inner // groups, *kernel)
    weight = _codes(d, shape, weight_dtype)
    ws, wz = _pair(d, channels if is_rows else None)
    wide = _whole(weight, np.reshape(wz, (-1, 1, 1, 1)) if is_rows else wz)
    if is_transposed:
        expected = functional.conv_transpose2d(_whole(data, z), wide, None, strides, padding, 0, groups)  # fmt: skip
        is_last = False
    else:
        expected = functional.conv2d(_whole(data, z), wide, None, strides, padding, dilation, groups)  # fmt: skip
    found = expected.numpy().astype("int32")
    own: dict[str, Any] = {}
    if is_last:
        data, found = data.transpose(0, 2, 3, 1).copy(), found.transpose(0, 2, 3, 1)
        weight = weight.transpose(2, 3, 1, 0).copy()
        own = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    op = OPS.conv2d_transpose if is_transposed else OPS.conv2d
    return (
        lambda x, w: op(
            x, w, zero(z), zero(wz), scale(s), scale(ws), kernel_size=kernel, channels=channels,
            strides=strides, padding=padding, dilation=dilation, groups=groups, **own,
        ),
        [data, weight], found,
    )  # fmt: skip


def products(d: Draw) -> Drawn:
    rows, units, depth = d.number(1, 9), d.number(1, 20), d.number(1, 20)
    dtype, weight_dtype = d.pick("int8", "uint8"), d.pick("int8", "uint8")
    (s, z), is_batch = _pair(d), d.flag()
    if is_batch:
        n = d.number(1, 3)
        x, y = _codes(d, (n, rows, depth), dtype), _codes(d, (n, units, depth), dtype)
        ws, wz = _pair(d)
        expected = (x.astype("int64") - z) @ (y.astype("int64") - wz).swapaxes(1, 2)
        return (
            lambda a, b: OPS.batch_matmul(a, b, zero(z), zero(wz), scale(s), scale(ws)), [x, y],
            expected.astype("int32"),
        )  # fmt: skip
    x, w = _codes(d, (rows, depth), dtype), _codes(d, (units, depth), weight_dtype)
    ws, wz = _pair(d, d.pick(None, units))
    expected = (x.astype("int64") - z) @ (w.astype("int64") - np.reshape(wz, (-1, 1))).T
    return (
        lambda a, b: OPS.dense(a, b, zero(z), zero(wz), scale(s), scale(ws), units), [x, w],
        expected.astype("int32"),
    )  # fmt: skip


def pools(d: Draw) -> Drawn:
    dtype, is_last, include = d.pick("int8", "uint8"), d.flag(), d.flag()
    size, strides = d.numbers(2, 1, 3), d.numbers(2, 1, 3)
    padding = tuple([d.number(0, k // 2) for k in size])
    data = _codes(d, (1, d.number(1, 4), *[k + d.number(0, 4) for k in size]), dtype)
    pair, out = _pair(d), _pair(d)
    shifted = data.astype("int64") - (pair[1] if include and any(padding) else 0)
    total, count = [
        functional.avg_pool2d(torch.from_numpy(a.astype("float64")), size, strides, padding, divisor_override=1).numpy()
        for a in (shifted, np.ones_like(data))
    ]  # fmt: skip
    mean = np.trunc(total / (size[0] * size[1] if include else count)).astype("int64")
    mean = mean + (pair[1] if include and any(padding) else 0)
    expected = requantized(mean, *pair, *out, dtype)
    if is_last:
        data, expected = data.transpose(0, 2, 3, 1).copy(), expected.transpose(0, 2, 3, 1)
    return (
        lambda x: OPS.avg_pool2d(
            x, scale(pair[0]), zero(pair[1]), scale(out[0]), zero(out[1]), size, strides, padding,
            (1, 1), False, include, "NHWC" if is_last else "NCHW",
        ),
        [data], expected,
    )  # fmt: skip


QNN = (affine, requantizations, elements, joins, convolutions, products, pools)
