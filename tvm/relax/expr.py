"""The expressions of relax: functions of binding blocks, over tensors of symbolic shape.

    with dataflow:                     SeqExpr([DataflowBlock([VarBinding(y, Call(add, [x, x]))])], y)
        y = add(x, x)

What is known of each expression is its ``struct_info``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import tvm.runtime.ndarray as nd
from tvm.error import TVMError
from tvm.ir import extension
from tvm.ir.attrs import Attrs, DictAttrs, as_dict_attrs
from tvm.ir.expr import GlobalVar, PrimExpr, RelayExpr
from tvm.ir.function import BaseFunc
from tvm.ir.module import IRModule
from tvm.ir.node import Node, binder, child, ignored, leaf, reference
from tvm.ir.op import Op
from tvm.ir.script_printer import Scriptable
from tvm.ir.span import SourceName, Span
from tvm.ir.visitor import Visitor
from tvm.runtime.ndarray import NDArray
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as intern_dtype
from tvm.support.later import names_from_above

from .base import Expr, ExprWithOp, StructInfo, update_struct_info
from .struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeExpr,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
    as_dtype,
    as_prim_value,
)


class Id(Node, key="relax.Id"):
    """The identity of a variable, which copies of it with other struct info share."""

    name_hint: str


def _as_id(name: Any) -> Id:
    return name if isinstance(name, Id) else Id(str(name))


class LeafExpr(ExprWithOp, key="relax.expr.LeafExpr"):
    """An expression that may be an argument: it has no computation of its own."""


class Var(LeafExpr, key="relax.expr.Var"):
    """A variable: a parameter, or what a binding defines.

    Parameters
    ----------
    name_hint : str or Id
        Its name, or the identity that it shares.
    struct_info : StructInfo, optional
        What is known of it.
    """

    structural: ClassVar[str] = "variable"
    vid: Id = ignored()
    struct_info_: StructInfo | None = reference(default=None)

    def __init__(
        self, name_hint: str | Id, struct_info: Any = None, span: Span | None = None
    ) -> None:
        self._init(_as_id(name_hint), as_struct_info(struct_info, self), span)

    @property
    def name_hint(self) -> str:
        """The name."""
        return self.vid.name_hint


def as_struct_info(info: Any, user: Any) -> StructInfo | None:
    """Struct info, or what makes one without arguments, such as ``R.Object``."""
    if callable(info) and not isinstance(info, StructInfo):
        info = info()
    if hasattr(info, "as_struct_info"):
        info = info.as_struct_info()
    if info is not None and not isinstance(info, StructInfo):
        raise TVMError(f"{type(user).__name__} requires struct info, got {info!r}")
    return info


class DataflowVar(Var, key="relax.expr.DataflowVar"):
    """A variable that only its dataflow block knows."""

    if TYPE_CHECKING:

        def __init__(
            self, name_hint: str | Id, struct_info: Any = None, span: Span | None = None
        ) -> None: ...


class Constant(LeafExpr, key="relax.expr.Constant"):
    """A tensor known at compile time."""

    data: NDArray = leaf()
    struct_info_: StructInfo | None = reference(default=None)

    def __init__(
        self, data: NDArray, struct_info: StructInfo | None = None, span: Span | None = None
    ) -> None:
        info = struct_info or TensorStructInfo(data.shape, data.dtype)
        self._init(data, info, span)


class PrimValue(LeafExpr, key="relax.expr.PrimValue"):
    """A number, which may be an expression over symbolic variables."""

    value: PrimExpr
    struct_info_: StructInfo | None = ignored(default=None)

    def __init__(self, value: Any, span: Span | None = None) -> None:
        value = as_prim_value(value)
        self._init(value, PrimStructInfo(value=value), span)


class StringImm(LeafExpr, key="relax.expr.StringImm"):
    """A text."""

    value: str = leaf()
    struct_info_: StructInfo | None = ignored(default=None)

    def __init__(self, value: str, span: Span | None = None) -> None:
        self._init(str(value), ObjectStructInfo(), span)


class DataTypeImm(LeafExpr, key="relax.expr.DataTypeImm"):
    """A data type."""

    value: DType = leaf()
    struct_info_: StructInfo | None = ignored(default=None)

    def __init__(self, value: Any, span: Span | None = None) -> None:
        self._init(as_dtype(value), ObjectStructInfo(), span)


def as_expr(value: Any) -> Any:
    """A value as an expression: numbers, texts and sequences of such become one.

    Raises
    ------
    TypeError
        If it cannot.
    """
    if isinstance(value, RelayExpr):
        return value
    if isinstance(value, (bool, int, float, np.integer, np.floating, PrimExpr)):
        return PrimValue(value)
    if isinstance(value, DType):
        return DataTypeImm(value)
    if isinstance(value, str):
        return StringImm(value)
    if isinstance(value, (tuple, list)):
        return Tuple(value)
    if hasattr(value, "asobject"):
        return as_expr(value.asobject())
    raise TypeError(f"a relax expression is required, got {value!r} of type {type(value).__name__}")


def _exprs(values: Any) -> tuple[RelayExpr, ...]:
    return tuple([as_expr(value) for value in values])


class Tuple(ExprWithOp, key="relax.expr.Tuple"):
    """Several values as one."""

    fields: tuple[RelayExpr, ...] = child()
    struct_info_: StructInfo | None = ignored(default=None)

    def __init__(self, fields: Sequence[Any], span: Span | None = None) -> None:
        exprs = _exprs(fields)
        infos = [e.struct_info_ for e in exprs]
        known = None if any([i is None for i in infos]) else TupleStructInfo(infos)
        self._init(exprs, known, span)

    def __getitem__(self, index: Any) -> RelayExpr:
        if not -len(self.fields) <= index < len(self.fields):
            raise IndexError(f"Tuple index out of range: {index} of {len(self.fields)} fields")
        found: RelayExpr = self.fields[index]
        return found

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[RelayExpr]:
        return iter(self.fields)


class TupleGetItem(ExprWithOp, key="relax.expr.TupleGetItem"):
    """One field of a tuple."""

    tuple_value: RelayExpr
    index: int = leaf()
    struct_info_: StructInfo | None = ignored(default=None)

    def __init__(self, tuple_value: RelayExpr, index: int, span: Span | None = None) -> None:
        index = int(index)
        if index < 0:
            raise TVMError(f"TupleGetItem requires an index that is not negative, got {index}")
        info = tuple_value.struct_info_
        found = None
        if isinstance(info, TupleStructInfo):
            if index >= len(info.fields):
                raise IndexError(
                    f"Index out of bounds: {tuple_value} has {len(info.fields)} fields, got {index}"
                )
            found = info.fields[index]
        self._init(tuple_value, index, found, span)


class Call(ExprWithOp, key="relax.expr.Call"):
    """A call of an operator, a function or a packed function.

    Parameters
    ----------
    op : Expr
        What is called.
    args : sequence of Expr
    attrs : Attrs, optional
        Of operators.
    sinfo_args : sequence of StructInfo, optional
        Of the results of packed functions, or what ``call_tir`` returns.
    """

    op: RelayExpr
    args: tuple[RelayExpr, ...] = child()
    attrs: Any = leaf(default=None)
    sinfo_args: tuple[StructInfo, ...] = ()
    struct_info_: StructInfo | None = reference(default=None)

    def __init__(
        self,
        op: RelayExpr,
        args: Sequence[RelayExpr],
        attrs: Attrs | None = None,
        sinfo_args: Sequence[StructInfo] | None = None,
        span: Span | None = None,
    ) -> None:
        info = None if isinstance(op, Op) else op.struct_info_
        if info is not None and not isinstance(info, FuncStructInfo):
            raise ValueError(f"a call requires a function, got {op} which is {info}")
        self._init(op, _exprs(args), attrs, tuple(sinfo_args or ()), None, span)


class Binding(Scriptable, Node, key="relax.expr.Binding"):
    """The definition of a variable."""

    var: Var = binder()
    span: Span | None = ignored(default=None, kw_only=True)

    if TYPE_CHECKING:

        @property
        def value(self) -> Any: ...


class VarBinding(Binding, key="relax.expr.VarBinding"):
    """var = value"""

    value: RelayExpr

    if TYPE_CHECKING:

        def __init__(self, var: Var, value: RelayExpr, span: Span | None = None) -> None: ...


class MatchCast(Binding, key="relax.expr.MatchCast"):
    """var = match_cast(value, struct_info): a check at run time that defines symbolic variables."""

    value: RelayExpr
    struct_info: StructInfo = binder()

    if TYPE_CHECKING:

        def __init__(
            self, var: Var, value: RelayExpr, struct_info: StructInfo, span: Span | None = None
        ) -> None: ...


class BindingBlock(Scriptable, Node, key="relax.expr.BindingBlock"):
    """Bindings, one after the other."""

    bindings: tuple[Binding, ...] = child(convert=tuple)
    span: Span | None = ignored(default=None, kw_only=True)

    if TYPE_CHECKING:

        def __init__(self, bindings: Sequence[Binding], span: Span | None = None) -> None: ...


class DataflowBlock(BindingBlock, key="relax.expr.DataflowBlock"):
    """Bindings without side effects or branches."""

    if TYPE_CHECKING:

        def __init__(self, bindings: Sequence[Binding], span: Span | None = None) -> None: ...


class SeqExpr(ExprWithOp, key="relax.expr.SeqExpr"):
    """Blocks of bindings, and an expression over what they define."""

    blocks: tuple[BindingBlock, ...] = child()
    body: RelayExpr
    struct_info_: StructInfo | None = reference(default=None)

    def __init__(
        self, blocks: Sequence[BindingBlock], body: RelayExpr, span: Span | None = None
    ) -> None:
        self._init(tuple(blocks), body, None, span)


def as_seq_expr(body: RelayExpr) -> SeqExpr:
    """A body as bindings and a result."""
    if isinstance(body, SeqExpr):
        return body
    made = SeqExpr((), body)
    update_struct_info(made, body.struct_info_)
    return made


class If(ExprWithOp, key="relax.expr.If"):
    """One of two branches, by a scalar boolean."""

    cond: RelayExpr
    true_branch: SeqExpr
    false_branch: SeqExpr
    struct_info_: StructInfo | None = reference(default=None)

    def __init__(
        self,
        cond: RelayExpr,
        true_branch: RelayExpr,
        false_branch: RelayExpr,
        span: Span | None = None,
    ) -> None:
        self._init(cond, as_seq_expr(true_branch), as_seq_expr(false_branch), None, span)


class Function(BaseFunc, ExprWithOp, key="relax.expr.Function"):
    """A function.

    Parameters
    ----------
    params : sequence of Var
    body : Expr
    ret_struct_info : StructInfo, optional
        Of the result; by default that of the body.
    is_pure : bool
        Whether it has no side effects.
    attrs : dict, optional
    """

    params: tuple[Var, ...] = binder("body", "ret_struct_info")
    body: SeqExpr
    ret_struct_info: StructInfo
    is_pure: bool = True
    attrs: DictAttrs = leaf(default=None, convert=as_dict_attrs, kw_only=True)
    struct_info_: StructInfo | None = ignored(default=None)

    def __init__(
        self,
        params: Sequence[Var],
        body: RelayExpr | None,
        ret_struct_info: Any = None,
        is_pure: bool | None = True,
        attrs: Mapping[str, Any] | DictAttrs | None = None,
        span: Span | None = None,
    ) -> None:
        ret = as_struct_info(ret_struct_info, self)
        known = None if body is None else body.struct_info_
        if ret is None or (known is not None and _is_finer(known, ret, params)):
            ret = known
        if ret is None:
            raise ValueError("a Function requires ret_struct_info, or a body of known struct info")
        pure = True if is_pure is None else bool(is_pure)
        info = FuncStructInfo([_info_of(p) for p in params], ret, pure)
        seq = None if body is None else as_seq_expr(body)
        self._init(
            params=tuple(params), body=seq, ret_struct_info=ret, is_pure=pure,
            attrs=as_dict_attrs(attrs), struct_info_=info, span=span,
        )  # fmt: skip

    @property
    def has_body(self) -> bool:
        """Whether it is more than a declaration."""
        return self.body is not None

    @staticmethod
    def create_empty(
        params: Sequence[Var],
        ret_struct_info: StructInfo,
        is_pure: bool = True,
        attrs: Mapping[str, Any] | None = None,
        span: Span | None = None,
    ) -> Function:
        """A function without a body, to be called before it is defined."""
        return Function(params, None, ret_struct_info, is_pure, attrs, span)

    def __call__(self, *args: Any, attrs: Any = None) -> Call:
        """Call the function."""
        return Call(self, _exprs(args), attrs)

    def bind_symbolic_vars(self, binding_map: Mapping[Any, Any]) -> Function:
        """The function with symbolic variables, given themselves or by name, as expressions.

        Raises
        ------
        TVMError
            If the function has no such variable, or several of a name.
        """
        found: Function = extension.relax_bind_symbolic_vars.required(self, binding_map)
        return found

    def bind_params(self, binding_map: Mapping[Any, Any]) -> Function:
        """The function with parameters, given themselves or by name, as constants or expressions."""
        found: Function = extension.relax_bind_params.required(self, binding_map)
        return found

    def inline_functions(self, function_map: Mapping[Any, Function]) -> Function:
        """The function with calls of others replaced by their bodies, by global variable or name."""
        found: Function = extension.relax_inline.required(self, function_map)
        return found


def _is_finer(known: StructInfo, ret: StructInfo, params: Sequence[Var]) -> bool:
    """Whether the body says more than the annotation, in the function's own symbolic variables."""
    if known is ret or type(known) is not type(ret) or not ret.is_base_of(known):
        return False
    own, used = _Symbols(), _Symbols()
    for info in (ret, *[_info_of(p) for p in params]):
        own.visit(info)
    used.visit(known)
    return all([v in own.found for v in used.found])


