"""Analyses of struct info: which describes more, what two have in common, what a call returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from tvm.arith import Analyzer
from tvm.error import TVMError
from tvm.ir import extension
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.structural import structural_equal
from tvm.ir.type import Type
from tvm.ir.visitor import Visitor
from tvm.relax.base import StructInfo
from tvm.relax.expr import Call, Var
from tvm.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeExpr,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from tvm.support.dtype import dtype
from tvm.tir import Var as TirVar
from tvm.tir.expr import IntImm
from tvm.tir.stmt_functor import substitute

_VOID = dtype("void")


class BaseCheckResult(IntEnum):
    """Whether one struct info describes all values of another one.

    ``FAIL_L0``: no value in common; ``FAIL_L1``: perhaps, as far as kinds, ranks and data types tell;
    ``FAIL_L2``: the kinds agree, shapes or values may differ; ``PASS``: it does.
    """

    FAIL_L0 = 0
    FAIL_L1 = 1
    FAIL_L2 = 2
    PASS = 3


def get_static_type(sinfo: StructInfo) -> Type:
    """The type that struct info says, without shapes and values."""
    return sinfo.static_type()


def prove_equal(a: PrimExpr, b: PrimExpr) -> bool:
    """Whether two expressions are known to be the same number."""
    if a is b:
        return True
    if type(a) is IntImm and type(b) is IntImm:
        return bool(a.value == b.value)
    return structural_equal(a, b) or Analyzer().can_prove_equal(a, b)


# ---- base check


class _BaseChecker:
    """Compares; subclasses may give variables of the base a meaning."""

    def check(self, base: StructInfo, derived: StructInfo) -> BaseCheckResult:
        if base is derived and not isinstance(self, CallDeriver):
            return BaseCheckResult.PASS
        if isinstance(base, ObjectStructInfo):
            return BaseCheckResult.PASS
        if type(base) is not type(derived):
            is_open = isinstance(derived, ObjectStructInfo)
            return BaseCheckResult.FAIL_L1 if is_open else BaseCheckResult.FAIL_L0
        return self._SAME_KIND[type(base)](self, base, derived)

    def prims(self, base: PrimStructInfo, derived: PrimStructInfo) -> BaseCheckResult:
        if base.dtype is not derived.dtype:
            return BaseCheckResult.FAIL_L0
        if base.value is None:
            return BaseCheckResult.PASS
        if derived.value is None:
            return BaseCheckResult.FAIL_L2
        return self.numbers(base.value, derived.value)

    def shapes(self, base: ShapeStructInfo, derived: ShapeStructInfo) -> BaseCheckResult:
        if base.ndim < 0:
            return BaseCheckResult.PASS
        if derived.ndim < 0:
            return BaseCheckResult.FAIL_L1
        if base.ndim != derived.ndim:
            return BaseCheckResult.FAIL_L0
        if base.values is None:
            return BaseCheckResult.PASS
        if derived.values is None:
            return BaseCheckResult.FAIL_L2
        return self.dimensions(base.values, derived.values)

    def tensors(self, base: TensorStructInfo, derived: TensorStructInfo) -> BaseCheckResult:
        result = BaseCheckResult.PASS
        for known, other, unknown in (
            (base.dtype, derived.dtype, _VOID),
            (base.ndim, derived.ndim, -1),
        ):
            if known != unknown:
                if other == unknown:
                    result = BaseCheckResult.FAIL_L1
                elif known != other:
                    return BaseCheckResult.FAIL_L0
        if base.vdevice is not None:
            if derived.vdevice is None:
                result = BaseCheckResult.FAIL_L1
            elif not structural_equal(base.vdevice, derived.vdevice):
                return BaseCheckResult.FAIL_L0
        if result is not BaseCheckResult.PASS or base.shape is None:
            return result
        if derived.shape is None:
            return BaseCheckResult.FAIL_L2
        return self.shape_expressions(base.shape, derived.shape)

    def shape_expressions(self, base: RelayExpr, derived: RelayExpr) -> BaseCheckResult:
        if base is derived and isinstance(base, Var):
            return BaseCheckResult.PASS
        if isinstance(base, ShapeExpr) and isinstance(derived, ShapeExpr):
            return self.dimensions(base.values, derived.values)
        x, y = base.struct_info_, derived.struct_info_
        if isinstance(x, ShapeStructInfo) and isinstance(y, ShapeStructInfo):
            result = self.shapes(x, y)
            is_unproven = isinstance(base, Var) and result is BaseCheckResult.PASS
            return BaseCheckResult.FAIL_L2 if is_unproven else result
        return BaseCheckResult.FAIL_L2

    def dimensions(self, base: Sequence[PrimExpr], derived: Sequence[PrimExpr]) -> BaseCheckResult:
        if len(base) != len(derived):
            return BaseCheckResult.FAIL_L0
        return min(
            [self.numbers(a, b) for a, b in zip(base, derived, strict=True)],
            default=BaseCheckResult.PASS,
        )

    def numbers(self, base: PrimExpr, derived: PrimExpr) -> BaseCheckResult:
        if type(base) is IntImm and type(derived) is IntImm:
            same = base.value == derived.value
            return BaseCheckResult.PASS if same else BaseCheckResult.FAIL_L0
        return BaseCheckResult.PASS if prove_equal(base, derived) else BaseCheckResult.FAIL_L2

    def tuples(self, base: TupleStructInfo, derived: TupleStructInfo) -> BaseCheckResult:
        if len(base.fields) != len(derived.fields):
            return BaseCheckResult.FAIL_L0
        pairs = zip(base.fields, derived.fields, strict=True)
        return min([self.check(a, b) for a, b in pairs], default=BaseCheckResult.PASS)

    def functions(self, base: FuncStructInfo, derived: FuncStructInfo) -> BaseCheckResult:
        if base.purity and not derived.purity:
            return BaseCheckResult.FAIL_L0
        if base.params is None:
            if base.derive_func is not None:
                same = structural_equal(base.derive_func, derived.derive_func)
                return BaseCheckResult.PASS if same else BaseCheckResult.FAIL_L2
            return self.check(base.ret, derived.ret)
        if derived.params is None:
            return BaseCheckResult.FAIL_L2
        if len(base.params) != len(derived.params):
            return BaseCheckResult.FAIL_L0
        if structural_equal(base.replace(purity=True), derived.replace(purity=True)):
            return BaseCheckResult.PASS
        # what a parameter may be is wider in the derived function
        pairs = zip(base.params, derived.params, strict=True)
        results = [struct_info_base_check(b, a) for a, b in pairs]
        return min([*results, struct_info_base_check(base.ret, derived.ret)])

    _SAME_KIND: Mapping[type, Callable[[Any, Any, Any], BaseCheckResult]] = {
        PrimStructInfo: prims,
        ShapeStructInfo: shapes,
        TensorStructInfo: tensors,
        TupleStructInfo: tuples,
        FuncStructInfo: functions,
    }


def struct_info_base_check(base: StructInfo, derived: StructInfo) -> BaseCheckResult:
    """Whether ``base`` describes every value that ``derived`` does.

    Parameters
    ----------
    base, derived : StructInfo

    Returns
    -------
    BaseCheckResult
    """
    return _OTHER_CHECKS.get(type(base), _BaseChecker().check)(base, derived)


# struct info of other languages: tvm.relax.distributed
_OTHER_CHECKS: dict[type, Callable[[Any, Any], BaseCheckResult]] = {}


def is_base_of(base: StructInfo, derived: StructInfo) -> bool:
    """Whether ``base`` describes every value that ``derived`` does, as far as can be proved."""
    return struct_info_base_check(base, derived) is BaseCheckResult.PASS


extension.is_base_of.provide(is_base_of)


# ---- struct info out of the scope of its variables


class _Eraser:
    """Replaces variables by what they stand for, and forgets what names other ones."""

    def __init__(self, number_of: Callable[[Any], Any], value_of: Callable[[Var], Any]) -> None:
        self.number_of = number_of
        self.value_of = value_of
        self.analyzer = Analyzer()

    def erase(self, info: Any) -> Any:
        if isinstance(info, PrimStructInfo) and info.value is not None:
            value = self.number(info.value)
            if value is info.value:
                return info
            return PrimStructInfo(value=value) if value is not None else PrimStructInfo(info.dtype)
        if isinstance(info, ShapeStructInfo) and info.values is not None:
            values = self.numbers(info.values)
            if values is info.values:
                return info
            return ShapeStructInfo(ndim=info.ndim) if values is None else ShapeStructInfo(values)
        if isinstance(info, TensorStructInfo) and info.shape is not None:
            shape = self.shape(info.shape)
            if shape is info.shape:
                return info
            if shape is None:
                return TensorStructInfo(None, info.dtype, info.vdevice, info.ndim, info.span)
            return TensorStructInfo(shape, info.dtype, info.vdevice, span=info.span)
        if isinstance(info, TupleStructInfo):
            return info.map_children(self.erase)
        return info

    def shape(self, shape: RelayExpr) -> RelayExpr | None:
        visible = self.value_of(shape) if isinstance(shape, Var) else None
        dims = getattr(shape.struct_info_, "values", None)
        if visible is not None or dims is None:
            return visible
        values = self.numbers(dims)
        if values is dims and isinstance(shape, ShapeExpr):
            return shape
        return None if values is None else ShapeExpr(values)

    def numbers(self, values: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...] | None:
        new = [self.number(value) for value in values]
        if any([n is None for n in new]):
            return None
        if all([a is b for a, b in zip(new, values, strict=True)]):
            return values
        return tuple(new)

    def number(self, value: PrimExpr) -> Any:
        if type(value) is IntImm:
            return value
        values = {var: self.number_of(var) for var in tir_vars_in(value)}
        if any([v is None for v in values.values()]):
            return None
        if all([var is v for var, v in values.items()]):
            return value
        return self.analyzer.simplify(substitute(value, values))


def erase(
    sinfo: StructInfo, number_of: Callable[[Any], Any], value_of: Callable[[Var], Any]
) -> StructInfo:
    """Struct info over what functions say for its variables, without those of which they say None."""
    found: StructInfo = _Eraser(number_of, value_of).erase(sinfo)
    return found


def written_out(sinfo: StructInfo) -> StructInfo:
    """Struct info with the extents, as far as they are known, for shapes that are variables."""
    return erase(sinfo, lambda var: var, lambda var: None)


def erase_to_well_defined(
    sinfo: StructInfo,
    shape_var_map: Mapping[Any, PrimExpr] | None = None,
    var_map: Mapping[Var, RelayExpr] | None = None,
) -> StructInfo:
    """Struct info without the variables that are not known where it is used.

    Parameters
    ----------
    sinfo : StructInfo
    shape_var_map : dict, optional
        What symbolic variables stand for there.
    var_map : dict, optional
        What variables stand for there.
    """
    numbers, values = dict(shape_var_map or {}), dict(var_map or {})
    return erase(sinfo, numbers.get, values.get)


# ---- calls


class CallDeriver(_BaseChecker):
    """Matches arguments with parameters, which gives their symbolic variables a meaning."""

    def __init__(self) -> None:
        self.numbers_of: dict[Any, PrimExpr] = {}
        self.values_of: dict[Var, RelayExpr] = {}

    def numbers(self, base: PrimExpr, derived: PrimExpr) -> BaseCheckResult:
        if not isinstance(base, TirVar):
            return super().numbers(base, derived)
        known = self.numbers_of.setdefault(base, derived)
        if known is derived:
            return BaseCheckResult.PASS
        return super().numbers(known, derived)

    def shape_expressions(self, base: RelayExpr, derived: RelayExpr) -> BaseCheckResult:
        if isinstance(base, Var):
            self.values_of.setdefault(base, derived)
        return super().shape_expressions(base, derived)


def derive_call_ret_struct_info(func_sinfo: FuncStructInfo, call: Call, ctx: Any) -> StructInfo:
    """What a call of a function returns.

    Parameters
    ----------
    func_sinfo : FuncStructInfo
        Of the function.
    call : Call
        Its arguments have struct info.
    ctx : BlockBuilder
        Where the call stands.

    Raises
    ------
    TVMError
        If arguments do not fit.
    """
    if func_sinfo.params is None:
        derive = func_sinfo.derive_func
        found: StructInfo = func_sinfo.ret if derive is None else derive(call, ctx)
        return found
    if len(func_sinfo.params) != len(call.args):
        raise TVMError(
            f"number of arguments and parameters mismatch: {call.op} requires "
            f"{len(func_sinfo.params)} arguments, got {len(call.args)}"
        )
    deriver = CallDeriver()
    for index, (param, arg) in enumerate(zip(func_sinfo.params, call.args, strict=True)):
        info = arg.struct_info
        if deriver.check(param, info) is BaseCheckResult.FAIL_L0:
            raise TVMError(
                f"Argument {index} type mismatch: {call.op} requires {param}, got {info}"
            )
    return erase(func_sinfo.ret, deriver.numbers_of.get, deriver.values_of.get)


# ---- what two have in common


def struct_info_lca(lhs: StructInfo, rhs: StructInfo) -> StructInfo:
    """The least struct info that describes the values of both."""
    if lhs is rhs:
        return lhs
    if type(lhs) is not type(rhs) or isinstance(lhs, ObjectStructInfo):
        return ObjectStructInfo()
    return _COMMON[type(lhs)](lhs, rhs)


def _common_prim(a: PrimStructInfo, b: PrimStructInfo) -> StructInfo:
    if a.dtype is not b.dtype:
        return ObjectStructInfo()
    if a.value is None:
        return a
    is_same = b.value is not None and prove_equal(a.value, b.value)
    return a if is_same else PrimStructInfo(a.dtype)


def are_same_dimensions(a: Sequence[PrimExpr] | None, b: Sequence[PrimExpr] | None) -> bool:
    if a is None or b is None or len(a) != len(b):
        return False
    return all([prove_equal(x, y) for x, y in zip(a, b, strict=True)])


def _common_shape(a: ShapeStructInfo, b: ShapeStructInfo) -> StructInfo:
    if are_same_dimensions(a.values, b.values):
        return a
    return ShapeStructInfo(ndim=a.ndim if a.ndim == b.ndim else -1)


def _common_tensor(a: TensorStructInfo, b: TensorStructInfo) -> StructInfo:
    kind = a.dtype if a.dtype is b.dtype else _VOID
    ndim = a.ndim if a.ndim == b.ndim else -1
    device = a.vdevice if structural_equal(a.vdevice, b.vdevice) else None
    if a.shape is not None and b.shape is not None:
        x, y = a.shape, b.shape
        is_same = x is y
        if isinstance(x, ShapeExpr) and isinstance(y, ShapeExpr):
            is_same = are_same_dimensions(x.values, y.values)
        if is_same:
            return TensorStructInfo(x, kind, device)
    return TensorStructInfo(None, kind, device, ndim)


def _common_tuple(a: TupleStructInfo, b: TupleStructInfo) -> StructInfo:
    if len(a.fields) != len(b.fields):
        return ObjectStructInfo()
    pairs = zip(a.fields, b.fields, strict=True)
    return TupleStructInfo([struct_info_lca(x, y) for x, y in pairs])


def _common_function(a: FuncStructInfo, b: FuncStructInfo) -> StructInfo:
    purity = a.purity and b.purity
    if structural_equal(a, b):
        return a
    if structural_equal(a.replace(purity=purity), b.replace(purity=purity)):
        return a.replace(purity=purity)
    both_open = a.params is None and b.params is None
    derive = a.derive_func if structural_equal(a.derive_func, b.derive_func) else None
    return FuncStructInfo.opaque_func(
        ret=struct_info_lca(a.ret, b.ret), derive_func=derive if both_open else None, purity=purity
    )


_COMMON: dict[type, Callable[[Any, Any], StructInfo]] = {
    PrimStructInfo: _common_prim,
    ShapeStructInfo: _common_shape,
    TensorStructInfo: _common_tensor,
    TupleStructInfo: _common_tuple,
    FuncStructInfo: _common_function,
}


# ---- symbolic variables


class _Variables(Visitor):
    def __init__(self) -> None:
        self.found: dict[TirVar, None] = {}

    def visit_var(self, var: Any) -> None:
        if isinstance(var, TirVar):
            self.found[var] = None

    def visit_func_struct_info(self, info: FuncStructInfo) -> None:
        for param in info.params or ():
            self.visit(param)
        self.visit_children(info)


def tir_vars_in(node: Any) -> list[TirVar]:
    """The variables in an expression or struct info, each once, in the order met."""
    if type(node) is IntImm:
        return []
    if isinstance(node, TirVar):
        return [node]
    visitor = _Variables()
    visitor.visit(node)
    return list(visitor.found)


def tir_vars_in_struct_info(sinfo: StructInfo) -> list[TirVar]:
    """The symbolic variables in struct info, each once, in the order met."""
    return tir_vars_in(sinfo)


def definable_tir_vars_in_struct_info(sinfo: StructInfo) -> list[TirVar]:
    """The symbolic variables that a value of this struct info defines: those that stand alone."""
    found: dict[TirVar, None] = {}
    for value in _numbers_of(sinfo):
        if isinstance(value, TirVar):
            found[value] = None
    return list(found)


def collect_non_negative_expressions(sinfo: StructInfo) -> list[PrimExpr]:
    """The expressions in struct info that are no less than zero: the dimensions."""
    found: list[PrimExpr] = []
    for value in _numbers_of(sinfo, dimensions_only=True):
        if not any([value.same_as(known) for known in found]):
            found.append(value)
    return found


def _numbers_of(info: StructInfo, dimensions_only: bool = False) -> list[PrimExpr]:
    if isinstance(info, TupleStructInfo):
        parts = [_numbers_of(field, dimensions_only) for field in info.fields]
        return [value for part in parts for value in part]
    if isinstance(info, PrimStructInfo):
        return [] if info.value is None or dimensions_only else [info.value]
    if isinstance(info, ShapeStructInfo):
        return list(info.values or ())
    if isinstance(info, TensorStructInfo):
        # the shape of a variable is defined by that variable
        return list(info.shape.values) if isinstance(info.shape, ShapeExpr) else []
    return []
