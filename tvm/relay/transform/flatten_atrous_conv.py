"""Write a convolution between rearrangements of its pixels as one with holes in its window.

batch_to_space_nd(conv2d(space_to_batch_nd(%x, block_shape=[2, 2]), %w))
->
conv2d(%x, %w, dilation=[2, 2])
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.rules import measured, pattern_vars, rule, rules
from tvm.ir.transform import PassContext
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call
from tvm.relay.function import Function
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.rewrite_rules import CallBuilder, Rewrites, applied
from tvm.relay.traverse import rewrite_function


@relay_pass("FlattenAtrousConv", opt_level=0)
def flatten_atrous_conv(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Dilate windows instead of moving pixels."""
    return rewrite_function(func, REWRITES.rewrite)


class DilationBuilder(CallBuilder):
    """Builds the dilated convolution for one between rearrangements of pixels."""

    def is_dilated(self, x: RelayExpr, *others: RelayExpr) -> bool:
        """Whether a dilated convolution of `x` and the other operands has this result."""
        conv, spread = self._conv, self._spread
        attrs = conv.attrs
        is_plain = (
            len(tensor_type_of(x).shape) == 4
            and attrs.data_layout == "NHWC"
            and all([s == 1 for s in (*attrs.strides, *attrs.dilation)])
            and not any(attrs.padding)
            and tuple(self.call.attrs.block_shape) == tuple(spread.attrs.block_shape)
            and len(spread.attrs.block_shape) == 2
            and float(spread.attrs.pad_value) == 0
        )
        if not is_plain or any([before for before, _ in self.call.attrs.crops]):
            return False
        # cropping or uneven blocks may leave another shape, which no dilated convolution has
        return infer_type_of(self.conv(x, *others)) == self.ty

    def conv(self, *args: RelayExpr) -> Call:
        (top, bottom), (left, right) = self._spread.attrs.paddings
        (_, crop_bottom), (_, crop_right) = self.call.attrs.crops
        # what is padded to fill the last block and cropped again is no part of the convolution
        padding = (top, left, bottom - crop_bottom, right - crop_right)
        block = tuple([int(b) for b in self._spread.attrs.block_shape])
        attrs = self._conv.attrs.replace(dilation=block, padding=padding)
        return self._conv.replace(args=args, attrs=attrs)

    def qconv(self, *args: RelayExpr) -> Call:
        return self.conv(*args)

    @property
    def _conv(self) -> Call:
        conv = self.call.args[0]
        assert isinstance(conv, Call)
        return conv

    @property
    def _spread(self) -> Call:
        spread = self._conv.args[0]
        assert isinstance(spread, Call)
        return spread


x, y, zero_point, kernel_zero = pattern_vars("x y zero_point kernel_zero")
scale, kernel_scale = pattern_vars("scale kernel_scale")
conv, qconv = applied("conv qconv")
batch_to_space, space_to_batch = applied("batch_to_space space_to_batch")
others = (y, zero_point, kernel_zero, scale, kernel_scale)

ATROUS = rules(
    rule(batch_to_space(conv(space_to_batch(x), y)), conv(x, y),
         when=measured("is_dilated", x, y)),
    rule(batch_to_space(qconv(space_to_batch(x), *others)), qconv(x, *others),
         when=measured("is_dilated", x, *others)),
)  # fmt: skip
REWRITES = Rewrites(ATROUS, DilationBuilder)
FlattenAtrousConv = flatten_atrous_conv.factory
