"""Rewrite rules as tables, in Halide's notation.

    x, y, z = pattern_vars("x y z")
    c0, c1 = pattern_consts("c0 c1")

    ADD = rules(
        rule(x + 0, x),
        rule(x*y + z*y, (x + z)*y),
        rule(x*c0 + y*c1, (x + y*fold(c1 // c0))*c0, when=(c0 != 0) & (c1 % c0 == 0)),
    )

Operators on pattern variables build pattern nodes that name an operation ("add") and nothing else; whoever compiles a
table (`rule_compiler.CompiledRules`) supplies a `Vocabulary`: which node class an operation is, where its operands are,
what it means on numbers. A table is a value: it can be joined, filtered, listed and tested row by row.

There is no "greater": Python turns `0 <= x` into `x >= 0`, so both are the pattern `le(0, x)`.

In a condition the same operators mean arithmetic on the matched constants; `measured("lower", x)` asks the builder
about a matched expression, and `calling(function, c0)` calls Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .node import Node

# operations of the Python operators, and how they print
INFIX: dict[str, str] = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "floormod": "%", "div": "/",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=",
    "logical_and": "&", "logical_or": "|",
}  # fmt: skip


class Pattern:
    """An expression over pattern variables."""

    __slots__ = ()

    def __add__(self, other: object) -> Pattern:
        return operation("add", self, other)

    def __radd__(self, other: object) -> Pattern:
        return operation("add", other, self)

    def __sub__(self, other: object) -> Pattern:
        return operation("sub", self, other)

    def __rsub__(self, other: object) -> Pattern:
        return operation("sub", other, self)

    def __mul__(self, other: object) -> Pattern:
        return operation("mul", self, other)

    def __rmul__(self, other: object) -> Pattern:
        return operation("mul", other, self)

    def __floordiv__(self, other: object) -> Pattern:
        return operation("floordiv", self, other)

    def __rfloordiv__(self, other: object) -> Pattern:
        return operation("floordiv", other, self)

    def __mod__(self, other: object) -> Pattern:
        return operation("floormod", self, other)

    def __rmod__(self, other: object) -> Pattern:
        return operation("floormod", other, self)

    def __truediv__(self, other: object) -> Pattern:
        return operation("div", self, other)

    def __rtruediv__(self, other: object) -> Pattern:
        return operation("div", other, self)

    def __neg__(self) -> Pattern:
        return operation("sub", 0, self)

    def __and__(self, other: object) -> Pattern:
        return operation("logical_and", self, other)

    def __or__(self, other: object) -> Pattern:
        return operation("logical_or", self, other)

    def __invert__(self) -> Pattern:
        return operation("logical_not", self)

    def __eq__(self, other: object) -> Pattern:  # type: ignore[override]
        return operation("eq", self, other)

    def __ne__(self, other: object) -> Pattern:  # type: ignore[override]
        return operation("ne", self, other)

    def __lt__(self, other: object) -> Pattern:
        return operation("lt", self, other)

    def __le__(self, other: object) -> Pattern:
        return operation("le", self, other)

    def __gt__(self, other: object) -> Pattern:
        return operation("lt", other, self)

    def __ge__(self, other: object) -> Pattern:
        return operation("le", other, self)

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise TypeError("a pattern has no truth value: combine conditions with & | ~")


@dataclass(frozen=True, eq=False, slots=True)
class PatternVar(Pattern):
    """Matches any expression; a second occurrence must match the very same one."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False, slots=True)
class PatternConst(Pattern):
    """Matches a constant; stands for its value in conditions and in `fold`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False, slots=True)
class Literal(Pattern):
    """A constant written in the rule."""

    value: int | float

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, eq=False, slots=True)
class Apply(Pattern):
    """An operation on patterns."""

    name: str
    args: tuple[Pattern, ...]

    def __str__(self) -> str:
        if symbol := INFIX.get(self.name):
            left, right = (f"({arg})" if isinstance(arg, Apply) else str(arg) for arg in self.args)
            return f"{left} {symbol} {right}"
        return f"{self.name}({', '.join([str(arg) for arg in self.args])})"


@dataclass(frozen=True, eq=False, slots=True)
class Fold(Pattern):
    """In a replacement: the constant that an expression over matched constants comes to."""

    value: Pattern

    def __str__(self) -> str:
        return f"fold({self.value})"


@dataclass(frozen=True, eq=False, slots=True)
class InOrder(Pattern):
    """In a replacement: a commutative operation whose operands stand in the order of those matched."""

    value: Apply

    def __str__(self) -> str:
        return f"in_order({self.value})"


@dataclass(frozen=True, eq=False, slots=True)
class Measure(Pattern):
    """In a condition: what the builder's method `name` knows about an expression, a number."""

    name: str
    args: tuple[Pattern, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join([str(arg) for arg in self.args])})"


@dataclass(frozen=True, eq=False, slots=True)
class Calling(Pattern):
    """In a condition or a fold: a Python function of matched constants."""

    function: Callable[..., Any]
    args: tuple[Pattern, ...]

    def __str__(self) -> str:
        return f"{self.function.__name__}({', '.join([str(arg) for arg in self.args])})"


def pattern_vars(names: str) -> list[PatternVar]:
    return [PatternVar(name) for name in names.split()]


def pattern_consts(names: str) -> list[PatternConst]:
    return [PatternConst(name) for name in names.split()]


