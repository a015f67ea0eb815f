"""Compute at compile time what depends on constants alone.

    add(1f, 2f)    ->    3f

An operator with a `fold` facet is evaluated by numpy; the others are compiled and run, each
distinct computation once.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.structural import structural_hash
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.analysis.contents import check_constant
from tvm.relay.analysis.infer import infer_type_of, known_type, set_type
from tvm.relay.backend.evaluate import evaluate_call
from tvm.relay.expr import Call, Constant, If, Let, Tuple, TupleGetItem, const, field_of
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.known_elements import SELECTIONS, known_value
from tvm.relay.transform.operators import SHAPE_ONLY, calls
from tvm.relay.traverse import PostOrderRewriter, rewrite_post_order, substitute
from tvm.relay.ty import is_dynamic

# the operator, a hash of its attributes, the ids of its constants
_CallKey = tuple[str, int, tuple[int, ...]]


class ConstantFolder(PostOrderRewriter):
    """Folds expressions; remembers what it computed."""

    def __init__(self, fold_qnn: bool = False) -> None:
        self.fold_qnn = fold_qnn
        # results by operator, attributes and constants, with the call: it keeps the ids valid
        self._results: dict[_CallKey, tuple[RelayExpr, Call]] = {}
        # those of transpositions, by the identity of the result
        self._turned: dict[int, Call] = {}

    def fold(self, expr: RelayExpr, done: dict[int, RelayExpr] | None = None) -> RelayExpr:
        """`expr` with constant parts replaced by their values; `done` as in `rewrite_post_order`."""
        return rewrite_post_order(expr, self.rewrite, done=done)

    def visit_tuple_get_item(self, new: TupleGetItem, old: TupleGetItem) -> RelayExpr:
        return field_of(new.tuple_value, new.index) if type(new.tuple_value) is Tuple else new

    def visit_if(self, new: If, old: If) -> RelayExpr:
        if type(new.cond) is not Constant:
            return new
        return new.true_branch if new.cond.data.numpy() else new.false_branch

    def visit_let(self, new: Let, old: Let) -> RelayExpr:
        is_known = type(new.value) is Constant
        return substitute(new.body, {new.var: new.value}) if is_known else new

    def visit_call(self, new: Call, old: Call) -> RelayExpr:
        op = new.op
        if calls(old, *SHAPE_ONLY):
            return _fold_shape(old, new)
        if is_primitive(op) and check_constant(op.body):
            return op.body
        if calls(new, *SELECTIONS):
            value = known_value(new)
            if value is not None:
                return _as_expr([value])
        if type(op) is not Op or not self._is_foldable(new):
            return new
        if op.qnn_canonicalize is not None:
            return self.fold(_in_ordinary_operators(op, new))
        if op.make_static is not None and (static := op.make_static(new)) is not None:
            infer_type_of(static)
            return self.fold(static)
        if op is ops.transpose:
            new = self._turned_once(new)
            if _is_unchanged(new):
                return new.args[0]
        key = _call_key(new)
        if key not in self._results:
            out_type = known_type(old) or infer_type_of(new)
            if is_dynamic(out_type):
                out_type = infer_type_of(new)
            # arrays of numpy have no elements of a user's type
            is_foldable = not _has_custom_elements(out_type)
            self._results[key] = _evaluate(op, new, out_type) if is_foldable else new, new
            if op is ops.transpose:
                self._turned[id(self._results[key][0])] = new
        return self._results[key][0]

    def _turned_once(self, call: Call) -> Call:
        """One transposition instead of that of a transposition: the first one's result may go."""
        before = self._turned.get(id(call.args[0]))
        if before is None:
            return call
        first = _permutation(before)
        axes = tuple([first[axis] for axis in _permutation(call)])
        again = Call(call.op, before.args, call.attrs.replace(axes=axes))
        infer_type_of(again)
        return again

    def forget(self, constants: Iterable[object]) -> None:
        """Let go what was computed from constants that will not come again."""
        gone = {id(c) for c in constants}
        while gone:
            keys = [key for key in self._results if not gone.isdisjoint(key[2])]
            gone = {id(self._results.pop(key)[0]) for key in keys}
            for result in gone:
                self._turned.pop(result, None)

    def _is_foldable(self, call: Call) -> bool:
        is_value = bool(call.args) and all([check_constant(a) for a in call.args])
        return is_value and self._is_computable(call.op)

    def _is_computable(self, op: RelayExpr) -> bool:
        if type(op) is not Op:
            return False
        if op.extra.get("TOpIsStateful") or op.extra.get("TNonComputational"):
            return False
        if op.name.startswith("qnn.") and not self.fold_qnn:
            return False
        facets = (op.fold, op.compute, op.qnn_canonicalize)
        return any(facet is not None for facet in facets)

    def is_constant(self, expr: RelayExpr, known: dict[int, bool]) -> bool:
        """Whether `fold` makes a constant of operators on constants; computes nothing.

        Parameters
        ----------
        known : dict of int to bool
            Answers by identity, for the expressions of one program.
        """
        if id(expr) not in known:
            known[id(expr)] = type(expr) is Constant or (
                type(expr) is Call
                and bool(expr.args)
                and self._is_computable(expr.op)
                and all([self.is_constant(arg, known) for arg in expr.args])
            )
        return known[id(expr)]


