"""Small questions about one expression or module, under their classic names."""

from __future__ import annotations

from collections.abc import Callable

from tvm.error import TypeCheckError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.type import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RelayRefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeKind,
    TypeRelation,
    TypeVar,
)
from tvm.relay.analysis.infer import known_type
from tvm.relay.expr import Call, Constant, InferredTypes, Let, Tuple, Var
from tvm.relay.function import Function, relay_functions
from tvm.relay.traverse import post_order, pre_order


def post_order_visit(expr: RelayExpr, fvisit: Callable[[RelayExpr], object]) -> None:
    """Call `fvisit` with every expression below and including `expr`, operands first.

    Parameters
    ----------
    expr : relay.Expr
        Where to start.
    fvisit : callable
        ``fvisit(expr)``, called once with each.
    """
    for node in post_order(expr):
        fvisit(node)


def well_formed(expr: RelayExpr | IRModule) -> bool:
    """Whether no variable is bound twice and every variable is bound."""
    roots = list(expr.functions.values()) if isinstance(expr, IRModule) else [expr]
    return all(_is_well_formed(root) for root in roots if isinstance(root, RelayExpr))


def _is_well_formed(root: RelayExpr) -> bool:
    seen: set[int] = set()
    for node in post_order(root):
        params = node.params if isinstance(node, Function) else ()
        for variable in (node.var,) if isinstance(node, Let) else params:
            if id(variable) in seen:
                return False
            seen.add(id(variable))
    return True


def check_kind(t: Type, mod: IRModule | None = None) -> TypeKind:
    """The kind of a type."""
    del mod
    if isinstance(t, (TypeVar, IncompleteType)):
        return t.kind
    if isinstance(t, GlobalTypeVar):
        return TypeKind.AdtHandle
    if isinstance(t, TypeRelation):
        return TypeKind.Constraint
    inner: tuple[Type, ...] = ()
    if isinstance(t, TupleType):
        inner = t.fields
    elif isinstance(t, FuncType):
        inner = (*t.arg_types, t.ret_type)
    elif isinstance(t, RelayRefType):
        inner = (t.value,)
    elif isinstance(t, TypeCall):
        inner = t.args
    for part in inner:
        if check_kind(part) is not TypeKind.Type:
            raise TypeCheckError(f"{type(t).__name__} requires types as its parts, got {part}")
    return TypeKind.Type


def check_constant(expr: RelayExpr) -> bool:
    """Whether the expression is made of constants alone."""
    if type(expr) is Tuple:
        return all([check_constant(field) for field in expr.fields])
    return type(expr) is Constant


def _type_vars(ty: Type) -> list[TypeVar]:
    found: dict[int, TypeVar] = {}
    stack: list[Type] = [ty]
    while stack:
        node = stack.pop()
        if isinstance(node, TypeVar):
            found.setdefault(id(node), node)
        if isinstance(node, (TensorType, GlobalTypeVar)):
            continue
        parts = [c for c in reversed(node.children()) if isinstance(c, Type)]
        stack += [*parts, *reversed(node.type_params)] if isinstance(node, FuncType) else parts
    return list(found.values())


def all_type_vars(expr: RelayExpr | Type, mod: IRModule | None = None) -> list[TypeVar]:
    """The type variables in a type, or in the annotations of an expression."""
    del mod
    types = [expr] if isinstance(expr, Type) else _annotations(expr)
    found = {id(v): v for ty in types for v in _type_vars(ty)}
    return list(found.values())


def bound_type_vars(expr: RelayExpr | Type, mod: IRModule | None = None) -> list[TypeVar]:
    """The type variables that functions inside bind."""
    del mod
    if isinstance(expr, FuncType):
        return list(expr.type_params)
    if isinstance(expr, Type):
        return []
    return [v for n in post_order(expr) if isinstance(n, Function) for v in n.type_params]


def free_type_vars(expr: RelayExpr | Type, mod: IRModule | None = None) -> list[TypeVar]:
    """The type variables that nothing inside binds."""
    bound = {id(v) for v in bound_type_vars(expr, mod)}
    return [v for v in all_type_vars(expr, mod) if id(v) not in bound]


def _annotations(expr: RelayExpr) -> list[Type]:
    types: list[Type | None] = []
    for node in pre_order(expr):
        if isinstance(node, Var):
            types.append(node.type_annotation)
        elif isinstance(node, Function):
            types.extend((*node.type_params, node.ret_type))
        elif isinstance(node, Call):
            types.extend(() if isinstance(node.type_args, InferredTypes) else node.type_args)
    return [t for t in types if t is not None]


def all_dtypes(expr: RelayExpr) -> set[str]:
    """The dtypes of all tensors in a typed expression."""
    found: set[str] = set()
    for node in post_order(expr):
        stack = [known_type(node)]
        while stack:
            ty = stack.pop()
            if isinstance(ty, TensorType):
                found.add(str(ty.dtype))
            elif isinstance(ty, TupleType):
                stack.extend(ty.fields)
    return found


def list_op_freqs(mod: IRModule) -> dict[str, int]:
    """How many calls of each operator a module has."""
    counts: dict[str, int] = {}
    for func in relay_functions(mod).values():
        for node in post_order(func):
            if isinstance(node, Call) and isinstance(node.op, Op):
                counts[node.op.name] = counts.get(node.op.name, 0) + 1
    return counts


def get_total_mac_number(expr: RelayExpr) -> int:
    """Multiply-accumulate operations of convolutions and matrix products of a typed expression."""
    total = 0
    for node in post_order(expr):
        if isinstance(node, Call) and isinstance(node.op, Op):
            total += int(node.op.mac_count(node)) if node.op.mac_count is not None else 0
    return total


def extract_intermdeiate_expr(mod: IRModule, expr_id: int) -> IRModule:
    """A module that computes one of the calls of `main`, by its number in post-order.

    The numbers are those of the calls as the text shows them, from 0 on.
    """
    main = mod["main"]
    found = [n for n in post_order(main.body) if isinstance(n, Call)]
    if not 0 <= expr_id < len(found):
        raise ValueError(
            f"extract_intermdeiate_expr requires a number below {len(found)}, got {expr_id}"
        )
    others = {gvar: func for gvar, func in mod.functions.items() if gvar.name_hint != "main"}
    return IRModule.from_expr(found[expr_id], others, mod.type_definitions)
