"""Conditions from which variables are removed."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tvm import tir
from tvm.arith._ffi_api import NarrowPredicateExpression
from tvm.ir import structural_equal

from .numbers import value_of

i, n = tir.Var("i"), tir.Var("n")
FALSE = tir.const(False, "bool")
BUFFER = tir.decl_buffer((8,), "int32")


def narrowed(condition: Any) -> Any:
    return NarrowPredicateExpression(condition, {n: tir.Range(2, 9)})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (i > n, i > 8),
        (n - i * 2 < 4, tir.Sub(tir.const(8), i * 2) < 4),
        (n * -3 < i, tir.Mul(tir.const(2), tir.const(-3)) < i),
        (tir.NE(i, n), tir.Or(i < 2, tir.LT(8, i))),
        (tir.Not(i < n), tir.Not(i < 8)),
        (tir.And(i < 3, n < 5), tir.And(i < 3, tir.LT(tir.const(8), 5))),
        (i < 3, i < 3),
    ],
)
def test_the_worst_value_stands_for_all(before: Any, after: Any) -> None:
    assert structural_equal(narrowed(before), after, map_free_vars=False)


@pytest.mark.parametrize(
    "condition", [i % 8 < n, i // n < 3, BUFFER[i] < 4, tir.Not(BUFFER[n] < 4)]
)
def test_what_is_not_monotonic_or_reads_memory_is_false(condition: Any) -> None:
    assert structural_equal(narrowed(condition), FALSE)


def test_conditions_without_the_variables_are_the_same_object() -> None:
    condition = tir.And(i < 3, tir.Not(i * 2 < 5))
    assert narrowed(condition) is condition


def test_the_result_implies_the_condition_for_all_values() -> None:
    chance = random.Random(7)
    implied = 0
    for _ in range(300):
        condition = random_condition(chance, 3)
        result = narrowed(condition)
        for value in range(-12, 13):
            if value_of(result, {i: value}):
                implied += 1
                assert all(value_of(condition, {i: value, n: k}) for k in range(2, 9)), condition
    assert implied > 500


def random_condition(chance: random.Random, depth: int) -> Any:
    if depth and chance.random() < 0.6:
        parts = [random_condition(chance, depth - 1) for _ in range(2)]
        kind = chance.choice(["and", "or", "not"])
        return tir.Not(parts[0]) if kind == "not" else getattr(tir, kind.title())(*parts)
    comparison = chance.choice([tir.LT, tir.LE, tir.GT, tir.GE, tir.EQ, tir.NE])
    return comparison(random_value(chance, 2), random_value(chance, 2))


def random_value(chance: random.Random, depth: int) -> Any:
    if not depth or chance.random() < 0.3:
        return chance.choice([i, n, tir.const(chance.randint(-6, 6))])
    kind = chance.choice([tir.Add, tir.Sub, tir.Min, tir.Max, tir.Mul, tir.FloorDiv])
    a = random_value(chance, depth - 1)
    if kind in (tir.Mul, tir.FloorDiv):
        return kind(a, tir.const(chance.choice([-3, -1, 2, 4])))
    return kind(a, random_value(chance, depth - 1))


def test_only_conditions_are_narrowed() -> None:
    with pytest.raises(TypeError, match="requires a condition, got int32"):
        narrowed(i + n)