class _Symbols(Visitor):
    """The symbolic variables of struct info."""

    def __init__(self) -> None:
        self.found: dict[Any, None] = {}

    def visit_var(self, var: Any) -> None:
        self.found[var] = None


def _info_of(param: Var) -> StructInfo:
    if (info := param.struct_info_) is None:
        raise ValueError(
            f"a Function requires parameters of known struct info, got {param.name_hint}"
        )
    found: StructInfo = info
    return found


class ExternFunc(BaseFunc, ExprWithOp, key="relax.expr.ExternFunc"):
    """A packed function, by its global name.

    Parameters
    ----------
    global_symbol : str
    struct_info : StructInfo, optional
        Its signature; by default calls say what they return.
    """

    global_symbol: str
    struct_info_: StructInfo | None = reference(default=None)

    def __init__(
        self, global_symbol: str, struct_info: Any = None, span: Span | None = None
    ) -> None:
        info = as_struct_info(struct_info, self)
        if info is not None and not isinstance(info, FuncStructInfo):
            raise TVMError(f"ExternFunc requires the struct info of a function, got {info}")
        if info is None:
            info = FuncStructInfo.opaque_func(derive_func=extension.infer_by_sinfo_args.required())
        self._init(
            global_symbol=str(global_symbol), attrs=DictAttrs({}), struct_info_=info, span=span
        )

    def __call__(self, *args: Any, attrs: Any = None) -> Call:
        """Call the function."""
        return Call(self, _exprs(args), attrs)


