"""Convolutions of data with its channels last, on processors: channels come first.

    nn.conv2d(%x, %w, data_layout="NHWC", kernel_layout="HWIO")
->
    %0 = layout_transform(%x, "NHWC", "NCHW");
    %1 = nn.conv2d(%0, layout_transform(%w, "HWIO", "OIHW"));
    layout_transform(%1, "NCHW", "NHWC")

`AlterOpLayout` blocks the channels of such convolutions; the transforms vanish between them.
"""

from __future__ import annotations

from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.relay.expr import Call
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.convert_layout import converted
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import post_order
from tvm.target import Target

_LAYOUTS = {ops.nn.conv2d.name: ["NCHW", "OIHW"]}


@relay_pass("ChannelsFirst", opt_level=2)
def channels_first(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Convert the convolutions of `func`."""
    target = Target.current(allow_none=True)
    if is_primitive(func) or target is None or "cpu" not in target.keys:
        return func
    return converted(func, _LAYOUTS) if _has_channels_last(func) else func


def _has_channels_last(func: Function) -> bool:
    return any(
        isinstance(node, Call)
        and calls(node, ops.nn.conv2d)
        and node.attrs["data_layout"] == "NHWC"
        for node in post_order(func)
    )


ChannelsFirst = channels_first.factory
