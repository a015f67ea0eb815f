"""Types that only the whole function tells, by unification.

    let %f = fn (%g) { fn (%a) { add(%g(%a), %x) } };      %g: fn (Tensor[(2,)]) -> Tensor[(2,)]
    let %h = fn (%b) { negative(%b) };                ->   %a: Tensor[(2,)]
    %f(%h)(%y)                                             %b: Tensor[(2,)]

Every expression has a type of variables at first; what stands where gives equations, which are
solved as far as they go; the relation of an operator gives one more as soon as the types of its
arguments are known. What results is written down at the variables and the functions.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm.error import TypeCheckError
from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.type import (
    FuncType,
    IncompleteType,
    RelayRefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from tvm.relay.adt import Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from tvm.relay.analysis.argument_types import fill_argument_types
from tvm.relay.analysis.unify import Binding, fresh_variables, instantiate, unify
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
from tvm.relay.function import Function
from tvm.relay.traverse import post_order, rewrite_function

Equation = Callable[[], bool]  # solves what it can; whether there is nothing left to solve
Declared = Callable[[GlobalVar], Type]


class _Unsolvable(Exception):
    """Two types that must be one differ."""


def with_solved_types(func: Function, mod: IRModule, declared: Declared) -> Function | None:
    """The function with the types of all variables; None if they are not told, or do not fit.

    `declared` gives the types of other functions of the module.
    """
    solver = _Solver(mod, declared)
    try:
        solver.solve(func)
    except (_Unsolvable, TypeCheckError):
        return None
    return solver.written(func)


class _Solver:
    def __init__(self, mod: IRModule, declared: Declared) -> None:
        self.mod = mod
        self.declared = declared
        self.binding: Binding = {}
        self.types: dict[int, Type] = {}
        self.variables: list[TypeVar] = []  # so that ids stay theirs
        self.equations: list[Equation] = []

    def solve(self, func: Function) -> None:
        """Find the types of everything in the function."""
        for node in post_order(func):
            self.types[id(node)] = self._type(node)
            self._equate(node)
        while self.equations:
            left = [equation for equation in self.equations if not equation()]
            if len(left) == len(self.equations):
                return
            self.equations = left

    def written(self, func: Function) -> Function | None:
        """The function with types where they were left out, in nodes without types of their own."""
        missing: list[RelayExpr] = []

        def write(old: RelayExpr, new: RelayExpr) -> RelayExpr:
            if isinstance(new, Var) and new.type_annotation is None:
                found = self._known(self.types[id(old)])
                missing.extend([old] if found is None else [])
                return new.replace(type_annotation=found)
            if isinstance(new, Function) and new.ret_type is None:
                assert isinstance(old, Function)
                found = self._known(self.types[id(old.body)])
                missing.extend([old] if found is None else [])
                return new.replace(ret_type=found)
            is_shared = isinstance(new, (Op, Constructor, GlobalVar, Var))
            return new if is_shared or new is not old else new.replace()

        result = rewrite_function(func, write)
        return None if missing else result

    # -- types with variables

    def _fresh(self) -> TypeVar:
        variable = TypeVar(f"t{len(self.variables)}")
        self.variables.append(variable)
        self.binding[id(variable)] = None
        return variable

    def _opened(self, ty: Type) -> Type:
        """A polymorphic type, or one with parts left out, with variables of its own."""
        if isinstance(ty, IncompleteType):
            return self._fresh()
        if isinstance(ty, FuncType) and ty.type_params:
            ty, variables = fresh_variables(ty)
            self.variables.extend(ty.type_params)
            self.binding.update(variables)
            return FuncType(ty.arg_types, ty.ret_type)
        return ty

    def _known(self, ty: Type) -> Type | None:
        """The type, if it is known to the end."""
        found = instantiate(ty, self.binding)
        return None if self._is_open(found) else found

    def _is_open(self, ty: Type) -> bool:
        if id(ty) in self.binding or isinstance(ty, IncompleteType):
            return True
        return any([self._is_open(part) for part in ty.children() if isinstance(part, Type)])

    def _seen(self, ty: Type) -> Type:
        """The type as far as its kind is known."""
        return instantiate(ty, self.binding)

    def of(self, node: RelayExpr) -> Type:
        """The type of an expression, which may have variables."""
        return self.types[id(node)]

    def _same(self, a: Type, b: Type) -> bool:
        if not unify(a, b, self.binding):
            raise _Unsolvable
        return True

    def _type(self, node: RelayExpr) -> Type:
        if isinstance(node, Var):
            return self._fresh() if node.type_annotation is None else node.type_annotation
        if isinstance(node, Constant):
            return TensorType(tuple(node.data.shape), node.data.dtype)
        if isinstance(node, GlobalVar):
            return self._opened(self.declared(node))
        if isinstance(node, Constructor):
            return self._constructor(node)
        if isinstance(node, Tuple):
            return TupleType([self.of(f) for f in node.fields])
        if isinstance(node, Function):
            result = node.ret_type or self.of(node.body)
            return FuncType([self.of(p) for p in node.params], result, node.type_params)
        if isinstance(node, Let):
            return self.of(node.body)
        if isinstance(node, RefCreate):
            return RelayRefType(self.of(node.value))
        if isinstance(node, RefWrite):
            return TupleType(())
        return self._fresh()

    def _constructor(self, constructor: Constructor) -> Type:
        header = constructor.belong_to
        data = self.mod.type_definitions.get(header)
        type_vars = constructor.type_vars if data is None else tuple(data.type_vars)
        return self._opened(FuncType(constructor.inputs, TypeCall(header, type_vars), type_vars))

    # -- equations

    def _equate(self, node: RelayExpr) -> None:
        if isinstance(node, Let):
            self._same(self.of(node.var), self._opened(self.of(node.value)))
        elif isinstance(node, If):
            self._same(self.of(node.cond), TensorType((), "bool"))
            for branch in (node.true_branch, node.false_branch):
                self._same(self.of(node), self.of(branch))
        elif isinstance(node, Function):
            if node.ret_type is not None:
                self._same(node.ret_type, self.of(node.body))
        elif isinstance(node, TupleGetItem):
            self.equations.append(lambda: self._item(node))
        elif isinstance(node, RefRead):
            self._same(self.of(node.ref), RelayRefType(self.of(node)))
        elif isinstance(node, RefWrite):
            self._same(self.of(node.ref), RelayRefType(self.of(node.value)))
        elif isinstance(node, Match):
            for clause in node.clauses:
                self._pattern(clause.lhs, self.of(node.data))
                self._same(self.of(node), self.of(clause.rhs))
        elif isinstance(node, Call) and isinstance(node.op, Op):
            self.equations.append(lambda: self._operator(node))
        elif isinstance(node, Call):
            used_as = FuncType([self.of(a) for a in node.args], self.of(node))
            self._same(self._opened(self._seen(self.of(node.op))), used_as)

    def _item(self, item: TupleGetItem) -> bool:
        ty = self._seen(self.of(item.tuple_value))
        if not isinstance(ty, TupleType):
            return False
        return item.index < len(ty.fields) and self._same(self.of(item), ty.fields[item.index])

    def _operator(self, call: Call) -> bool:
        known = [self._known(self.of(a)) for a in call.args]
        derived = fill_argument_types(call.operator, call.attrs, known)
        for arg, found in zip(call.args, derived, strict=True):
            if found is not None:
                self._same(self.of(arg), found)
        arg_types = [ty for ty in derived if ty is not None]
        if len(arg_types) < len(call.args) or call.operator.infer_type is None:
            return False
        return self._same(self.of(call), call.operator.infer_type(call.attrs, arg_types))

    def _pattern(self, pattern: Pattern, ty: Type) -> None:
        if isinstance(pattern, PatternVar):
            self._same(self.of(pattern.var), ty)
        elif isinstance(pattern, PatternTuple):
            fields = [self._fresh() for _ in pattern.patterns]
            self._same(ty, TupleType(fields))
            for inner, field in zip(pattern.patterns, fields, strict=True):
                self._pattern(inner, field)
        elif isinstance(pattern, PatternConstructor):
            built = self._constructor(pattern.constructor)
            assert isinstance(built, FuncType)
            self._same(ty, built.ret_type)
            for inner, expected in zip(pattern.patterns, built.arg_types, strict=True):
                self._pattern(inner, expected)
