"""Analyses of relax programs."""

from tvm.relax.purity import contains_impure_call
from tvm.relax.struct_info_relations import (
    BaseCheckResult,
    collect_non_negative_expressions,
    definable_tir_vars_in_struct_info,
    derive_call_ret_struct_info,
    erase_to_well_defined,
    get_static_type,
    struct_info_base_check,
    struct_info_lca,
    tir_vars_in_struct_info,
)
from tvm.support.later import names_from_above as _names_from_above

from .calls import computable_at_compile_time, detect_recursion
from .estimate_memory_usage import estimate_memory_usage
from .layout_transforms import suggest_layout_transforms
from .reshape import has_reshape_pattern
from .unused import remove_all_unused
from .variables import (
    all_global_vars,
    all_vars,
    bound_vars,
    defined_symbolic_vars,
    free_symbolic_vars,
    free_vars,
    get_var2val,
    name_to_binding,
    post_order_visit,
    udchain,
)
from .well_formed import well_formed

__all__ = [
    "BaseCheckResult", "all_global_vars", "all_vars", "bound_vars",
    "collect_non_negative_expressions", "computable_at_compile_time", "contains_impure_call",
    "defined_symbolic_vars", "definable_tir_vars_in_struct_info", "derive_call_ret_struct_info",
    "detect_recursion", "erase_to_well_defined", "estimate_memory_usage", "free_symbolic_vars", "free_vars",
    "get_static_type", "get_var2val", "has_reshape_pattern", "name_to_binding", "post_order_visit",
    "remove_all_unused", "struct_info_base_check", "struct_info_lca", "suggest_layout_transforms", "tir_vars_in_struct_info",
    "udchain", "well_formed",
]  # fmt: skip

__getattr__ = _names_from_above(__name__)
