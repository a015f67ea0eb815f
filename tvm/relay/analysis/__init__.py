"""Questions about relay programs."""

from tvm.support.later import names_from_above as _names_from_above

from ..traverse import all_vars, bound_vars, free_vars, post_order, rewrite_post_order, substitute
from . import _ffi_api
from . import type_solver as type_solver
from .annotated_regions import AnnotatedRegionSet
from .call_graph import CallGraph
from .contents import (
    all_dtypes,
    all_type_vars,
    bound_type_vars,
    check_constant,
    check_kind,
    extract_intermdeiate_expr,
    free_type_vars,
    get_total_mac_number,
    list_op_freqs,
    post_order_visit,
    well_formed,
)
from .count_layers import LayerCounter, count_layers
from .device_info import collect_device_info
from .fake_quantization import list_fake_quantized_op_freqs
from .fc_transpose import search_fc_transpose
from .feature import Feature, detect_feature
from .infer import infer_type_of, known_type
from .match_cases import unmatched_cases
from .operations_distribution import AnalyzeOperationsDistribution, analyze_operations_distribution
from .scopes import check_basic_block_normal_form

__all__ = [
    "AnalyzeOperationsDistribution",
    "AnnotatedRegionSet",
    "analyze_operations_distribution",
    "check_basic_block_normal_form",
    "extract_intermdeiate_expr",
    "search_fc_transpose",
    "unmatched_cases",
    "get_calibration_data",
    "CallGraph",
    "Feature",
    "LayerCounter",
    "all_dtypes",
    "all_type_vars",
    "all_vars",
    "bound_type_vars",
    "bound_vars",
    "check_constant",
    "collect_device_info",
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


__getattr__ = _names_from_above(__name__)
