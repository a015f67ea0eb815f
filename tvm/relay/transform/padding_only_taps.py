"""Remove the taps of a convolution's window that only ever see padding.

A 3x3 window with dilation 24 and padding 24 over 14x14 pixels sees data at its middle tap alone:

    nn.conv2d(%x, %w, kernel_size=[3, 3], dilation=[24, 24], padding=[24, 24, 24, 24])
    ->
    nn.conv2d(%x, strided_slice(%w, [1, 1], [2, 2]), kernel_size=[1, 1], dilation=[24, 24])
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call
from tvm.relay.op.attributes import padding_pairs
from tvm.relay.op.registry import ops
from tvm.relay.ty import is_dynamic


@dataclass(frozen=True, slots=True)
class _Window:
    """One spatial axis: which taps of the window see data, and the padding they need."""

    first: int
    end: int
    taps: int
    before: int
    after: int

    @property
    def is_full(self) -> bool:
        return self.end - self.first == self.taps


def without_padding_only_taps(call: Call, ty: TensorType) -> RelayExpr | None:
    """The convolution with a smaller window; None if all its taps see data."""
    data, weight = tensor_type_of(call.args[0]), tensor_type_of(call.args[1])
    attrs = call.attrs
    layout, kernel_layout = str(attrs.data_layout), str(attrs.kernel_layout)
    plain = layout.isupper() and kernel_layout.isupper() and not attrs.out_layout
    if not plain or any(is_dynamic(t) for t in (data, weight, ty)):
        return None
    letters = [letter for letter in layout if letter not in "NC"]
    rank = len(letters)
    padding = padding_pairs(attrs.padding, rank)
    windows = [
        _window(
            data.concrete_shape[layout.index(letter)],
            ty.concrete_shape[layout.index(letter)],
            weight.concrete_shape[kernel_layout.index(letter)],
            (padding[i], padding[rank + i]),
            (int(attrs.strides[i]), int(attrs.dilation[i])),
        )
        for i, letter in enumerate(letters)
    ]
    if all(window.is_full for window in windows):
        return None
    kernel = ops.strided_slice(
        call.args[1],
        begin=tuple(window.first for window in windows),
        end=tuple(window.end for window in windows),
        strides=(1,) * rank,
        axes=tuple(kernel_layout.index(letter) for letter in letters),
    )
    smaller = attrs.replace(
        kernel_size=tuple(window.end - window.first for window in windows),
        padding=(*[w.before for w in windows], *[w.after for w in windows]),
    )
    return call.replace(args=(call.args[0], kernel, *call.args[2:]), attrs=smaller)


def _window(
    extent: int, pixels: int, taps: int, border: tuple[int, int], steps: tuple[int, int]
) -> _Window:
    """Tap `t` reads from `t * dilation - before` to that plus `(pixels - 1) * stride`."""
    before, after = border
    stride, dilation = steps
    reach = (pixels - 1) * stride - before
    first, end = 0, taps
    while end - first > 1 and first * dilation + reach < 0 and before >= dilation:
        first, before = first + 1, before - dilation
    while end - first > 1 and (end - 1) * dilation - border[0] >= extent and after >= dilation:
        end, after = end - 1, after - dilation
    return _Window(first, end, taps, before, after)
