"""How expressions are written: by Python's operators where reading those gives the same nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir.expr import GlobalVar, PrimExpr
from tvm.ir.op import Op
from tvm.support.dtype import ScalableLanes
from tvm.tir import expr as e
from tvm.tir import fold, op
from tvm.tir.index_map import IndexMap

from ..doc import (
    DictDoc,
    Doc,
    ExprDoc,
    IdDoc,
    LambdaDoc,
    ListDoc,
    LiteralDoc,
    OperationDoc,
    TupleDoc,
)
from ..doc import OperationKind as Kind
from ..docsifier import IRDocsifier, Path, literal
from ..values import expr_list
from .buffer import define_var, end_of

Fold = Callable[[PrimExpr, PrimExpr], "PrimExpr | None"]


def _fold_constants(a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    """Comparisons of constants fold whatever the operator."""
    constant = e.Kind.CONSTANT
    return a if e.KINDS[type(a)] is constant and e.KINDS[type(b)] is constant else None


def _fold_logic(a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    return a if type(a) is e.IntImm or type(b) is e.IntImm else None


# operators, and what folds where an operand is a constant
OPERATORS: dict[type, tuple[Kind, Fold]] = {
    e.Add: (Kind.Add, fold.fold_add),
    e.Sub: (Kind.Sub, fold.fold_sub),
    e.Mul: (Kind.Mult, fold.fold_mul),
    e.Div: (Kind.Div, fold.fold_div),
    e.FloorDiv: (Kind.FloorDiv, fold.fold_floordiv),
    e.FloorMod: (Kind.Mod, fold.fold_floormod),
    e.EQ: (Kind.Eq, _fold_constants),
    e.NE: (Kind.NotEq, _fold_constants),
    e.LT: (Kind.Lt, _fold_constants),
    e.LE: (Kind.LtE, _fold_constants),
    e.GT: (Kind.Gt, _fold_constants),
    e.GE: (Kind.GtE, _fold_constants),
    e.And: (Kind.And, _fold_logic),
    e.Or: (Kind.Or, _fold_logic),
}
# operators that are written as calls: name, and what folds
CALLED: dict[type, tuple[str, Fold]] = {
    e.Mod: ("truncmod", fold.fold_mod),
    e.Min: ("min", fold.fold_min),
    e.Max: ("max", fold.fold_max),
}
# intrinsics whose data type is written, before or after the arguments
DTYPE_FIRST = frozenset(
    ["call_extern", "call_pure_extern", "call_llvm_intrin", "call_llvm_pure_intrin", "reinterpret", "ptx_mma", "ptx_mma_sp", "ptx_ldmatrix", "ptx_cp_async", "ptx_cp_async_bulk", "mma_store", "mma_fill", "vectorlow", "vectorhigh", "vectorcombine", "type_annotation", "get_active_lane_mask"]
)  # fmt: skip
DTYPE_LAST = frozenset(["tvm_struct_get"])
SCRIPT_NAMES = {
    "tvm_call_packed": "call_packed",
    "tvm_call_cpacked": "call_cpacked",
    "tvm_call_packed_lowered": "call_packed_lowered",
    "tvm_call_cpacked_lowered": "call_cpacked_lowered",
}


# ---- constants


@IRDocsifier.register(e.IntImm)
def print_int(imm: e.IntImm, path: Path, d: IRDocsifier) -> Doc:
    value = literal(bool(imm.value) if imm.dtype.is_bool else imm.value, path.attr("value"))
    return value if imm.dtype == d.config.int_dtype else d.tir(str(imm.dtype)).call(value)


@IRDocsifier.register(e.FloatImm)
def print_float(imm: e.FloatImm, path: Path, d: IRDocsifier) -> Doc:
    value = literal(float(imm.value), path.attr("value"))
    return value if imm.dtype == d.config.float_dtype else d.tir(str(imm.dtype)).call(value)


@IRDocsifier.register(e.StringImm)
def print_string(imm: e.StringImm, path: Path, d: IRDocsifier) -> Doc:
    """A text of several lines is kept apart."""
    return d.meta(imm) if "\n" in imm.value else d.doc(str(imm.value), path.attr("value"))


# ---- operators


def _operands(node: Any, path: Path, d: IRDocsifier) -> tuple[ExprDoc, ExprDoc]:
    return d.expr(node.a, path.attr("a")), d.expr(node.b, path.attr("b"))


@IRDocsifier.register(*OPERATORS)
def print_operator(node: Any, path: Path, d: IRDocsifier) -> Doc:
    kind, folded = OPERATORS[type(node)]
    operands = _operands(node, path, d)
    # the operator / of integers is refused, as languages differ in what it means
    is_truncated = type(node) is e.Div and not node.a.dtype.is_float
    if is_truncated or _folds(node, folded):
        return d.tir(type(node).__name__).call(*operands)
    return OperationDoc(kind, operands)


@IRDocsifier.register(*CALLED)
def print_called_operator(node: Any, path: Path, d: IRDocsifier) -> Doc:
    name, folded = CALLED[type(node)]
    same = node.a is node.b and type(node) is not e.Mod
    name = type(node).__name__ if same or _folds(node, folded) else name
    return d.tir(name).call(*_operands(node, path, d))


def _folds(node: Any, folded: Fold) -> bool:
    """Whether the operator would simplify, so that the node must be written by its name."""
    a, b = node.a, node.b
    if not (e.KINDS[type(a)] or e.KINDS[type(b)]):
        return False
    try:
        return folded(a, b) is not None
    except fold.DivideByZeroError:
        return True


@IRDocsifier.register(e.Not)
def print_not(node: e.Not, path: Path, d: IRDocsifier) -> Doc:
    operand = d.expr(node.a, path.attr("a"))
    if type(node.a) is e.IntImm:
        return d.tir("Not").call(operand)
    return OperationDoc(Kind.Not, [operand])


@IRDocsifier.register(e.Cast)
def print_cast(node: e.Cast, path: Path, d: IRDocsifier) -> Doc:
    return d.tir("Cast").call(LiteralDoc(str(node.dtype)), d.expr(node.value, path.attr("value")))


@IRDocsifier.register(e.Select)
def print_select(node: e.Select, path: Path, d: IRDocsifier) -> Doc:
    fields = ("condition", "true_value", "false_value")
    return d.tir("Select").call(*[d.expr(getattr(node, f), path.attr(f)) for f in fields])


# ---- vectors


@IRDocsifier.register(e.Ramp)
def print_ramp(node: e.Ramp, path: Path, d: IRDocsifier) -> Doc:
    base, stride = d.expr(node.base, path.attr("base")), d.expr(node.stride, path.attr("stride"))
    return d.tir("Ramp").call(base, stride, _lanes(node.lanes, d))


@IRDocsifier.register(e.Broadcast)
def print_broadcast(node: e.Broadcast, path: Path, d: IRDocsifier) -> Doc:
    return d.tir("Broadcast").call(d.expr(node.value, path.attr("value")), _lanes(node.lanes, d))


def _lanes(lanes: Any, d: IRDocsifier) -> ExprDoc:
    if isinstance(lanes, ScalableLanes):
        return OperationDoc(Kind.Mult, [d.tir("vscale").call(), LiteralDoc(lanes.factor)])
    return LiteralDoc(int(lanes))


@IRDocsifier.register(e.Shuffle)
def print_shuffle(node: e.Shuffle, path: Path, d: IRDocsifier) -> Doc:
    vectors = d.expr(node.vectors, path.attr("vectors"))
    return d.tir("Shuffle").call(vectors, d.expr(node.indices, path.attr("indices")))


# ---- calls


@IRDocsifier.register(e.Call)
def print_call(call: e.Call, path: Path, d: IRDocsifier) -> Doc:
    function = call.op
    args = expr_list(call.args, path.attr("args"), d)
    dtype = LiteralDoc(str(call.dtype))
    if isinstance(function, GlobalVar):
        return _function_call(call, d.expr(function, path.attr("op")), args, d)
    assert isinstance(function, Op)
    name = function.name.removeprefix("tir.")
    name = SCRIPT_NAMES.get(name, name)
    if name in DTYPE_FIRST:
        written, values = [dtype, *args], [call.dtype, *call.args]
    elif name in DTYPE_LAST:
        written, values = [*args, dtype], [*call.args, call.dtype]
    else:
        written, values = args, list(call.args)
    if rebuilds(name, values, call):
        return d.tir(name).call(*written)
    return d.tir("call_intrin").call(dtype, LiteralDoc(function.name), *args)


def _function_call(call: e.Call, function: ExprDoc, args: list[ExprDoc], d: IRDocsifier) -> ExprDoc:
    """A call by name if that gives the data type."""
    known = d.is_defined(call.op)
    if known and (call.dtype.is_void or call.dtype == d.result_types.get(call.op)):
        return function.call(*args)
    return d.tir("Call").call(LiteralDoc(str(call.dtype)), function, ListDoc(args))


def rebuilds(name: str, args: list[Any], call: e.Call) -> bool:
    """Whether ``T.name(*args)`` gives the very same call."""
    build = getattr(op, name, None)
    if build is None:
        return False
    try:
        built = build(*args)
    except (TypeError, ValueError):
        return False
    return (
        type(built) is e.Call
        and built.op is call.op
        and built.dtype is call.dtype
        and len(built.args) == len(call.args)
        and all(a is b for a, b in zip(built.args, call.args, strict=True))
    )


@IRDocsifier.register(e.Let)
def print_let(let: e.Let, path: Path, d: IRDocsifier) -> Doc:
    var, value = d.expr(let.var, path.attr("var")), d.expr(let.value, path.attr("value"))
    return d.tir("Let").call(d.expr(let.body, path.attr("body")), where=DictDoc({var: value}))


@IRDocsifier.register(e.Any)
def print_any(node: e.Any, path: Path, d: IRDocsifier) -> Doc:
    return d.tir("Any").call()


# ---- reductions, ranges, maps of indices


@IRDocsifier.register(e.Range)
def print_range(item: e.Range, path: Path, d: IRDocsifier) -> Doc:
    start = d.expr(item.min, path.attr("min"))
    return d.tir("Range").call(start, end_of(item.min, item.extent, path, d))


@IRDocsifier.register(e.IterVar)
def print_iter_var(node: e.IterVar, path: Path, d: IRDocsifier) -> Doc:
    var, dom = d.expr(node.var, path.attr("var")), d.expr(node.dom, path.attr("dom"))
    kind, tag = LiteralDoc(node.iter_type.name), LiteralDoc(str(node.thread_tag))
    return d.tir("iter_var").call(var, dom, kind, tag)


@IRDocsifier.register(e.CommReducer)
def print_reducer(reducer: e.CommReducer, path: Path, d: IRDocsifier) -> Doc:
    with d.frame(reducer) as frame:
        args = [d.define(v, frame, v.name) for v in (*reducer.lhs, *reducer.rhs)]
        results = expr_list(reducer.result, path.attr("result"), d)
    body = results[0] if len(results) == 1 else TupleDoc(results)
    identity = d.expr(reducer.identity_element, path.attr("identity_element"))
    return d.tir("comm_reducer").call(LambdaDoc(args, body), identity)


@IRDocsifier.register(e.Reduce)
def print_reduce(node: e.Reduce, path: Path, d: IRDocsifier) -> Doc:
    fields = ("combiner", "source", "axis", "condition")
    args = [d.expr(getattr(node, field), path.attr(field)) for field in fields]
    init = d.expr(node.init, path.attr("init"))
    return d.tir("Reduce").call(*args, LiteralDoc(int(node.value_index)), init)


@IRDocsifier.register(IndexMap)
def print_index_map(node: IndexMap, path: Path, d: IRDocsifier) -> Doc:
    mapping = _lambda_of(node, path, d)
    inverse = getattr(node, "inverse_index_map", None)
    if inverse is None:
        return d.tir("index_map").call(mapping)
    way_back = _lambda_of(inverse, path.attr("inverse_index_map"), d)
    return d.tir("index_map").call(mapping, inverse_index_map=way_back)


def _lambda_of(node: IndexMap, path: Path, d: IRDocsifier) -> LambdaDoc:
    with d.frame(node) as frame:
        args = [define_var(var, frame, d) for var in node.initial_indices]
        results = expr_list(node.final_indices, path.attr("final_indices"), d)
    return LambdaDoc([arg for arg in args if isinstance(arg, IdDoc)], TupleDoc(results))
