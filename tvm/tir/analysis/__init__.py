"""Questions about loop-level programs, one a file, under their classic names."""

from .allocated_bytes import (
    calculate_allocated_bytes,
    calculate_constant_bytes,
    calculate_workspace_bytes,
)
from .block_access_region import get_block_access_region, get_block_read_write_region
from .buffer_access_lca import detect_buffer_access_lca
from .estimate_flops import estimate_tir_flops
from .expr_deep_equal import expr_deep_equal
from .purity import assert_pure_function, is_pure_function
from .side_effect import side_effect
from .undefined_vars import undefined_vars
from .verify_memory import verify_memory
from .verify_ssa import verify_ssa
from .verify_well_formed import verify_well_formed

__all__ = [
    "assert_pure_function", "calculate_allocated_bytes", "calculate_constant_bytes",
    "calculate_workspace_bytes", "detect_buffer_access_lca", "estimate_tir_flops",
    "expr_deep_equal", "get_block_access_region", "get_block_read_write_region",
    "is_pure_function", "side_effect", "undefined_vars", "verify_memory", "verify_ssa",
    "verify_well_formed",
]  # fmt: skip
