"""Do at compile time what is known then: calls of known functions, projections, branches, cells.

    let %f = fn (%y) { (%y, ref(1f)) };
    let %p = %f(%x);                        ->    add(%x, 1f)
    add(%p.0, ref_read(%p.1))

Every expression is evaluated to what is known of its value, together with code that computes it.
Calls of known functions are evaluated in place; a function that calls itself is followed as long
as its arguments are known, up to a number of times. Where control depends on values of the run,
what was known of cells is forgotten. Unused lets remain for `DeadCodeElimination`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import tvm.relay.expr as nodes
from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.ir.type import Type
from tvm.ir.visitor import ContextVisitor
from tvm.relay.adt import Clause, Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from tvm.relay.analysis.contents import check_constant
from tvm.relay.analysis.infer import known_type
from tvm.relay.analysis.unify import Binding, instantiate, unify
from tvm.relay.function import Function, is_opaque, is_primitive
from tvm.relay.transform.common import map_relay_functions
from tvm.relay.transform.fold_constant import ConstantFolder
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.transform.let_list import LetList
from tvm.relay.transform.normal_form import NameResults
from tvm.relay.traverse import split_lets, with_pattern_vars
from tvm.support import deep

# how often the calls of one function are followed inside of each other, and calls in all
MAX_NESTED_CALLS = 64
MAX_CALLS = 10_000


@dataclass(eq=False)
class Known:
    """What is known of a value, and the variable or constant that holds it."""

    code: RelayExpr
    form: Form | None = None


@dataclass(eq=False)
class TupleForm:
    fields: list[Known]


@dataclass(eq=False)
class DataForm:
    constructor: Constructor
    fields: list[Known]


@dataclass(eq=False)
class FunctionForm:
    func: Function
    env: Env
    level: int | None = None  # how many functions it was made inside of, None if it is global


@dataclass(eq=False)
class CellForm:
    """A cell; what it holds is in the store."""


Form: TypeAlias = "TupleForm | DataForm | FunctionForm | CellForm | Constructor"


@dataclass(eq=False)
class Env:
    """What variables stand for, inside out."""

    outer: Env | None = None
    values: dict[int, Known] = field(default_factory=dict)
    types: Binding = field(default_factory=dict)

    def find(self, variable: nodes.Var) -> Known | None:
        env: Env | None = self
        while env is not None:
            if (found := env.values.get(id(variable))) is not None:
                return found
            env = env.outer
        return None

    def type_of(self, ty: Type | None) -> Type | None:
        """A type in terms of what the parameters of polymorphic functions are here."""
        return None if ty is None else instantiate(ty, self.types)

    def inner(self, values: dict[int, Known] | None = None) -> Env:
        """The environment of a block inside."""
        return Env(self, values or {}, self.types)


Store = dict[int, Known]  # what cells hold, where it is known


class PartialEvaluator(ContextVisitor):
    """Evaluates the functions of one module."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.store: Store = {}
        self.cells: list[CellForm] = []  # kept, so that their identities stay theirs
        self.depth: dict[int, int] = {}  # of calls being followed, by function
        self.level = 0
        self.calls = 0
        self.folder = ConstantFolder()

    @deep
    def run(self, func: Function) -> Function:
        """The function with its body evaluated."""
        return self._residual(FunctionForm(func, Env()))

    # -- functions

    def _residual(self, form: FunctionForm) -> Function:
        """A function whose arguments and whose time of calling are unknown."""
        func = form.func
        if is_opaque(func):
            return func
        outer_store, self.store = self.store, {}
        self.level += 1
        key = id(func)
        self.depth[key] = self.depth.get(key, 0) + MAX_NESTED_CALLS  # not to be followed inside
        env = form.env.inner()
        params = [nodes.Var(p.name_hint, env.type_of(p.type_annotation)) for p in func.params]
        env.values.update({id(p): Known(new) for p, new in zip(func.params, params, strict=True)})
        lets = LetList()
        result = self._evaluate(func.body, env, lets)
        self.depth[key] -= MAX_NESTED_CALLS
        self.level -= 1
        self.store = outer_store
        ret_type = env.type_of(func.ret_type)
        return func.replace(params=tuple(params), body=lets.get(result.code), ret_type=ret_type)

    def _block(self, body: RelayExpr, env: Env) -> RelayExpr:
        lets = LetList()
        result = self._evaluate(body, env.inner(), lets)
        return lets.get(result.code)

    # -- expressions

    def _evaluate(self, body: RelayExpr, env: Env, lets: LetList) -> Known:
        bindings, result = split_lets(body)
        memo = env.values
        for let in bindings:
            memo[id(let.var)] = self._let(let, env, lets)
        if (known := memo.get(id(result))) is None:
            known = self.visit(result, env, lets)
            if type(result) is not nodes.Var:
                memo[id(result)] = known
        return known

    def _let(self, let: nodes.Let, env: Env, lets: LetList) -> Known:
        if type(let.value) is Function and not is_primitive(let.value):
            # it may call itself: inside, its name is what its code calls
            variable = nodes.Var(let.var.name_hint, env.type_of(let.var.type_annotation))
            form = FunctionForm(let.value, env, self.level)
            env.values[id(let.var)] = Known(variable, form)
            lets.bind(variable, self._residual(form))
            return Known(variable, form)
        return self._evaluate(let.value, env, lets)

    def visit_relay_expr(self, node: RelayExpr, env: Env, lets: LetList) -> Known:
        """Constants, operators and kernels are what they are."""
        return Known(node)

    def visit_var(self, node: nodes.Var, env: Env, lets: LetList) -> Known:
        return env.find(node) or Known(node)

    def visit_constructor(self, node: Constructor, env: Env, lets: LetList) -> Known:
        return Known(node, node)

    def visit_function(self, node: Function, env: Env, lets: LetList) -> Known:
        if is_primitive(node):
            return Known(node)
        form = FunctionForm(node, env, self.level)
        return Known(lets.push(self._residual(form), None, "f"), form)

    def visit_tuple(self, node: nodes.Tuple, env: Env, lets: LetList) -> Known:
        fields = [self._evaluate(f, env, lets) for f in node.fields]
        made = node.replace(fields=tuple([f.code for f in fields]))
        return Known(lets.push(made), TupleForm(fields))

    def visit_tuple_get_item(self, node: nodes.TupleGetItem, env: Env, lets: LetList) -> Known:
        value = self._evaluate(node.tuple_value, env, lets)
        if isinstance(value.form, TupleForm):
            return value.form.fields[node.index]
        return Known(lets.push(node.replace(tuple_value=value.code)))

    def visit_global_var(self, gvar: GlobalVar, env: Env, lets: LetList) -> Known:
        func = self.mod.functions.get(gvar)
        if type(func) is Function and not is_opaque(func):
            return Known(gvar, FunctionForm(func, Env()))
        return Known(gvar)

    # -- references

    def visit_ref_create(self, node: nodes.RefCreate, env: Env, lets: LetList) -> Known:
        value = self._evaluate(node.value, env, lets)
        cell = CellForm()
        self.cells.append(cell)
        self.store[id(cell)] = value
        return Known(lets.push(nodes.RefCreate(value.code), None, "r"), cell)

    def visit_ref_read(self, node: nodes.RefRead, env: Env, lets: LetList) -> Known:
        ref = self._evaluate(node.ref, env, lets)
        if isinstance(ref.form, CellForm) and (held := self.store.get(id(ref.form))):
            return held
        return Known(lets.push(nodes.RefRead(ref.code)))

    def visit_ref_write(self, node: nodes.RefWrite, env: Env, lets: LetList) -> Known:
        ref = self._evaluate(node.ref, env, lets)
        value = self._evaluate(node.value, env, lets)
        code = lets.push(nodes.RefWrite(ref.code, value.code), None, "u")
        if isinstance(ref.form, CellForm):
            self.store[id(ref.form)] = value
        else:  # any of them
            self.store.clear()
        return Known(code, TupleForm([]))

    # -- branches

    def visit_if(self, node: nodes.If, env: Env, lets: LetList) -> Known:
        cond = self._evaluate(node.cond, env, lets)
        if type(cond.code) is nodes.Constant:
            taken = node.true_branch if cond.code.data.numpy() else node.false_branch
            return self._evaluate(taken, env.inner(), lets)
        before = dict(self.store)
        then = self._block(node.true_branch, env)
        after_then, self.store = self.store, dict(before)
        other = self._block(node.false_branch, env)
        self._keep_common(after_then)
        return Known(lets.push(node.replace(cond=cond.code, true_branch=then, false_branch=other)))

    def _keep_common(self, store: Store) -> None:
        """Of two ways that may have been taken, what is the same."""
        self.store = {key: v for key, v in self.store.items() if store.get(key) is v}

    # -- calls

    def visit_call(self, call: nodes.Call, env: Env, lets: LetList) -> Known:
        args = [self._evaluate(a, env, lets) for a in call.args]
        if type(call.op) is Op:
            return self._operator(call, args, lets)
        callee = self._evaluate(call.op, env, lets)
        if isinstance(callee.form, Constructor):
            code = lets.push(call.replace(op=callee.code, args=_codes(args)))
            return Known(code, DataForm(callee.form, args))
        if isinstance(callee.form, FunctionForm) and self._is_followed(callee.form, args):
            types = [env.type_of(known_type(a)) for a in call.args]
            return self._follow(callee.form, args, types, lets)
        if not is_primitive(callee.code):
            self.store.clear()  # unknown code may write to any cell
        return Known(lets.push(call.replace(op=callee.code, args=_codes(args))))

    def _operator(self, call: nodes.Call, args: list[Known], lets: LetList) -> Known:
        new = call.replace(args=_codes([self._as_tuple(a) for a in args]))
        if all([check_constant(a) for a in new.args]):
            folded = self.folder.fold(new)
            if type(folded) is nodes.Constant:
                return Known(folded)
        return Known(lets.push(call.replace(args=_codes(args))))

    def _as_tuple(self, value: Known) -> Known:
        """A tuple of constants as one expression."""
        if isinstance(value.form, TupleForm) and value.form.fields:
            return Known(nodes.Tuple([self._as_tuple(f).code for f in value.form.fields]))
        return value

    def _is_followed(self, form: FunctionForm, args: list[Known]) -> bool:
        nested = self.depth.get(id(form.func), 0)
        if nested >= MAX_NESTED_CALLS or self.calls >= MAX_CALLS:
            return False
        # the code of a function does not repeat that of functions around it
        if form.level is not None and form.level != self.level:
            return False
        # inside of itself, a function is followed if what it gets is known
        return nested == 0 or any([a.form is not None or check_constant(a.code) for a in args])

    def _follow(
        self, form: FunctionForm, args: list[Known], types: list[Type | None], lets: LetList
    ) -> Known:
        func, key = form.func, id(form.func)
        self.calls += 1
        self.depth[key] = self.depth.get(key, 0) + 1
        env = form.env.inner({id(p): a for p, a in zip(func.params, args, strict=True)})
        env.types = {**env.types, **{id(p): None for p in func.type_params}}
        for param, ty in zip(func.params, types, strict=True):
            if param.type_annotation is not None and ty is not None:
                unify(param.type_annotation, ty, env.types)
        result = self._evaluate(func.body, env, lets)
        self.depth[key] -= 1
        return result

    # -- match

    def visit_match(self, node: Match, env: Env, lets: LetList) -> Known:
        data = self._evaluate(node.data, env, lets)
        for clause in node.clauses:
            bound: dict[int, Known] = {}
            fits = _fits(clause.lhs, data, bound)
            if fits is None:
                return self._residual_match(node, data, env, lets)
            if fits:
                return self._evaluate(clause.rhs, env.inner(bound), lets)
        return self._residual_match(node, data, env, lets)

    def _residual_match(self, node: Match, data: Known, env: Env, lets: LetList) -> Known:
        before, kept = dict(self.store), dict(self.store)
        clauses = []
        for clause in node.clauses:
            self.store = dict(before)
            fresh = {
                v: nodes.Var(v.name_hint, env.type_of(v.type_annotation))
                for v in clause.lhs.bound_vars()
            }
            inner = env.inner({id(old): Known(new) for old, new in fresh.items()})
            clauses.append(
                Clause(
                    with_pattern_vars(clause.lhs, fresh.__getitem__), self._block(clause.rhs, inner)
                )
            )
            kept = {key: v for key, v in kept.items() if self.store.get(key) is v}
        self.store = kept
        return Known(lets.push(node.replace(data=data.code, clauses=tuple(clauses))))