def _fold_shape(old: Call, new: Call) -> RelayExpr:
    """The shape, if the argument's type states it."""
    simplify = old.operator.simplify
    assert simplify is not None, "operators of SHAPE_ONLY have one"
    known = simplify(new, [infer_type_of(old.args[0])])
    return new if known is None else known


def _permutation(call: Call) -> tuple[int, ...]:
    """The axes of a transposition's argument, in the order of its result."""
    (data,) = _constants(call.args)
    rank = len(data.data.shape)
    axes = call.attrs.axes
    return tuple([axis % rank for axis in axes]) if axes else tuple(range(rank))[::-1]


def _is_unchanged(transposition: Call) -> bool:
    axes = _permutation(transposition)
    return axes == tuple(range(len(axes)))


def _in_ordinary_operators(op: Op, call: Call) -> RelayExpr:
    assert op.qnn_canonicalize is not None
    types = [*[infer_type_of(a) for a in call.args], infer_type_of(call)]
    result: RelayExpr = op.qnn_canonicalize(call.attrs, list(call.args), types)
    infer_type_of(result)
    return result


def _call_key(call: Call) -> _CallKey:
    """Equal for calls of the same operator on the very same constants."""
    attrs = structural_hash(call.attrs) if call.attrs is not None else 0
    return (call.operator.name, attrs, tuple([id(c) for c in _constants(call.args)]))


def _constants(exprs: tuple[RelayExpr, ...]) -> list[Constant]:
    found: list[Constant] = []
    for expr in exprs:
        if type(expr) is Tuple:
            found.extend(_constants(expr.fields))
        else:
            assert type(expr) is Constant
            found.append(expr)
    return found


def _evaluate(op: Op, call: Call, out_type: Type) -> RelayExpr:
    arrays = [c.data.elements() for c in _constants(call.args)]
    if op.fold is not None:
        with np.errstate(all="ignore"):  # infinities and NaNs are results like any others
            results = op.fold(call.attrs, arrays, out_type)
        if results is not None:
            return _as_expr(results, type(out_type) is TupleType)
    if is_dynamic(out_type):
        return call
    return _as_expr(evaluate_call(call, arrays), type(out_type) is TupleType)


def _has_custom_elements(ty: Type) -> bool:
    if type(ty) is TupleType:
        return any([_has_custom_elements(field) for field in ty.fields])
    return type(ty) is TensorType and ty.dtype.is_custom


def _as_expr(results: list[np.ndarray], is_tuple: bool = False) -> RelayExpr:
    constants = [_typed(const(np.asarray(r))) for r in results]
    return _typed(Tuple(constants)) if is_tuple else constants[0]


def _typed(expr: RelayExpr) -> RelayExpr:
    set_type(expr, infer_type_of(expr))
    return expr


def FoldConstantExpr(expr: RelayExpr, mod: IRModule, fold_qnn: bool = False) -> RelayExpr:
    """Fold one expression on its own."""
    del mod
    return ConstantFolder(fold_qnn).fold(expr)


def FoldConstant(fold_qnn: bool = False) -> Pass:
    """The pass."""

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        return func if is_primitive(func) else ConstantFolder(fold_qnn).run(func)

    return FunctionPass(run, PassInfo(2, "FoldConstant"))
