"""Compile rule tables to Python: one function per combination of operand classes, on first use.

The rules `x*y + z*y` and `x*c0 + y*c1` become, for operands of classes (Mul, Mul),

    def add_Mul_Mul(build, a, b):
        a_a = a.a; a_b = a.b; b_a = b.a; b_b = b.b
        if a_b is b_b:                                              # add.py:31
            return build.mul(build.add(a_a, b_a), a_b)
        ...

Commutative operations are matched both ways: a rule becomes its variants, and the operand classes of a bucket rule most
of them out. Constants stand on the right in the trees that are matched, so no variant has one on the left.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tvm import knobs

from .node import Node
from .rules import (
    INFIX,
    Apply,
    Calling,
    Fold,
    InOrder,
    Literal,
    Measure,
    Operation,
    Pattern,
    PatternConst,
    PatternVar,
    Rule,
    Vocabulary,
    subpatterns,
)

# build(builder, *operands) -> replacement, or None if no rule matches
RuleFunction = Callable[..., Any]
_CONDITION = {"logical_and": "and", "logical_or": "or"}


@dataclass
class RuleStatistics:
    """How often a rule was tried and matched, and the seconds its matches took."""

    tries: int = 0
    hits: int = 0
    seconds: float = 0.0


def report(statistics: Mapping[Rule, RuleStatistics]) -> str:
    """A table of the rules that were tried, the slowest first."""
    rows = sorted(statistics.items(), key=lambda row: -row[1].seconds)
    lines = [f"{'tries':>9} {'hits':>9} {'ms':>9}  rule"]
    for rule, counted in rows:
        milliseconds = f"{counted.seconds * 1e3:9.2f}"
        lines.append(f"{counted.tries:9} {counted.hits:9} {milliseconds}  {rule.source}: {rule}")
    return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class _Variant:
    """A rule with the operands of its commutative operations in one of their orders."""

    rule: Rule
    pattern: Apply


class CompiledRules:
    """The rules of a table whose patterns have the same root operation."""

    def __init__(
        self,
        root: str,
        table: Iterable[Rule],
        vocabulary: Vocabulary,
        statistics: dict[Rule, RuleStatistics] | None = None,
    ) -> None:
        self.root = root
        self.vocabulary = vocabulary
        # counted only while the knob RULE_STATS is on
        self.statistics = statistics
        self._table = table
        self._variants: list[_Variant] | None = None
        self.functions: dict[Any, RuleFunction | None] = {}

    def bucket(self, *classes: type[Node]) -> RuleFunction | None:
        """The function for operands of these classes; None if no rule can match them."""
        if classes not in self.functions:
            if self._variants is None:
                chosen_rules = [rule for rule in self._table if rule.pattern.name == self.root]
                self._variants = [v for r in chosen_rules for v in _variants(r, self.vocabulary)]
            chosen = [v for v in self._variants if self._may_match(v.pattern, classes)]
            self.functions[classes] = self._compile(chosen, classes) if chosen else None
        return self.functions[classes]

    def _may_match(self, pattern: Apply, classes: tuple[type[Node], ...]) -> bool:
        pairs = zip(pattern.args, classes, strict=True)
        return all([self._class_of(arg) in (None, cls) for arg, cls in pairs])

    def _class_of(self, pattern: Pattern) -> type[Node] | None:
        if isinstance(pattern, Literal) and self.vocabulary.literal:
            return None
        if isinstance(pattern, (PatternConst, Literal)):
            return self.vocabulary.constant
        if isinstance(pattern, Apply):
            return self.vocabulary.operations[pattern.name].node
        return None

    def _compile(self, variants: list[_Variant], classes: tuple[type[Node], ...]) -> RuleFunction:
        names = "_".join([cls.__name__ for cls in classes])
        writer = _FunctionWriter(f"{self.root}_{names}", self.vocabulary, len(classes))
        statistics = self.statistics if knobs.RULE_STATS.value else None
        for variant in variants:
            writer.write_variant(variant, statistics)
        source = writer.source()
        scope = dict(writer.scope)
        exec(compile(source, f"<rules {writer.name}>", "exec"), scope)
        function: RuleFunction = scope[writer.name]
        function.__doc__ = source
        return function


def _variants(rule: Rule, vocabulary: Vocabulary) -> list[_Variant]:
    found: dict[str, _Variant] = {}
    orders = [rule.pattern] if rule.as_written else _orders(rule.pattern, vocabulary)
    for pattern in orders:
        assert isinstance(pattern, Apply)
        # variants that differ in the names of variables only match the same trees
        key = _renamed(pattern, rule.when)
        found.setdefault(key, _Variant(rule, pattern))
    return list(found.values())


def _orders(pattern: Pattern, vocabulary: Vocabulary) -> list[Pattern]:
    """The pattern with its commutative operations' operands in all orders a tree can have."""
    if not isinstance(pattern, Apply):
        return [pattern]
    parts = [_orders(arg, vocabulary) for arg in pattern.args]
    found: list[Pattern] = []
    commutes = vocabulary.operations[pattern.name].commutative
    is_ordered = commutes and vocabulary.ordered_constants
    for args in itertools.product(*parts):
        orders = [args, args[::-1]] if commutes else [args]
        allowed = [o for o in orders if not (is_ordered and _is_constant(o[0]))]
        found += [Apply(pattern.name, order) for order in (allowed or [args])]
    return found


