"""Type inference.

The type of a node is kept in the node, so a program that a pass changed in one place is inferred
anew in that place only. The walk keeps its own stack; each node is looked at a fixed number of
times, whatever the depth of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tvm.error import OpNotImplemented, TypeCheckError
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
)
from tvm.relay.adt import Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from tvm.relay.analysis.argument_types import fill_argument_types
from tvm.relay.analysis.noted_types import note_arguments, noted_result
from tvm.relay.analysis.unify import (
    Binding,
    fresh_variables,
    instantiate,
    is_incomplete,
    join,
    unify,
)
from tvm.relay.expr import (
    Call,
    Constant,
    If,
    InferredTypes,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    TempExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from tvm.relay.function import Function
from tvm.relay.printer import excerpt, type_text
from tvm.relay.traverse import post_order, rewrite_post_order

# what a step needs first, or the type it found
Step: TypeAlias = "Type | Sequence[RelayExpr]"


def known_type(expr: RelayExpr) -> Type | None:
    """The type found so far, None if inference has not reached the expression."""
    return getattr(expr, "_checked_type_", None)


def set_type(expr: RelayExpr, ty: Type) -> None:
    """Note the type of an expression; the only place that writes it."""
    expr._checked_type_ = ty


def _untyped(*exprs: RelayExpr) -> list[RelayExpr]:
    return [e for e in exprs if known_type(e) is None]


class TypeInferencer:
    """Finds the types of expressions of one module."""

    def __init__(self, mod: IRModule | None = None) -> None:
        self.mod = mod
        self._functions: list[Function] = []  # being inferred, outermost first
        self._called_as: dict[int, FuncType] = {}  # what the use of a callee tells of its type
        # of global functions, by identity, while the result of a recursive one is sought
        self._learnt: dict[int, Type] | None = None
        self._unlearnt: set[int] = set()  # local functions that do not tell what they return

    def infer(self, root: RelayExpr) -> Type:
        """The type of `root`; everything below it gets its type as well."""
        stack = [root]
        waiting: set[int] = set()
        while stack:
            node = stack[-1]
            if known_type(node) is not None:
                stack.pop()
                waiting.discard(id(node))
                continue
            if isinstance(node, Function) and id(node) not in waiting:
                self._functions.append(node)
            waiting.add(id(node))
            step = _STEPS.get(type(node))
            found = self._step(node) if step is None else step(self, node)
            if isinstance(found, Type):
                set_type(node, found)
                continue
            for needed in found:
                if id(needed) in waiting:
                    raise self._error("a recursive function requires a return type", needed)
            stack.extend(reversed(found))
        found_at_root: Type = root.checked_type
        return found_at_root

    def _step(self, node: RelayExpr) -> Step:
        for base in type(node).__mro__:
            if (step := _STEPS.get(base)) is not None:
                return step(self, node)
        raise TypeCheckError(
            f"type inference requires a relay expression, got {type(node).__name__}"
        )

    def _error(self, message: str, at: RelayExpr, hint: str = "") -> TypeCheckError:
        return self._located(TypeCheckError(message, hint=hint), at)

    def _located(self, error: TypeCheckError, at: RelayExpr) -> TypeCheckError:
        """Show the program text with the failing expression underlined."""
        root = self._functions[0] if self._functions else at
        error.at = excerpt(root, at, _argument_notes(at))
        if (name := self._name_of(root)) is not None:
            error.add_context(f"function {name}")
        return error

    def _name_of(self, func: RelayExpr) -> str | None:
        for gvar, known in self.mod.functions.items() if self.mod is not None else ():
            if known is func:
                return str(gvar.name_hint)
        return None

    # -- one method a kind of expression: what it needs, or its type

    def var(self, var: Var) -> Step:
        if var.type_annotation is None:
            raise self._error(
                f"the type of %{var.name_hint} cannot be inferred here",
                var,
                hint=f'annotate it: relay.var("{var.name_hint}", shape=(...), dtype="float32")',
            )
        return var.type_annotation

    def constant(self, constant: Constant) -> Step:
        return TensorType(tuple(constant.data.shape), constant.data.dtype)

    def global_var(self, gvar: GlobalVar) -> Step:
        if self.mod is None:
            raise self._error(f"@{gvar.name_hint} requires a module to be looked up in", gvar)
        func = self.mod[gvar]
        if not isinstance(func, Function):
            return self._noted_type(gvar)
        if (declared := func.func_type_annotation()) is not None:
            return declared
        if (known := known_type(func)) is not None:
            return known
        if self._learnt is not None or any([func is f for f in self._functions]):
            return self._learn(func)
        return [func]

    def _noted_type(self, gvar: GlobalVar) -> Type:
        """The type of a function of loops, which its name in the program or in the module tells."""
        assert self.mod is not None
        for name in (gvar, self.mod.get_global_var(gvar.name_hint)):
            noted = known_type(name) or name.type_annot
            if isinstance(noted, FuncType):
                return noted
        message = f"@{gvar.name_hint} is not a relay function, and its name tells no type"
        hint = "relay.GlobalVar(name, type_annot=relay.FuncType(...))"
        raise self._error(message, gvar, hint=hint)

    def _learn(self, func: Function) -> Type:
        """The type of a recursive function that does not tell what it returns.

        A copy of it is inferred, whose calls of itself have results of a type unknown yet.
        """
        learnt = {} if self._learnt is None else self._learnt
        if id(func) not in learnt:
            arg_types = [p.type_annotation for p in func.params if p.type_annotation is not None]
            if len(arg_types) < len(func.params):
                raise self._error("a recursive function requires types of its parameters", func)
            learnt[id(func)] = FuncType(arg_types, IncompleteType(), func.type_params)
            inner = TypeInferencer(self.mod)
            inner._learnt = learnt
            learnt[id(func)] = inner.infer(_copied(func))
        found = learnt[id(func)]
        if self._learnt is None and is_incomplete(found):
            raise self._error("a recursive function requires a return type", func)
        return found

    def tuple_(self, tup: Tuple) -> Step:
        return _untyped(*tup.fields) or TupleType([f.checked_type for f in tup.fields])

    def tuple_get_item(self, item: TupleGetItem) -> Step:
        if (ty := known_type(item.tuple_value)) is None:
            return [item.tuple_value]
        if not isinstance(ty, TupleType):
            raise self._error(
                f"a tuple is required to take field {item.index} of, got {type_text(ty)}", item
            )
        if not 0 <= item.index < len(ty.fields):
            raise self._error(
                f"field {item.index} is out of range: the tuple has {len(ty.fields)} fields", item
            )
        return ty.fields[item.index]

    def let(self, let: Let) -> Step:
        declared = let.var.type_annotation
        if declared is None and isinstance(let.value, Function):
            declared = let.value.func_type_annotation()
        if declared is not None and known_type(let.var) is None:
            set_type(let.var, declared)
        if (found := known_type(let.value)) is None:
            return self._bound_function(let) or [let.value]
        if declared is None and self._learnt_result(let, found):
            return [let.value]
        if declared is not None and not unify(declared, found, {}):
            raise self._error(
                f"%{let.var.name_hint} is declared as {type_text(declared)}, "
                f"its value has type {type_text(found)}",
                let.value,
            )
        if known_type(let.var) is None:
            set_type(let.var, found)
        return known_type(let.body) or [let.body]

    def _bound_function(self, let: Let) -> list[RelayExpr]:
        """What must be known before a local function whose types are left out."""
        func = let.value
        if not isinstance(func, Function):
            return []
        if _without_types([func]):
            calls = [n for n in post_order(let.body) if isinstance(n, Call) and n.op is let.var]
            call = calls[0] if calls else None
            if call is None:
                return []
            if needed := _untyped(*call.args):
                return needed
            for param, arg in zip(func.params, call.args, strict=False):
                if param.type_annotation is None:
                    set_type(param, arg.checked_type)
        if known_type(let.var) is None and func.ret_type is None:
            arg_types = [p.type_annotation or p.checked_type for p in func.params]
            set_type(let.var, FuncType(arg_types, IncompleteType(), func.type_params))
            self._unlearnt.add(id(func))
        return []

    def _is_learning(self) -> bool:
        """Whether the result of a function is sought whose calls of itself have none yet."""
        if self._learnt is not None:
            return True
        return bool(self._unlearnt) and any([id(f) in self._unlearnt for f in self._functions])

    def _learnt_result(self, let: Let, found: Type) -> bool:
        """Whether a recursive function, inferred without its result, gave it, to begin again."""
        assumed = known_type(let.var)
        if not isinstance(assumed, FuncType) or not isinstance(found, FuncType):
            return False
        if not isinstance(let.value, Function):  # an incomplete type is told by later uses
            return False
        self._unlearnt.discard(id(let.value))
        if isinstance(found.ret_type, IncompleteType):
            raise self._error("a recursive function requires a return type", let.value)
        if not is_incomplete(assumed.ret_type) or is_incomplete(found.ret_type):
            return False
        set_type(let.var, found)
        inside = post_order(let.value)
        if not any(_calls(node, let.var) for node in inside):
            return False
        for node in inside:
            if not isinstance(node, (Var, Constant, Op)):
                node._checked_type_ = None
        for node in inside:
            if isinstance(node, Let) and node.var.type_annotation is None:
                node.var._checked_type_ = None
        return True

    def if_(self, branch: If) -> Step:
        if needed := _untyped(branch.cond, branch.true_branch, branch.false_branch):
            return needed
        cond = branch.cond.checked_type
        if not isinstance(cond, TensorType) or cond.shape or cond.dtype != "bool":
            raise self._error(
                f"the condition of an if must be a bool scalar, got {type_text(cond)}", branch
            )
        then, other = branch.true_branch.checked_type, branch.false_branch.checked_type
        joined = join(then, other)
        if joined is None:
            raise self._error(
                "the branches of an if must have one type, got "
                f"{type_text(then)} and {type_text(other)}",
                branch,
            )
        return joined

    def function(self, func: Function) -> Step:
        needed = _untyped(*[p for p in func.params if p.type_annotation is not None], func.body)
        # parameters without annotation get their type from the body, if at all
        if needed or (needed := _untyped(*func.params)):
            return needed
        if func.ret_type is not None:
            _tell(func.body, func.ret_type)
        found = func.body.checked_type
        if func.ret_type is not None and not unify(func.ret_type, found, {}):
            raise self._error(
                f"the function is declared to return {type_text(func.ret_type)}, "
                f"its body has type {type_text(found)}",
                func.body,
            )
        self._functions.remove(func)
        arg_types = [p.checked_type for p in func.params]
        return FuncType(arg_types, func.ret_type or found, func.type_params)

    def call(self, call: Call) -> Step:
        op = call.op
        if not isinstance(op, Op) and (lambdas := _without_types(call.args)):
            return self._lambda_arguments(call, lambdas)
        if needed := _untyped(*call.args):
            derivable = [a for a in needed if isinstance(a, Var) and a.type_annotation is None]
            if not derivable:
                return needed
            if len(derivable) < len(needed):
                return [a for a in needed if not any(a is d for d in derivable)]
            self._derive_arguments(call)
            if needed := _untyped(*call.args):
                return needed
        if isinstance(op, Op):
            return self._operator_call(call, op)
        arg_types = [a.checked_type for a in call.args]
        func = _called_function(op)
        if func is not None and known_type(func) is None:
            for param, ty in zip(func.params, arg_types, strict=False):
                if param.type_annotation is None and known_type(param) is None:
                    set_type(param, ty)
        if (callee := known_type(op)) is not None:
            return self._function_call(call, callee, arg_types)
        used_as = FuncType(arg_types, IncompleteType())
        if isinstance(op, Var) and op.type_annotation is None:
            set_type(op, used_as)
        else:
            self._called_as[id(op)] = used_as
        return [op]

    def _lambda_arguments(self, call: Call, lambdas: list[Function]) -> Step:
        """`map(fn (%x) { .. }, %list)`: the other arguments tell what the function takes."""
        others = [a for a in call.args if not any(a is f for f in lambdas)]
        if needed := _untyped(call.op, *others):
            return needed
        callee = call.op.checked_type
        if not isinstance(callee, FuncType) or len(callee.arg_types) != len(call.args):
            return self._function_call(call, callee, [IncompleteType()] * len(call.args))
        callee, binding = fresh_variables(callee)
        for expected, arg in zip(callee.arg_types, call.args, strict=True):
            if (found := known_type(arg)) is not None:
                unify(expected, found, binding)
        if id(call) in self._called_as:
            unify(callee.ret_type, self._called_as[id(call)], binding)
        first = lambdas[0]
        expected = callee.arg_types[next(i for i, a in enumerate(call.args) if a is first)]
        if isinstance(expected, FuncType):
            for param, ty in zip(first.params, expected.arg_types, strict=False):
                given = instantiate(ty, binding)
                if known_type(param) is None and param.type_annotation is None:
                    set_type(param, IncompleteType() if _is_open(given, binding) else given)
        return [first]

    def _derive_arguments(self, call: Call) -> None:
        """Type variables that are arguments of a layer which knows their shapes."""
        if not isinstance(call.op, Op):
            return
        known = [known_type(a) for a in call.args]
        for arg, ty in zip(call.args, fill_argument_types(call.op, call.attrs, known), strict=True):
            if ty is not None and known_type(arg) is None:
                set_type(arg, ty)

    def _operator_call(self, call: Call, op: Op) -> Type:
        if op.infer_type is None:
            raise OpNotImplemented(f"operator {op.name} has no type relation")
        if op.num_inputs is not None and 0 <= op.num_inputs != len(call.args):
            raise self._error(
                f"{op.name} requires {op.num_inputs} arguments, got {len(call.args)}", call
            )
        arg_types = [a.checked_type for a in call.args]
        if self._is_learning() and any([isinstance(ty, IncompleteType) for ty in arg_types]):
            return IncompleteType()
        if (known := noted_result(call, op.infer_type, arg_types)) is not None:
            return known
        noted = note_arguments(call, arg_types)
        try:
            found: Type = op.infer_type(call.attrs, arg_types)
        except TypeCheckError as error:
            raise self._located(error, call) from None
        noted.found = op.infer_type, call.attrs, found
        return found

    def _function_call(self, call: Call, callee: Type, arg_types: list[Type]) -> Type:
        if not isinstance(callee, FuncType):
            raise self._error(f"a function is required to be called, got {type_text(callee)}", call)
        if len(arg_types) != len(callee.arg_types):
            raise self._error(
                f"the function takes {len(callee.arg_types)} arguments, got {len(arg_types)}", call
            )
        callee, binding = fresh_variables(callee)
        told = () if isinstance(call.type_args, InferredTypes) else call.type_args
        for parameter, given in zip(callee.type_params, told, strict=False):
            binding[id(parameter)] = given
        for i, (expected, found) in enumerate(zip(callee.arg_types, arg_types, strict=True)):
            if not unify(expected, found, binding):
                raise self._error(
                    f"argument {i} of the call must be {type_text(expected)}, got {type_text(found)}",
                    call,
                )
        for parameter in callee.type_params:
            if binding[id(parameter)] is None:
                binding[id(parameter)] = IncompleteType()  # only the use can tell it
        if callee.type_params and not told:
            note_arguments(call, [instantiate(p, binding) for p in callee.type_params])
        return instantiate(callee.ret_type, binding)

    def constructor(self, constructor: Constructor) -> Step:
        return self._constructor_type(constructor)

    def _constructor_type(self, constructor: Constructor) -> FuncType:
        header = constructor.belong_to
        data = self.mod.type_definitions.get(header) if self.mod is not None else None
        type_vars = constructor.type_vars if data is None else tuple(data.type_vars)
        return FuncType(constructor.inputs, TypeCall(header, type_vars), type_vars)

    def ref_create(self, ref: RefCreate) -> Step:
        ty = known_type(ref.value)
        return [ref.value] if ty is None else RelayRefType(ty)

    def ref_read(self, read: RefRead) -> Step:
        if (ty := known_type(read.ref)) is None:
            return [read.ref]
        if not isinstance(ty, RelayRefType):
            raise self._error(f"a reference is required to be read, got {type_text(ty)}", read)
        return ty.value

    def ref_write(self, write: RefWrite) -> Step:
        if needed := _untyped(write.ref, write.value):
            return needed
        ty = write.ref.checked_type
        if not isinstance(ty, RelayRefType) or not unify(ty.value, write.value.checked_type, {}):
            raise self._error(
                f"a value of type {type_text(write.value.checked_type)} cannot be written to "
                f"{type_text(ty)}",
                write,
            )
        return TupleType(())

    def match(self, match: Match) -> Step:
        if (ty := known_type(match.data)) is None:
            return [match.data]
        for clause in match.clauses:
            self._bind_pattern(clause.lhs, ty, match)
        if needed := _untyped(*[c.rhs for c in match.clauses]):
            return needed
        result: Type = match.clauses[0].rhs.checked_type
        for clause in match.clauses[1:]:
            if (joined := join(result, clause.rhs.checked_type)) is None:
                raise self._error("the clauses of a match must have one type", match)
            result = joined
        return result

    def _bind_pattern(self, pattern: Pattern, ty: Type, match: Match) -> None:
        if isinstance(pattern, PatternVar):
            declared = pattern.var.type_annotation
            if declared is not None and not unify(declared, ty, {}):
                raise self._error(
                    f"%{pattern.var.name_hint} is declared as {type_text(declared)}, "
                    f"the value that it stands for has type {type_text(ty)}",
                    match,
                )
            set_type(pattern.var, declared or ty)
        elif isinstance(pattern, PatternTuple):
            if not isinstance(ty, TupleType) or len(ty.fields) != len(pattern.patterns):
                raise self._error(f"a tuple pattern does not fit {type_text(ty)}", match)
            for inner, field in zip(pattern.patterns, ty.fields, strict=True):
                self._bind_pattern(inner, field, match)
        elif isinstance(pattern, PatternConstructor):
            built, binding = fresh_variables(self._constructor_type(pattern.constructor))
            if not unify(built.ret_type, ty, binding):
                raise self._error(f"the pattern does not fit {type_text(ty)}", match)
            for inner, field in zip(pattern.patterns, built.arg_types, strict=True):
                self._bind_pattern(inner, instantiate(field, binding), match)

    def temporary(self, temp: TempExpr) -> Step:
        realized = temp.realize()
        return known_type(realized) or [realized]


def _copied(func: Function) -> RelayExpr:
    """The function in nodes of its own, whose types are not those of the program."""

    def copy(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        return new.replace() if new is old and not isinstance(new, (Op, Constructor)) else new

    return rewrite_post_order(func, copy)


def _without_types(exprs: Sequence[RelayExpr]) -> list[Function]:
    """The functions among `exprs` that leave out a parameter's type."""
    return [
        e
        for e in exprs
        if isinstance(e, Function)
        and known_type(e) is None
        and any([p.type_annotation is None and known_type(p) is None for p in e.params])
    ]


