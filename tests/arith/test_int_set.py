"""Interval sets with symbolic ends, and regions."""

from __future__ import annotations

from typing import Any

from tvm import tir
from tvm.arith import (
    Analyzer,
    IntervalSet,
    IntSet,
    estimate_region_strict_bound,
    estimate_region_upper_bound,
    eval_set,
    neg_inf,
    pos_inf,
    union_lower_bound,
)

i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
n = tir.SizeVar("n", "int32")


def assert_interval(found: IntervalSet, low: Any, high: Any) -> None:
    same = Analyzer().can_prove_equal
    assert found.min_value is low or same(found.min_value, low), found
    assert found.max_value is high or same(found.max_value, high), found


def test_sums_over_ranges_have_symbolic_ends() -> None:
    domains = {i: tir.Range(0, n), j: tir.Range(0, 4)}
    assert_interval(eval_set(i * 4 + j, domains), 0, n * 4 - 1)
    assert_interval(eval_set(n - i, domains), 1, n)
    assert_interval(eval_set(tir.max(i, 3), {i: IntervalSet(0, 7)}), 3, 7)


def test_sets_of_divisions() -> None:
    assert_interval(eval_set(i // 4, {i: IntervalSet(2, 13)}), 0, 3)
    assert_interval(eval_set(i % 4, {i: IntervalSet(8, 10)}), 0, 2)
    assert_interval(eval_set(i % 4, {i: IntervalSet(2, 13)}), 0, 3)
    assert_interval(eval_set(i * -2, {i: IntervalSet(2, 13)}), -26, -4)


def test_missing_ends_stay_missing() -> None:
    found = eval_set(i + 1, {i: IntervalSet(neg_inf(), 4)})
    assert found.min_value is neg_inf()
    assert_interval(found, neg_inf(), 5)
    assert eval_set(i * j, {i: IntervalSet(0, pos_inf()), j: IntervalSet(0, 3)}).is_everything()
    assert IntervalSet(pos_inf(), neg_inf()).is_nothing()


def test_untouched_expressions_are_points() -> None:
    found = eval_set(n * 2 + 1, {i: tir.Range(0, 4)})
    assert found.is_single_point()


def test_vectors_and_points() -> None:
    assert_interval(IntSet.vector(tir.Ramp(n, 2, 4)), n, n + 6)
    assert_interval(IntSet.single_point(5), 5, 5)


def test_unions_grow_while_parts_touch() -> None:
    found = union_lower_bound([IntervalSet(0, 3), IntervalSet(4, 9), IntervalSet(20, 30)])
    assert_interval(found, 0, 9)


def test_regions() -> None:
    domains = {i: tir.Range(0, 8), j: tir.Range(0, 16)}
    region = [tir.Range.from_min_extent(i * 16 + j, 1), tir.Range.from_min_extent(3, 2)]
    strict = estimate_region_strict_bound(region, domains)
    assert strict is not None
    assert_interval(strict[0], 0, 127)
    assert_interval(strict[1], 3, 4)
    gaps = [tir.Range.from_min_extent(i * 4, 2)]
    assert estimate_region_strict_bound(gaps, domains) is None
    assert_interval(estimate_region_upper_bound(gaps, domains)[0], 0, 29)


def test_regions_under_a_predicate_end_where_it_does() -> None:
    region = [tir.Range.from_min_extent(i * 8 + j, 1)]
    domain = {i: tir.Range(0, 4), j: tir.Range(0, 8)}
    (found,) = estimate_region_upper_bound(region, domain, i * 8 + j < 20)
    assert_interval(found, 0, 19)
    (found,) = estimate_region_upper_bound(region, domain, i * i < 5)
    assert_interval(found, 0, 31)


def test_region_of_a_falling_index_begins_with_its_last() -> None:
    i = tir.Var("i", "int32")
    [found] = estimate_region_upper_bound([tir.Range(1 - i, 2 - i)], {i: tir.Range(0, 5)})
    assert (found.min_value.value, found.max_value.value) == (-3, 1)


def test_regions_are_bounded_each_for_itself_where_together_they_are_no_box() -> None:
    o, i = tir.Var("o", "int32"), tir.Var("i", "int32")
    at = (o * 4 + i) * 8
    region = [tir.Range(at, at + 8), tir.Range(at, at + 7)]
    domain = {o: tir.Range(0, 16), i: tir.Range(0, 4)}
    first, _ = estimate_region_upper_bound(region, domain, o * 4 + i < 63)
    assert (first.min_value.value, first.max_value.value) == (0, 503)
