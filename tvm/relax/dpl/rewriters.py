"""Rewriters find what becomes of the bindings of a block; they are passes, and are combined by ``|``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassInfo
from tvm.relax.analysis.variables import used_vars
from tvm.relax.expr import Binding, Function, Tuple, Var, VarBinding, as_expr
from tvm.support import deep

from .function_pattern import RewriteRule
from .matcher import Matcher, matched
from .pattern import DFPattern, OrPattern, TuplePattern
from .rounds import Rewriting

Callback = Callable[[RelayExpr, dict[DFPattern, RelayExpr]], RelayExpr]


@dataclass
class Rewrites:
    """What becomes of bindings.

    Parameters
    ----------
    values : the new values of variables.
    tuples : variables that become the fields of a tuple, and that tuple.
    functions : those that new values may call.
    """

    values: dict[Var, RelayExpr] = field(default_factory=dict)
    tuples: list[tuple[tuple[Var, ...], RelayExpr]] = field(default_factory=list)
    functions: dict[GlobalVar, Function] = field(default_factory=dict)

    @property
    def variables(self) -> dict[Var, None]:
        """The variables that get other values."""
        return dict.fromkeys([*self.values, *[v for vs, _ in self.tuples for v in vs]])

    def joined(self, other: Rewrites) -> Rewrites:
        """Those of both."""
        return Rewrites(
            {**self.values, **other.values},
            [*self.tuples, *other.tuples],
            {**self.functions, **other.functions},
        )


class PatternMatchingRewriter(Pass):
    """Replaces what matches a pattern, until nothing does: a pass, and a function of functions."""

    def __init__(self) -> None:
        super().__init__(PassInfo(0, type(self).__name__, ()))

    def __or__(self, other: PatternMatchingRewriter) -> OrRewriter:
        return OrRewriter(self, other)

    def __call__(self, obj: Any) -> Any:
        """A module or a function with matches replaced."""
        if isinstance(obj, Function):
            return self.rewrite(obj)
        return super().__call__(obj)

    @deep
    def rewrite(self, func: Function) -> Function:
        """A function with matches replaced.

        Raises
        ------
        TVMError
            If new values call functions of their own, which only a module can have.
        """
        rewriting = Rewriting(self.find, None)
        new = rewriting.rewrite(func)
        if rewriting.introduced:
            names = ", ".join([g.name_hint for g in rewriting.introduced])
            raise TVMError(
                f"a rewriter that introduces functions requires a module, got a function: {names}",
                hint="rewriter(IRModule.from_expr(func))",
            )
        return new

    def run(self, mod: IRModule, context: Any) -> IRModule:
        rewriting = Rewriting(self.find, mod)
        functions = {
            gvar: rewriting.rewrite(func)
            if isinstance(func, Function) and func.body is not None
            else func
            for gvar, func in mod.functions.items()
        }
        return mod.with_functions({**functions, **rewriting.introduced})

    def find(self, bindings: Sequence[Binding]) -> Rewrites:
        """What becomes of bindings, between which there is no side effect."""
        raise NotImplementedError

    @staticmethod
    def from_pattern(pattern: DFPattern, func: Callback) -> PatternMatchingRewriter:
        """A rewriter of what matches a pattern.

        Parameters
        ----------
        pattern : DFPattern
        func : callable
            ``f(expr, matches)`` from a match and what the parts of the pattern stand for to what is
            put in its place; ``expr`` itself for no replacement.
        """
        return _from_pattern(pattern, func, (), {})

    @staticmethod
    def from_module(mod: IRModule) -> PatternMatchingRewriter:
        """A rewriter of what looks like one function to another one.

        Parameters
        ----------
        mod : IRModule
            With the functions ``pattern`` and ``replacement`` of the same signature, and private
            functions that the latter may call.

        Raises
        ------
        KeyError
            If a function is missing.
        TypeError
            If one is not of relax.
        ValueError
            If the signatures differ, or another function is public.
        """
        rule = RewriteRule.of(mod)
        return _from_pattern(rule.pattern, rule.replace, (), rule.functions)


def _from_pattern(
    pattern: DFPattern,
    func: Callback,
    also: tuple[DFPattern, ...],
    functions: Mapping[GlobalVar, Function],
) -> PatternMatchingRewriter:
    if isinstance(pattern, OrPattern):
        # each alternative on its own: if the callback does not want one, the next is tried
        return OrRewriter(
            _from_pattern(pattern.left, func, (*also, pattern), functions),
            _from_pattern(pattern.right, func, (*also, pattern), functions),
        )
    made: PatternMatchingRewriter
    if isinstance(pattern, TuplePattern):
        made = TupleRewriter(pattern.fields, func, pattern)
    else:
        made = ExprPatternRewriter(pattern, func)
    made.also, made.functions = also, functions
    return made


class ExprPatternRewriter(PatternMatchingRewriter):
    """Replaces expressions.

    Parameters
    ----------
    pattern : DFPattern
    func : callable
        As of `PatternMatchingRewriter.from_pattern`.
    """

    also: tuple[DFPattern, ...] = ()  # patterns that are noted as matched too
    functions: Mapping[GlobalVar, Function] = {}

    def __init__(self, pattern: DFPattern, func: Callback) -> None:
        super().__init__()
        self.pattern = pattern
        self.func = func

    def find(self, bindings: Sequence[Binding]) -> Rewrites:
        found = Rewrites()
        known: dict[Var, RelayExpr] = {}
        for binding in bindings:
            new = self.replaced(binding.value, known) if isinstance(binding, VarBinding) else None
            if new is None:
                known[binding.var] = binding.value
            else:
                found.values[binding.var] = new
                found.functions.update(self.functions)
        return found

    def replaced(self, expr: RelayExpr, known: Mapping[Var, RelayExpr]) -> RelayExpr | None:
        """What is put in the place of an expression; None if it stays."""
        if (matches := matched(self.pattern, expr, known)) is None:
            return None
        return self.called(expr, {**matches, **dict.fromkeys(self.also, expr)})

    def called(self, expr: RelayExpr, matches: dict[DFPattern, RelayExpr]) -> RelayExpr | None:
        """What the callback says; None if it wants no replacement."""
        new = as_expr(self.func(expr, matches))
        return None if new is expr else new


class OrRewriter(PatternMatchingRewriter):
    """What the left rewriter finds, and what the right one finds in the rest."""

    def __init__(self, lhs: PatternMatchingRewriter, rhs: PatternMatchingRewriter) -> None:
        super().__init__()
        self.lhs = lhs
        self.rhs = rhs

    def find(self, bindings: Sequence[Binding]) -> Rewrites:
        first = self.lhs.find(bindings)
        taken = first.variables
        return first.joined(self.rhs.find([b for b in bindings if b.var not in taken]))


class TupleRewriter(ExprPatternRewriter):
    """Replaces tuples, and expressions that could be the fields of one.

    Parameters
    ----------
    patterns : sequence of DFPattern
        Of the fields.
    func : callable
        As of `PatternMatchingRewriter.from_pattern`; returns a tuple.
    """

    def __init__(
        self, patterns: Sequence[DFPattern], func: Callback, whole: TuplePattern | None = None
    ) -> None:
        super().__init__(whole or TuplePattern(patterns), func)
        self.patterns = tuple(patterns)

    def find(self, bindings: Sequence[Binding]) -> Rewrites:
        found = super().find([b for b in bindings if isinstance(b, VarBinding)])
        values = {b.var: b.value for b in bindings}
        taken: dict[RelayExpr, None] = dict.fromkeys(found.values)
        for var in found.values:  # their fields are part of the match
            whole = values[var]
            taken.update(dict.fromkeys(whole.fields if isinstance(whole, Tuple) else ()))
        free = [b.var for b in bindings if isinstance(b, VarBinding) and b.var not in taken]
        while (match := self._fields(free, values)) is not None:
            chosen, new = match
            free = [v for v in free if v not in chosen]
            found.tuples.append((chosen, new))
            found.functions.update(self.functions)
        return found

    def _fields(
        self, free: list[Var], values: dict[Var, RelayExpr]
    ) -> tuple[tuple[Var, ...], RelayExpr] | None:
        """Variables that the fields of the pattern stand for, and the tuple in their place."""
        return self._search(Matcher(values), free, values, ())

    def _search(
        self,
        matcher: Matcher,
        free: list[Var],
        values: dict[Var, RelayExpr],
        chosen: tuple[Var, ...],
    ) -> tuple[tuple[Var, ...], RelayExpr] | None:
        if len(chosen) == len(self.patterns):
            new = self._joined(matcher, chosen, values)
            return None if new is None else (chosen, new)
        for var in free:
            if var in chosen:
                continue
            mark = len(matcher.found)
            if matcher.match(self.patterns[len(chosen)], var):
                if (found := self._search(matcher, free, values, (*chosen, var))) is not None:
                    return found
                matcher._take_back(mark)
        return None

    def _joined(
        self, matcher: Matcher, chosen: tuple[Var, ...], values: dict[Var, RelayExpr]
    ) -> RelayExpr | None:
        whole = Tuple(chosen)
        matches = dict(matcher.found)
        for pattern, var in zip(self.patterns, chosen, strict=True):
            matches[pattern] = values[var]
        matches.update(dict.fromkeys((self.pattern, *self.also), whole))
        new = self.called(whole, matches)
        # it would be computed from its own fields, or what they share twice
        if new is None or _depends_on(new, chosen, values):
            return None
        return new


def _depends_on(expr: RelayExpr, variables: Sequence[Var], values: Mapping[Var, RelayExpr]) -> bool:
    pending, seen = list(used_vars(expr)), dict.fromkeys(variables)
    done: dict[Var, None] = {}
    while pending:
        var = pending.pop()
        if var in seen:
            return True
        if var not in done and var in values:
            done[var] = None
            pending += used_vars(values[var])
    return False
