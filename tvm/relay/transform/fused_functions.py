"""The kernels that a program would consist of."""

from __future__ import annotations

from tvm.ir.module import IRModule
from tvm.ir.structural import structural_hash
from tvm.ir.transform import PassContext, Sequential
from tvm.relay.function import Function, is_primitive, relay_functions
from tvm.relay.transform.fuse_ops import FuseOps
from tvm.relay.transform.simplify_inference import SimplifyInference
from tvm.relay.traverse import post_order


def extract_fused_functions(mod: IRModule) -> dict[int, Function]:
    """The primitive functions of a module after `SimplifyInference` and `FuseOps`, by hash."""
    with PassContext(opt_level=3):
        fused = Sequential([SimplifyInference(), FuseOps(3)])(mod)
    found: dict[int, Function] = {}
    for func in relay_functions(fused).values():
        for node in post_order(func):
            if is_primitive(node):
                found.setdefault(structural_hash(node), node)
    return found
