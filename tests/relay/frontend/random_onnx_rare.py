"""Nodes that random ONNX graphs seldom have: powers and inverse functions, regions of images,
losses, windows, integer products with scales, operators of later releases and of com.microsoft."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from .random_onnx_graph import LARGEST, Graph, Value


def _inexact(value: Value, **changes: object) -> Value:
    return replace(value, is_exact=False, **changes)  # type: ignore[arg-type]


def _floats(rank: int | None = None, least: int = 0) -> Callable[[Value], bool]:
    return lambda v: v.dtype == "float32" and rank in (None, v.rank) and v.rank >= least


# -- element-wise


def _inverse_functions(g: Graph) -> None:
    value = g.pick(_floats())
    if not value:
        return
    small = g.add("Tanh", [value], _inexact(value))
    half = g.add("Mul", [small, g.constant(np.float32(0.5))], small)
    op = g.choose(("Asin", "Acos", "Atanh", "Asinh", "Acosh", "Sinh", "Cosh", "Tan"))
    if op == "Acosh":
        half = g.add("Add", [half, g.constant(np.float32(2))], half)
    g.add(op, [half], half)


def _power(g: Graph) -> None:
    value = g.pick(lambda v: v.dtype in ("float32", "int32", "int64"))
    if value:
        small = g.add("Clip", [value, *[g.constant(np.array(n, value.dtype)) for n in (-3, 3)]],
                      value)  # fmt: skip
        exponent = g.constant(np.array(g.integer(0, 3), g.choose(("float32", "int64"))))
        g.add("Pow", [small, exponent], replace(value, is_exact=not value.is_float))


def _small(g: Graph, least: int) -> Value | None:
    """A value between -1 and 1: far below zero, gates are differences of equal numbers."""
    value = g.pick(_floats(least=least))
    return g.add("Tanh", [value], _inexact(value)) if value else None


def _activations(g: Graph) -> None:
    value = _small(g, 0)
    if not value:
        return
    names = ["com.microsoft.QuickGelu", "com.microsoft.Gelu"]
    names += ["Gelu"] if g.opset >= 20 else []
    op = g.choose(names)
    attrs = {"approximate": g.choose(("none", "tanh"))} if op == "Gelu" else {}
    _of_domain(g, op, [value], _inexact(value), **attrs)


def _of_domain(g: Graph, op: str, inputs: list[Value | str], like: Value, **attrs: object) -> Value:
    domain, _, name = op.rpartition(".")
    return g.add(name, inputs, like, **({"domain": domain} if domain else {}), **attrs)


def _no_change(g: Graph) -> None:
    value = g.pick(lambda v: v.is_float)
    if value:
        g.add("Dropout", [value], value)


# -- normalisation and losses


def _norms(g: Graph) -> None:
    value = g.pick(_floats(least=2))
    if not value or value.shape[-1] < 2:
        return
    like = _inexact(value)
    match g.integer(0, 3):
        case 0 if value.rank == 4 and prod(value.shape) > prod(value.shape[1:2]):
            g.add("MeanVarianceNormalization", [value], like, axes=[0, 2, 3])
        case 1 if g.opset >= 21 and value.rank > 2:
            scale, bias = [g.constant(g.array(value.shape[1:2], "float32")) for _ in range(2)]
            g.add("GroupNormalization", [value, scale, bias], like, num_groups=1, epsilon=1e-2)
        case 2 if value.rank == 3:
            other = g.constant(g.array(value.shape, "float32"))
            scale, bias = [g.constant(g.array(value.shape[-1:], "float32")) for _ in range(2)]
            _of_domain(g, "com.microsoft.SkipLayerNormalization", [value, other, scale, bias], like,
                       epsilon=1e-2)  # fmt: skip
        case _:
            scale = g.constant(g.array(value.shape[-1:], "float32"))
            _of_domain(g, "SimplifiedLayerNormalization", [value, scale], like, epsilon=1e-2,
                       axis=-1)  # fmt: skip


def _loss(g: Graph) -> None:
    value = g.pick(_floats(rank=2))
    if value:
        classes = g.rng.integers(0, value.shape[1], value.shape[0])
        how = g.choose(("none", "mean", "sum"))
        shape = value.shape[:1] if how == "none" else ()
        like = _inexact(value, shape=shape)
        g.add("SoftmaxCrossEntropyLoss", [value, g.constant(classes)], like, reduction=how)


def _reduce_log(g: Graph) -> None:
    value = g.pick(_floats(least=1))
    if value:
        positive = g.add("Exp", [g.add("Tanh", [value], _inexact(value))], _inexact(value))
        keep = g.integer(0, 1)
        shape = (1,) * value.rank if keep else ()
        g.add("ReduceLogSum", [positive], _inexact(value, shape=shape), keepdims=keep)


# -- images


def _pooled(g: Graph) -> None:
    value = g.pick(_floats(rank=4))
    if not value:
        return
    n, c, h, w = value.shape
    kernel = [g.integer(1, min(3, e)) for e in (h, w)]
    like = _inexact(value, shape=(n, c, h - kernel[0] + 1, w - kernel[1] + 1))
    if g.chance(0.5):
        g.add("LpPool", [value], like, kernel_shape=kernel, p=2)
    else:
        g.add("GlobalLpPool", [value], _inexact(value, shape=(n, c, 1, 1)), p=2)


def _regions(g: Graph) -> None:
    value = g.pick(_floats(rank=4))
    if not value:
        return
    n, c, h, w = value.shape
    count, size = g.integer(1, 3), g.integer(1, 3)
    corner = np.abs(g.array((count, 2), "float32")) / 2
    rois = g.constant(np.concatenate([corner, corner + np.float32(1.25)], 1))
    batch = g.constant(g.rng.integers(0, n, count))
    attrs = {"coordinate_transformation_mode": g.choose(("half_pixel", "output_half_pixel"))}
    like = _inexact(value, shape=(count, c, size, size))
    if g.opset >= 16:
        g.add("RoiAlign", [value, rois, batch], like, output_height=size, output_width=size,
              sampling_ratio=2, **attrs)  # fmt: skip


def _cropped(g: Graph) -> None:
    value = g.pick(_floats(least=1))
    if value and g.opset >= 18:
        wanted = [g.integer(1, n + 2) for n in value.shape]
        if prod(wanted) <= LARGEST:
            g.add(
                "CenterCropPad", [value, g.integers(*wanted)], replace(value, shape=tuple(wanted))
            )


def _columns(g: Graph) -> None:
    value = g.pick(_floats(rank=4))
    if value and g.opset >= 18:
        n, c, h, w = value.shape
        flat = replace(value, shape=(n, c, h * w))
        rows = g.add("Reshape", [value, g.integers(*flat.shape)], flat)
        size, block = ((h + 1, w), (2, 1)) if c % 2 == 0 else ((h, w), (1, 1))
        like = _inexact(value, shape=(n, c // prod(block), *size))
        g.add("Col2Im", [rows, g.integers(*size), g.integers(*block)], like)


def _affine_grid(g: Graph) -> None:
    if g.opset >= 20:
        count, h, w = g.integer(1, 2), g.integer(1, 4), g.integer(1, 4)
        theta = g.constant(g.array((count, 2, 3), "float32"))
        g.add("AffineGrid", [theta, g.integers(count, 1, h, w)],
              Value("", (count, h, w, 2), "float32", False),
              align_corners=int(min(h, w) > 1 and g.chance(0.5)))  # fmt: skip


# -- signals and small matrices


def _signal(g: Graph) -> None:
    if g.opset < 17:
        return
    if g.chance(0.5):
        size = g.integer(4, 8)  # shorter ones are nothing but zeros, rounded
        op = g.choose(("HannWindow", "HammingWindow", "BlackmanWindow"))
        g.add(op, [g.scalar(size)], Value("", (size,), "float32", False), periodic=g.integer(0, 1))
        return
    value = g.pick(_floats(rank=3))
    if value and value.shape[2] == 1 and value.shape[1] > 1:
        like = _inexact(value, shape=(*value.shape[:2], 2))
        if g.opset >= 20:
            g.add("DFT", [value, "", g.scalar(1)], like)
        else:
            g.add("DFT", [value], like, axis=1)


def _determinant(g: Graph) -> None:
    value = g.pick(lambda v: _floats(least=2)(v) and v.shape[-1] == v.shape[-2] and v.is_exact)
    if value:  # far from singular: determinants near zero are rounding alone
        small = g.add("Tanh", [value], _inexact(value))
        large = g.constant(np.eye(value.shape[-1], dtype="float32") * np.float32(8))
        value = g.add("Add", [small, large], small)
        g.add("Det", [value], _inexact(value, shape=value.shape[:-2]))


# -- integers with scales: powers of two, so that nothing lies between two steps


def _scale(g: Graph, power: int) -> Value:
    return g.constant(np.float32(2.0**power))


def _quantised_product(g: Graph) -> None:
    value = g.pick(lambda v: v.rank == 2 and v.dtype in ("uint8", "int8"))
    if not value:
        return
    columns = g.integer(1, 6)
    other = g.constant(g.array((value.shape[1], columns), value.dtype))
    zero = g.constant(np.array(2, value.dtype))
    given = [value, _scale(g, -2), zero, other, _scale(g, -1), zero, _scale(g, -1), zero]
    g.add("QLinearMatMul", given, replace(value, shape=(value.shape[0], columns)))


def _quantised_conv(g: Graph) -> None:
    value = g.pick(lambda v: v.rank == 4 and v.dtype in ("uint8", "int8"))
    if not value:
        return
    n, c, h, w = value.shape
    kernel, outputs = (min(2, h), min(2, w)), g.integer(1, 4)
    weight = g.constant(g.array((outputs, c, *kernel), value.dtype))
    zero = g.constant(np.array(1, value.dtype))
    shape = (n, outputs, h - kernel[0] + 1, w - kernel[1] + 1)
    if g.chance(0.4):
        g.add("ConvInteger", [value, weight, zero], replace(value, shape=shape, dtype="int32"))
        return
    given = [value, _scale(g, -2), zero, weight, _scale(g, -1), zero, _scale(g, -1), zero]
    bias = g.constant(g.array((outputs,), "int32"))
    g.add("QLinearConv", [*given, bias], replace(value, shape=shape))


def _quantised_sum(g: Graph) -> None:
    value = g.pick(lambda v: v.dtype == "uint8")
    if value:
        other = g.constant(g.array(value.shape[-1:], "uint8"))
        zero = g.constant(np.array(1, "uint8"))
        given = [value, _scale(g, -2), zero, other, _scale(g, -2), zero, _scale(g, -2), zero]
        _of_domain(g, "com.microsoft.QLinearAdd", given, value)


# -- products of com.microsoft


def _fused_product(g: Graph) -> None:
    value = g.pick(_floats(least=2))
    if value:
        columns, turned = g.integer(1, 5), g.integer(0, 1)
        shape = (columns, value.shape[-1]) if turned else (value.shape[-1], columns)
        other = g.constant(g.array(shape, "float32") / 4)
        like = _inexact(value, shape=(*value.shape[:-1], columns))
        _of_domain(g, "com.microsoft.FusedMatMul", [value, other], like, transB=turned, alpha=0.5)


def _biased(g: Graph) -> None:
    value = _small(g, 1)
    if value:
        bias = g.constant(g.array(value.shape[-1:], "float32") / 4)
        op = g.choose(("com.microsoft.BiasGelu", "com.microsoft.FastGelu"))
        _of_domain(g, op, [value, bias], _inexact(value))


RARE_DRAWS: tuple[Callable[[Graph], None], ...] = (
    _inverse_functions, _power, _activations, _no_change, _norms, _loss, _reduce_log, _pooled,
    _regions, _cropped, _columns, _affine_grid, _signal, _determinant, _quantised_product,
    _quantised_conv, _quantised_sum, _fused_product, _biased,
)  # fmt: skip
