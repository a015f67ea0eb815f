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
from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.type import (
    FuncType,
    RelayRefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
)
from tvm.relay.adt import (
    Clause,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
)
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import (
    Call,
    Constant,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from tvm.relay.function import Function, is_primitive
from tvm.relay.transform.first_order_gradient import first_order_gradient, operator_gradients
from tvm.relay.transform.let_list import LetList
from tvm.relay.transform.normal_form import ToANormalFormExpr
from tvm.relay.transform.operators import ADD, ONES_LIKE, ZEROS_LIKE
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
    ty = infer_type_of(func).ret_type
    _fill_cells(result, ty, lets)
    lets.push(Call(RefRead(steps), []), None, "done")
    gradients = [_gradient_of(a, infer_type_of(p)) for a, p in zip(args, params, strict=True)]
    body = lets.get(Tuple([_primal(result, ty), Tuple(gradients)]))
    arg_types = TupleType([infer_type_of(p) for p in params])
    return Function(params, body, TupleType([ty, arg_types]), func.type_params)


def lifted_type(ty: Type) -> Type:
    """The type of a value with the cells of its tensors."""
    if isinstance(ty, TensorType):
        return TupleType([ty, RelayRefType(ty)])
    if isinstance(ty, (TupleType, FuncType, RelayRefType)):
        return ty.map_children(lifted_type)
    if isinstance(ty, TypeCall):
        return TypeCall(ty.func, [lifted_type(a) for a in ty.args])
    return ty


def _lifted_value(value: RelayExpr, ty: Type) -> RelayExpr:
    """Tensors with cells of zeros."""
    if isinstance(ty, TensorType):
        return Tuple([value, RefCreate(ZEROS_LIKE(value))])
    if isinstance(ty, TupleType):
        fields = enumerate(ty.fields)
        return Tuple([_lifted_value(TupleGetItem(value, i), t) for i, t in fields])
    raise TVMError(
        f"the gradient requires tensors and tuples of tensors as parameters and results, got {ty}"
    )


def _primal(value: RelayExpr, ty: Type) -> RelayExpr:
    """The value without its cells."""
    if isinstance(ty, TupleType):
        return Tuple([_primal(TupleGetItem(value, i), t) for i, t in enumerate(ty.fields)])
    if not isinstance(ty, TensorType):
        raise TVMError(f"the gradient requires tensors and tuples as results, got {ty}")
    return TupleGetItem(value, 0)


def _gradient_of(value: RelayExpr, ty: Type) -> RelayExpr:
    """What the cells of a value say."""
    if isinstance(ty, TupleType):
        return Tuple([_gradient_of(TupleGetItem(value, i), t) for i, t in enumerate(ty.fields)])
    return RefRead(TupleGetItem(value, 1))


def _fill_cells(value: RelayExpr, ty: Type, lets: LetList) -> None:
    """The gradient of a result by itself: ones."""
    if isinstance(ty, TupleType):
        for i, field in enumerate(ty.fields):
            _fill_cells(TupleGetItem(value, i), field, lets)
    else:
        ones = ONES_LIKE(_primal(value, ty))
        lets.push(RefWrite(TupleGetItem(value, 1), ones), None, "seed")


def _add_to_cells(value: RelayExpr, ty: Type, grad: RelayExpr, lets: LetList) -> None:
    if isinstance(ty, TupleType):
        for i, field in enumerate(ty.fields):
            part = grad.fields[i] if isinstance(grad, Tuple) else TupleGetItem(grad, i)
            _add_to_cells(TupleGetItem(value, i), field, part, lets)
    elif not (isinstance(ty, TensorType) and ty.dtype == "bool"):
        cell = TupleGetItem(value, 1)
        lets.push(RefWrite(cell, ADD(RefRead(cell), grad)), None, "u")


class _Reverse:
    """Rewrites functions to functions on values with cells."""

    def __init__(self, mod: IRModule | None, steps: Var) -> None:
        self.mod = mod
        self.steps = steps
        self.new: dict[int, RelayExpr] = {}  # by the old variable
        self.globals: dict[str, GlobalVar] = {}

    def function(self, func: Function) -> Function:
        """The function on values with cells."""
        func = _named_values(func, self.mod)
        params = [self._variable(p) for p in func.params]
        ty = lifted_type(infer_type_of(func.body, self.mod))
        return Function(params, self._block(func.body), ty, func.type_params)

    def _variable(self, old: Var) -> Var:
        new = Var(old.name_hint, lifted_type(infer_type_of(old, self.mod)))
        self.new[id(old)] = new
        return new

    def _block(self, body: RelayExpr) -> RelayExpr:
        lets = LetList()
        while isinstance(body, Let):
            variable = self._variable(body.var)
            lets.bind(variable, self._value(body.value, lets))
            body = body.body
        return lets.get(self._value(body, lets))

    def _value(self, node: RelayExpr, lets: LetList) -> RelayExpr:
        if isinstance(node, Var):
            return self.new[id(node)]
        if isinstance(node, Constant):
            return _lifted_value(node, infer_type_of(node))
        if isinstance(node, Call):
            return self._call(node, lets)
        if isinstance(node, Tuple):
            return Tuple([self._value(f, lets) for f in node.fields])
        if isinstance(node, TupleGetItem):
            return TupleGetItem(self._value(node.tuple_value, lets), node.index)
        if isinstance(node, If):
            cond = TupleGetItem(self._value(node.cond, lets), 0)
            return If(cond, self._block(node.true_branch), self._block(node.false_branch))
        if isinstance(node, Function):
            return self._inner_function(node)
        if isinstance(node, Match):
            return self._match(node, lets)
        if isinstance(node, RefCreate):
            return RefCreate(self._value(node.value, lets))
        if isinstance(node, RefRead):
            return RefRead(self._value(node.ref, lets))
        if isinstance(node, RefWrite):
            return RefWrite(self._value(node.ref, lets), self._value(node.value, lets))
        if isinstance(node, GlobalVar):
            return self._global_closure(node)
        if isinstance(node, Constructor):
            return node
        raise TVMError(f"gradient cannot differentiate a {type(node).__name__}", at=node)

    def _inner_function(self, func: Function) -> Function:
        if is_primitive(func):
            raise TVMError("gradient requires a program before fusion", hint="run DefuseOps first")
        params = [self._variable(p) for p in func.params]
        ty = lifted_type(infer_type_of(func, self.mod).ret_type)
        return Function(params, self._block(func.body), ty, func.type_params)

    def _match(self, node: Match, lets: LetList) -> RelayExpr:
        clauses = []
        for clause in node.clauses:
            pattern = self._pattern(clause.lhs)
            clauses.append(Clause(pattern, self._block(clause.rhs)))
        return Match(self._value(node.data, lets), clauses, node.complete)

    def _pattern(self, pattern: Pattern) -> Pattern:
        if isinstance(pattern, PatternVar):
            return PatternVar(self._variable(pattern.var))
        if isinstance(pattern, (PatternConstructor, PatternTuple)):
            return pattern.replace(patterns=tuple([self._pattern(p) for p in pattern.patterns]))
        return pattern

    # -- calls

    def _call(self, call: Call, lets: LetList) -> RelayExpr:
        args = [self._value(a, lets) for a in call.args]
        if isinstance(call.op, Op):
            return self._operator(call, [lets.push(a, None, "a") for a in args], lets)
        if isinstance(call.op, GlobalVar):
            return Call(self._global(call.op), [self.steps, *args])
        return Call(self._value(call.op, lets), args)

    def _operator(self, call: Call, args: list[Var], lets: LetList) -> RelayExpr:
        types = [infer_type_of(a, self.mod) for a in call.args]
        plain = [lets.push(_primal(a, t), t, "p") for a, t in zip(args, types, strict=True)]
        original = call.replace(args=tuple(plain))
        ty = infer_type_of(call, self.mod)
        value = lets.push(original, ty, "y")
        result = lets.push(_lifted_value(value, ty), lifted_type(ty), "r")
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

    def _global_closure(self, gvar: GlobalVar) -> Function:
        ty = lifted_type(infer_type_of(gvar, self.mod))
        assert isinstance(ty, FuncType)
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


def _named_values(func: Function, mod: IRModule | None) -> Function:
    """The function as lets, with types."""
    result = ToANormalFormExpr(func)
    assert isinstance(result, Function)
    infer_type_of(result, mod)
    return result
