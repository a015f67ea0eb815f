"""Read back from a planned module where each value lives.

    %0 = add(%a, %b);                                            # cpu(0), since the next line says so
    %1 = on_device(%0, cpu(0), constrain_result=True);           # cpu(0)
    device_copy(%1, src=cpu(0), dst=cuda(0))                     # cuda(0)

`PlanDevices` annotates only where the device changes; the domains of a planned module are those annotations
spread over what lies between.
"""

from __future__ import annotations

from tvm._ffi import register_func
from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.relay.expr import Constant
from tvm.relay.function import Function
from tvm.relay.transform.device_domains import DeviceDomains
from tvm.relay.traverse import post_order
from tvm.runtime.device import cpu
from tvm.target import Target
from tvm.target.compilation_config import CompilationConfig
from tvm.target.virtual_device import VirtualDevice

# a value of theirs is where it is used
_NOWHERE = (Op, Constructor, GlobalVar, Constant)


def recover_virtual_devices(mod: IRModule, expr: RelayExpr) -> dict[RelayExpr, VirtualDevice]:
    """Where each value of an expression of a module lives that `PlanDevices` has been at.

    Parameters
    ----------
    mod : IRModule
        The module.
    expr : relay.Expr
        A function of the module, or a part of one.
    """
    main = expr.virtual_device_ if isinstance(expr, Function) else None
    host = Target("llvm")
    at_host = VirtualDevice(cpu(), host)
    # what is planned has a device: the configuration is asked about nothing else
    domains = DeviceDomains(mod, CompilationConfig((host,), host, at_host, main or at_host, None))
    nodes = [node for node in post_order(expr) if not isinstance(node, _NOWHERE)]
    return {node: domains.device_of(node) for node in nodes}


register_func("relay.transform.RecoverVirtualDeviceMap", recover_virtual_devices, override=True)
