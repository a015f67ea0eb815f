"""Convolutions of narrow numbers, with channels in the words that dot-product instructions take.

nn.conv2d(%x, %w)    ->    nn.contrib_conv2d_NCHWc(%x in NCHW16c, %w in OIHW4i16o4i)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TensorType
from tvm.relay.expr import Call, Constant, const
from tvm.target import Target

from ..registry import ops
from ..shaping import layout_transform
from ..unary import converted, raised_bytes
from .packed_weight import packed_weight


def word_blocks(
    call: Call, arg_types: Sequence[TensorType], channels: tuple[int, int], target: Target
) -> tuple[tuple[str, str], tuple[int, int, int]] | None:
    """The dtypes and the blocks of channels for dot products of a group's channels."""
    own = [t.dtype for t in arg_types]
    dtypes = topi.x86.conv2d.narrow_dtypes(own[0], own[1], call.attrs.out_dtype or own[0], target)
    blocks = dtypes and topi.x86.conv2d.dot_blocks(*channels, *dtypes, target)
    return (dtypes, blocks) if dtypes and blocks else None


@dataclass(frozen=True, slots=True)
class NarrowProducts:
    """How factors of narrow numbers are multiplied."""

    dtypes: tuple[str, str]  # of the factors
    is_raised: bool = False  # int8 data becomes uint8, each number 128 higher
    has_small_weights: bool = False

    def blocks(
        self, channels: int, out_channels: int, target: Target
    ) -> tuple[int, int, int] | None:
        """The blocks of input and output channels, and the size of a group."""
        if self.has_small_weights:
            return topi.x86.conv2d.byte_pair_blocks(channels, out_channels, target)
        return topi.x86.conv2d.dot_blocks(channels, out_channels, *self.dtypes, target)

    def group(self, target: Target) -> int:
        """Neighbouring channels that one instruction takes."""
        if self.has_small_weights:
            return 4
        return topi.x86.conv2d.dot_group(*self.dtypes, target)


def find_narrow_products(
    call: Call, own: Sequence[str], sums: str, target: Target
) -> NarrowProducts | None:
    """Products of bytes by fours where the processor and the weights allow it, else of wider numbers."""
    data, weight = own
    dtypes = topi.x86.conv2d.narrow_dtypes(data, weight, sums, target)
    filters = call.args[1]
    if (
        isinstance(filters, Constant)
        and sums == "int32"
        and weight == "int8"
        and data in ("int8", "uint8")
    ):
        bytes_ = ("uint8", "int8")
        if topi.x86.conv2d.dot_group(*bytes_, target) > 1:
            return NarrowProducts(bytes_, data == "int8")
        if topi.x86.conv2d.has_byte_pairs(target) and _are_small(filters):
            return NarrowProducts(bytes_, data == "int8", has_small_weights=True)
    return None if dtypes is None else NarrowProducts(dtypes)


def _are_small(weight: Constant) -> bool:
    """Whether int16 holds two products of uint8 data with neighbouring channels' weights."""
    filters = weight.data.numpy().astype("int32")
    filters = np.pad(filters, ((0, 0), (0, filters.shape[1] % 2), (0, 0), (0, 0)))
    pairs = filters.reshape(filters.shape[0], -1, 2, *filters.shape[2:])
    # 255 * 128 is within int16, and both neighbours of one sign add up
    high, low = np.maximum(pairs, 0).sum(2), np.minimum(pairs, 0).sum(2)
    return bool(high.max(initial=0) <= 128 and low.min(initial=0) >= -128)


def with_raised_data(call: Call) -> Call:
    """The call on data that is 128 higher, padding included."""
    data, attrs = raised_bytes(call.args[0]), call.attrs
    top, left, bottom, right = topi.nn.utils.get_pad_tuple_generic(attrs.padding, (1, 1))
    if any((top, left, bottom, right)):
        widths = ((0, 0), (0, 0), (top, bottom), (left, right))
        data = ops.nn.pad(data, const(128, "uint8"), pad_width=widths)
    return call.replace(args=(data, call.args[1]), attrs=attrs.replace(padding=(0, 0, 0, 0)))


def without_raise(blocked: RelayExpr, weight: Constant, block: int) -> RelayExpr:
    """The result less what data 128 higher adds to it, in blocks of channels."""
    added = 128 * weight.data.numpy().astype("int64").sum((1, 2, 3))
    # int32 wraps around in the sums as it does here
    excess = const(added.astype("int32").reshape(1, -1, 1, 1, block), "int32")
    assert isinstance(blocked, Call)  # a layout transform
    sums = ops.subtract(blocked.args[0], excess)
    return blocked.replace(args=(sums,))


def with_channels(
    factors: Sequence[RelayExpr], dtypes: Sequence[str], missing: int
) -> Sequence[RelayExpr]:
    """Data and weight with channels of zeros behind their own."""
    if not missing:
        return factors
    widths = ((0, 0), (0, missing), (0, 0), (0, 0))
    return [
        ops.nn.pad(x, const(0, dtype), pad_width=widths)
        for x, dtype in zip(factors, dtypes, strict=True)
    ]


def in_words(
    op: Op,
    call: Call,
    own: Sequence[str],
    dtypes: tuple[str, str],
    blocks: tuple[int, int, int],
) -> RelayExpr:
    """The call with channels in blocks, and the kernel's in the words that an instruction takes."""
    inner, outer, group = blocks
    altered = call.attrs.replace(
        data_layout=f"NCHW{inner}c",
        kernel_layout=f"OIHW{inner // group}i{outer}o{group}i",
        out_layout=f"NCHW{outer}c",
    )
    data, weight = call.args
    data = data if own[0] == dtypes[0] else converted(data, dtypes[0])
    data = layout_transform(data, "NCHW", altered.data_layout)
    weight = packed_weight(weight, "OIHW", altered.kernel_layout, own[1], dtypes[1])
    return layout_transform(Call(op, (data, weight), altered), altered.out_layout, "NCHW")
