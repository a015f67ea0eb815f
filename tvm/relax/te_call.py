"""Tensor expressions in relax programs: expressions become tensors, the result a loop program.

gen_call_tir_inputs(topi.add, x, y)    ->    prim_func add(rx, ry, T_add), [x, y], Tensor((n,)), None
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import te
from tvm.arith import Analyzer
from tvm.error import TVMError
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.global_info import VDevice
from tvm.ir.structural import structural_equal
from tvm.support import UniqueNames
from tvm.tir import PrimFunc
from tvm.tir import Var as TirVar
from tvm.tir.expr import IntImm
from tvm.tir.stmt_functor import free_vars, substitute

from .expr import DataTypeImm, PrimValue, ShapeExpr, StringImm, Tuple, TupleGetItem
from .struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from .struct_info_relations import tir_vars_in


def te_tensor(
    value: RelayExpr, tir_var_map: Mapping[Any, PrimExpr], name: str = "rxplaceholder"
) -> te.Tensor:
    """A placeholder for an expression that is a tensor.

    Parameters
    ----------
    value : Expr
        A tensor of known shape.
    tir_var_map : dict
        What symbolic variables of the shape become.
    name : str
    """
    info = value.struct_info
    if not isinstance(info, TensorStructInfo):
        raise TVMError(f"te_tensor requires a tensor, got {info}")
    dims = info.dimensions
    if dims is None:
        raise ValueError(
            f"emit_te requires tensors whose shapes are known, got {value} which is {info}"
        )
    shape = [_renamed(d, tir_var_map) for d in dims]
    return te.placeholder(shape, info.dtype, name)


def _renamed(value: PrimExpr, numbers: Mapping[Any, PrimExpr]) -> PrimExpr:
    return value if isinstance(value, IntImm) else substitute(value, dict(numbers))


class _Arguments:
    """Converts the arguments of a function of tensor expressions."""

    def __init__(self) -> None:
        self.tensors: list[te.Tensor] = []
        self.values: list[RelayExpr] = []  # what the tensors stand for
        self.numbers: dict[TirVar, TirVar] = {}  # symbolic variables: those of the loop program
        self.scalars: dict[TirVar, PrimExpr] = {}  # of the loop program: what they stand for
        self.names = UniqueNames()

    def copied(self, value: PrimExpr) -> PrimExpr:
        """An expression over the loop program's own variables."""
        for var in tir_vars_in(value):
            if var not in self.numbers:
                self.numbers[var] = TirVar(var.name, var.dtype)
        return _renamed(value, self.numbers)

    def convert(self, value: Any, name: str | None = None) -> Any:
        value = getattr(value, "_expr", value)
        if isinstance(value, RelayExpr):
            return self.expression(value, name)
        if isinstance(value, (list, tuple)):
            return [self.convert(item, name) for item in value]
        if isinstance(value, dict):
            return {key: self.convert(item, name) for key, item in value.items()}
        if isinstance(value, PrimExpr):
            return self.copied(value)
        return value

    def expression(self, expr: RelayExpr, name: str | None) -> Any:
        if isinstance(expr, PrimValue):
            return self.copied(expr.value)
        if isinstance(expr, (StringImm, DataTypeImm)):
            return expr.value
        if isinstance(expr, ShapeExpr):
            return [self.copied(v) for v in expr.values]
        info = expr.struct_info
        if isinstance(info, TensorStructInfo):
            return self.tensor(expr, info, name)
        if isinstance(expr, Tuple):
            return [self.expression(field, name) for field in expr.fields]
        if isinstance(info, TupleStructInfo):
            return [self.expression(TupleGetItem(expr, i), name) for i in range(len(info.fields))]
        if isinstance(info, ShapeStructInfo) and info.values is not None:
            return [self.copied(v) for v in info.values]
        if isinstance(info, PrimStructInfo):
            if info.value is not None:
                return self.copied(info.value)
            raise ValueError(f"emit_te requires numbers of known value, got {expr}")
        raise TypeError(f"not supported type in emit_te: {expr} which is {info}")

    def tensor(self, expr: RelayExpr, info: TensorStructInfo, name: str | None) -> te.Tensor:
        for dim in info.dimensions or ():
            self.copied(dim)
        label = name or self.letter()
        made = te_tensor(expr, self.numbers, label)
        self.tensors.append(made)
        self.values.append(expr)
        return made

    def letter(self) -> str:
        """A, B, C, ... for tensors without names."""
        index = len(self.tensors)
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        return letters[index] if index < 26 else f"input{index}"


