"""Walks over expressions that no depth can overflow.

Relay programs are graphs, often thousands of calls deep, so the walks here keep an explicit
stack. Which fields of a node hold expressions is said where its class is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.op import Op
from tvm.ir.visitor import ContextVisitor, Method
from tvm.relay.adt import Match, Pattern
from tvm.relay.expr import Call, Let, Tuple, TupleGetItem, Var
from tvm.relay.function import Function
from tvm.relay.rounding import is_free_rounding


def operands(expr: RelayExpr) -> tuple[RelayExpr, ...]:
    """The expressions directly below `expr`, bound variables included."""
    read = type(expr).operands
    return read(expr) if read is not None else ()


def with_operands(expr: RelayExpr, new: list[RelayExpr]) -> RelayExpr:
    """`expr` over other operands, in the order of `operands`; `expr` itself if they are its own."""
    old = operands(expr)
    for before, after in zip(old, new, strict=True):
        if before is not after:
            return rebuilt(expr, new)
    return expr


def rebuilt(expr: RelayExpr, new: Sequence[RelayExpr]) -> RelayExpr:
    """A new node over other operands."""
    rebuild = type(expr).with_operands
    assert rebuild is not None, "a node that has operands can be rebuilt over others"
    found: RelayExpr = rebuild(expr, new)
    return found


def is_call_of(expr: RelayExpr, name: str) -> TypeGuard[Call]:
    """Whether an expression is a call of the operator of that name."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name == name


def tensors_of(call: Call) -> list[RelayExpr]:
    """The arguments, a tuple's fields in its place."""
    found: list[RelayExpr] = []
    for arg in call.args:
        found.extend(arg.fields if isinstance(arg, Tuple) else (arg,))
    return found


def regrouped(call: Call, tensors: Sequence[RelayExpr]) -> list[RelayExpr]:
    """Arguments made of as many tensors as `tensors_of` gives."""
    left = iter(tensors)
    return [
        Tuple([next(left) for _ in arg.fields]) if isinstance(arg, Tuple) else next(left)
        for arg in call.args
    ]


def split_lets(block: RelayExpr) -> tuple[list[Let], RelayExpr]:
    """The lets that a block begins with, outer ones first, and the value behind them."""
    lets: list[Let] = []
    while type(block) is Let:
        lets.append(block)
        block = block.body
    return lets, block


def use_counts(root: RelayExpr) -> dict[int, int]:
    """How many operands of other nodes each node is, by identity."""
    counts: dict[int, int] = {}
    for node in post_order(root):
        for operand in operands(node):
            counts[id(operand)] = counts.get(id(operand), 0) + 1
    return counts


def with_pattern_vars(pattern: Pattern, rename: Callable[[Var], Var]) -> Pattern:
    """A pattern of a match with other variables."""
    rebuild = type(pattern).with_operands
    if rebuild is None:
        return pattern
    found: Pattern = rebuild(pattern, [rename(v) for v in pattern.bound_vars()])
    return found


def rewrite_function(
    func: Function,
    rewrite: Callable[[RelayExpr, RelayExpr], RelayExpr],
    is_opaque: Callable[[RelayExpr], bool] | None = None,
) -> Function:
    """`rewrite_post_order` of a function, which stays one."""
    result = rewrite_post_order(func, rewrite, is_opaque)
    assert isinstance(result, Function)
    return result


def rewrite_calls(
    func: Function,
    rewrite: Callable[[Call, Call], RelayExpr],
    is_opaque: Callable[[RelayExpr], bool] | None = None,
) -> Function:
    """`rewrite_function` of the calls alone."""
    return rewrite_function(func, on_calls(rewrite), is_opaque)