def extern(name: str, struct_info: Any = None, span: Span | None = None) -> ExternFunc:
    """A packed function by its global name."""
    return ExternFunc(name, struct_info, span)


_NARROWED = {"float64": "float32", "int64": "int32"}


def const(value: Any, dtype: Any = None) -> Constant:
    """A constant; Python numbers and lists become int32, float32 or bool without a dtype.

    Parameters
    ----------
    value : number, list, numpy.ndarray or NDArray
    dtype : str, optional
        The element type; arrays keep theirs by default.
    """
    if isinstance(value, NDArray):
        return Constant(value)
    is_array = isinstance(value, (np.ndarray, np.generic))
    array = np.asarray(value)
    if dtype is None:
        dtype = array.dtype.name if is_array else _NARROWED.get(array.dtype.name, array.dtype.name)
    try:
        numbers = array.astype(intern_dtype(dtype).numpy, copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"a constant requires numbers, got {value!r}") from None
    return Constant(nd.array(numbers))


def make_shape(shape: Any) -> ShapeExpr:
    """A shape from a sequence of dimensions."""
    if not isinstance(shape, (list, tuple)):
        raise ValueError(f"make_shape requires a list or a tuple, got {type(shape).__name__}")
    return ShapeExpr(shape)


def get_shape_of(expr: RelayExpr) -> RelayExpr:
    """The shape of a tensor: as it is known, or a call that reads it at run time.

    Raises
    ------
    ValueError
        If the struct info is not that of a tensor.
    """
    info = expr.struct_info_
    if not isinstance(info, TensorStructInfo):
        raise ValueError(f"get_shape_of requires a tensor, got {expr} which is {info}")
    if info.shape is not None:
        return info.shape
    call = Call(Op.get("relax.shape_of"), [expr])
    update_struct_info(call, ShapeStructInfo(ndim=info.ndim))
    return call


