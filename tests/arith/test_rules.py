"""Every rule of every table, with random numbers for its variables."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tvm import tir
from tvm.arith import Analyzer, ConstIntBound
from tvm.arith.rules import BOOLEAN_LAWS, LAWS, TABLES, all_rules
from tvm.arith.rules.notation import OPERATIONS
from tvm.ir.rules import (
    Apply,
    Literal,
    Measure,
    Operation,
    Pattern,
    PatternConst,
    PatternVar,
    Rule,
    evaluate,
    subpatterns,
)

from .numbers import value_of

RULES = all_rules()
LOGICAL = ("logical_and", "logical_or", "logical_not")
# rules between truth values that no operator marks as such
TRUTH_VALUES = {rule for name in (tir.EQ, tir.NE, tir.Select) for rule in BOOLEAN_LAWS[name][1]}
CONSTANTS = [-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24]


class Sample:
    """Values for the names of a rule, and what is known about expressions of them."""

    def __init__(self, rule: Rule, chance: random.Random) -> None:
        self.chance = chance
        self.measured: dict[str, int] = {}
        self.values: dict[str, int] = {}
        truths = truth_names(rule)
        lanes = chance.randint(1, 4)
        for part in subpatterns(rule.pattern):
            if isinstance(part, PatternVar):
                if part.name == "lanes":
                    value = lanes
                elif part.name in truths:
                    value = chance.randint(0, 1)
                else:
                    value = chance.randint(-20, 20)
                self.values.setdefault(part.name, value)
            elif isinstance(part, PatternConst):
                self.values.setdefault(part.name, chance.choice(CONSTANTS))
        lane = chance.randrange(lanes)
        self.operations = {
            **OPERATIONS,
            "ramp": lane_meaning(OPERATIONS["ramp"], lane),
        }

    def of(self, pattern: Pattern) -> int | float:
        return evaluate(pattern, self.values, self.operations, self.measure)

    def measure(self, measure: Measure) -> int:
        key = str(measure)
        if key not in self.measured:
            self.measured[key] = self._measure(measure)
        return self.measured[key]

    def _measure(self, measure: Measure) -> int:
        values = [int(self.of(arg)) for arg in measure.args]
        slack = self.chance.choice([0, 0, 0, 1, 2, 5, 30])
        if measure.name == "lower":
            return values[0] - slack
        if measure.name == "upper":
            return values[0] + slack
        if measure.name == "modulus":
            return self.chance.choice([0, 1, 2, 3, 4, 6, 8, 12, 16])
        if measure.name == "residue":
            modulus = self.measure(Measure("modulus", measure.args))
            return values[0] % modulus if modulus else values[0]
        known = self.chance.random() < 0.8
        if measure.name == "same":
            return known and values[0] == values[1]
        if measure.name == "ordered":
            return known and values[0] <= values[1]
        if measure.name == "below":
            return known and values[0] < values[1]
        if measure.name == "nonzero":
            return values[0] != 0
        assert measure.name in ("integral", "symbolic")
        return True


def lane_meaning(operation: Operation, lane: int) -> Operation:
    return Operation(
        operation.node, operation.fields, operation.signature, lambda b, s, n: b + s * lane
    )


def truth_names(rule: Rule) -> set[str]:
    """Variables that stand for truth values."""
    if rule in TRUTH_VALUES and rule.pattern.name != "select":
        return {p.name for p in subpatterns(rule.pattern) if isinstance(p, PatternVar)}
    found = set()
    for part in (*subpatterns(rule.pattern), *subpatterns(rule.replacement)):
        if not isinstance(part, Apply):
            continue
        operands = part.args if part.name in LOGICAL else part.args[: part.name == "select"]
        found |= {arg.name for arg in operands if isinstance(arg, PatternVar)}
    changed = True
    while changed and any(
        [isinstance(p, Apply) and p.name == "broadcast" for p in subpatterns(rule.pattern)]
    ):
        # lanes of a vector of truth values
        before = len(found)
        if rule.pattern.name in LOGICAL:
            found |= {
                p.args[0].name
                for p in subpatterns(rule.pattern)
                if isinstance(p, Apply)
                and p.name == "broadcast"
                and isinstance(p.args[0], PatternVar)
            }
        changed = len(found) > before
    return found


def samples(rule: Rule, wanted: int, tries: int = 60000) -> list[Sample]:
    """Values that meet the rule's condition and for which its pattern is defined."""
    chance = random.Random(str(rule))
    found: list[Sample] = []
    for _ in range(tries):
        sample = Sample(rule, chance)
        try:
            sample.of(rule.pattern)
            if rule.when is None or sample.of(rule.when):
                found.append(sample)
        except ZeroDivisionError:
            continue
        if len(found) == wanted:
            break
    return found


