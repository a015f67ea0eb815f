"""Random integer expressions: simplification keeps the value, bounds and remainders hold it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tvm import tir
from tvm.arith import Analyzer, IntervalSet
from tvm.ir import structural_equal

from .numbers import value_of

pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")

VARS = [tir.Var(name, "int32") for name in "ijkn"]
# (first value, extent) of each variable
DOMAINS = {VARS[0]: (0, 8), VARS[1]: (0, 16), VARS[2]: (-5, 11), VARS[3]: (1, 64)}
CONSTANTS = st.sampled_from([-16, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 64])
DIVISORS = st.sampled_from([1, 2, 3, 4, 8, 16, 64, -2])


def const(value: int) -> tir.IntImm:
    return tir.IntImm("int32", value)


def combine(children: Any) -> Any:
    condition = st.builds(
        lambda cls, a, b: cls(a, b),
        st.sampled_from([tir.LT, tir.LE, tir.EQ, tir.NE, tir.GT, tir.GE]), children, children,
    )  # fmt: skip
    conditions = st.recursive(
        condition,
        lambda inner: st.one_of(
            st.builds(tir.And, inner, inner),
            st.builds(tir.Or, inner, inner),
            st.builds(tir.Not, inner),
        ),
        max_leaves=3,
    )
    return st.one_of(
        st.builds(
            lambda cls, a, b: cls(a, b),
            st.sampled_from([tir.Add, tir.Add, tir.Sub, tir.Mul, tir.Min, tir.Max]), children, children,
        ),
        st.builds(
            lambda cls, a, c: cls(a, const(c)),
            st.sampled_from([tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod]), children, DIVISORS,
        ),
        st.builds(lambda a, c: tir.Mul(a, const(c)), children, CONSTANTS),
        st.builds(lambda a, c: tir.Add(a, const(c)), children, CONSTANTS),
        st.builds(tir.Select, conditions, children, children),
        st.builds(tir.if_then_else, conditions, children, children),
    )  # fmt: skip


EXPRESSIONS = st.recursive(
    st.one_of(st.sampled_from(VARS), CONSTANTS.map(const)), combine, max_leaves=10
)
VALUES = st.fixed_dictionaries(
    {var: st.integers(low, low + extent - 1) for var, (low, extent) in DOMAINS.items()}
)
THOROUGH = settings(
    max_examples=150,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)


def analyzer_of_domains() -> Analyzer:
    analyzer = Analyzer()
    for var, (low, extent) in DOMAINS.items():
        analyzer.bind(var, tir.Range.from_min_extent(low, extent))
    return analyzer


@THOROUGH
@given(EXPRESSIONS, VALUES)
def test_simplification_keeps_the_value(expr: Any, values: Any) -> None:
    analyzer = analyzer_of_domains()
    expected = value_of(expr, values)
    assert value_of(analyzer.rewrite_simplify(expr), values) == expected
    assert value_of(analyzer.canonical_simplify(expr), values) == expected
    assert value_of(analyzer.simplify(expr), values) == expected


@THOROUGH
@given(EXPRESSIONS, VALUES)
def test_bounds_and_remainders_hold_the_value(expr: Any, values: Any) -> None:
    analyzer = analyzer_of_domains()
    value = value_of(expr, values)
    bound = analyzer.const_int_bound(expr)
    assert bound.min_value <= value <= bound.max_value
    residue = analyzer.modular_set(expr)
    assert (
        value == residue.base if residue.coeff == 0 else (value - residue.base) % residue.coeff == 0
    )


@THOROUGH
@given(EXPRESSIONS)
def test_simplification_is_idempotent(expr: Any) -> None:
    analyzer = analyzer_of_domains()
    once = analyzer.simplify(expr)
    assert analyzer.rewriter.broken_chains == 0
    twice = analyzer.simplify(once)
    assert twice is once or structural_equal(once, twice)
    third = Analyzer()
    for var, (low, extent) in DOMAINS.items():
        third.bind(var, tir.Range.from_min_extent(low, extent))
    assert third.simplify(twice) is twice


@THOROUGH
@given(EXPRESSIONS, VALUES)
def test_sets_hold_the_value(expr: Any, values: Any) -> None:
    analyzer = Analyzer()
    domains = {
        var: tir.Range.from_min_extent(low, extent) for var, (low, extent) in DOMAINS.items()
    }
    found = analyzer.int_set(expr, domains)
    assert isinstance(found, IntervalSet)
    value = value_of(expr, values)
    if found.has_lower_bound():
        assert value_of(found.min_value, values) <= value
    if found.has_upper_bound():
        assert value <= value_of(found.max_value, values)


@THOROUGH
@given(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS, VALUES)
def test_facts_are_used_soundly(expr: Any, a: Any, b: Any, values: Any) -> None:
    """Inside the scope of a condition that holds, values are kept."""
    condition = tir.LT(a, b) if value_of(a, values) < value_of(b, values) else tir.LE(b, a)
    analyzer = analyzer_of_domains()
    with analyzer.constraint_scope(condition):
        assert value_of(analyzer.simplify(expr), values) == value_of(expr, values)
        comparison = tir.LE(expr, a)
        simple = analyzer.simplify(comparison)
        assert bool(value_of(simple, values)) == bool(value_of(comparison, values))