def as_pattern(value: object) -> Pattern:
    if isinstance(value, Pattern):
        return value
    if isinstance(value, (int, float)):
        return Literal(value)
    raise TypeError(f"a rule is made of patterns and numbers, got {value!r}")


def operation(name: str, *args: object) -> Pattern:
    return Apply(name, tuple([as_pattern(arg) for arg in args]))


def fold(value: Pattern) -> Pattern:
    return Fold(value)


def in_order(value: Pattern) -> Pattern:
    """``in_order(x + y//c0)`` follows the program: of ``y + x*c0`` it makes ``y//c0 + x``."""
    if not isinstance(value, Apply):
        raise TypeError(f"an operation has an order, got {value}")
    return InOrder(value)


def measured(name: str, *args: Pattern) -> Pattern:
    return Measure(name, args)


def calling(function: Callable[..., Any], *args: object) -> Pattern:
    return Calling(function, tuple([as_pattern(arg) for arg in args]))


@dataclass(frozen=True, eq=False, slots=True)
class Rule:
    """Where `pattern` matches and `when` holds, `replacement` has the same value."""

    pattern: Apply
    replacement: Pattern
    when: Pattern | None
    source: str  # file and line
    as_written: bool = False  # whether operands of commutative operations match in this order only

    def __str__(self) -> str:
        condition = f"  when {self.when}" if self.when is not None else ""
        return f"{self.pattern} -> {self.replacement}{condition}"


class RuleTable(tuple[Rule, ...]):
    """Rules in order of priority; tables join with +."""

    __slots__ = ()

    def __add__(self, other: Iterable[Rule]) -> RuleTable:  # type: ignore[override]
        return RuleTable((*self, *other))


def rule(
    pattern: Pattern,
    replacement: object,
    when: Pattern | None = None,
    as_written: bool = False,
) -> Rule:
    """A rule of the table.

    With ``as_written`` no operands of the pattern are exchanged.
    """
    if not isinstance(pattern, Apply):
        raise TypeError(f"the left side of a rule is an operation, got {pattern}")
    frame = sys._getframe(1)
    file = frame.f_code.co_filename.replace("\\", "/").rsplit("/", 1)[-1]
    source = f"{file}:{frame.f_lineno}"
    return Rule(pattern, as_pattern(replacement), when, source, as_written)


def rules(*parts: Rule | Iterable[Rule]) -> RuleTable:
    """A table of rules and of other tables' rules."""
    flat: list[Rule] = []
    for part in parts:
        if isinstance(part, Rule):
            flat.append(part)
        else:
            flat.extend(part)
    return RuleTable(flat)


@dataclass(frozen=True, slots=True)
class Operation:
    """What a pattern's operation is in a given IR.

    `signature` gives one letter per operand and one for the result; equal letters have equal dtypes, `b` is a truth
    value ("tt>t" for add, "tt>b" for lt, "btt>t" for select). Constants in replacements take their dtype from it.
    """

    node: type[Node]
    fields: tuple[str, ...]
    signature: str
    evaluate: Callable[..., int | float]
    commutative: bool = False
    leaves: tuple[str, ...] = ()  # operands that are plain values, as a vector's lanes
    guard: str = ""  # further test on the node, e.g. "{}.op is likely", names from Vocabulary.names


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The operations of an IR, and the classes of its constants.

    `same` is the expression that compares two matched occurrences of a variable: identity if the builder
    hash-conses, otherwise a call of a function in `names`. `value` is that of a constant, and `like` what
    `build.constant` makes another like. With a test for `literal`, from an expression of any class and a number,
    numbers in patterns match by it. With `ordered_constants` constants are on the right of commutative operations.
    """

    operations: Mapping[str, Operation]
    constant: type[Node]
    same: str = "{} is {}"
    names: Mapping[str, object] | None = None
    value: str = "{}.value"
    like: str = "{}.dtype"
    literal: str = ""
    ordered_constants: bool = True


def subpatterns(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern and everything inside it, parents first."""
    yield pattern
    inner: tuple[Pattern, ...] = ()
    if isinstance(pattern, (Apply, Calling, Measure)):
        inner = pattern.args
    elif isinstance(pattern, (Fold, InOrder)):
        inner = (pattern.value,)
    for part in inner:
        yield from subpatterns(part)


def evaluate(
    pattern: Pattern,
    values: Mapping[str, int | float],
    operations: Mapping[str, Operation],
    measures: Callable[[Measure], int] | None = None,
) -> int | float:
    """The pattern's value for given values of its variables; the meaning that tests compare."""
    if isinstance(pattern, (PatternVar, PatternConst)):
        return values[pattern.name]
    if isinstance(pattern, Literal):
        return pattern.value
    if isinstance(pattern, (Fold, InOrder)):
        return evaluate(pattern.value, values, operations, measures)
    if isinstance(pattern, Measure):
        assert measures is not None
        return measures(pattern)
    if isinstance(pattern, Calling):
        args = [evaluate(arg, values, operations, measures) for arg in pattern.args]
        called: int | float = pattern.function(*args)
        return called
    assert isinstance(pattern, Apply)
    first = evaluate(pattern.args[0], values, operations, measures)
    # the guards of a condition come first: `(c0 != 0) & (c1 % c0 == 0)`
    if pattern.name == "logical_and" and not first:
        return 0
    if pattern.name == "logical_or" and first:
        return 1
    rest = [evaluate(arg, values, operations, measures) for arg in pattern.args[1:]]
    return operations[pattern.name].evaluate(first, *rest)
