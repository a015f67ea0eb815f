"""Gradients of whole programs: closures, recursion, data types and references included.

Each tensor becomes a pair of it and a cell for its gradient; functions become functions of such
pairs. Each operator leaves behind a step that adds to its arguments' cells what its own cell says,
and then takes the steps before it:

    let %y = exp(%x);    ->    let %y = (exp(%x.0), ref(zeros_like(..)));
                               let %before = ref_read(%steps);
                               ref_write(%steps, fn () {
                                 ref_write(%x.1, ref_read(%x.1) + ref_read(%y.1) * exp(%x.0));
                                 %before()
                               });

The result is a program of the same language, so the gradient of a gradient is one as well.
`PartialEvaluate` and `DeadCodeElimination` remove the cells where they are known.
"""

from __future__ import annotations

from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.type import FuncType, RelayRefType, TensorType, TupleType, Type
from tvm.relay.analysis.infer import function_type_of, infer_type_of
from tvm.relay.expr import Call, Constant, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem, Var
from tvm.relay.function import Function
from tvm.relay.op.registry import ops
from tvm.relay.transform.first_order_gradient import first_order_gradient, operator_gradients
from tvm.relay.transform.let_list import LetList
from tvm.relay.transform.lifting import TensorLifter, map_tensors, tensors_in
from tvm.relay.traverse import rewrite_post_order
from tvm.support import UniqueNames, deep

_STEP = FuncType((), TupleType(()))
_STEPS = RelayRefType(_STEP)


def gradient(expr: RelayExpr, mod: IRModule | None = None, mode: str = "higher_order") -> Function:
    """The function that returns the value of `expr` and the gradient of each parameter.

    Parameters
    ----------
    expr : a function, or the name of one in `mod`.
    mod : the module of the functions that it calls; in the higher-order mode their transformed
        versions are added to it.
    mode : "first_order" for functions made of operators, tuples and lets, whose result is as
        simple; "higher_order" for all others.
    """
    if isinstance(expr, GlobalVar) and mod is not None:
        expr = mod[expr]
    if not isinstance(expr, Function):
        raise TVMError(f"gradient requires a function, got {type(expr).__name__}")
    if mode == "first_order":
        return first_order_gradient(expr, mod)
    if mode != "higher_order":
        raise TVMError(f'gradient has the modes "higher_order" and "first_order", got {mode!r}')
    return higher_order_gradient(expr, mod)


@deep
def higher_order_gradient(func: Function, mod: IRModule | None) -> Function:
    """The gradient of any function from tensors to tensors."""
    infer_type_of(func, mod)
    lets = LetList()
    steps = lets.push(RefCreate(Function([], Tuple([]), TupleType(()))), _STEPS, "steps")
    walk = _Reverse(mod, steps)
    params = [Var(p.name_hint, infer_type_of(p)) for p in func.params]
    args = [lets.push(_lifted_value(p, infer_type_of(p)), None, "arg") for p in params]
    inner = walk.function(func)
    result = lets.push(Call(inner, args), None, "result")
    ty = function_type_of(func).ret_type
    _fill_cells(result, ty, lets)
    lets.push(Call(RefRead(steps), []), None, "done")
    gradients = [_gradient_of(a, infer_type_of(p)) for a, p in zip(args, params, strict=True)]
    body = lets.get(Tuple([_primal(result, ty), Tuple(gradients)]))
    arg_types = TupleType([infer_type_of(p) for p in params])
    return Function(params, body, TupleType([ty, arg_types]), func.type_params)


def _lifted_value(value: RelayExpr, ty: Type) -> RelayExpr:
    """Tensors with cells of zeros."""
    return map_tensors(value, ty, _with_cell)


def _with_cell(tensor: RelayExpr, ty: Type) -> RelayExpr:
    if type(ty) is not TensorType:
        raise TVMError(
            f"the gradient requires tensors and tuples of tensors as parameters and results, got {ty}"
        )
    return Tuple([tensor, RefCreate(ops.zeros_like(tensor))])


def _primal(value: RelayExpr, ty: Type) -> RelayExpr:
    """The value without its cells."""
    return map_tensors(value, ty, _without_cell)