def _codes(values: list[Known]) -> tuple[RelayExpr, ...]:
    return tuple([v.code for v in values])


def _fits(pattern: Pattern, value: Known, bound: dict[int, Known]) -> bool | None:
    """Whether a value has the form of a pattern, None if that is not known."""
    if type(pattern) is PatternVar:
        bound[id(pattern.var)] = value
        return True
    if type(pattern) is PatternConstructor:
        if not isinstance(value.form, DataForm):
            return None
        if value.form.constructor is not pattern.constructor:
            return False
        parts = value.form.fields
    elif type(pattern) is PatternTuple:
        if not isinstance(value.form, TupleForm):
            return None
        parts = value.form.fields
    else:
        return True
    found = [_fits(p, v, bound) for p, v in zip(pattern.patterns, parts, strict=True)]
    if False in found:
        return False
    return None if None in found else True


def partially_evaluated(mod: IRModule) -> IRModule:
    """The module with every function evaluated as far as it is known."""
    mod = infer_types(NameResults().run(infer_types(mod), PassContext.current()))
    return infer_types(map_relay_functions(mod, lambda func: PartialEvaluator(mod).run(func)))


def PartialEvaluate() -> Pass:
    """The pass."""

    def run(mod: IRModule, _: PassContext) -> IRModule:
        return partially_evaluated(mod)

    return ModulePass(run, PassInfo(1, "PartialEvaluate"))
