"""Floating-point types of few bits that relay lacks: held as float32, which has all their values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant

from .checker import all_nodes
from .shape_inference import inferred, without_weights
from .tensors import HELD_AS, numpy_type


@dataclass(frozen=True)
class Narrow:
    """The numbers of a type: those of ``mantissa`` bits up to ``most``, below ``least`` evenly
    spaced."""

    mantissa: int
    least: int  # the exponent of the smallest number that has all bits
    most: float
    has_nan: bool
    has_negative_zero: bool


# by the names of numpy's types
NARROW = {
    "float8_e4m3fnuz": Narrow(3, -7, 240.0, True, False),
    "float8_e5m2fnuz": Narrow(2, -15, 57344.0, True, False),
    "float6_e2m3fn": Narrow(3, 0, 7.5, False, True),
    "float6_e3m2fn": Narrow(2, -2, 28.0, False, True),
    "float4_e2m1fn": Narrow(1, 0, 6.0, False, True),
}
_POWERS = "float8_e8m0fnu"  # powers of two alone


def narrow_name(element_type: int | str | None) -> str:
    """The name of an ONNX element type that is held wider, empty for others."""
    if not element_type or isinstance(element_type, str):  # strings are of the first opsets
        return ""
    name = str(numpy_type(element_type))
    return name if name in HELD_AS else ""


def narrow_types(model: Any) -> dict[str, int]:
    """The element types of the main graph's values that are held wider, by their names."""
    if not any(narrow_name(found) for found in _declared(model)):
        return {}
    found = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    graph = inferred(without_weights(model)).graph
    for value in (*graph.input, *graph.value_info, *graph.output):
        found[value.name] = value.type.tensor_type.elem_type
    return {name: kind for name, kind in found.items() if narrow_name(kind)}


def _declared(model: Any) -> Iterator[int]:
    """The element types that inputs, weights and attributes of nodes name."""
    for value in model.graph.input:
        yield value.type.tensor_type.elem_type
    for tensor in model.graph.initializer:
        yield tensor.data_type
    for node in all_nodes(model.graph):
        for attr in node.attribute:
            if attr.name in ("to", "output_dtype"):
                yield attr.i
            elif attr.HasField("t"):
                yield attr.t.data_type


def narrowed(x: RelayExpr, name: str, saturate: bool, rounding: str = "up") -> RelayExpr:
    """The nearest numbers of a type, held as float32; ties go to even ones."""
    x = _op.cast(x, "float32")
    if name == _POWERS:
        return _power_of_two(x, saturate, rounding)
    kind, zero = NARROW[name], constant(0.0, "float32")
    bias, width = constant(127 + kind.least, "int32"), constant(23, "int32")
    exponent = _op.right_shift(_op.reinterpret(_op.abs(x), "int32"), width)
    step = _op.maximum(exponent, bias) - constant(kind.mantissa, "int32")
    unit = _op.reinterpret(_op.left_shift(step, width), "float32")
    found, is_nan = _op.round(x / unit) * unit, _op.isnan(x)
    bounded = _op.clip(found, -kind.most, kind.most)
    if kind.has_nan and not saturate:
        is_nan = _op.logical_or(is_nan, _op.not_equal(found, bounded))
    nan = constant(float("nan") if kind.has_nan else 0.0, "float32")
    result = _op.where(is_nan, nan, bounded)
    if kind.has_negative_zero:
        return result
    return _op.where(_op.equal(result, zero), zero, result)


def _power_of_two(x: RelayExpr, saturate: bool, rounding: str) -> RelayExpr:
    """Powers of two, from 2**-127 to 2**127; there are no others, nor zero and infinity."""
    bits = _op.reinterpret(x, "int32")
    zero, most, width = [constant(value, "int32") for value in (0, 254, 23)]
    exponent = _op.bitwise_and(_op.right_shift(bits, width), constant(255, "int32"))
    rest = _op.bitwise_and(bits, constant(2**23 - 1, "int32"))
    is_nan = _op.greater(exponent, most)
    if rounding == "up":
        exponent = exponent + _op.cast(_op.greater(rest, zero), "int32")
    elif rounding == "nearest":
        half = _op.where(
            _op.greater(exponent, zero), constant(2**22 - 1, "int32"), constant(2**22, "int32")
        )
        exponent = exponent + _op.cast(_op.greater(rest, half), "int32")
    if not saturate:
        is_nan = _op.logical_or(is_nan, _op.greater(exponent, most))
    exponent = _op.minimum(exponent, most)
    is_least = _op.equal(exponent, zero)
    power = _op.where(is_least, constant(2**22, "int32"), _op.left_shift(exponent, width))
    return _op.where(is_nan, constant(float("nan"), "float32"), _op.reinterpret(power, "float32"))