def _without_cell(pair: RelayExpr, ty: Type) -> RelayExpr:
    if type(ty) is not TensorType:
        raise TVMError(f"the gradient requires tensors and tuples as results, got {ty}")
    return TupleGetItem(pair, 0)


def _gradient_of(value: RelayExpr, ty: Type) -> RelayExpr:
    """What the cells of a value say."""
    return map_tensors(value, ty, lambda pair, _: RefRead(TupleGetItem(pair, 1)))


def _fill_cells(value: RelayExpr, ty: Type, lets: LetList) -> None:
    """The gradient of a result by itself: ones."""
    for pair, tensor_type in tensors_in(value, ty):
        ones = ops.ones_like(_without_cell(pair, tensor_type))
        lets.push(RefWrite(TupleGetItem(pair, 1), ones), None, "seed")


def _add_to_cells(value: RelayExpr, ty: Type, grad: RelayExpr, lets: LetList) -> None:
    for (pair, tensor_type), (part, _) in zip(
        tensors_in(value, ty), tensors_in(grad, ty), strict=True
    ):
        if not (type(tensor_type) is TensorType and tensor_type.dtype == "bool"):
            cell = TupleGetItem(pair, 1)
            lets.push(RefWrite(cell, ops.add(RefRead(cell), part)), None, "u")


class _Reverse(TensorLifter):
    """Rewrites functions to functions on values with cells."""

    def __init__(self, mod: IRModule | None, steps: Var) -> None:
        super().__init__(mod)
        self.steps = steps
        self.globals: dict[str, GlobalVar] = {}

    def lifted_tensor(self, ty: TensorType) -> Type:
        return TupleType([ty, RelayRefType(ty)])

    def constant(self, node: Constant) -> RelayExpr:
        return _lifted_value(node, infer_type_of(node))

    def condition(self, value: RelayExpr) -> RelayExpr:
        return TupleGetItem(value, 0)

    def global_call(self, call: Call, args: list[RelayExpr], lets: LetList) -> RelayExpr:
        assert type(call.op) is GlobalVar
        return Call(self._global(call.op), [self.steps, *args])

    def operator(self, call: Call, args: list[Var], lets: LetList) -> RelayExpr:
        types = [infer_type_of(a, self.mod) for a in call.args]
        plain = [lets.push(_primal(a, t), t, "p") for a, t in zip(args, types, strict=True)]
        original = call.replace(args=tuple(plain))
        ty = infer_type_of(call, self.mod)
        value = lets.push(original, ty, "y")
        result = lets.push(_lifted_value(value, ty), self.lifted_type(ty), "r")
        before = lets.push(RefRead(self.steps), _STEP, "before")
        inner = LetList()
        grad = inner.push(_gradient_of(result, ty), ty, "g")

        def reuse(old: RelayExpr, new: RelayExpr) -> RelayExpr:
            return value if old is original else new

        for arg, arg_type, part in zip(
            args, types, operator_gradients(original, grad), strict=True
        ):
            _add_to_cells(arg, arg_type, rewrite_post_order(part, reuse), inner)
        step = Function([], inner.get(Call(before, [])), TupleType(()))
        lets.push(RefWrite(self.steps, step), TupleType(()), "u")
        return result

    def global_value(self, gvar: GlobalVar) -> Function:
        ty = self.lifted_type(function_type_of(gvar, self.mod))
        assert type(ty) is FuncType
        params = [Var(f"x{i}", t) for i, t in enumerate(ty.arg_types)]
        body = Call(self._global(gvar), [self.steps, *params])
        return Function(params, body, ty.ret_type, ty.type_params)

    def _global(self, gvar: GlobalVar) -> GlobalVar:
        """The version with cells of a global function; it takes the steps first."""
        if (known := self.globals.get(gvar.name_hint)) is not None:
            return known
        assert self.mod is not None  # inference found the function
        names = UniqueNames()
        for other in self.mod.functions:
            names.reserve(other.name_hint)
        new = self.globals[gvar.name_hint] = GlobalVar(names.fresh(f"{gvar.name_hint}_grad"))
        outer, self.steps = self.steps, Var("steps", _STEPS)
        made = self.function(self.mod[gvar])
        self.mod[new] = made.replace(params=(self.steps, *made.params))
        self.steps = outer
        return new