def _called_function(op: RelayExpr) -> Function | None:
    """The function that is called, if it stands here or is bound just before."""
    bound: dict[int, RelayExpr] = {}
    while isinstance(op, Let):
        bound[id(op.var)] = op.value
        op = op.body
    op = bound.get(id(op), op)
    return op if isinstance(op, Function) else None


def _calls(node: RelayExpr, variable: Var) -> bool:
    return isinstance(node, Call) and node.op is variable


def _tell(expr: RelayExpr, ty: Type) -> None:
    """Note the type that a call of a function parameter must have, where nothing told it before."""
    stack = [expr]
    while stack:
        node = stack.pop()
        if not isinstance(known_type(node), IncompleteType):
            continue
        set_type(node, ty)
        if isinstance(node, Let):
            stack.append(node.body)
        elif isinstance(node, If):
            stack += [node.true_branch, node.false_branch]
        elif isinstance(node, Call) and isinstance(node.op, Var):
            callee = known_type(node.op)
            if isinstance(callee, FuncType):
                set_type(node.op, callee.replace(ret_type=ty))


def _is_open(ty: Type, binding: Binding) -> bool:
    """Whether the type has a variable that is not bound yet."""
    if id(ty) in binding:
        return True
    return any([_is_open(part, binding) for part in ty.children() if isinstance(part, Type)])


