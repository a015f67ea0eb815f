"""Questions about loop-level programs, one a file, under their classic names."""

from tvm.support.later import names_from_above as _names_from_above

from . import _ffi_api
from .allocated_bytes import (
    calculate_allocated_bytes,
    calculate_constant_bytes,
    calculate_workspace_bytes,
)
from .block_access_region import get_block_access_region, get_block_read_write_region
from .bounds import OOBChecker
from .buffer_access_lca import detect_buffer_access_lca
from .estimate_flops import estimate_tir_flops
from .expr_deep_equal import expr_deep_equal
from .find_anchor_block import find_anchor_block
from .identify_memcpy import identify_memcpy
from .memory_constraints import (
    apply_prim_func_arg_and_result_memory_constraints,
    get_prim_func_arg_and_result_memory_constraints,
)
from .purity import assert_pure_function, is_pure_function
from .side_effect import side_effect
from .undefined_vars import undefined_vars
from .verify_gpu_code import verify_gpu_code
from .verify_memory import verify_memory
from .verify_ssa import verify_ssa
from .verify_well_formed import verify_well_formed

__all__ = [
    "OOBChecker", "apply_prim_func_arg_and_result_memory_constraints", "find_anchor_block",
    "get_prim_func_arg_and_result_memory_constraints", "get_vtcm_compaction_passes", "identify_memcpy", "verify_gpu_code",
    "assert_pure_function", "calculate_allocated_bytes", "calculate_constant_bytes",
    "calculate_workspace_bytes", "detect_buffer_access_lca", "estimate_tir_flops",
    "expr_deep_equal", "get_block_access_region", "get_block_read_write_region",
    "is_pure_function", "side_effect", "undefined_vars", "verify_memory", "verify_ssa",
    "verify_well_formed",
]  # fmt: skip


__getattr__ = _names_from_above(__name__)
