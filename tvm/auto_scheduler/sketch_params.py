"""The numbers that a search goes by, and the attributes of computes that rules obey."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.error import TVMError, suggest
from tvm.te.tensor import ComputeOp, Operation

DEFAULT_PARAMS: Mapping[str, Any] = {
    "eps_greedy": 0.05,  # the share of candidates that are random
    "retry_search_one_round_on_empty": 1,  # rounds to try again if one finds nothing new
    "sample_init_min_population": 50,
    "sample_init_use_measured_ratio": 0.2,  # of the measured states that begin a search
    "evolutionary_search_population": 256,
    "evolutionary_search_num_iters": 4,
    "evolutionary_search_mutation_prob": 0.85,
    "cpu_multi_level_tiling_structure": "SSRSRS",
    "gpu_multi_level_tiling_structure": "SSSRRSRS",
    "max_innermost_split_factor": 64,
    "max_vectorize_size": 16,
    "disable_change_compute_location": 0,
}

# attributes of computes
ALWAYS_INLINE = "auto_scheduler_always_compute_inline"
ALWAYS_UNROLL = "auto_scheduler_always_unroll"
ALWAYS_UNROLL_INNER = "auto_scheduler_always_unroll_inner"
NO_CACHE_WRITE = "auto_scheduler_no_cache_write"
NO_SPLIT_INNER = "auto_scheduler_no_split_at_inner"
NO_SPLIT_OUTER = "auto_scheduler_no_split_at_outer"
SIMPLIFY_CONST_TENSOR = "auto_scheduler_simplify_const_tensor_indices"
SKIP_REGION = "auto_scheduler_debug_skip_region"


def search_params(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parameters of a search: the usual ones, and those that are given."""
    params = dict(DEFAULT_PARAMS)
    for name, value in (given or {}).items():
        if name not in params:
            raise TVMError(f"a search has no parameter {name}", hint=suggest(name, params))
        params[name] = value
    return params


def axis_names(op: Operation, attribute: str) -> frozenset[str]:
    """The axes that an attribute of a compute names."""
    if not isinstance(op, ComputeOp) or attribute not in op.attrs:
        return frozenset()
    value = op.attrs[attribute]
    names = value if isinstance(value, (list, tuple)) else [value]
    return frozenset([str(getattr(name, "value", name)) for name in names])
