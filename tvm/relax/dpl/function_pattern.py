"""A pattern, and what is put in its place, given as two functions.

def pattern(A, B):     return R.add(A, B)            ->   is_op("relax.add")(wildcard(), wildcard())
def replacement(A, B): return R.call_pure_packed("my_add", A, B, ...)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.structural import structural_equal
from tvm.relax.base import StructInfo
from tvm.relax.bind import copy_with_new_vars, match_symbols, substituted
from tvm.relax.expr import (
    Call,
    Constant,
    ExternFunc,
    Function,
    MatchCast,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from tvm.relax.struct_info import FuncStructInfo, ObjectStructInfo
from tvm.relax.struct_info_relations import BaseCheckResult, struct_info_base_check

from .pattern import (
    AttrPattern,
    CallPattern,
    DFPattern,
    ExprPattern,
    ExternFuncPattern,
    PrimArrPattern,
    StructInfoPattern,
    TupleGetItemPattern,
    TuplePattern,
    wildcard,
)


@dataclass(frozen=True)
class RewriteRule:
    """What is replaced by what.

    Parameters
    ----------
    params : the patterns of the parameters.
    functions : those that the replacement may call.
    """

    pattern: DFPattern
    params: tuple[DFPattern, ...]
    replacement: Function
    functions: Mapping[GlobalVar, Function]

    @staticmethod
    def of(mod: IRModule) -> RewriteRule:
        """The rule that a module says."""
        pattern, replacement = _function(mod, "pattern"), _function(mod, "replacement")
        x, y = pattern.struct_info, replacement.struct_info
        a, b = [FuncStructInfo(i.params, ObjectStructInfo()) for i in (x, y)]
        if not structural_equal(a, b, map_free_vars=True) or not _may_be(x.ret, y.ret):
            raise ValueError(
                "the functions pattern and replacement must have the same signature, "
                f"got {pattern.struct_info} and {replacement.struct_info}"
            )
        functions: dict[GlobalVar, Any] = {}
        for gvar, func in mod.functions.items():
            if gvar.name_hint in ("pattern", "replacement"):
                continue
            if "global_symbol" in func.attrs:
                raise ValueError(
                    f"a rewriter may only introduce private functions, {gvar.name_hint} is publicly "
                    "exposed: it has the attribute global_symbol"
                )
            functions[gvar] = func
        parts = tuple([StructInfoPattern(wildcard(), p.struct_info) for p in pattern.params])
        body = _Reader(dict(zip(pattern.params, parts, strict=True))).function(pattern)
        return RewriteRule(body, parts, replacement, functions)

    def replace(self, _: RelayExpr, matches: dict[DFPattern, RelayExpr]) -> Any:
        """The replacement, over what the parameters stand for."""
        func = copy_with_new_vars(self.replacement)
        values, numbers = {}, dict[Any, Any]()
        for param, pattern in zip(func.params, self.params, strict=True):
            if pattern not in matches:
                raise TVMError(f"the pattern does not use its parameter {param.name_hint}")
            values[param] = matches[pattern]
            match_symbols(param.struct_info, values[param].struct_info, numbers)
        return substituted(func.body, values, numbers)


def _may_be(a: StructInfo, b: StructInfo) -> bool:
    """Whether one of two struct infos may say less than the other, and not something else."""
    is_other = BaseCheckResult.FAIL_L0
    return is_other not in (struct_info_base_check(a, b), struct_info_base_check(b, a)) or (
        isinstance(a, ObjectStructInfo) or isinstance(b, ObjectStructInfo)
    )


def _function(mod: IRModule, name: str) -> Function:
    found = [f for g, f in mod.functions.items() if g.name_hint == name]
    if not found:
        raise KeyError(f"a rewriter requires a function {name!r}, there is none")
    if not isinstance(found[0], Function):
        raise TypeError(
            f"the rewriter's {name} must be a function of relax, got {type(found[0]).__name__}"
        )
    return found[0]


class _Reader:
    """The pattern of each expression of a function."""

    def __init__(self, known: Mapping[Var, DFPattern]) -> None:
        self.known = dict(known)

    def function(self, func: Function) -> DFPattern:
        for block in func.body.blocks:
            for binding in block.bindings:
                pattern = self.pattern(binding.value)
                if isinstance(binding, MatchCast):
                    pattern = StructInfoPattern(pattern, binding.struct_info)
                self.known[binding.var] = pattern
        return self.pattern(func.body.body)

    def pattern(self, expr: RelayExpr) -> DFPattern:
        if isinstance(expr, Var):
            return self.known[expr]
        if isinstance(expr, Call):
            made: DFPattern = CallPattern(
                self.pattern(expr.op), [self.pattern(a) for a in expr.args], add_constraint=False
            )
            return AttrPattern(made, dict(expr.attrs.items())) if expr.attrs else made
        if isinstance(expr, Tuple):
            return TuplePattern([self.pattern(f) for f in expr.fields])
        if isinstance(expr, TupleGetItem):
            return TupleGetItemPattern(self.pattern(expr.tuple_value), expr.index)
        if isinstance(expr, ExternFunc):
            return ExternFuncPattern(expr.global_symbol)
        if isinstance(expr, ShapeExpr):
            return PrimArrPattern(expr.values)
        if isinstance(expr, (Op, Constant)) or not isinstance(expr, (GlobalVar, Function)):
            return ExprPattern(expr)
        raise TVMError("the pattern of a rewriter calls operators and packed functions", at=expr)
