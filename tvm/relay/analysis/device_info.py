"""Where the values of a planned module live."""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.function import Function
from tvm.relay.traverse import post_order


def collect_device_info(expr: RelayExpr | IRModule) -> dict[RelayExpr, int]:
    """The type of the device of each expression that `PlanDevices` placed."""
    roots = (
        [f for f in expr.functions.values() if isinstance(f, Function)]
        if isinstance(expr, IRModule)
        else [expr]
    )
    found: dict[RelayExpr, int] = {}
    for root in roots:
        for node in post_order(root):
            if (device := node.virtual_device_) is not None:
                found[node] = int(device.device_type_int)
    return found
