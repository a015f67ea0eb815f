"""Convolutions of narrow numbers, with channels in the words that dot-product instructions take.

nn.conv2d(%x, %w)    ->    nn.contrib_conv2d_NCHWc(%x in NCHW16c, %w in OIHW4i16o4i)
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type
from tvm.relay.expr import Call, const
from tvm.target import Target

from ..registry import ops
from ..shaping import layout_transform
from ..unary import converted


def word_blocks(
    call: Call, arg_types: Sequence[Type], channels: tuple[int, int], target: Target
) -> tuple[tuple[str, str], tuple[int, int, int]] | None:
    """The dtypes and the blocks of channels for dot products of a group's channels."""
    own = [t.dtype for t in arg_types]  # type: ignore[attr-defined]
    dtypes = topi.x86.conv2d.narrow_dtypes(*own, call.attrs.out_dtype or own[0], target)
    blocks = dtypes and topi.x86.conv2d.dot_blocks(*channels, *dtypes, target)
    return (dtypes, blocks) if dtypes and blocks else None


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
    wide = zip(call.args, own, dtypes, strict=True)
    factors = [x if have == dtype else converted(x, dtype) for x, have, dtype in wide]
    data = layout_transform(factors[0], "NCHW", altered.data_layout)
    weight = layout_transform(factors[1], "OIHW", altered.kernel_layout)
    return layout_transform(Call(op, (data, weight), altered), altered.out_layout, "NCHW")