def _is_constant(pattern: Pattern) -> bool:
    return isinstance(pattern, (PatternConst, Literal))


def _arranged(pattern: Pattern, places: Mapping[str, int]) -> Pattern:
    """The replacement with the operands of operations in order where those matched them."""
    if isinstance(pattern, InOrder):
        args = sorted(pattern.value.args, key=lambda arg: _position(arg, places))
        return Apply(pattern.value.name, tuple(args))
    if isinstance(pattern, Apply):
        return Apply(pattern.name, tuple([_arranged(arg, places) for arg in pattern.args]))
    return pattern


def _positions(pattern: Pattern) -> dict[str, int]:
    """Where the variables stand, counted from the left; those that stand in several places after all others."""
    names = [part.name for part in subpatterns(pattern) if isinstance(part, PatternVar)]
    return {
        name: place if names.count(name) == 1 else place + len(names)
        for place, name in enumerate(names)
    }


def _position(pattern: Pattern, places: Mapping[str, int]) -> int:
    found = [places[part.name] for part in subpatterns(pattern) if isinstance(part, PatternVar)]
    return min(found, default=len(places))


def _renamed(pattern: Pattern, when: Pattern | None) -> str:
    names: dict[str, str] = {}

    def text(part: Pattern) -> str:
        if isinstance(part, (PatternVar, PatternConst)):
            kind = "c" if isinstance(part, PatternConst) else "v"
            return names.setdefault(part.name, f"{kind}{len(names)}")
        if isinstance(part, (Apply, Calling)):
            head = part.name if isinstance(part, Apply) else repr(part.function)
            return f"{head}({','.join([text(arg) for arg in part.args])})"
        if isinstance(part, Measure):
            return f"{part.name}[{','.join([text(arg) for arg in part.args])}]"
        return str(part)

    return f"{text(pattern)} when {'' if when is None else text(when)}"


@dataclass
class _Match:
    """What is known while one variant's code is written."""

    places: dict[str, str] = field(default_factory=dict)  # variable -> Python expression
    values: dict[str, str] = field(default_factory=dict)  # constant -> Python expression
    dtypes: list[tuple[str, str]] = field(default_factory=list)  # (dtype class, place)
    leaves: set[str] = field(default_factory=set)  # variables that stand for plain values
    merged: dict[str, str] = field(default_factory=dict)  # union-find over dtype classes

    def find(self, letter: str) -> str:
        while letter in self.merged:
            letter = self.merged[letter]
        return letter

    def join(self, left: str, right: str) -> None:
        left, right = self.find(left), self.find(right)
        if left != right:
            self.merged[left] = right