@pytest.mark.parametrize("rule", RULES, ids=[f"{rule.source}" for rule in RULES])
def test_both_sides_have_one_value(rule: Rule) -> None:
    found = samples(rule, wanted=150)
    assert len(found) >= 10, f"no numbers meet the condition of {rule}"
    for sample in found:
        before, after = sample.of(rule.pattern), sample.of(rule.replacement)
        assert before == after, f"{rule}: {before} became {after} for {sample.values}"


def build(pattern: Pattern, names: dict[str, Any], dtype: str = "int32") -> Any:
    """The pattern as TIR nodes, nothing simplified."""
    if isinstance(pattern, (PatternVar, PatternConst)):
        return names[pattern.name]
    if isinstance(pattern, Literal):
        return tir.IntImm(dtype, int(pattern.value))
    assert isinstance(pattern, Apply)
    operation = OPERATIONS[pattern.name]
    truth = pattern.name in LOGICAL
    args = [build(arg, names, "bool" if truth else dtype) for arg in pattern.args]
    return operation.node(*args)


def is_scalar(rule: Rule) -> bool:
    names = [part.name for part in subpatterns(rule.pattern) if isinstance(part, Apply)]
    return not {"ramp", "broadcast", "div"} & set(names) and rule not in TRUTH_VALUES


SCALAR_RULES = [rule for rule in RULES if is_scalar(rule)]


@pytest.mark.parametrize("rule", SCALAR_RULES, ids=[rule.source for rule in SCALAR_RULES])
def test_simplifier_keeps_the_value_of_each_pattern(rule: Rule) -> None:
    for sample in samples(rule, wanted=12):
        truths = truth_names(rule)
        analyzer = Analyzer()
        names: dict[str, Any] = {}
        values: dict[tir.Var, int] = {}
        for part in subpatterns(rule.pattern):
            if isinstance(part, PatternVar) and part.name not in names:
                kind = "bool" if part.name in truths else "int32"
                var = names[part.name] = tir.Var(part.name, kind)
                values[var] = sample.values[part.name]
                if kind == "int32":
                    analyzer.update(var, ConstIntBound(values[var] - 2, values[var] + 1))
            elif isinstance(part, PatternConst):
                names[part.name] = tir.IntImm("int32", sample.values[part.name])
        expr = build(rule.pattern, names)
        for simple in (analyzer.rewrite_simplify(expr), analyzer.simplify(expr)):
            before, after = value_of(expr, values), value_of(simple, values)
            assert before == after, f"{rule} with {sample.values} gave {simple}"


def test_rules_stand_in_the_table_of_their_operation() -> None:
    for name, *tables in LAWS.values():
        for table in tables:
            assert [str(rule) for rule in table if rule.pattern.name != name] == []
    for name, table in BOOLEAN_LAWS.values():
        assert [str(rule) for rule in table if rule.pattern.name != name] == []


def test_all_buckets_compile() -> None:
    classes = [tir.IntImm, *[op.node for op in OPERATIONS.values()], tir.Var]
    for table in TABLES:
        for compiled in table.values():
            arity = len(OPERATIONS[compiled.root].fields)
            if arity == 1:
                for a in classes:
                    compiled.bucket(a)
            elif arity == 2:
                for a in classes:
                    for b in classes:
                        compiled.bucket(a, b)


def test_a_constant_less_a_minimum_of_it_comes_to_rest() -> None:
    i = tir.Var("i", "int32")
    nothing = tir.max(9 - i * 4, 0) + tir.Var("j", "int32") < 0
    with Analyzer().constraint_scope(tir.Not(nothing)):
        pass
    assert not Analyzer().can_prove(nothing)