def gen_call_tir_inputs(
    func: Callable[..., Any], *args: Any, **kwargs: Any
) -> tuple[PrimFunc, list[RelayExpr], Any, Any]:
    """What ``call_tir`` needs to call a function of tensor expressions.

    Parameters
    ----------
    func : callable
        It gives one tensor or several.
    args, kwargs
        Its arguments: expressions of relax, symbolic expressions, and plain values.

    Returns
    -------
    prim_func : PrimFunc
    args : list of Expr
    out_sinfo : TensorStructInfo, or a list of them
    tir_vars : ShapeExpr or None
        The symbolic variables that the loop program takes beside tensors.
    """
    arguments = _Arguments()
    te_args = [arguments.convert(arg) for arg in args]
    te_kwargs = {key: arguments.convert(value, None) for key, value in kwargs.items()}
    result = func(*te_args, **te_kwargs)
    outputs = list(result) if isinstance(result, (list, tuple)) else [result]
    for output in outputs:
        if not isinstance(output, te.Tensor):
            raise TypeError(
                "emit_te requires a function that gives te.Tensor, "
                f"got {type(output).__name__} of {getattr(func, '__name__', func)}"
            )
    return _call_of(arguments, outputs, isinstance(result, (list, tuple)))


def _call_of(
    arguments: _Arguments, outputs: list[te.Tensor], is_list: bool
) -> tuple[PrimFunc, list[RelayExpr], Any, Any]:
    originals = {new: old for old, new in arguments.numbers.items()}
    tensors = [*arguments.tensors, *outputs]
    bound = {dim for t in arguments.tensors for dim in t.shape if isinstance(dim, TirVar)}
    # extents of results need not be given either; what arguments use has a value before them
    used = {v for t in arguments.tensors for dim in t.shape for v in tir_vars_in(dim)}
    told = {dim for t in outputs for dim in t.shape if isinstance(dim, TirVar)}
    bound |= told - used
    free = [new for new in arguments.numbers.values() if new not in bound]
    made = te.create_prim_func([*tensors, *free], "int64")
    # the function of tensors may use variables of the program that it was not given
    captured = [v for v in free_vars(made) if v not in bound and v not in originals]
    if captured:
        free += captured
        made = te.create_prim_func([*tensors, *free], "int64")
    prim = made.with_attrs({"tir.noalias": True})
    prim = prim.without_attr("global_symbol") if "global_symbol" in prim.attrs else prim
    device = _common_vdevice(arguments.values)
    infos = [_info_of(output, originals, device) for output in outputs]
    given = [originals.get(v, v) for v in free]
    numbers = ShapeExpr(given) if given else None
    return prim, arguments.values, infos if is_list and len(infos) != 1 else infos[0], numbers


def _common_vdevice(values: Sequence[RelayExpr]) -> VDevice | None:
    """The device where the tensors live that have one; None if they live on several."""
    found = [v.struct_info.vdevice for v in values if v.struct_info.vdevice is not None]
    if not found or not all([structural_equal(found[0], device) for device in found]):
        return None
    device: VDevice = found[0]
    return device


def _info_of(
    output: te.Tensor, originals: Mapping[TirVar, TirVar], device: VDevice | None
) -> TensorStructInfo:
    analyzer = Analyzer()
    dims = [analyzer.simplify(_widened(_renamed(d, originals))) for d in output.shape]
    return TensorStructInfo(dims, output.dtype, device)


def _widened(value: PrimExpr) -> PrimExpr:
    if isinstance(value, IntImm):
        return IntImm("int64", value.value)
    return value if value.dtype == "int64" else value.astype("int64")
