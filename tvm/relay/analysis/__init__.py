"""Questions about relay programs."""

from ..traverse import all_vars, bound_vars, free_vars, post_order, rewrite_post_order, substitute
from .analysis import (
    all_dtypes,
    all_type_vars,
    bound_type_vars,
    check_constant,
    check_kind,
    extract_fused_functions,
    free_type_vars,
    get_total_mac_number,
    list_op_freqs,
    post_order_visit,
    well_formed,
)
from .call_graph import CallGraph
from .count_layers import LayerCounter, count_layers
from .fake_quantization import list_fake_quantized_op_freqs
from .feature import Feature, detect_feature
from .infer import infer_type_of, known_type

__all__ = [
    "CallGraph",
    "Feature",
    "LayerCounter",
    "all_dtypes",
    "all_type_vars",
    "all_vars",
    "bound_type_vars",
    "bound_vars",
    "check_constant",
    "check_kind",
    "count_layers",
    "detect_feature",
    "extract_fused_functions",
    "free_type_vars",
    "free_vars",
    "get_total_mac_number",
    "infer_type_of",
    "known_type",
    "list_fake_quantized_op_freqs",
    "list_op_freqs",
    "post_order",
    "post_order_visit",
    "rewrite_post_order",
    "substitute",
    "well_formed",
]