def on_calls(
    rewrite: Callable[[Call, Call], RelayExpr],
) -> Callable[[RelayExpr, RelayExpr], RelayExpr]:
    """A rewrite of calls as one of all nodes, which leaves the others alone."""

    def rewrite_any(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        return rewrite(old, new) if type(old) is Call and type(new) is Call else new

    return rewrite_any


class PostOrderRewriter(ContextVisitor):
    """`rewrite_post_order` with a method for each kind of node that it changes.

        class LetRemover(PostOrderRewriter):
            def visit_let(self, new: Let, old: Let) -> RelayExpr:
                return new.body if self.is_unused(old.var) else new

    Both nodes are of the same kind: `new` is `old` over operands that are rewritten already.
    """

    def visit_relay_expr(self, new: Any, old: Any) -> Any:
        return new

    @classmethod
    def default_method(cls, node_type: Any) -> Method | None:
        """Types and other parts of expressions stay as well."""
        return cls.visit_relay_expr  # type: ignore[return-value]  # it takes the old node too

    def rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        """One step of `rewrite_post_order`."""
        result: RelayExpr = self.visit(new, old)
        return result

    def run(self, func: Function) -> Function:
        """The function rewritten."""
        return rewrite_function(func, self.rewrite)


def post_order(
    *roots: RelayExpr, is_opaque: Callable[[RelayExpr], bool] | None = None
) -> list[RelayExpr]:
    """Every expression reachable from `roots`, once, operands first; none below one that `is_opaque`."""
    order: list[RelayExpr] = []
    done: set[int] = set()
    # nodes to come to, and below them those to leave, of which `leaving` knows the ids
    stack, leaving = [*reversed(roots)], set[int]()
    while stack:
        node = stack.pop()
        key = id(node)
        if key in done:
            continue
        read = type(node).operands
        if read is not None and key not in leaving and (is_opaque is None or not is_opaque(node)):
            missing = [child for child in reversed(read(node)) if id(child) not in done]
            if missing:
                leaving.add(key)
                stack.append(node)
                stack += missing
                continue
        done.add(key)
        order.append(node)
    return order


def post_order_by(
    roots: Sequence[RelayExpr], below: Callable[[RelayExpr], Iterable[RelayExpr]]
) -> list[RelayExpr]:
    """All that `roots` need, each once, what is `below` a node before it."""
    order: list[RelayExpr] = []
    seen: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, is_expanded = stack.pop()
        if is_expanded:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack += [(o, False) for o in reversed([*below(node)])]
    return order


def pre_order(root: RelayExpr) -> list[RelayExpr]:
    """Every expression reachable from `root`, once, operands last."""
    found: dict[int, RelayExpr] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) not in found:
            found[id(node)] = node
            stack += reversed(operands(node))
    return list(found.values())


def nodes_outside_functions(body: RelayExpr) -> list[RelayExpr]:
    """What is computed for `body`, operands first; nothing inside the functions it calls."""
    nodes = post_order(body, is_opaque=lambda node: type(node) is Function)
    return [node for node in nodes if not isinstance(node, (Function, Op, GlobalVar))]


def rewrite_post_order(
    expr: RelayExpr,
    rewrite: Callable[[RelayExpr, RelayExpr], RelayExpr],
    is_opaque: Callable[[RelayExpr], bool] | None = None,
    done: dict[int, RelayExpr] | None = None,
) -> RelayExpr:
    """Rebuild bottom up: `rewrite(old, new)` gets each node with its operands already rewritten.

    A node whose operands did not change arrives with `new is old`. What is below a node that
    `is_opaque`, except for the root, stays as it is; what it shares with the rest is there twice then.
    Rewrites of expressions that share parts may share `done`, by ids of nodes that outlive them.
    """
    done = {} if done is None else done
    # what was come to and is to be left, by its id, with its operands
    stack, leaving = [expr], dict[int, tuple[RelayExpr, ...]]()
    while stack:
        node = stack.pop()
        key = id(node)
        if key in done:
            continue
        below = leaving.get(key)
        if below is None:
            read = type(node).operands
            if read is None or (is_opaque is not None and node is not expr and is_opaque(node)):
                below = ()
            else:
                below = read(node)
            missing = [child for child in reversed(below) if id(child) not in done]
            if missing:
                leaving[key] = below
                stack.append(node)
                stack += missing
                continue
        new = node
        for child in below:
            if done[id(child)] is not child:
                now = [done[id(child)] for child in below]
                new = rebuilt(node, now)
                _keep_type(node, new, below, now)
                break
        result = rewrite(node, new)
        done[key] = result if result is node else keep_span(node, result)
    return done[id(expr)]


