"""Reasoning about integers: simplification, bounds, remainders, sets."""

from .analyzer import Analyzer, Extension, ProofStrength
from .bound import deduce_bound
from .const_int_bound import ConstIntBound
from .int_set import IntervalSet, IntSet, PresburgerSet, neg_inf, pos_inf
from .modular_set import ModularSet
from .pattern import detect_clip_bound, detect_common_subexpr, detect_linear_equation
from .region import eval_set, union_lower_bound

__all__ = [
    "Analyzer",
    "ConstIntBound",
    "Extension",
    "IntSet",
    "IntervalSet",
    "ModularSet",
    "PresburgerSet",
    "ProofStrength",
    "deduce_bound",
    "detect_clip_bound",
    "detect_common_subexpr",
    "detect_linear_equation",
    "eval_set",
    "neg_inf",
    "pos_inf",
    "union_lower_bound",
]