class _FunctionWriter:
    """Writes the Python of one bucket."""

    def __init__(self, name: str, vocabulary: Vocabulary, arity: int) -> None:
        self.name = name
        self.vocabulary = vocabulary
        self.params = list("abcdef")[:arity]
        self.loads: dict[str, str] = {}  # operands of the operands, read once at the top
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {"clock": time.perf_counter}
        self._depth = 1
        self._tests: list[str] = []
        self._classes = itertools.count()
        self._replacement_letters: dict[int, list[str]] = {}

    def source(self) -> str:
        loads = [f"    {name} = {place}" for name, place in self.loads.items()]
        header = f"def {self.name}(build, {', '.join(self.params)}):"
        return "\n".join([header, *loads, *self.lines, "    return None", ""])

    def write_variant(
        self, variant: _Variant, statistics: dict[Rule, RuleStatistics] | None
    ) -> None:
        rule, match = variant.rule, _Match()
        self._depth, self._tests = 1, []
        self._emit(f"# {rule.source}: {rule}")
        counter = ""
        if statistics is not None:
            counter = self._name_value(statistics.setdefault(rule, RuleStatistics()), "count")
            self._emit(f"{counter}.tries += 1; start = clock()")
        root = self._operands(variant.pattern, match, "")
        self._match_operands(variant.pattern, self.params, match, typed=True)
        if rule.when is not None:
            self._tests.append(self._condition(rule.when, match))
        self._flush()
        wanted = _arranged(rule.replacement, _positions(variant.pattern))
        result_class = self._infer(wanted, match)
        match.join(result_class, root)
        replacement = self._build(wanted, match, result_class)
        if counter:
            self._emit(f"result = {replacement}")
            self._emit(f"{counter}.hits += 1; {counter}.seconds += clock() - start")
            self._emit("return result")
        else:
            self._emit(f"return {replacement}")

    # ---- matching

    def _match_operands(
        self, pattern: Apply, places: list[str], match: _Match, typed: bool = False
    ) -> None:
        """Tests for the operands, nearest ones first: they are the cheapest and decide most."""
        waiting = [(arg, place, typed) for arg, place in zip(pattern.args, places, strict=True)]
        leaves = self._leaves(pattern)
        for (arg, place, known), is_leaf in zip(waiting, leaves, strict=True):
            if isinstance(arg, PatternVar):
                self._match_var(arg, place, match, is_leaf)
            elif not isinstance(arg, Apply):
                self._match_constant(arg, place, known, match)
        for arg, place, known in waiting:
            if isinstance(arg, Apply):
                self._match_apply(arg, place, known, match)

    def _leaves(self, pattern: Apply) -> list[bool]:
        operation = self.vocabulary.operations[pattern.name]
        return [name in operation.leaves for name in operation.fields]

    def _match_var(self, var: PatternVar, place: str, match: _Match, is_leaf: bool) -> None:
        if (first := match.places.get(var.name)) is None:
            match.places[var.name] = place
            if is_leaf:
                match.leaves.add(var.name)
        elif is_leaf:
            self._tests.append(f"{place} == {first}")
        else:
            self._tests.append(self.vocabulary.same.format(place, first))

    def _match_constant(self, arg: Pattern, place: str, known: bool, match: _Match) -> None:
        if isinstance(arg, Literal) and self.vocabulary.literal:
            self._tests.append(self.vocabulary.literal.format(place, repr(arg.value)))
            return
        if not known:
            constant = self._name_value(self.vocabulary.constant, "const")
            self._tests.append(f"{place}.__class__ is {constant}")
        value = self.vocabulary.value.format(place)
        if isinstance(arg, Literal):
            self._tests.append(f"{value} == {arg.value!r}")
            return
        assert isinstance(arg, PatternConst)
        if (first := match.values.get(arg.name)) is not None:
            self._tests.append(f"{value} == {first}")
        else:
            match.values[arg.name] = value
            match.places[arg.name] = place

    def _match_apply(self, arg: Apply, place: str, known: bool, match: _Match) -> None:
        operation = self.vocabulary.operations[arg.name]
        if not known:
            self._tests.append(f"{place}.__class__ is {self._name_value(operation.node, 'cls')}")
        if operation.guard:
            self._tests.append(operation.guard.format(place))
            self.scope.update(self.vocabulary.names or {})
        # which operands there are may depend on the guard
        is_certain = known and not operation.guard
        places = [self._load(place, name, is_certain) for name in operation.fields]
        self._match_operands(arg, places, match)

    def _load(self, place: str, name: str, known: bool) -> str:
        """A local variable for an operand, read at the top if its owner's class is certain."""
        local = f"{place}_{name}".replace("[", "").replace("]", "").replace(".", "_")
        if known:
            self.loads[local] = f"{place}.{name}"
        else:
            self._flush()
            self._emit(f"{local} = {place}.{name}")
        return local

    # ---- dtypes: equal classes, equal dtypes

    def _operands(self, pattern: Apply, match: _Match, prefix: str) -> str:
        """Record the dtype classes of a matched tree; the root's class."""
        places = [f"{prefix}_{name}" for name in self._fields(pattern)] if prefix else self.params
        letters, result = self._letters(self.vocabulary.operations[pattern.name])
        leaves = self._leaves(pattern)
        for arg, place, letter, is_leaf in zip(pattern.args, places, letters, leaves, strict=True):
            if is_leaf:
                continue
            if isinstance(arg, Apply):
                match.join(self._operands(arg, match, place), letter)
            elif isinstance(arg, (PatternVar, PatternConst)):
                match.join(f"var {arg.name}", letter)
            match.dtypes.append((letter, place))
        return result

    def _fields(self, pattern: Apply) -> list[str]:
        names = self.vocabulary.operations[pattern.name].fields
        return [name.replace("[", "").replace("]", "").replace(".", "_") for name in names]

    def _letters(self, operation: Operation) -> tuple[list[str], str]:
        """Fresh dtype classes for one use of an operation."""
        number = next(self._classes)
        *operands, result = [f"{letter}{number}" for letter in operation.signature.replace(">", "")]
        return operands, result

    def _infer(self, pattern: Pattern, match: _Match) -> str:
        """The dtype class of a replacement; joins the classes inside it."""
        if isinstance(pattern, PatternVar):
            return f"var {pattern.name}"
        if not isinstance(pattern, Apply):
            # a constant takes the dtype of its new place
            return f"free{next(self._classes)}"
        letters, result = self._letters(self.vocabulary.operations[pattern.name])
        self._replacement_letters[id(pattern)] = letters
        for arg, letter in zip(pattern.args, letters, strict=True):
            match.join(self._infer(arg, match), letter)
        return result

    # ---- building

    def _build(self, pattern: Pattern, match: _Match, letter: str) -> str:
        if isinstance(pattern, PatternVar):
            return match.places[pattern.name]
        if isinstance(pattern, Apply):
            letters = self._replacement_letters[id(pattern)]
            pairs = zip(pattern.args, letters, strict=True)
            args = [self._build(arg, match, inner) for arg, inner in pairs]
            return f"build.{pattern.name}({', '.join(args)})"
        value = self._value(pattern.value if isinstance(pattern, Fold) else pattern, match)
        wanted = match.find(letter)
        found = [place for other, place in match.dtypes if match.find(other) == wanted]
        if found:
            return f"build.constant({value}, {self.vocabulary.like.format(found[0])})"
        if isinstance(pattern, PatternConst):
            return match.places[pattern.name]
        # no operand has the dtype of the result: the root is a comparison
        return f"build.truth({value}, {self.params[0]}.dtype)"

    def _value(self, pattern: Pattern, match: _Match) -> str:
        """Python for a number: in a fold or a condition."""
        if isinstance(pattern, PatternConst):
            return match.values[pattern.name]
        if isinstance(pattern, PatternVar) and pattern.name in match.leaves:
            return match.places[pattern.name]
        if isinstance(pattern, Literal):
            return repr(pattern.value)
        if isinstance(pattern, Measure):
            args = ", ".join([self._node(arg, match) for arg in pattern.args])
            return f"build.{pattern.name}({args})"
        if isinstance(pattern, Calling):
            function = self._name_value(pattern.function, "call")
            return f"{function}({', '.join([self._value(arg, match) for arg in pattern.args])})"
        if isinstance(pattern, Apply):
            return self._value_of_operation(pattern, match)
        raise TypeError(f"a condition or fold is made of constants and measures, got {pattern}")

    def _value_of_operation(self, pattern: Apply, match: _Match) -> str:
        args = [self._value(arg, match) for arg in pattern.args]
        if pattern.name == "logical_not":
            return f"(not {args[0]})"
        if pattern.name in ("min", "max"):
            return f"{pattern.name}({', '.join(args)})"
        symbol = _CONDITION.get(pattern.name) or INFIX[pattern.name]
        return f"({args[0]} {symbol} {args[1]})"

    def _node(self, pattern: Pattern, match: _Match) -> str:
        """Python for the expression that a measure looks at."""
        if isinstance(pattern, (PatternVar, PatternConst)):
            return match.places[pattern.name]
        if isinstance(pattern, Apply):
            args = ", ".join([self._node(arg, match) for arg in pattern.args])
            return f"build.{pattern.name}({args})"
        raise TypeError(f"a measure looks at matched expressions, got {pattern}")

    def _condition(self, when: Pattern, match: _Match) -> str:
        return self._value(when, match)

    # ---- text

    def _emit(self, line: str) -> None:
        self.lines.append("    " * self._depth + line)

    def _flush(self) -> None:
        if self._tests:
            self._emit(f"if {' and '.join(self._tests)}:")
            self._depth += 1
            self._tests = []

    def _name_value(self, value: Any, prefix: str) -> str:
        for name, known in self.scope.items():
            if known is value:
                return name
        name = f"{prefix}{len(self.scope)}"
        self.scope[name] = value
        return name
