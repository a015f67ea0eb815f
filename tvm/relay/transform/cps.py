"""Programs that never return: each function takes what is to be done with its result.

fn (%x: float32) -> float32 {        fn [answer](%x: float32, %k: fn (float32) -> answer) -> answer {
  let %y = %f(%x);             ->      %f(%x, fn (%y: float32) -> answer { %k(exp(%y)) })
  exp(%y)                            }
}

Operators and constructors stay as they are: they return at once.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm.error import TVMError
from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.type import FuncType, RelayRefType, TupleType, Type, TypeCall, TypeVar
from tvm.ir.visitor import ContextVisitor
from tvm.relay.adt import Clause, Match
from tvm.relay.analysis.infer import function_type_of, infer_type_of
from tvm.relay.analysis.unify import instantiate
from tvm.relay.expr import Call, If, Let, Var
from tvm.relay.function import Function, is_primitive
from tvm.relay.transform.normal_form import name_results
from tvm.relay.traverse import operands, with_operands, with_pattern_vars
from tvm.support import UniqueNames, deep

Then = Callable[[RelayExpr], RelayExpr]  # from a value to the rest of the program


@deep
def to_cps(func: Function, mod: IRModule | None = None) -> Function:
    """The function with one parameter more, which takes its result.

    Parameters
    ----------
    func : any function.
    mod : the module of the functions it calls; it gets their versions of this kind.
    """
    return _Passing(mod).function(func)


def ToCPS(expr: Function, mod: IRModule | None = None) -> Function:
    """`to_cps` (classic name)."""
    return to_cps(expr, mod)


def un_cps(func: Function) -> Function:
    """The ordinary function that a function made by `to_cps` stands for."""
    if not func.params or not isinstance(func.params[-1].type_annotation, FuncType):
        raise TVMError("un_cps requires a function whose last parameter takes its result")
    result = func.params[-1].type_annotation.arg_types[0]
    binding = {id(p): result for p in func.type_params[-1:]}
    types = [p.type_annotation for p in func.params[:-1]]
    params = [
        Var(p.name_hint, None if ty is None else instantiate(ty, dict(binding)))
        for p, ty in zip(func.params[:-1], types, strict=True)
    ]
    value = Var("value", result)
    body = Call(func, [*params, Function([value], value, result)])
    return Function(params, body, result, func.type_params[:-1])


def cps_type(ty: Type, answer: Type) -> Type:
    """The type with functions that take what is to be done with their result."""
    if isinstance(ty, FuncType):
        args = [cps_type(a, answer) for a in ty.arg_types]
        then = FuncType([cps_type(ty.ret_type, answer)], answer)
        return FuncType([*args, then], answer, ty.type_params)
    if isinstance(ty, (TupleType, RelayRefType)):
        return ty.map_children(lambda part: cps_type(part, answer))
    if isinstance(ty, TypeCall):
        return TypeCall(ty.func, [cps_type(a, answer) for a in ty.args])
    return ty


class _Passing(ContextVisitor):
    """Rewrites the functions of one program, all with one type of answer each."""

    def __init__(self, mod: IRModule | None) -> None:
        self.mod = mod
        self.globals: dict[str, GlobalVar] = {}
        self.answer: TypeVar = TypeVar("answer")
        self.new: dict[int, Var] = {}

    def function(self, func: Function) -> Function:
        """A global function; it has its own type of answer."""
        named = name_results(func)
        assert isinstance(named, Function)
        infer_type_of(named, self.mod)
        outer, self.answer = self.answer, TypeVar("answer")
        made = self._function(named)
        made = made.replace(type_params=(*func.type_params, self.answer))
        self.answer = outer
        return made

    def _function(self, func: Function) -> Function:
        params = [self._variable(p) for p in func.params]
        result = cps_type(function_type_of(func, self.mod).ret_type, self.answer)
        then = Var("k", FuncType([result], self.answer))
        body = self._block(func.body, lambda value: Call(then, [value]))
        return Function([*params, then], body, self.answer, func.type_params)

    def _variable(self, old: Var) -> Var:
        ty = cps_type(infer_type_of(old, self.mod), self.answer)
        self.new[id(old)] = Var(old.name_hint, ty)
        return self.new[id(old)]

    def _block(self, body: RelayExpr, then: Then) -> RelayExpr:
        if not isinstance(body, Let):
            return self._bound(body, None, then)
        variable = self._variable(body.var)

        def rest(value: RelayExpr) -> RelayExpr:
            inner = self._block(body.body, then)
            return inner if value is variable else Let(variable, value, inner)

        return self._bound(body.value, variable, rest)

    def _bound(self, value: RelayExpr, variable: Var | None, then: Then) -> RelayExpr:
        """The rest of the program after `value`, which `variable` is to hold."""
        if isinstance(value, Call) and not self._returns_at_once(value):
            args = [self.visit(a) for a in value.args]
            return Call(self.visit(value.op), [*args, self._reified(value, variable, then)])
        if isinstance(value, (If, Match)):
            return self._branches(value, variable, then)
        return then(self.visit(value))

    def _reified(self, value: RelayExpr, variable: Var | None, then: Then) -> Function:
        """The rest of the program as a function."""
        ty = cps_type(infer_type_of(value, self.mod), self.answer)
        param = variable if variable is not None else Var("value", ty)
        return Function([param], then(param), self.answer)

    def _branches(self, value: If | Match, variable: Var | None, then: Then) -> RelayExpr:
        rest = self._reified(value, variable, then)
        name = Var("rest", FuncType([infer_type_of(rest.params[0])], self.answer))

        def join(result: RelayExpr) -> RelayExpr:
            return Call(name, [result])

        if isinstance(value, If):
            then_branch = self._block(value.true_branch, join)
            other = self._block(value.false_branch, join)
            return Let(name, rest, If(self.visit(value.cond), then_branch, other))
        clauses = [
            Clause(with_pattern_vars(c.lhs, self._variable), self._block(c.rhs, join))
            for c in value.clauses
        ]
        return Let(name, rest, Match(self.visit(value.data), clauses, value.complete))

    def _returns_at_once(self, call: Call) -> bool:
        return isinstance(call.op, (Op, Constructor)) or is_primitive(call.op)

    def visit_relay_expr(self, node: RelayExpr) -> RelayExpr:
        below = operands(node)
        return with_operands(node, [self.visit(o) for o in below]) if below else node

    def visit_var(self, node: Var) -> RelayExpr:
        return self.new[id(node)]

    def visit_function(self, node: Function) -> RelayExpr:
        return node if is_primitive(node) else self._function(node)

    def visit_global_var(self, gvar: GlobalVar) -> GlobalVar:
        if (known := self.globals.get(gvar.name_hint)) is not None:
            return known
        if self.mod is None:
            raise TVMError(f"to_cps requires the module that defines @{gvar.name_hint}")
        names = UniqueNames()
        for other in self.mod.functions:
            names.reserve(other.name_hint)
        new = self.globals[gvar.name_hint] = GlobalVar(names.fresh(f"{gvar.name_hint}_cps"))
        self.mod[new] = self.function(self.mod[gvar])
        return new
