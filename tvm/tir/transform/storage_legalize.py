"""Keep narrow floats as integers, for machines that know nothing of them.

A: Buffer(bfloat16)          ->    A: Buffer(uint16)
cast(float32, A[i])                reinterpret(float32, cast(uint32, A[i]) << 16)

Rounding is to nearest, ties to even. Arithmetic has to be on wider types already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.transform import Pass
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir import op
from tvm.tir.expr import BinaryOpExpr, Call, Cast, FloatImm, const
from tvm.tir.function import PrimFunc
from tvm.tir.math_op import abs as absolute
from tvm.tir.math_op import isnan, reinterpret
from tvm.tir.transform.common import prim_func_pass
from tvm.tir.transform.storage_change import StorageChanger

FLOAT32, UINT32 = as_dtype("float32"), as_dtype("uint32")
MANTISSA, BIAS = 23, 127  # of float32


@dataclass(frozen=True)
class Format:
    """A float of up to 16 bits: how its bits are to be read."""

    bits: int
    mantissa: int
    bias: int
    greatest: float  # magnitudes of at least this round to ``beyond``
    beyond: int
    nan: int
    has_infinity: bool

    @property
    def storage(self) -> DType:
        """The integer of the same size."""
        return as_dtype(f"uint{self.bits}")


BFLOAT16 = Format(16, 7, 127, 0.0, 0, 0x7FC0, True)
FORMATS = {
    "bfloat16": BFLOAT16,
    "e4m3_float8": Format(8, 3, 7, 464.0, 0x7F, 0x7F, False),
    "e5m2_float8": Format(8, 2, 15, 61440.0, 0x7C, 0x7E, True),
}


def decode(bits: PrimExpr, form: Format) -> PrimExpr:
    """The float32 that the bits stand for."""
    lanes = bits.dtype.lanes
    word, number = UINT32.with_lanes(lanes), FLOAT32.with_lanes(lanes)
    wide: Any = op.cast(bits, word)
    if form is BFLOAT16:
        return reinterpret(number, wide << 16)
    magnitude: Any = wide & (2 ** (form.bits - 1) - 1)
    normal = reinterpret(
        number, (magnitude << (MANTISSA - form.mantissa)) + ((BIAS - form.bias) << MANTISSA)
    )
    step = 2.0 ** (1 - form.bias - form.mantissa)
    small = op.cast(magnitude, number) * const(step, "float32")
    value = op.select(magnitude < (1 << form.mantissa), small, normal)
    if form.has_infinity:
        special = reinterpret(
            number, (magnitude << (MANTISSA - form.mantissa)) | const(0x7F800000, "uint32")
        )
        value = op.select(magnitude >= form.beyond, special, value)
    else:
        undefined = reinterpret(number, op.cast(const(0x7FC00000, "uint32"), word))
        value = op.select(magnitude.equal(form.nan), undefined, value)
    negative = (wide >> (form.bits - 1)).equal(1)
    return op.select(negative, op.negative(value), value)


def encode(value: PrimExpr, form: Format) -> PrimExpr:
    """The bits of the nearest number of the format."""
    lanes = value.dtype.lanes
    word, number = UINT32.with_lanes(lanes), FLOAT32.with_lanes(lanes)
    value = op.cast(value, number)
    shift = MANTISSA - form.mantissa
    if form is BFLOAT16:
        bits: Any = reinterpret(word, value)
        rounded: Any = (bits + ((bits >> shift) & 1) + ((1 << (shift - 1)) - 1)) >> shift
    else:
        magnitude = absolute(value)
        bits = reinterpret(word, magnitude)
        rounded = (bits + ((bits >> shift) & 1) + ((1 << (shift - 1)) - 1)) >> shift
        normal = rounded - ((BIAS - form.bias) << form.mantissa)
        # adding 2**23 leaves the integer part in the mantissa, rounded to even
        magic = const(2.0**MANTISSA, "float32")
        scaled = magnitude * const(2.0 ** (form.bias - 1 + form.mantissa), "float32")
        integer: Any = reinterpret(word, scaled + magic)
        small = integer & ((1 << form.mantissa << 1) - 1)
        rounded = op.select(magnitude < const(2.0 ** (1 - form.bias), "float32"), small, normal)
        beyond = op.cast(const(form.beyond, "uint32"), word)
        rounded = op.select(magnitude >= const(form.greatest, "float32"), beyond, rounded)
    rounded = op.select(isnan(value), op.cast(const(form.nan, "uint32"), word), rounded)
    if form is not BFLOAT16:
        whole: Any = reinterpret(word, value)
        rounded = rounded | ((whole >> 31) << (form.bits - 1))
    return op.cast(rounded, form.storage.with_lanes(lanes))


class StorageLegalizer(StorageChanger):
    """Writes the conversions between narrow floats and float32 out."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.formats = {name: FORMATS[name] for name in names}

    def storage(self, dtype: DType) -> DType:
        form = self.formats.get(str(dtype.element))
        return dtype if form is None else form.storage.with_lanes(dtype.lanes)

    def visit_cast(self, e: Cast) -> PrimExpr:
        value: PrimExpr = self.visit(e.value)
        source = self.formats.get(str(e.value.dtype.element))
        target = self.formats.get(str(e.dtype.element))
        if source is None and target is None:
            return e if value is e.value else Cast(e.dtype, value)
        if source is target:
            return value
        if source is not None:
            value = decode(value, source)
        return encode(value, target) if target is not None else op.cast(value, e.dtype)

    def visit_float_imm(self, e: FloatImm) -> PrimExpr:
        form = self.formats.get(str(e.dtype))
        return e if form is None else encode(const(e.value, "float32"), form)

    def visit_binary_op_expr(self, e: BinaryOpExpr) -> PrimExpr:
        if str(e.dtype.element) in self.formats:
            raise LoweringError(
                f"values of {e.dtype} need to be computed with in a wider type, got {e}",
                hint="run BF16ComputeLegalize or FP8ComputeLegalize before",
            )
        return self.rewrite_children(e)

    def visit_call(self, call: Call) -> PrimExpr:
        storage = self.storage(call.dtype)
        new = self.rewrite_children(call)
        return new if storage is call.dtype else new.replace(dtype=storage)


def legalize(name: str, names: tuple[str, ...]) -> Callable[[], Pass]:
    """The constructor of the pass for some types."""

    @prim_func_pass(name)
    def storage_legalize(func: PrimFunc) -> PrimFunc:
        return StorageLegalizer(names).function(func)

    return storage_legalize.factory


BF16StorageLegalize = legalize("tir.BF16StorageLegalize", ("bfloat16",))
FP8StorageLegalize = legalize("tir.FP8StorageLegalize", ("e4m3_float8", "e5m2_float8"))