def relax_functions(mod: IRModule) -> dict[GlobalVar, Function]:
    """The functions of a module that are relax's."""
    return {gvar: f for gvar, f in mod.functions.items() if isinstance(f, Function)}


def _call(callee: RelayExpr, args: tuple[Any, ...], attrs: Any = None) -> Call:
    return Call(callee, _exprs(args), attrs)


def _item(value: RelayExpr, index: Any) -> RelayExpr:
    if not isinstance(index, (int, np.integer)):
        raise TypeError(f"a field of a tuple requires an integer, got {index!r}")
    info = value.struct_info_
    if isinstance(info, TupleStructInfo):
        if not -len(info.fields) <= index < len(info.fields):
            raise IndexError(
                f"Index out of bounds: {index} of a tuple with {len(info.fields)} fields"
            )
        index %= len(info.fields)
    return TupleGetItem(value, int(index))


extension.relax_call.provide(_call)
extension.relax_item.provide(_item)
extension.global_call_with.provide(ExprWithOp, _call)

# classic names of others that this module has
_update_struct_info = update_struct_info
__getattr__ = names_from_above(__name__)

__all__ = [
    "Binding", "BindingBlock", "Call", "Constant", "DataTypeImm", "DataflowBlock", "DataflowVar",
    "Expr", "ExprWithOp", "ExternFunc", "Function", "GlobalVar", "Id", "If", "LeafExpr",
    "MatchCast", "PrimValue", "SeqExpr", "ShapeExpr", "SourceName", "Span", "StringImm",
    "StructInfo", "Tuple", "TupleGetItem", "Var", "VarBinding", "as_expr", "as_seq_expr", "const", "extern",
    "get_shape_of", "make_shape", "relax_functions", "update_struct_info",
]  # fmt: skip