def _keep_type(
    old: RelayExpr, new: RelayExpr, before: Sequence[RelayExpr], now: Sequence[RelayExpr]
) -> None:
    """A call of an operator on tensors of the very same types has the same type: it is not inferred anew."""
    known = getattr(old, "_checked_type_", None)
    if known is None or type(old) is not Call or type(old.op) is not Op:
        return
    for a, b in zip(before, now, strict=True):
        if a is b:
            continue
        found = getattr(b, "_checked_type_", None)
        if found is None or found is not getattr(a, "_checked_type_", None):
            return
    new._checked_type_ = known


def keep_span(old: RelayExpr, new: RelayExpr) -> RelayExpr:
    """`new`, which replaces `old`; its calls that come from nowhere come from where `old` does."""
    if old.span is None or new.span is not None or is_free_rounding(old):
        return new
    stack = [new]
    while stack:
        node = stack.pop()
        if node.span is None and isinstance(node, _OF_PLACES):
            node.span = old.span  # type: ignore[misc]  # of a node that nobody compares by it
            stack.extend(operands(node))
    return new


_OF_PLACES = (Call, Tuple, TupleGetItem)


def substitute(expr: RelayExpr, binds: Mapping[Var, RelayExpr]) -> RelayExpr:
    """Replace variables, in patterns by variables."""
    if not binds:
        return expr
    replacement = {id(variable): value for variable, value in binds.items()}
    return rewrite_post_order(expr, lambda old, new: replacement.get(id(old), new))


def applied(func: Function, args: Iterable[RelayExpr]) -> RelayExpr:
    """The body of `func` over `args`: the value of a call of it.

    What the body binds becomes fresh, so that the bodies of two calls share no variable.
    """
    binds: dict[Var, RelayExpr] = {}
    for variable in bound_vars(func.body):
        annotation = variable.type_annotation if not func.type_params else None
        binds[variable] = Var(variable.name_hint, annotation)
    binds.update(zip(func.params, args, strict=True))
    return substitute(func.body, binds)


def bind(expr: RelayExpr, binds: Mapping[Var, RelayExpr]) -> RelayExpr:
    """Replace variables; a function loses the parameters that are bound to values.

    Parameters
    ----------
    expr : relay.Expr
        A function, or an expression with free variables.
    binds : dict of relay.Var to relay.Expr
        What stands for each variable.

    Returns
    -------
    relay.Expr
        A function keeps the parameters that are bound to other variables, under the new names.
    """
    if not isinstance(expr, Function):
        return substitute(expr, binds)
    bound = {id(variable) for variable in binds}
    renamed = [binds[p] if isinstance(binds.get(p), Var) else p for p in expr.params]
    kept = [
        new
        for old, new in zip(expr.params, renamed, strict=True)
        if id(old) not in bound or new is not old
    ]
    body = substitute(expr.body, binds)
    if body is expr.body and len(kept) == len(expr.params):
        return expr
    new_vars = [v for v in free_vars(body) if not any(v is k for k in kept)]
    inner_free = {id(v) for v in free_vars(expr)}
    added = [v for v in new_vars if id(v) not in inner_free]
    return expr.replace(params=(*kept, *added), body=body)


def free_vars(expr: RelayExpr) -> list[Var]:
    """The variables that `expr` uses and does not bind, in order of first use."""
    bound = {id(v) for v in bound_vars(expr)}
    return [v for v in all_vars(expr) if id(v) not in bound]


def bound_vars(expr: RelayExpr) -> list[Var]:
    """The variables that functions, lets and match clauses inside `expr` bind, outer ones first."""
    found: dict[int, Var] = {}
    for node in pre_order(expr):
        for variable in _binders(node):
            found.setdefault(id(variable), variable)
    return list(found.values())


def all_vars(expr: RelayExpr) -> list[Var]:
    """Every variable in `expr`, in post-order."""
    return [node for node in post_order(expr) if type(node) is Var]


def _binders(node: RelayExpr) -> Iterable[Var]:
    if type(node) is Function:
        return node.params
    if type(node) is Let:
        return (node.var,)
    if type(node) is Match:
        return [v for clause in node.clauses for v in clause.lhs.bound_vars()]
    return ()
