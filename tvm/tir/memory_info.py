"""What is known of the memory of special units, by the names of its scopes.

@tvm.register_func("tvm.info.mem.local.inp_buffer")
def describe():
    return tvm.ir.make_node("MemoryInfo", unit_bits=128, max_num_bits=1 << 16,
                            max_simd_bits=128, head_address=None)
"""

from __future__ import annotations

from tvm._ffi.registry import get_global_func
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node


class MemoryInfo(Node, key="MemoryInfo"):
    """Sizes in bits: of what an address counts, of all of the memory, of one access; where it begins."""

    unit_bits: int
    max_num_bits: int
    max_simd_bits: int
    head_address: PrimExpr | None


def memory_info(scope: str) -> MemoryInfo | None:
    """The description that was registered for a scope such as ``local.inp_buffer``, if any."""
    describe = get_global_func(f"tvm.info.mem.{scope}", True)
    if describe is None:
        return None
    found = describe()
    if not isinstance(found, MemoryInfo):
        raise LoweringError(
            f"tvm.info.mem.{scope} must return a MemoryInfo, got {type(found).__name__}"
        )
    return found
