"""Intrinsics that have no meaning on a CPU, with the kind of target that has them."""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.ir.op import Op
from tvm.tir.expr import Call

# beginnings of names after "tir.", and whose they are
_OWNERS = {
    "ptx_": "CUDA",
    "mma_": "CUDA",
    "tvm_mma_sync": "CUDA",
    "tvm_bmma_sync": "CUDA",
    "tvm_fill_fragment": "CUDA",
    "tvm_load_matrix_sync": "CUDA",
    "tvm_store_matrix_sync": "CUDA",
    "create_barriers": "CUDA",
    "tvm_global_barrier_kinit": "CUDA",
    "tvm_warp_": "GPU",
    "tvm_thread_allreduce": "GPU",
    "simdgroup_": "Metal",
    "make_filled_simdgroup_matrix": "Metal",
    "texture2d_": "OpenCL",
    "call_spirv_": "Vulkan",
    "dma_": "Hexagon",
    "nd_mem_alloc_with_scope": "Hexagon",
    "tvm_context_id": "accelerator",
}


def unsupported_error(call: Call) -> LoweringError:
    """The error for an intrinsic that the LLVM code generator does not know."""
    assert isinstance(call.op, Op)
    name = call.op.name
    short = name.removeprefix("tir.")
    owner = next((o for prefix, o in _OWNERS.items() if short.startswith(prefix)), None)
    hint = f"it is one of {owner} targets" if owner else ""
    return LoweringError(f"target llvm has no code for the intrinsic {name}", at=call, hint=hint)
