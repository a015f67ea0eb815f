"""8-bit convolutions with full groups of channels, for targets of Arm.

nn.conv2d(%x, %w)    ->    strided_slice(nn.conv2d(pad(%x), pad(%w)), end=[1, 28, 28, 4])

Instructions sum neighbouring channels: four where the processor has dot products alone, eight in
matrix products and in products of plain vectors.
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay.expr import Call
from tvm.relay.op.nn.activation import pad
from tvm.relay.op.registry import ops
from tvm.relay.op.slicing import strided_slice
from tvm.target import Target
from tvm.target.codegen import target_has_features
from tvm.topi.rewrites import conv2d_legalize


def conv2d_of_channel_groups(attrs: Any, inputs: Any, types: Any) -> RelayExpr | None:
    """`nn.conv2d` of channels last with full groups of them; None if it has them."""
    data, weight, out = types
    if (attrs.data_layout, attrs.kernel_layout, attrs.groups) != ("NHWC", "HWIO", 1):
        return None
    if any([t.is_dynamic for t in types]) or data.dtype != weight.dtype:
        return None
    if data.dtype not in ("int8", "uint8"):
        return None
    group = _channel_group()
    *_, inner, outer = weight.concrete_shape
    more_in, more_out = -inner % group, -outer % group
    if not (more_in or more_out):
        return None
    x = pad(inputs[0], [(0, 0)] * 3 + [(0, more_in)]) if more_in else inputs[0]
    w = pad(inputs[1], [(0, 0)] * 2 + [(0, more_in), (0, more_out)])
    made = Call(ops.nn.conv2d, (x, w), attrs.replace(channels=outer + more_out))
    if not more_out:
        return made
    return strided_slice(made, begin=[0] * 4, end=list(out.concrete_shape))


def _channel_group() -> int:
    """How many channels the current target's products sum at once."""
    target = Target.current()
    has_dot = target_has_features("dotprod", target)
    return 4 if has_dot and not target_has_features("i8mm", target) else 8


conv2d_legalize.register(conv2d_of_channel_groups, "arm_cpu")
