"""Expressions without memory as C text.

A method returns an atom: a name, a constant, a call, or text in parentheses. In a loop over the lanes of a
vector it is the value of one lane, so that the same methods serve scalars and vectors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import tvm.tir.expr as exprs
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.support.dtype import DType
from tvm.tir.analysis.never_nan import never_nan

from .code import LONGEST, Code
from .types import FLOAT32, FLOAT64, TYPES, float_text, integer_text, narrow_name

if TYPE_CHECKING:
    from .module import ModuleWriter

_SIMPLE = re.compile(r"[\w.]+\Z|\(-[\w.]+\)\Z", re.ASCII)


def bare(text: str) -> str:
    """The text without the parentheses around all of it."""
    if not text.startswith("(") or '"' in text:
        return text
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[1:-1] if position == len(text) - 1 else text
    return text


def _binary(sign: str) -> Callable[[Any, exprs.BinaryOpExpr], str]:
    """A method for an operation that may overflow."""

    def write(self: ArithmeticWriter, node: exprs.BinaryOpExpr) -> str:
        a, b = self.visit(node.a), self.visit(node.b)
        return self.operation(sign, node.dtype, a, b)

    return write


def _comparison(sign: str) -> Callable[[Any, exprs.CmpExpr], str]:
    def write(self: ArithmeticWriter, node: exprs.CmpExpr) -> str:
        dtype = node.a.dtype
        a, b = self.visit(node.a), self.visit(node.b)
        if TYPES[dtype.element].kind == "narrow":
            a, b = self.widen(a, dtype), self.widen(b, dtype)
        return f"({a} {sign} {b})"

    return write


class ArithmeticWriter(Visitor):
    """Writes expressions; ``visit`` returns their C text, and may write statements before it."""

    code: Code
    module: ModuleWriter
    longest = LONGEST
    # Loop variables, indices and conditions on them never overflow. Data wraps around, as in numpy.
    wraps: bool

    def visit(self, node: Any) -> Any:
        text = super().visit(node)
        if text is not None and len(text) > self.longest and not node.dtype.is_handle:
            return self.code.share(TYPES[node.dtype.element].text, "t", bare(text))
        return text

    def visit_int_imm(self, node: exprs.IntImm) -> str:
        return integer_text(node.dtype, node.value)

    def visit_float_imm(self, node: exprs.FloatImm) -> str:
        return float_text(node.dtype, node.value)

    visit_add = _binary("+")
    visit_sub = _binary("-")
    visit_mul = _binary("*")

    visit_eq = _comparison("==")
    visit_ne = _comparison("!=")
    visit_lt = _comparison("<")
    visit_le = _comparison("<=")
    visit_gt = _comparison(">")
    visit_ge = _comparison(">=")

    def operation(self, sign: str, dtype: DType, a: str, b: str) -> str:
        """``a + b`` and the like, for every dtype."""
        type_ = TYPES[dtype.element]
        if type_.kind == "narrow":
            wide = f"({self.widen(a, dtype)} {sign} {self.widen(b, dtype)})"
            return self.narrow(wide, dtype)
        if type_.kind == "bool":
            return f"({a} && {b})" if sign == "*" else f"({a} != {b})"  # arithmetic modulo 2
        if (type_.kind == "signed" and self.wraps) or (
            type_.kind == "unsigned" and type_.bits < 32
        ):
            return f"(({type_.text})(({type_.unsigned}){a} {sign} ({type_.unsigned}){b}))"
        # C computes with an int at least
        return f"(({type_.text})({a} {sign} {b}))" if type_.bits < 32 else f"({a} {sign} {b})"

    # ---- division

    def visit_div(self, node: exprs.Div) -> str:
        return self._divide("/", node.dtype, self.visit(node.a), self.visit(node.b), node.b)

    def visit_mod(self, node: exprs.Mod) -> str:
        a, b = self.visit(node.a), self.visit(node.b)
        return self.remainder(node.dtype, a, b, node.b)

    def remainder(self, dtype: DType, a: str, b: str, divisor: PrimExpr) -> str:
        """The remainder with the sign of ``a``; ``b`` is the text of the divisor."""
        type_ = TYPES[dtype.element]
        if type_.kind == "narrow":
            return self.narrow(f"fmodf({self.widen(a, dtype)}, {self.widen(b, dtype)})", dtype)
        if type_.kind == "float":
            return f"{self.library('fmod', dtype)}({bare(a)}, {bare(b)})"
        return self._divide("%", dtype, a, b, divisor)

    def _divide(self, sign: str, dtype: DType, a: str, b: str, divisor: PrimExpr) -> str:
        type_ = TYPES[dtype.element]
        if type_.kind == "narrow":
            return self.operation(sign, dtype, a, b)
        if type_.kind in ("signed", "unsigned") and not _divides_all(divisor):
            name = "div" if sign == "/" else "mod"
            return self.helper(f"tvm_{name}_{type_.text.removesuffix('_t')}", bare(a), bare(b))
        return f"(({type_.text})({a} {sign} {b}))" if type_.bits < 32 else f"({a} {sign} {b})"

    def visit_floor_div(self, node: exprs.FloorDiv) -> str:
        a, b = self.operand(node.a), self.operand(node.b)
        quotient = self._divide("/", node.dtype, a, b, node.b)
        kind = TYPES[node.dtype.element].kind
        if kind in ("float", "narrow"):
            return self.call_math("floor", node.dtype, [quotient])
        if kind != "signed":
            return quotient
        rest = self._divide("%", node.dtype, a, b, node.b)
        return f"({quotient} - ({_rounded_up(rest, b)} ? 1 : 0))"

    def visit_floor_mod(self, node: exprs.FloorMod) -> str:
        a, b = self.operand(node.a), self.operand(node.b)
        kind = TYPES[node.dtype.element].kind
        if kind in ("float", "narrow"):
            # a - floor(a / b) * b has b's sign
            quotient = self.call_math(
                "floor", node.dtype, [self._divide("/", node.dtype, a, b, node.b)]
            )
            whole = self.operation("*", node.dtype, quotient, b)
            return self.operation("-", node.dtype, a, whole)
        rest = self._divide("%", node.dtype, a, b, node.b)
        if kind != "signed":
            return rest
        rest = self.named(rest, node.dtype)
        return f"({rest} + ({_rounded_up(rest, b)} ? {b} : 0))"

    # ---- choices

    def visit_min(self, node: exprs.Min) -> str:
        return self._extremum(node, "<")

    def visit_max(self, node: exprs.Max) -> str:
        return self._extremum(node, ">")

    def _extremum(self, node: exprs.BinaryOpExpr, sign: str) -> str:
        a, b = self.operand(node.a), self.operand(node.b)
        kind = TYPES[node.dtype.element].kind
        is_number = kind not in ("float", "narrow") or never_nan(node.a)
        if not is_number and never_nan(node.b):
            a, b, is_number = b, a, True
        left, right = a, b
        if kind == "narrow":
            left, right = self.widen(a, node.dtype), self.widen(b, node.dtype)
        if is_number:
            return f"(({left} {sign} {right}) ? {a} : {b})"
        if kind == "narrow":
            left = self.named(left, FLOAT32)
        return f"(({left} {sign} {right} || {left} != {left}) ? {a} : {b})"

    def visit_select(self, node: exprs.Select) -> str:
        condition = self.visit(node.condition)
        yes, no = self.visit(node.true_value), self.visit(node.false_value)
        return f"({condition} ? {yes} : {no})"

    def visit_not(self, node: exprs.Not) -> str:
        return f"(!{self.visit(node.a)})"

    def visit_and(self, node: exprs.And) -> str:
        return self._logical(node, "&&", "{}")

    def visit_or(self, node: exprs.Or) -> str:
        return self._logical(node, "||", "!{}")

    def _logical(self, node: exprs.And | exprs.Or, sign: str, undecided: str) -> str:
        a = self.visit(node.a)
        with self.code.collected() as steps:
            b = self.visit(node.b)
        if not steps:
            return f"({a} {sign} {b})"
        found = self.code.name("found")
        self.code.do(f"bool {found} = {bare(a)}")
        with self.code.block(f"if ({undecided.format(found)})"):
            self.code.lines += steps
            self.code.do(f"{found} = {bare(b)}")
        return found

    def choose(self, dtype: DType, condition: PrimExpr, yes: PrimExpr, no: PrimExpr) -> str:
        """Only the chosen value is evaluated."""
        test = self.visit(condition)
        with self.code.collected() as first_steps:
            first = self.visit(yes)
        with self.code.collected() as second_steps:
            second = self.visit(no)
        if not first_steps and not second_steps:
            return f"({test} ? {first} : {second})"
        chosen = self.code.name("chosen")
        self.code.do(f"{TYPES[dtype.element].text} {chosen}")
        for head, steps, value in (
            (f"if ({bare(test)})", first_steps, first), ("else", second_steps, second),
        ):  # fmt: skip
            with self.code.block(head):
                self.code.lines += steps
                self.code.do(f"{chosen} = {bare(value)}")
        return chosen

    # ---- conversions

    def visit_cast(self, node: exprs.Cast) -> str:
        return self.convert(self.visit(node.value), node.value.dtype, node.dtype)

    def convert(self, text: str, source: DType, target: DType) -> str:
        """The value converted to another dtype."""
        source, target = source.element, target.element
        if source is target:
            return text
        old, new = TYPES[source], TYPES[target]
        if old.kind == "narrow":
            return self.convert(self.widen(text, source), FLOAT32, target)
        if new.kind == "narrow":
            if source is FLOAT64 and narrow_name(target) == "half":
                return self.narrow(self.helper("tvm_sticky_float", text), target)
            return self.narrow(self.convert(text, source, FLOAT32), target)
        if new.kind == "bool":
            return f"({text} != {'NULL' if old.kind == 'pointer' else '0'})"
        if "pointer" in (old.kind, new.kind):
            return text if old.kind == new.kind else f"(({new.text})(intptr_t){text})"
        if old.kind == "float" and new.kind in ("signed", "unsigned"):
            is_wide = new.bits == 64 or (new.kind, new.bits) == ("unsigned", 32)
            whole = (
                "uint64"
                if (new.kind, new.bits) == ("unsigned", 64)
                else f"int{64 if is_wide else 32}"
            )
            text = self.helper(f"tvm_{whole}_of_{old.text}", bare(text))
            return text if new.text == f"{whole}_t" else f"(({new.text}){text})"
        return f"(({new.text}){text})"

    def widen(self, text: str, dtype: DType) -> str:
        """The float that a narrow float stands for."""
        return self.helper(f"tvm_float_of_{narrow_name(dtype)}", bare(text))

    def narrow(self, text: str, dtype: DType) -> str:
        """A float rounded to a narrow one."""
        return self.helper(f"tvm_{narrow_name(dtype)}_of_float", bare(text))

    # ---- pieces

    def helper(self, name: str, *args: str) -> str:
        """A call of one of the module's helper functions."""
        self.module.use(name)
        return f"{name}({', '.join(args)})"

    def library(self, name: str, dtype: DType) -> str:
        """The C library's function for floats of a type."""
        found = name + ("f" if TYPES[dtype.element].bits == 32 else "")
        if found in self.module.results:
            raise LoweringError(
                f"the module's function {found} hides the C library's, which function {self.name} calls",
                hint="give the module's function another name",
            )
        return found

    name: str

    def call_math(self, name: str, dtype: DType, args: list[str]) -> str:
        """A function of the C library on operands of type ``dtype``."""
        if TYPES[dtype.element].kind == "narrow":
            wide = [self.widen(arg, dtype) for arg in args]
            return self.narrow(self.call_math(name, FLOAT32, wide), dtype)
        return f"{self.library(name, dtype)}({', '.join([bare(arg) for arg in args])})"

    def operand(self, node: PrimExpr) -> str:
        """A value that the text may name twice."""
        return self.named(self.visit(node), node.dtype)

    def named(self, text: str, dtype: DType) -> str:
        """A name for the value, unless it is one or a constant."""
        if _SIMPLE.match(text):
            return text
        return self.code.share(TYPES[dtype.element].text, "t", bare(text))

    @contextmanager
    def wrapping(self, wraps: bool) -> Iterator[None]:
        """Whether integers wrap around, for expressions inside the block."""
        outer, self.wraps = self.wraps, wraps
        try:
            yield
        finally:
            self.wraps = outer


def _divides_all(divisor: PrimExpr) -> bool:
    """Whether every number may be divided by it: a constant other than 0 and -1."""
    if type(divisor) is exprs.Broadcast:
        divisor = divisor.value
    return type(divisor) is exprs.IntImm and divisor.value not in (0, -1)


def _rounded_up(rest: str, b: str) -> str:
    """Whether division towards zero gave more than the floor."""
    return f"({rest} != 0 && ({rest} < 0) != ({b} < 0))"
