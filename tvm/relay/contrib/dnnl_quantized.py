"""Quantised products for oneDNN: what their composite functions hold, and as which arithmetic.

    qnn.requantize(add(qnn.conv2d(%x, w, ..), b), ..)   ->   fn (.., Composite="dnnl.qnn.conv2d")

The library sums integers, scales the sum of each channel, does what follows in float32, and rounds
to the nearest when it stores; a result may be one away from the fixed-point arithmetic of
`qnn.requantize`, as it is when that computes in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relay.dataflow_pattern import DFPattern, is_constant, is_op, wildcard
from tvm.relay.expr import Call, Constant
from tvm.relay.op.registry import ops
from tvm.relay.transform.operators import calls
from tvm.target.cpu_features import host_feature_set

from .offload import dtype_of, scalar, shape_of

PRODUCTS = ("qnn.conv2d", "qnn.dense")
BYTES = ("uint8", "int8")
# without dot products of bytes, two products are added in 16 bits: 255 * 64 * 2 fits
SAFE_WEIGHT = 64


@dataclass
class QuantizedProduct:
    """The parts of a composite function.

    Attributes
    ----------
    source_zero : the zero point of the data.
    bias : int32, one a channel; None if there is none.
    scales : of the sums, one for all or one a channel.
    steps : what follows in float32: `linear:a:b` is a * x + b, `sum:factor` adds the summand times
        a factor, `clip:lowest:highest`.
    zero, limits : the zero point of the product's own result, and what it is clipped to.
    """

    root: Call
    source_zero: int
    bias: np.ndarray[Any, Any] | None
    scales: np.ndarray[Any, Any]
    steps: list[str] = field(default_factory=list)
    zero: float = 0.0
    limits: tuple[float, float] = (0.0, 0.0)
    summand: RelayExpr | None = None


def quantized_table() -> list[Any]:
    """The entries of the pattern table, longest first."""
    return [
        (f"dnnl.{name}", pattern, _check(name))
        for name in PRODUCTS
        for pattern in (_summed(_narrowed(name)), _narrowed(name))
    ]


def _narrowed(name: str) -> DFPattern:
    """A product, a bias, and the way back to bytes."""
    found: DFPattern = is_op(name)(wildcard(), *[is_constant() for _ in range(5)])
    bias = is_constant()
    found = is_op("add")(found, bias) | is_op("nn.bias_add")(found, bias) | found
    found = is_op("qnn.requantize")(found, *[is_constant() for _ in range(4)])
    return found.optional(is_op("clip")).optional(is_op("cast"))


def _summed(narrow: DFPattern) -> DFPattern:
    """Added to another tensor of bytes."""
    rest = [is_constant() for _ in range(6)]
    other = wildcard()
    found: DFPattern = is_op("qnn.add")(narrow, other, *rest) | is_op("qnn.add")(
        other, narrow, *rest
    )
    return found.optional(is_op("clip"))


def _check(name: str) -> Callable[[RelayExpr], bool]:
    return lambda found: quantized_product(found, name) is not None


def quantized_product(found: RelayExpr, name: str) -> QuantizedProduct | None:
    """The parts of a match; None if oneDNN does not compute it."""
    if dtype_of(found) not in BYTES:
        return None
    clips: list[Call] = []
    value: Any = found
    if calls(value, ops.clip):
        clips.append(value)
        value = value.args[0]
    if not calls(value, Op.get("qnn.add")):
        return _narrow_product(found, name)
    for place in (0, 1):
        if (product := _narrow_product(value.args[place], name)) is not None:
            return _with_sum(product, value, place, clips)
    return None


def _narrow_product(found: RelayExpr, name: str) -> QuantizedProduct | None:
    """The parts of a match without a summand."""
    value: Any = found
    lowest, highest = _limits(dtype_of(found))
    if calls(value, ops.cast):
        value = value.args[0]
    if calls(value, ops.clip):
        lowest = max(lowest, float(value.attrs.a_min))
        highest = min(highest, float(value.attrs.a_max))
        value = value.args[0]
    if not calls(value, Op.get("qnn.requantize")) or str(value.attrs.rounding) == "DOWN":
        return None
    # a cast wraps what does not fit; behind a clip nothing is left to wrap
    if dtype_of(value) != dtype_of(found) and (lowest, highest) != _within(found):
        return None
    sums, *parameters = value.args
    product = _product_of(sums, name)
    if product is None:
        return None
    in_scale, in_zero, out_scale, out_zero = [_array(p) for p in parameters]
    axis = int(value.attrs.axis) % len(shape_of(sums) or (1,))
    if in_zero.any() or out_scale.size > 1 or out_zero.size > 1:
        return None
    if in_scale.size > 1 and axis != _channel_axis(product.root):
        return None
    product.scales = (in_scale / out_scale).astype("float32").reshape(-1)
    product.zero = float(out_zero.reshape(-1)[0])
    product.limits = lowest, highest
    product.steps = [f"linear:1.0:{product.zero!r}", *_clip(product.limits, dtype_of(found))]
    return product


def _clip(limits: tuple[float, float], dtype: str) -> list[str]:
    """The step of a clip; none if that changes no number that can be stored."""
    lowest, highest = _limits(dtype)
    if limits[0] <= lowest and highest <= limits[1]:
        return []
    return [f"clip:{max(limits[0], lowest)!r}:{min(limits[1], highest)!r}"]


def _within(found: Any) -> tuple[float, float] | None:
    """The limits of a clip below a cast that leaves nothing to wrap; None if there is none."""
    clip = found.args[0]
    if not calls(clip, ops.clip):
        return None
    lowest, highest = _limits(dtype_of(found))
    inner = float(clip.attrs.a_min), float(clip.attrs.a_max)
    return inner if lowest <= inner[0] <= inner[1] <= highest else None


def _limits(dtype: str) -> tuple[float, float]:
    info = np.iinfo(dtype)
    return float(info.min), float(info.max)


def _array(expr: RelayExpr) -> np.ndarray[Any, Any]:
    assert isinstance(expr, Constant)
    return np.asarray(expr.data.numpy())


def _product_of(sums: RelayExpr, name: str) -> QuantizedProduct | None:
    root, bias = sums, None
    if calls(sums, ops.add, ops.nn.bias_add):
        root = next((arg for arg in sums.args if calls(arg, Op.get(name))), sums)
        bias = next(arg for arg in sums.args if arg is not root)
    if not calls(root, Op.get(name)) or not _is_supported(root):
        return None
    source_zero = scalar(root.args[2])
    if source_zero is None or _array(root.args[3]).any():
        return None
    product = QuantizedProduct(root, int(source_zero), None, np.ones(1, "float32"))
    if bias is not None:
        values = _bias(sums, root, bias)
        if values is None:
            return None
        product.bias = values
    if name == "qnn.dense" and product.source_zero:
        # the library's dense layers have no zero point of the data
        weight = _array(root.args[1]).astype("int64")
        before = 0 if product.bias is None else product.bias
        moved = before - product.source_zero * weight.sum(axis=1)
        if np.abs(moved).max() >= 2**31:
            return None
        product.bias, product.source_zero = moved.astype("int32"), 0
    return product


def _is_supported(root: Call) -> bool:
    data, kernel = root.args[:2]
    attrs = root.attrs
    shape = shape_of(data)
    if shape is None or 0 in shape or dtype_of(data) not in BYTES or dtype_of(kernel) != "int8":
        return False
    if str(attrs.out_dtype) != "int32":
        return False
    if hasattr(attrs, "data_layout") and not (
        str(attrs.data_layout) in ("NCHW", "NHWC")
        and set(str(attrs.kernel_layout)) == set("OIHW")
        and str(attrs.out_layout) in ("", str(attrs.data_layout))
    ):
        return False
    return has_byte_products() or _is_exact_in_16_bits(root)


def has_byte_products() -> bool:
    """Whether this machine has dot products of bytes, of which the library's sums are exact."""
    return not host_feature_set().isdisjoint({"avx512vnni", "avxvnni"})


