"""Cases of the quantised operators: references in exact integer arithmetic of numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tvm import relay

from .cases import RNG, Array, Case, floats

OPS = relay.qnn.op


def codes(*shape: int, dtype: str = "int8") -> Array:
    limits = np.iinfo(dtype)
    return RNG.integers(max(limits.min, -40000), min(limits.max, 40000) + 1, shape).astype(dtype)


def scale(value: Any) -> relay.Expr:
    return relay.const(np.asarray(value, "float32"))


def zero(value: Any) -> relay.Expr:
    return relay.const(np.asarray(value, "int32"))


def clipped(values: Array, dtype: str) -> Array:
    limits = np.iinfo(dtype)
    return np.clip(values, limits.min, limits.max).astype(dtype)


def rescaled(values: Array, factor: float, rounding: str = "UPWARD") -> Array:
    """values * factor by a multiplier of 31 bits, in numbers of any size."""
    significand, exponent = math.frexp(factor)
    multiplier = math.floor(significand * 2**31 + 0.5)
    shift = 31 - exponent

    def one(v: int) -> int:
        product, half = int(v) * multiplier, 1 << (shift - 1)
        return (product + (half if rounding == "UPWARD" or product >= 0 else half - 1)) >> shift

    return np.vectorize(one, otypes=["int64"])(values)


def as_float(value: float) -> float:
    return float(np.float32(value))


def requantized(
    q: Array, s: float, z: int, out_s: float, out_z: int, dtype: str, rounding: str = "UPWARD"
) -> Array:
    shifted = q.astype("int64") - z
    if s != out_s:
        shifted = rescaled(shifted, as_float(s) / as_float(out_s), rounding)
    return clipped(shifted + out_z, dtype)


def affine_cases() -> list[Case]:
    data = floats(3, 5, low=-9, high=9)
    steps = np.array([0.5, 0.25, 0.1, 2, 1], "float32")
    zeros = np.array([1, -2, 0, 3, 7], "int32")
    cases = [
        Case("qnn.quantize", lambda x, d=d: OPS.quantize(x, scale(0.07), zero(3), out_dtype=d), (data,), lambda x, d=d: clipped(np.rint(x / np.float32(0.07)) + 3, d), 0)
        for d in ("int8", "uint8", "int16", "int32")
    ]  # fmt: skip
    return [
        *cases,
        Case("qnn.quantize", lambda x: OPS.quantize(x, scale(steps), zero(zeros), axis=1), (data,), lambda x: clipped(np.rint(x / steps) + zeros, "int8"), 0),
        Case("qnn.quantize", lambda x: OPS.quantize(x, scale(steps[:3]), zero(zeros[:3]), axis=0, out_dtype="uint8"), (data,), lambda x: clipped(np.rint(x / steps[:3, None]) + zeros[:3, None], "uint8"), 0),
        Case("qnn.quantize", lambda x: OPS.quantize(x, scale(1.0), zero(1)), (np.array([0.5, 1.5, -0.5, 1e30, -1e30], "float32"),), lambda x: np.array([1, 3, 1, 127, -128], "int8"), 0),
        Case("qnn.dequantize", lambda x: OPS.dequantize(x, scale(0.3), zero(7)), (codes(4, 5, dtype="uint8"),), lambda x: (x.astype("int32") - 7) * np.float32(0.3)),
        Case("qnn.dequantize", lambda x: OPS.dequantize(x, scale(steps), zero(zeros), axis=-1), (codes(2, 3, 5),), lambda x: (x.astype("int32") - zeros) * steps),
    ]  # fmt: skip


def requantize_cases() -> list[Case]:
    data = RNG.integers(-100000, 100000, (4, 3, 5)).astype("int32")
    halves = np.arange(-9, 10, dtype="int32")
    scales, zeros = np.array([0.5, 0.013, 3.0], "float32"), np.array([5, 0, -9], "int32")
    cases = []
    for rounding in ("UPWARD", "TONEAREST"):
        for s, out_s in ((0.0013, 0.09), (1.0, 0.5), (0.3, 0.3)):
            cases.append(Case(
                "qnn.requantize",
                lambda x, r=rounding, s=s, o=out_s: OPS.requantize(x, scale(s), zero(4), scale(o), zero(-3), rounding=r),
                (data,), lambda x, r=rounding, s=s, o=out_s: requantized(x, s, 4, o, -3, "int8", r), 0,
            ))  # fmt: skip
        cases.append(Case(
            "qnn.requantize",
            lambda x, r=rounding: OPS.requantize(x, scale(scales), zero(zeros), scale(0.7), zero(2), axis=1, rounding=r, out_dtype="uint8"),
            (data,),
            lambda x, r=rounding: np.stack([requantized(x[:, i], scales[i], zeros[i], 0.7, 2, "uint8", r) for i in range(3)], 1), 0,
        ))  # fmt: skip
    upward = np.floor(halves / 2 + 0.5)
    away = np.sign(halves) * np.floor(np.abs(halves) / 2 + 0.5)
    for rounding, wanted in (("UPWARD", upward), ("TONEAREST", away)):
        cases.append(Case(
            "qnn.requantize",
            lambda x, r=rounding: OPS.requantize(x, scale(1.0), zero(0), scale(2.0), zero(0), rounding=r),
            (halves,), lambda x, w=wanted: w.astype("int8"), 0,
        ))  # fmt: skip
    for dtype in ("float32", "float64"):
        cases.append(Case(
            "qnn.requantize",
            lambda x, d=dtype: OPS.requantize(x, scale(1.0), zero(1), scale(2.0), zero(0), compute_dtype=d),
            (halves,), lambda x: np.floor((x - 1) / 2 + 0.5).astype("int8"), 0,
        ))  # fmt: skip
    return cases


def _binary(name: str, dtype: str, left: Array, right: Array) -> Case:
    p = (0.11, 3, 0.05, 7, 0.2, 4)

    def build(x: relay.Expr, y: relay.Expr) -> relay.Expr:
        params = [scale(v) if i % 2 == 0 else zero(v) for i, v in enumerate(p)]
        return getattr(OPS, name)(x, y, *params)

    def expected(x: Array, y: Array) -> Array:
        if name == "mul":
            product = (x.astype("int64") - p[1]) * (y.astype("int64") - p[3])
            factor = np.float32(p[0]) * np.float32(p[2])
            return requantized(product, factor, 0, p[4], p[5], dtype)
        a, b = [requantized(v, s, z, p[4], p[5], "int32").astype("int64") for v, s, z in ((x, *p[:2]), (y, *p[2:4]))]  # fmt: skip
        return clipped(a + b - p[5] if name == "add" else a - b + p[5], dtype)

    return Case(f"qnn.{name}", build, (left, right), expected, 0)


def elementwise_cases() -> list[Case]:
    cases = []
    for name in ("add", "subtract", "mul"):
        for dtype in ("uint8", "int8", "int16"):
            cases.append(_binary(name, dtype, codes(3, 4, dtype=dtype), codes(4, dtype=dtype)))
    steps = np.array([0.1, 0.3, 0.2], "float32")
    cases.append(Case(
        "qnn.add",
        lambda x, y: OPS.add(x, y, scale(steps), zero(0), scale(0.2), zero(1), scale(0.2), zero(1), lhs_axis=0),
        (codes(3, 4), codes(3, 4)),
        lambda x, y: clipped(np.stack([requantized(x[i], steps[i], 0, 0.2, 1, "int32") for i in range(3)]) + (y.astype("int64") - 1), "int8"), 0,
    ))  # fmt: skip

    def join(x: relay.Expr, y: relay.Expr) -> relay.Expr:
        params = (scale(0.1), scale(0.2)), (zero(3), zero(0))
        return OPS.concatenate((x, y), *params, scale(0.2), zero(0), axis=1)

    cases.append(Case(
        "qnn.concatenate", join, (codes(2, 3), codes(2, 4)),
        lambda x, y: np.concatenate([requantized(x, 0.1, 3, 0.2, 0, "int8"), y], 1), 0,
    ))  # fmt: skip
    return cases


_FUNCTIONS: dict[str, Any] = {
    "tanh": np.tanh, "exp": np.exp, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": np.vectorize(math.erf, otypes=["float32"]), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6, "log": np.log, "abs": np.abs,
}  # fmt: skip


def lookup_cases() -> list[Case]:
    cases = []
    for name, function in _FUNCTIONS.items():
        for dtype, offset in (("uint8", 0), ("int8", -128)):
            data = (np.arange(1, 256) + offset).astype(dtype)
            cases.append(Case(
                f"qnn.{name}",
                lambda x, n=name, o=offset: getattr(OPS, n)(x, scale(0.03), zero(o), scale(0.01), zero(5)),
                (data,),
                lambda x, f=function, o=offset, d=dtype: clipped(np.rint(f((x.astype("int32") - o) * np.float32(0.03)).astype("float32") / np.float32(0.01)) + 5, d), 0,
            ))  # fmt: skip
        cases.append(Case(
            f"qnn.{name}",
            lambda x, n=name: getattr(OPS, n)(x, scale(0.001), zero(0), scale(0.003), zero(9)),
            (np.arange(100, 4000, 7).astype("int16"),),
            lambda x, f=function: clipped(np.rint(f(x * np.float32(0.001)) / np.float32(0.003)) + 9, "int16"), 1.01,
        ))  # fmt: skip
    cases.append(Case(
        "qnn.leaky_relu",
        lambda x: OPS.leaky_relu(x, 0.3, scale(0.125), zero(60), scale(0.125), zero(60)),
        (np.arange(256).astype("uint8"),),
        lambda x: clipped(np.where(x < 60, rescaled(x.astype("int64"), 0.3) + rescaled(np.array(60), 0.7), x), "uint8"), 0,
    ))  # fmt: skip
    for axis in (-1, 0):
        cases.append(Case(
            "qnn.softmax",
            lambda x, a=axis: OPS.softmax(x, scale(0.04), zero(3), scale(1 / 256), zero(-128), axis=a),
            (codes(6, 7),),
            lambda x, a=axis: clipped(np.rint(torch.softmax(torch.tensor((x.astype("float32") - 3) * 0.04), a).numpy() * 256) - 128, "int8"), 4.01,
        ))  # fmt: skip
    return cases


def _whole(function: Any, x: Array, w: Array, zx: Any, zw: Any, **options: Any) -> Array:
    """A product of integers, exact in float64."""
    a, b = [torch.from_numpy(v.astype("float64") - z) for v, z in ((x, zx), (w, zw))]
    return function(a, b, **options).numpy().astype("int32")


def conv_cases() -> list[Case]:
    rows: list[tuple[str, str, Any, Any, dict[str, Any]]] = [
        ("uint8", "int8", 7, 0, {"padding": 1}),
        ("int8", "int8", 0, 0, {"stride": 2}),
        ("uint8", "uint8", 11, 128, {"padding": (1, 2), "dilation": 2}),
        ("uint8", "uint8", 0, 13, {"padding": 1}),
        ("int8", "int8", -5, np.arange(-3, 3).reshape(6, 1, 1, 1), {"padding": 1, "groups": 2}),
    ]
    cases = []
    for dtype, kernel_dtype, zx, zw, options in rows:
        attrs = {("strides" if k == "stride" else k): v for k, v in options.items()}
        groups = options.get("groups", 1)

        def build(x: relay.Expr, w: relay.Expr, zx: Any = zx, zw: Any = zw, attrs: Any = attrs) -> Any:  # fmt: skip
            kernel_zero = zero(np.reshape(zw, -1) if np.ndim(zw) else zw)
            return OPS.conv2d(x, w, zero(zx), kernel_zero, scale(0.1), scale(0.2), (3, 3), 6, **attrs)  # fmt: skip

        cases.append(Case(
            "qnn.conv2d", build,
            (codes(2, 4, 9, 8, dtype=dtype), codes(6, 4 // groups, 3, 3, dtype=kernel_dtype)),
            lambda x, w, zx=zx, zw=zw, o=options: _whole(F.conv2d, x, w, zx, zw, **o), 0,
        ))  # fmt: skip
    cases += [*_channels_last_cases(), *_rank_cases()]
    for options in ({"stride": 2, "padding": 1, "output_padding": 1}, {}):
        attrs = {("strides" if k == "stride" else k): v for k, v in options.items()}
        cases.append(Case(
            "qnn.conv2d_transpose",
            lambda x, w, a=attrs: OPS.conv2d_transpose(x, w, zero(9), zero(2), scale(0.1), scale(0.2), channels=3, kernel_size=(3, 3), **a),
            (codes(1, 4, 5, 6, dtype="uint8"), codes(4, 3, 3, 3)),
            lambda x, w, o=options: _whole(F.conv_transpose2d, x, w, 9, 2, **o), 0,
        ))  # fmt: skip
    return cases


def _rank_cases() -> list[Case]:
    """Convolutions of one and of three axes, plain and transposed."""
    cases = []
    for rank in (1, 3):
        size, window = (9, 5, 6)[:rank], (3, 2, 3)[:rank]
        for name, whole, weight in [
            (f"conv{rank}d", getattr(F, f"conv{rank}d"), (6, 4, *window)),
            (f"conv{rank}d_transpose", getattr(F, f"conv_transpose{rank}d"), (4, 6, *window)),
        ]:
            operator = getattr(OPS, name)
            cases.append(Case(
                f"qnn.{name}",
                lambda x, w, op=operator, k=window: op(x, w, zero(7), zero(2), scale(0.1), scale(0.2), strides=2, padding=1, channels=6, kernel_size=k),
                (codes(2, 4, *size, dtype="uint8"), codes(*weight)),
                lambda x, w, f=whole: _whole(f, x, w, 7, 2, stride=2, padding=1), 0,
            ))  # fmt: skip
    return cases


def _channels_last_cases() -> list[Case]:
    def plain(x: Array, w: Array) -> Array:
        image, kernel = x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)
        return _whole(F.conv2d, image, kernel, 3, 1, padding=1).transpose(0, 2, 3, 1)

    def depthwise(x: Array, w: Array) -> Array:
        image, kernel = x.transpose(0, 3, 1, 2), w.transpose(2, 3, 0, 1).reshape(8, 1, 3, 3)
        return _whole(F.conv2d, image, kernel, 3, 1, groups=4).transpose(0, 2, 3, 1)

    def build(x: relay.Expr, w: relay.Expr, **attrs: Any) -> relay.Expr:
        parameters = (zero(3), zero(1), scale(0.1), scale(0.2))
        return OPS.conv2d(x, w, *parameters, (3, 3), 8, data_layout="NHWC", **attrs)

    return [
        Case("qnn.conv2d", lambda x, w: build(x, w, padding=1, kernel_layout="HWIO"), (codes(1, 5, 6, 4), codes(3, 3, 4, 8)), plain, 0),
        Case("qnn.conv2d", lambda x, w: build(x, w, groups=4, kernel_layout="HWOI"), (codes(1, 5, 6, 4), codes(3, 3, 4, 2)), depthwise, 0),
    ]  # fmt: skip


def product_cases() -> list[Case]:
    cases = []
    for zx, zw in ((0, 0), (7, 0), (7, -2), (0, np.arange(5))):
        cases.append(Case(
            "qnn.dense",
            lambda x, w, zx=zx, zw=zw: OPS.dense(x, w, zero(zx), zero(zw), scale(0.1), scale(0.2), 5),
            (codes(3, 11, dtype="uint8"), codes(5, 11)),
            lambda x, w, zx=zx, zw=zw: (x.astype("int32") - zx) @ (w.astype("int32") - np.reshape(zw, (-1, 1))).T.astype("int32"), 0,
        ))  # fmt: skip
        if np.ndim(zw) == 0:
            cases.append(Case(
                "qnn.batch_matmul",
                lambda x, y, zx=zx, zw=zw: OPS.batch_matmul(x, y, zero(zx), zero(zw), scale(0.1), scale(0.2)),
                (codes(2, 3, 9), codes(2, 4, 9)),
                lambda x, y, zx=zx, zw=zw: (x.astype("int32") - zx) @ (y.astype("int32") - zw).swapaxes(1, 2), 0,
            ))  # fmt: skip
    for zw in (0, np.arange(8)):
        cases.append(Case(
            "qnn.contrib_dense_pack",
            lambda x, w, zw=zw: OPS.contrib_dense_pack(x, w, zero(3), zero(zw), scale(0.1), scale(0.2), "NC4n", 8),
            (codes(3, 6), codes(2, 6, 4)),
            lambda x, w, zw=zw: (x.astype("int32") - 3) @ (w.transpose(0, 2, 1).reshape(8, 6).astype("int32") - np.reshape(zw, (-1, 1)).astype("int32")).T, 0,
        ))  # fmt: skip
    return cases


def _mean_of_windows(x: Array) -> Array:
    total = torch.from_numpy(x.astype("float64"))
    pooled = F.avg_pool2d(total, 3, 2, 1, count_include_pad=False, divisor_override=1)
    count = F.avg_pool2d(torch.ones_like(total), 3, 2, 1, divisor_override=1)
    return np.trunc((pooled / count).numpy()).astype("int64")


def other_cases() -> list[Case]:
    window = {"pool_size": 3, "strides": 2, "padding": 1, "dilation": 1, "layout": "NCHW"}
    image = (codes(1, 3, 8, 7, dtype="uint8"),)
    data = floats(3, 4, low=-9, high=9)
    return [
        Case("qnn.avg_pool2d", lambda x: OPS.avg_pool2d(x, scale(0.1), zero(9), scale(0.2), zero(1), count_include_pad=False, **window), image, lambda x: requantized(_mean_of_windows(x), 0.1, 9, 0.2, 1, "uint8"), 0),
        Case("qnn.avg_pool2d", lambda x: OPS.avg_pool2d(x, scale(0.1), zero(9), scale(0.1), zero(9), **window), image, lambda x: clipped(np.trunc(F.avg_pool2d(torch.from_numpy(x.astype("float64") - 9), 3, 2, 1).numpy()) + 9, "uint8"), 0),
        Case("qnn.simulated_dequantize", lambda x: OPS.simulated_dequantize(x, scale(0.3), zero(4), in_dtype="int8"), (data,), lambda x: (x - 4) * np.float32(0.3)),
        Case("qnn.simulated_quantize", lambda x: OPS.simulated_quantize(x, scale(0.3), zero(4), out_dtype="disable"), (data,), lambda x: x),
        Case("qnn.simulated_quantize", lambda x, c: OPS.simulated_quantize(x, scale([0.3, 1, 2, 0.01]), zero([4, 1, 2, 3]), out_dtype=c), (data, np.array(2, "int32")), lambda x, c: np.clip(np.rint(x / np.array([0.3, 1, 2, 0.01], "float32")) + np.array([4, 1, 2, 3]), 0, 255).astype("float32")),
    ]  # fmt: skip


def qnn_cases() -> list[Case]:
    return [
        *affine_cases(),
        *requantize_cases(),
        *elementwise_cases(),
        *lookup_cases(),
        *conv_cases(),
        *product_cases(),
        *other_cases(),
    ]
