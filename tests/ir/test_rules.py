"""The rule engine: matching, constants, statistics."""

from __future__ import annotations

from typing import Any

import pytest

from tvm import knobs, tir
from tvm.arith import Analyzer
from tvm.arith.rules.notation import VOCABULARY, lower
from tvm.ir.rule_compiler import CompiledRules, RuleStatistics, report
from tvm.ir.rules import Rule, fold, in_order, pattern_consts, pattern_vars, rule, rules

x, y, z = pattern_vars("x y z")
c0, c1 = pattern_consts("c0 c1")


def apply(table: Any, expr: Any, statistics: Any = None) -> Any:
    """One step of the table on interned operands, with the analyzer's constructors."""
    analyzer = Analyzer()
    expr = analyzer.interner.intern(expr)
    compiled = CompiledRules("add", table, VOCABULARY, statistics)
    function = compiled.bucket(type(expr.a), type(expr.b))
    return None if function is None else function(analyzer.rewriter, expr.a, expr.b)


def test_commutative_operands_match_both_ways() -> None:
    table = rules(rule(x + x * c0, x * fold(c0 + 1)))
    a = tir.Var("a", "int32")
    for expr in (a + a * 3, a * 3 + a):
        found = apply(table, expr)
        assert type(found) is tir.Mul and found.a is a and found.b.value == 4
    assert apply(table, a * 3 + tir.Var("b", "int32")) is None


def test_constants_take_the_dtype_of_their_place() -> None:
    a = tir.Var("a", "int64")
    found = apply(rules(rule(x + x, x * 2)), tir.Add(a, a))
    assert found.b.dtype == "int64"


def test_conditions_guard_rules() -> None:
    table = rules(rule((x + c0) + c1, x, when=c0 + c1 == 0))
    a = tir.Var("a", "int32")
    one, minus, two = (tir.IntImm("int32", value) for value in (1, -1, 2))
    assert apply(table, tir.Add(tir.Add(a, one), minus)) is a
    assert apply(table, tir.Add(tir.Add(a, one), two)) is None


def test_operands_of_a_replacement_can_follow_the_program() -> None:
    table = rules(rule((x + c0) + y, in_order(x + y) + c0))
    a, b, one = tir.Var("a", "int32"), tir.Var("b", "int32"), tir.IntImm("int32", 1)
    for first, second in ((tir.Add(a, one), b), (b, tir.Add(a, one))):
        found = apply(table, tir.Add(first, second))
        assert [found.a.a, found.a.b] == ([a, b] if second is b else [b, a])


def test_operands_may_be_matched_as_written_only() -> None:
    table = rules(rule(x + (y + z), (x + y) + z, as_written=True))
    a, b, c = tir.Var("a", "int32"), tir.Var("b", "int32"), tir.Var("c", "int32")
    found = apply(table, tir.Add(a, tir.Add(b, c)))
    assert found.a.a is a and found.a.b is b and found.b is c
    assert apply(table, tir.Add(tir.Add(b, c), a)) is None


def test_rules_say_where_they_stand_and_what_they_do() -> None:
    found = rule((x + c0) + c1, x + fold(c0 + c1), when=lower(x) >= 0)
    assert str(found) == "(x + c0) + c1 -> x + fold(c0 + c1)  when 0 <= lower(x)"
    assert found.source.startswith("test_rules.py:")


def test_statistics_count_tries_and_hits() -> None:
    statistics: dict[Rule, RuleStatistics] = {}
    a = tir.Var("a", "int32")
    table = rules(rule(x + x, x * 2))
    with knobs.RULE_STATS.scope(True):
        apply(table, a + a, statistics)
        apply(table, a + tir.Var("b", "int32"), statistics)
    [counted] = statistics.values()
    assert (counted.tries, counted.hits) == (2, 1)
    assert "x + x -> x * 2" in report(statistics)


def test_a_pattern_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match="combine conditions with & |"):
        bool(c0 < c1)