def _is_exact_in_16_bits(root: Call) -> bool:
    data, kernel = root.args[:2]
    if calls(root, ops.qnn.conv2d) and dtype_of(data) == "int8":
        return False  # the library halves the weights of convolutions of signed data
    return int(np.abs(_array(kernel).astype("int32")).max()) <= SAFE_WEIGHT


def _channel_axis(root: Call) -> int:
    layout = str(getattr(root.attrs, "data_layout", ""))
    return layout.index("C") if layout else len(shape_of(root) or (1,)) - 1


def _bias(sums: Any, root: Call, bias: RelayExpr) -> np.ndarray[Any, Any] | None:
    """The bias as one number a channel; None if it is something else."""
    result, axis = shape_of(root) or (), _channel_axis(root)
    values = _array(bias)
    if dtype_of(bias) != "int32" or shape_of(sums) != result:
        return None
    if calls(sums, ops.nn.bias_add):
        return values if int(sums.attrs.axis) % len(result) == axis else None
    shape = (1,) * (len(result) - values.ndim) + values.shape
    wanted = tuple(n if i == axis else 1 for i, n in enumerate(result))
    if any(have not in (1, want) for have, want in zip(shape, wanted, strict=True)):
        return None
    return np.broadcast_to(values.reshape(shape), wanted).reshape(-1).astype("int32")


def _with_sum(
    product: QuantizedProduct, add: Call, place: int, clips: list[Call]
) -> QuantizedProduct | None:
    """The parts of a match whose product is operand `place` of a quantised addition."""
    other = add.args[1 - place]
    found = [scalar(arg) for arg in add.args[2:]]
    if None in found or shape_of(other) != shape_of(add) or dtype_of(other) != dtype_of(add):
        return None
    values = [float(v) for v in found if v is not None]
    sides, (out_scale, out_zero) = [values[0:2], values[2:4]], values[4:6]
    (scale, zero), (other_scale, other_zero) = sides[place], sides[1 - place]
    factor, other_factor = scale / out_scale, other_scale / out_scale
    # One linear step at most, the others go into scales and limits: brgemm kernels of oneDNN 2.6
    # compute the second one with the numbers of the first.
    begin, end = [(limit - product.zero) * factor for limit in product.limits]
    product.scales = product.scales * np.float32(factor)
    offset = (product.zero - zero) * factor + out_zero - other_zero * other_factor
    product.steps = [f"clip:{begin!r}:{end!r}", f"sum:{other_factor!r}", f"linear:1.0:{offset!r}"]
    for clip in clips:
        limits = float(clip.attrs.a_min), float(clip.attrs.a_max)
        if _clip(limits, dtype_of(add)):
            return None  # the same holds of a second clip
    product.summand = other
    return product