def _argument_notes(at: RelayExpr) -> list[str]:
    if not isinstance(at, Call):
        return []
    names = [name for name, _, _ in at.op.arguments] if isinstance(at.op, Op) else []
    names += [f"argument {i}" for i in range(len(names), len(at.args))]
    types = [known_type(a) for a in at.args]
    return [f"{name}: {type_text(ty)}" for name, ty in zip(names, types, strict=False)]


# each takes expressions of its own kind
_STEPS: dict[type, Callable[[TypeInferencer, Any], Step]] = {
    Var: TypeInferencer.var,
    Constant: TypeInferencer.constant,
    GlobalVar: TypeInferencer.global_var,
    Tuple: TypeInferencer.tuple_,
    TupleGetItem: TypeInferencer.tuple_get_item,
    Let: TypeInferencer.let,
    If: TypeInferencer.if_,
    Function: TypeInferencer.function,
    Call: TypeInferencer.call,
    Constructor: TypeInferencer.constructor,
    RefCreate: TypeInferencer.ref_create,
    RefRead: TypeInferencer.ref_read,
    RefWrite: TypeInferencer.ref_write,
    Match: TypeInferencer.match,
    TempExpr: TypeInferencer.temporary,
}


def infer_type_of(expr: RelayExpr, mod: IRModule | None = None) -> Type:
    """The type of an expression, found now if it is not known yet."""
    return known_type(expr) or TypeInferencer(mod).infer(expr)


def tensor_type_of(expr: RelayExpr) -> TensorType:
    """The same for an expression that is a tensor."""
    ty = infer_type_of(expr)
    assert isinstance(ty, TensorType)
    return ty


def function_type_of(expr: RelayExpr, mod: IRModule | None = None) -> FuncType:
    """The same for a function."""
    ty = infer_type_of(expr, mod)
    assert isinstance(ty, FuncType)
    return ty
