"""Let convolutions and pooling pad for themselves.

    nn.conv2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), %w)
    ->
    nn.conv2d(%x, %w, padding=[1, 1, 1, 1])

The border must be what the operator fills in itself: zeros, for `max_pool` the least value. A mean
that leaves the border out takes no part of it.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.rules import calling, measured, pattern_consts, pattern_vars, rule, rules
from tvm.ir.transform import PassContext
from tvm.relay.expr import Call
from tvm.relay.function import Function
from tvm.relay.op.attributes import padding_pairs
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.rewrite_rules import CallBuilder, Rewrites, applied
from tvm.relay.traverse import rewrite_function


@relay_pass("FoldExplicitPadding", opt_level=0)
def fold_explicit_padding(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Merge pads into the operators after them."""
    return rewrite_function(func, REWRITES.rewrite)


class PaddingBuilder(CallBuilder):
    """Builds operators over windows that pad as the pad before them did."""

    def can_pad(self) -> bool:
        """Whether the pad is one of spatial axes by a constant, in a layout without blocks."""
        pad = self._pad
        return pad.attrs.pad_mode == "constant" and self._layout.isupper() and self._is_spatial()

    def counts_border(self) -> bool:
        """Whether a mean counts the border that it has itself, as it has to count the pad's."""
        return self.call.attrs.count_include_pad or not any(self.call.attrs.padding)

    def conv(self, *args: RelayExpr) -> Call:
        return self._padded(args)

    def qconv(self, *args: RelayExpr) -> Call:
        return self._padded(args)

    def max_pool(self, x: RelayExpr) -> Call:
        return self._padded((x,))

    def avg_pool(self, x: RelayExpr) -> Call:
        return self._padded((x,), count_include_pad=True)

    @property
    def _pad(self) -> Call:
        pad = self.call.args[0]
        assert isinstance(pad, Call)
        return pad

    @property
    def _layout(self) -> str:
        attrs = self.call.attrs
        return str(attrs["data_layout"] if "data_layout" in attrs else attrs["layout"])

    def _is_spatial(self) -> bool:
        widths = zip(self._layout, self._pad.attrs.pad_width, strict=True)
        return all([min(w) >= 0 and (axis not in "NC" or not any(w)) for axis, w in widths])

    def _padded(self, args: tuple[RelayExpr, ...], **attrs: object) -> Call:
        widths = zip(self._layout, self._pad.attrs.pad_width, strict=True)
        before, after = zip(*[w for axis, w in widths if axis not in "NC"], strict=True)
        own = padding_pairs(self.call.attrs.padding, len(before))
        padding = tuple([p + int(w) for p, w in zip(own, (*before, *after), strict=True)])
        return self.call.replace(args=args, attrs=self.call.attrs.replace(padding=padding, **attrs))


def _is_zero(border: np.ndarray) -> bool:
    return float(border) == 0


def _is_least(border: np.ndarray) -> bool:
    """Whether a maximum ignores that value; floats may end at minus infinity or before it."""
    if np.issubdtype(border.dtype, np.integer):
        return int(border) == np.iinfo(border.dtype).min
    if "float" not in border.dtype.name:
        return False
    least: Any = ml_dtypes.finfo(border.dtype)  # type: ignore[no-untyped-call]
    return float(border) in (float("-inf"), float(least.min))


def _are_equal(border: np.ndarray, zero_point: np.ndarray) -> bool:
    return float(border) == float(zero_point)


x, y, zero_point, scale, kernel_scale = pattern_vars("x y zero_point scale kernel_scale")
c0, c1 = pattern_consts("c0 c1")
pad, conv, qconv, max_pool, avg_pool = applied("pad conv qconv max_pool avg_pool")
can_pad = measured("can_pad")

PADDING = rules(
    rule(conv(pad(x, c0), y), conv(x, y), when=can_pad & calling(_is_zero, c0)),
    rule(qconv(pad(x, c0), y, c1, zero_point, scale, kernel_scale),
         qconv(x, y, c1, zero_point, scale, kernel_scale),
         when=can_pad & calling(_are_equal, c0, c1)),
    rule(max_pool(pad(x, c0)), max_pool(x), when=can_pad & calling(_is_least, c0)),
    rule(avg_pool(pad(x, c0)), avg_pool(x),
         when=can_pad & measured("counts_border") & calling(_is_zero, c0)),
)  # fmt: skip
REWRITES = Rewrites(PADDING, PaddingBuilder)
FoldExplicitPadding = fold_explicit_padding.factory
