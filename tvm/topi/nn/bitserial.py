"""Products of numbers of few bits, bit by bit: words of bits are joined and counted.

sum(a * w) = sum over bits b, c of popcount(a_b & w_c) << (b + c)

Unipolar weights of one bit stand for -1 and 1 rather than 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.support.signatures import with_values

from ..utils import dims
from .pad import pad
from .utils import get_pad_tuple

_WIDTHS = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


def _width(pack_type: str) -> int:
    if pack_type not in _WIDTHS:
        raise RuntimeValueError(f"bits are packed into {', '.join(_WIDTHS)}, got {pack_type!r}")
    return _WIDTHS[pack_type]


def bitpack(
    data: te.Tensor,
    bits: int,
    pack_axis: int,
    bit_axis: int,
    pack_type: str,
    name: str = "QuantizeInput",
) -> te.Tensor:
    """Words of the bits of neighbours along an axis; the first is the highest bit of its word.

    Parameters
    ----------
    data : te.Tensor
        Integers.
    bits : int
        How many of the lowest bits of each number count.
    pack_axis : int
        The axis along which bits are joined.
    bit_axis : int
        Where the axis of the bits comes in.
    pack_type : str
        "uint8", "uint16", "uint32" or "uint64".
    """
    width = _width(pack_type)
    shape = list(dims(data.shape))
    if isinstance(shape[pack_axis], int) and shape[pack_axis] % width:
        raise RuntimeValueError(
            f"bitpack requires a multiple of {width} along axis {pack_axis}, got {shape[pack_axis]}"
        )
    shape[pack_axis] = shape[pack_axis] // width
    shape.insert(bit_axis, bits)

    def element(*i: Any) -> PrimExpr:
        at = [*i[:bit_axis], *i[bit_axis + 1 :]]
        first = at[pack_axis] * width
        word: PrimExpr = tir.const(0, pack_type)
        for k in range(width):
            at[pack_axis] = first + k
            number = data(*at)
            bit = tir.bitwise_and(
                tir.shift_right(number, i[bit_axis].astype(number.dtype)),
                tir.const(1, number.dtype),
            ).astype(pack_type)
            lifted = tir.shift_left(bit, tir.const(width - 1 - k, pack_type))
            word = tir.bitwise_or(word, lifted)
        return word

    return te.compute(shape, element, name=name, tag="bitpack")


def binary_op_multiplier(pack_dtype: str) -> int:
    """How many bits a word has."""
    return _width(pack_dtype)


def _joined(a: PrimExpr, w: PrimExpr, shift: PrimExpr, out_dtype: str, unipolar: bool) -> PrimExpr:
    """What two words of bits give to the sum."""
    count = tir.popcount(tir.bitwise_and(a, w)).astype(out_dtype)
    if unipolar:
        count = count - tir.popcount(tir.bitwise_and(a, tir.bitwise_not(w))).astype(out_dtype)
    return tir.shift_left(count, shift.astype(out_dtype))


def bitserial_dense(
    data: te.Tensor,
    weight: te.Tensor,
    data_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> te.Tensor:
    """A dense layer of integers of few bits.

    Parameters
    ----------
    data, weight : te.Tensor
        (rows, inner) and (units, inner) numbers, the weight perhaps packed already.
    data_bits, weight_bits : int
        The bits of each number.
    pack_dtype, out_dtype : str
        The dtypes of words and of sums.
    unipolar : bool
        Whether bits of the weight stand for -1 and 1.
    """
    words = bitpack(data, data_bits, 1, 1, pack_dtype)
    kernel = weight if len(weight.shape) == 3 else bitpack(weight, weight_bits, 1, 1, pack_dtype)
    rows, inner = dims(words.shape)[0], dims(words.shape)[2]
    k = te.reduce_axis((0, inner), name="k")
    a = te.reduce_axis((0, data_bits), name="a")
    w = te.reduce_axis((0, weight_bits), name="w")

    def element(i: Any, j: Any) -> Any:
        bits = words(i, a.var, k.var), kernel(j, w.var, k.var)
        return te.sum(_joined(*bits, a.var + w.var, out_dtype, unipolar), axis=[w, a, k])

    shape = (rows, dims(kernel.shape)[0])
    return te.compute(shape, element, name="bitserial_dense", tag="bitserial_dense")


def _conv2d(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: int | Sequence[int],
    padding: Any,
    activation_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
) -> te.Tensor:
    # the axis of the bits comes behind that of the words in data, and last in the kernel
    channel = data_layout.index("C")
    words = bitpack(data, activation_bits, channel, channel + 1, pack_dtype)
    if len(kernel.shape) == 4:
        kernel = bitpack(kernel, weight_bits, kernel_layout.index("I"), 4, pack_dtype)
    packed_layout = data_layout.replace("C", "CB")
    have = dict(zip(packed_layout, dims(words.shape), strict=True))
    window = dict(zip(kernel_layout + "B", dims(kernel.shape), strict=True))
    strides = [stride, stride] if isinstance(stride, int) else list(stride)
    pads = get_pad_tuple(padding, (window["H"], window["W"]))
    before, after = [0] * 5, [0] * 5
    for k, axis in enumerate("HW"):
        before[packed_layout.index(axis)], after[packed_layout.index(axis)] = pads[k], pads[k + 2]
    source = pad(words, before, after, name="data_pad") if any(pads) else words
    axes = {"C": have["C"], "H": window["H"], "W": window["W"], "A": activation_bits, "B": weight_bits}  # fmt: skip
    over = {name: te.reduce_axis((0, n), name=f"r{name.lower()}") for name, n in axes.items()}

    def element(*i: Any) -> Any:
        at = dict(zip(data_layout, i, strict=True))
        data_at = {"N": at["N"], "C": over["C"].var, "B": over["A"].var}
        for k, axis in enumerate("HW"):
            data_at[axis] = at[axis] * strides[k] + over[axis].var
        kernel_at = {"O": at["C"], "I": over["C"].var, "B": over["B"].var}
        kernel_at.update({axis: over[axis].var for axis in "HW"})
        a = source(*[data_at[axis] for axis in packed_layout])
        w = kernel(*[kernel_at[axis] for axis in kernel_layout + "B"])
        shift = over["A"].var + over["B"].var
        return te.sum(_joined(a, w, shift, out_dtype, unipolar), axis=list(over.values()))

    out = {"N": have["N"], "C": window["O"]}
    for k, axis in enumerate("HW"):
        out[axis] = (have[axis] + pads[k] + pads[k + 2] - window[axis]) // strides[k] + 1
    name = f"bitserial_conv2d_{data_layout.lower()}"
    return te.compute([out[axis] for axis in data_layout], element, name=name, tag=name)


@with_values(_conv2d, data_layout="NCHW", kernel_layout="OIHW")
def bitserial_conv2d_nchw() -> None:
    """Convolution of NCHW data by an OIHW kernel, both integers of few bits.

    Parameters
    ----------
    data, kernel : te.Tensor
        The numbers; the kernel may be packed already, its bits along a last axis.
    stride, padding
        As for a convolution.
    activation_bits, weight_bits : int
        The bits of each number.
    pack_dtype, out_dtype : str
        The dtypes of words and of sums.
    unipolar : bool
        Whether bits of the kernel stand for -1 and 1.
    """


@with_values(_conv2d, data_layout="NHWC", kernel_layout="HWIO")
def bitserial_conv2d_nhwc() -> None:
    """Convolution of NHWC data by an HWIO kernel; parameters as in `bitserial_conv2d_nchw`."""


def binarize_pack(data: te.Tensor, axis: int | None = None, name: str = "PackedInput") -> te.Tensor:
    """Signs as bits (1: not negative), 32 neighbours along an axis (the last) in a word."""
    shape = list(dims(data.shape))
    at = len(shape) - 1 if axis is None else axis
    if isinstance(shape[at], int) and shape[at] % 32:
        raise RuntimeValueError(
            f"binarize_pack requires a multiple of 32 along axis {at}, got {shape[at]}"
        )
    shape[at] = shape[at] // 32

    def element(*i: Any) -> PrimExpr:
        word: PrimExpr = tir.const(0, "uint32")
        for k in range(32):
            sign = data(*i[:at], i[at] * 32 + k, *i[at + 1 :]) >= 0
            lifted = tir.shift_left(sign.astype("uint32"), tir.const(31 - k, "uint32"))
            word = tir.bitwise_or(word, lifted)
        return word

    return te.compute(shape, element, name=name, tag="binarize_pack")


def binary_dense(data: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """A dense layer of packed signs: the sum of the products of -1 and 1, in float32."""
    rows, words = dims(data.shape)
    k = te.reduce_axis((0, words), name="k")

    def different(i: Any, j: Any) -> Any:
        joined = tir.bitwise_xor(data(i, k.var), weight(j, k.var))
        return te.sum(tir.popcount(joined).astype("int32"), axis=k)

    shape = (rows, dims(weight.shape)[0])
    count = te.compute(shape, different, name="binary_dense", tag="binary_dense")
    return te.compute(
        shape, lambda i, j: (32 * words - count(i, j) * 2).astype("float32"), tag="elemwise"
    )
