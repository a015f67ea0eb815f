"""Linear equations, clip bounds, deduced bounds, common subexpressions."""

from __future__ import annotations

from typing import Any

from tvm import tir
from tvm.arith import (
    Analyzer,
    IntervalSet,
    deduce_bound,
    detect_clip_bound,
    detect_common_subexpr,
    detect_linear_equation,
)

x, y, z, n = (tir.Var(name, "int32") for name in "xyzn")


def same(a: Any, b: Any) -> bool:
    return Analyzer().can_prove_equal(a, b)


def test_linear_equations() -> None:
    a, b, rest = detect_linear_equation(x * 4 + y * n + z, [x, y])
    assert same(a, 4) and same(b, n) and same(rest, z)
    assert detect_linear_equation(x * y, [x, y]) == ()
    assert detect_linear_equation(x // 2, [x]) == ()
    (constant,) = detect_linear_equation(tir.const(3), [])
    assert constant.value == 3
    a, rest = detect_linear_equation((x + 1) * 3 - x, [x])
    assert same(a, 2) and same(rest, 3)


def test_clip_bounds() -> None:
    low, high = detect_clip_bound(tir.all(x >= 2, x < n, x <= 7), [x])
    assert same(low, 2) and same(high, tir.min(n - 1, 7))
    low, high = detect_clip_bound(x * 1 - 5 >= 0, [x])
    assert same(low, 5) and high is None
    assert detect_clip_bound(tir.all(x * x > 3), [x]) == ()


def test_deduced_bounds_relax_other_variables() -> None:
    found = deduce_bound(x, x * 4 + y < 64, {}, {y: IntervalSet(0, 3)})
    assert same(found.max_value, 15) and not found.has_lower_bound()
    found = deduce_bound(x, tir.all(x + y >= 2, x - y < 10), {}, {y: IntervalSet(0, 3)})
    assert same(found.min_value, 2) and same(found.max_value, 9)
    found = deduce_bound(x, y - x * 2 > 5, {}, {y: IntervalSet(0, 20)})
    assert same(found.max_value, -3)
    found = deduce_bound(x, x // 4 < 3, {}, {})
    assert same(found.max_value, 11)
    assert deduce_bound(x, x * x > 4, {}, {}).is_nothing()  # it is not sure to hold anywhere


def test_deduced_bounds_hold() -> None:
    for scale in (1, 3, -2):
        for limit in (-7, 0, 5):
            found = deduce_bound(x, x * scale + y <= limit, {}, {y: IntervalSet(-2, 2)})
            for value in range(-20, 20):
                above = not found.has_lower_bound() or value >= found.min_value.value
                below = not found.has_upper_bound() or value <= found.max_value.value
                holds = all([value * scale + other <= limit for other in range(-2, 3)])
                assert (above and below) == holds


def test_common_subexpressions() -> None:
    found = detect_common_subexpr((x + y) * (x + y) + (x + y), 3)
    [(expr, count)] = found.items()
    assert same(expr, x + y) and count == 3


def test_clip_bounds_of_negations_extrema_and_equalities() -> None:
    low, high = detect_clip_bound(tir.all(tir.Not(x > n * 6), x - 1 > 0), [x])
    assert same(low, 2) and same(high, n * 6)
    bounds = detect_clip_bound(tir.all(tir.min(x, y) > 3, x - 10 < 0), [x, y])
    assert [None if end is None else end.value for end in bounds] == [4, 9, 4, None]
    assert [end.value for end in detect_clip_bound(tir.EQ(x, 10), [x])] == [10, 10]


def test_a_condition_without_the_variable_is_no_bound() -> None:
    assert deduce_bound(x, y < 3, {}, {y: IntervalSet(0, 3)}).is_nothing()
    found = deduce_bound(x, tir.all(y < 4, x < 7), {y: IntervalSet(0, 3)}, {})
    assert same(found.max_value, 6)
