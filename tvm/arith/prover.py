"""Proofs that a linear form is not negative.

Constant bounds come first. Then facts of several terms: to prove `16*N - 16*x - y - 1 >= 0` knowing `N - 1 - x >= 0`, the
fact is scaled so that x cancels, and `15 - y >= 0` remains. Minima and maxima are replaced by their operands.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

from tvm.tir import expr as tir

from .linear import Linear

if TYPE_CHECKING:
    from .analyzer import Analyzer

# eliminated terms and split minima in one proof
MAX_STEPS = 4
MAX_TERMS = 24
# forms that one proof looks at: ways through many facts multiply
MAX_FORMS = 500


class Prover:
    """Decides comparisons of linear forms, as far as bounds and facts reach."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.memo: dict[Any, bool] = {}
        # forms that the proof under way has failed on, with the steps that it had left
        self.failed: dict[Any, int] | None = None

    def decide(self, cls: Any, form: Linear) -> bool | None:
        """Whether the comparison `a <cls> b` holds, for the form of b - a; None if it is not known."""
        if cls is tir.LT:
            if self.is_not_negative(form.shifted(-1)):
                return True
            return False if self.is_not_negative(form.scaled(-1)) else None
        if cls is tir.LE:
            if self.is_not_negative(form):
                return True
            return False if self.is_not_negative(form.scaled(-1).shifted(-1)) else None
        equal = self._are_equal(form)
        return equal if equal is None or cls is tir.EQ else not equal

    def _are_equal(self, form: Linear) -> bool | None:
        if not form.terms:
            return form.constant == 0
        if form.constant % form.common_factor():
            return False
        opposite = form.scaled(-1)
        if self.is_not_negative(form.shifted(-1)) or self.is_not_negative(opposite.shifted(-1)):
            return False
        if self.is_not_negative(form) and self.is_not_negative(opposite):
            return True
        return None

    def is_not_negative(self, form: Linear) -> bool:
        """Whether the form is known to be at least 0."""
        if not form.terms:
            return form.constant >= 0
        if len(form.terms) > MAX_TERMS:
            return self.analyzer.linear.bound(form)[0] >= 0
        key = _key_of(form)
        found = self.memo.get(key)
        if found is None:
            self.memo[key] = False  # a proof of itself is none
            found = self.memo[key] = self._search(form)
        return found

    def _search(self, form: Linear) -> bool:
        """A proof of its own, or a part of the one under way."""
        if self.failed is not None:
            return self._prove(form, MAX_STEPS)
        self.failed = {}
        try:
            return self._prove(form, MAX_STEPS)
        finally:
            self.failed = None

    def _prove(self, form: Linear, steps: int) -> bool:
        if not form.terms:
            return form.constant >= 0
        failed, key = self.failed, _key_of(form)
        if failed is None or len(failed) >= MAX_FORMS or failed.get(key, -1) >= steps:
            return False
        failed[key] = steps
        if self.analyzer.linear.bound(form)[0] >= 0:
            return True
        if steps == 0:
            return False
        if (decided := self._prove_by_operands(form, steps)) is not None:
            return decided
        return self._prove_by_facts(form, steps)

    def _prove_by_operands(self, form: Linear, steps: int) -> bool | None:
        """Replace one minimum, maximum or selection by its operands; None if there is none."""
        linear = self.analyzer.linear
        for key, factor in form.terms.items():
            atom = linear.atoms[key]
            operands = _operands(atom)
            if operands is None:
                continue
            rest = form.plus(Linear({key: factor}, 0), -1)
            proofs = [rest.plus(linear.visit(operand), factor) for operand in operands]
            # a minimum is one of its operands, and not above any of them
            one_is_enough = (type(atom) is tir.Min and factor < 0) or (
                type(atom) is tir.Max and factor > 0
            )
            first, second = proofs
            if one_is_enough:
                return self._prove(first, steps - 1) or self._prove(second, steps - 1)
            return self._prove(first, steps - 1) and self._prove(second, steps - 1)
        return None

    def _prove_by_facts(self, form: Linear, steps: int) -> bool:
        facts = self.analyzer.facts.inequalities
        if not facts:
            return False
        for inequality in reversed(facts):
            if not inequality.applies_to(form):
                continue
            fact = inequality.form
            for key, factor in form.terms.items():
                known = fact.terms.get(key, 0)
                if known * factor <= 0:
                    continue
                # a*form - b*fact has no `key`; if it is not negative, neither is form
                common = gcd(known, factor)
                a, b = abs(known) // common, abs(factor) // common
                if self._prove(form.scaled(a).plus(fact, -b), steps - 1):
                    return True
        return False


def _key_of(form: Linear) -> Any:
    return frozenset(form.terms.items()), form.constant


def _operands(atom: Any) -> tuple[Any, Any] | None:
    if type(atom) is tir.Min or type(atom) is tir.Max:
        return atom.a, atom.b
    if type(atom) is tir.Select:
        return atom.true_value, atom.false_value
    return None
