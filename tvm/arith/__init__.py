"""Reasoning about integers: simplification, bounds, remainders, sets."""

from .analyzer import Analyzer, Extension, ProofStrength
from .const_int_bound import ConstIntBound
from .int_set import IntervalSet, IntSet, PresburgerSet, neg_inf, pos_inf
from .modular_set import ModularSet
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
    "eval_set",
    "neg_inf",
    "pos_inf",
    "union_lower_bound",
]
