"""Counts of arithmetic operations in expressions, by kind."""

from __future__ import annotations

from typing import Any

from tvm.ir.visitor import Visitor
from tvm.tir import expr

from ..affine import AffineForm
from .names import OPERATIONS

_PLACE = {name: place for place, name in enumerate(OPERATIONS)}
_NAMES = {
    "add": "addsub", "sub": "addsub", "mul": "mul", "div": "divmod", "mod": "divmod",
    "floordiv": "divmod", "floormod": "divmod", "min": "cmp", "max": "cmp",
}  # fmt: skip
_INT_ADD, _INT_MUL, _INT_DIV = [_PLACE[f"int_{name}"] for name in ("addsub", "mul", "divmod")]


class OperationCounter(Visitor):
    """Counts operations; one on vectors is one, in a loop over their lanes."""

    def __init__(self, counts_indices: bool = True) -> None:
        self.counts = [0.0] * len(OPERATIONS)
        self.counts_indices = counts_indices

    def add(self, name: str, value: Any, is_typed: bool = True) -> None:
        """Count one operation on values like the given one."""
        dtype = value.dtype
        if is_typed:
            name = f"{'float' if dtype.is_float else 'int'}_{name}"
        self.counts[_PLACE[name]] += 1

    def visit_binary_op_expr(self, value: Any) -> None:
        self.add(_NAMES[type(value).__name__.lower()], value)
        self.visit_children(value)

    def visit_cmp_expr(self, value: Any) -> None:
        self.add("cmp", value.a)
        self.visit_children(value)

    def visit_logical_expr(self, value: Any) -> None:
        self.add("bool_op", value, is_typed=False)
        self.visit_children(value)

    def visit_not(self, value: expr.Not) -> None:
        self.add("bool_op", value, is_typed=False)
        self.visit_children(value)

    def visit_select(self, select: expr.Select) -> None:
        self.add("select_op", select, is_typed=False)
        self.visit_children(select)

    def visit_call(self, call: expr.Call) -> None:
        name = getattr(call.op, "name", "")
        if name == "tir.if_then_else":
            self.add("select_op", call, is_typed=False)
        elif name in ("tir.fma", "tir.call_llvm_pure_intrin"):
            self.add("mul", call)
            self.add("addsub", call)
        elif name != "tir.likely":
            self.add("math_func", call)
        self.visit_children(call)

    def visit_producer_load(self, load: expr.ProducerLoad) -> None:
        if self.counts_indices:
            self.visit_children(load)


def count_index(form: AffineForm, counts: list[float]) -> None:
    """Add the operations of an index to counts."""
    terms = len(form.terms) + bool(form.const)
    counts[_INT_ADD] += max(terms - 1, 0)
    for atom, coefficient in form.terms.items():
        counts[_INT_MUL] += coefficient != 1
        inner = getattr(atom, "form", None)
        if inner is not None:
            counts[_INT_DIV] += 1
            count_index(inner, counts)
