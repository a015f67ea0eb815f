"""Reasoning about integers: simplification, bounds, remainders, sets."""

from . import _ffi_api, domain_touched, index_map, narrow_predicate
from .analyzer import Analyzer, Extension, ProofStrength
from .bound import deduce_bound
from .const_int_bound import ConstIntBound
from .int_set import (
    IntervalSet,
    IntSet,
    PresburgerSet,
    estimate_region_lower_bound,
    estimate_region_strict_bound,
    estimate_region_upper_bound,
    eval_set,
    neg_inf,
    pos_inf,
    union_lower_bound,
)
from .int_solver import (
    IntConstraints,
    IntConstraintsTransform,
    IntGroupBounds,
    solve_linear_equations,
    solve_linear_inequalities,
)
from .iter_affine_map import (
    detect_iter_map,
    inverse_affine_iter_map,
    iter_map_simplify,
    normalize_to_iter_sum,
    subspace_divide,
)
from .iter_map import (
    IterMapExpr,
    IterMapLevel,
    IterMapResult,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    normalize_iter_map_to_expr,
)
from .modular_set import ModularSet
from .pattern import detect_clip_bound, detect_common_subexpr, detect_linear_equation

__all__ = [
    "Analyzer",
    "ConstIntBound",
    "Extension",
    "IntConstraints",
    "IntConstraintsTransform",
    "IntGroupBounds",
    "IntSet",
    "IntervalSet",
    "IterMapExpr",
    "IterMapLevel",
    "IterMapResult",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "ModularSet",
    "PresburgerSet",
    "ProofStrength",
    "deduce_bound",
    "detect_clip_bound",
    "detect_common_subexpr",
    "detect_iter_map",
    "detect_linear_equation",
    "estimate_region_lower_bound",
    "estimate_region_strict_bound",
    "estimate_region_upper_bound",
    "eval_set",
    "inverse_affine_iter_map",
    "iter_map_simplify",
    "neg_inf",
    "normalize_iter_map_to_expr",
    "normalize_to_iter_sum",
    "pos_inf",
    "solve_linear_equations",
    "solve_linear_inequalities",
    "subspace_divide",
    "union_lower_bound",
]
