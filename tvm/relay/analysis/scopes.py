"""Where each expression of a graph is to be evaluated.

A graph says what is computed from what, not when. An expression belongs to the innermost block
(a function's body, a branch of an `if`, a clause of a `match`) that contains all its uses, so that
it is evaluated once, and only if it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.op import Op
from tvm.relay.adt import Clause, Match
from tvm.relay.expr import Constant, If, Let, Var
from tvm.relay.function import Function, is_primitive
from tvm.relay.traverse import operands, with_operands


@dataclass(eq=False)
class Scope:
    """One block, and the expressions that are evaluated in it, operands first."""

    body: RelayExpr
    outer: Scope | None = None
    depth: int = 0
    nodes: list[RelayExpr] = field(default_factory=list)
    lets: list[tuple[int, Let]] = field(default_factory=list)
    """The lets evaluated in it, each with the number of nodes before its variable is bound."""


def common_scope(a: Scope, b: Scope) -> Scope:
    """The innermost block around two blocks."""
    while a is not b:
        if a.depth >= b.depth and a.outer is not None:
            a = a.outer
        elif b.outer is not None:
            b = b.outer
    return a


class ScopeTree:
    """The blocks of a function, or of an expression, by the node that opens them."""

    def __init__(self, root: RelayExpr) -> None:
        self.root = Scope(root)
        self.inner: dict[int, list[Scope]] = {}  # of an if, a match or a function
        self._scope_of: dict[int, Scope] = {id(root): self.root}
        order = evaluation_steps(root)
        for node, is_done in reversed(order):  # users before what they use
            if is_done:
                self._assign_operands(node, self._scope_of[id(node)])
        for node, is_done in order:
            scope = self._scope_of[id(node)]
            if is_done:
                scope.nodes.append(node)
            elif isinstance(node, Let):
                scope.lets.append((len(scope.nodes), node))

    @property
    def scopes(self) -> list[Scope]:
        """All blocks, outer ones first."""
        return [self.root, *[scope for inner in self.inner.values() for scope in inner]]

    def scope_of(self, node: RelayExpr) -> Scope:
        """The block that a node is evaluated in."""
        return self._scope_of[id(node)]

    def _assign_operands(self, node: RelayExpr, scope: Scope) -> None:
        for operand in strict_operands(node):
            self._use(operand, scope)
        blocks = [Scope(body, scope, scope.depth + 1) for body in inner_blocks(node)]
        if blocks:
            self.inner[id(node)] = blocks
        for block in blocks:
            self._use(block.body, block)

    def _use(self, operand: RelayExpr, scope: Scope) -> None:
        known = self._scope_of.get(id(operand))
        self._scope_of[id(operand)] = scope if known is None else common_scope(known, scope)


def inner_blocks(node: RelayExpr) -> list[RelayExpr]:
    """The expressions below a node that are evaluated later, or not at all."""
    if isinstance(node, If):
        return [node.true_branch, node.false_branch]
    if isinstance(node, Match):
        return [clause.rhs for clause in node.clauses]
    if isinstance(node, Function) and not is_primitive(node):
        return [node.body]
    return []


def with_parts(
    node: RelayExpr, strict: Sequence[RelayExpr], blocks: Sequence[RelayExpr]
) -> RelayExpr:
    """The node over other `strict_operands`, and other `inner_blocks`."""
    if type(node) is If:
        (cond,), (then, other) = strict, blocks
        return node.replace(cond=cond, true_branch=then, false_branch=other)
    if type(node) is Match:
        clauses = [Clause(c.lhs, block) for c, block in zip(node.clauses, blocks, strict=True)]
        return node.replace(data=strict[0], clauses=tuple(clauses))
    if type(node) is Function:
        return node.replace(body=blocks[0]) if blocks else node
    return with_operands(node, list(strict)) if strict else node


def map_inner_blocks(node: RelayExpr, rewrite: Callable[[RelayExpr], RelayExpr]) -> RelayExpr:
    """The node with what branches, clauses and functions evaluate rewritten."""
    blocks = [rewrite(block) for block in inner_blocks(node)]
    return with_parts(node, strict_operands(node), blocks) if blocks else node


def strict_operands(node: RelayExpr) -> tuple[RelayExpr, ...]:
    """What must be evaluated before the node."""
    if isinstance(node, Function):
        return ()
    if isinstance(node, If):
        return (node.cond,)
    if isinstance(node, Match):
        return (node.data,)
    if isinstance(node, Let):
        return (node.value, node.body)
    return operands(node)


def evaluation_steps(root: RelayExpr) -> list[tuple[RelayExpr, bool]]:
    """Post-order that stays outside of primitive functions, let values before let bodies.

    Each node is there with True; a let before that with False, where its variable is bound.
    """
    order: list[tuple[RelayExpr, bool]] = []
    seen: set[int] = set()
    stack: list[tuple[RelayExpr, bool | None]] = [(root, None)]
    while stack:
        node, step = stack.pop()
        if step is not None:
            order.append((node, step))
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            if isinstance(node, Let):
                stack += [(node.body, None), (node, False), (node.value, None)]
                continue
            below = (*strict_operands(node), *inner_blocks(node))
            stack.extend([(n, None) for n in reversed(below)])
    return order


def shared_values(tree: ScopeTree) -> set[int]:
    """The values used in a block below the one that they are evaluated in."""
    found: list[RelayExpr] = []
    for scope in tree.scopes:
        found += [
            o for n in scope.nodes for o in strict_operands(n) if tree.scope_of(o) is not scope
        ]
        if tree.scope_of(scope.body) is not scope:
            found.append(scope.body)
    return {
        id(node)
        for node in found
        if not isinstance(node, (Var, GlobalVar, Op, Constant, Constructor))
    }


def check_basic_block_normal_form(expr: RelayExpr) -> bool:
    """Whether every expression that is no variable is used in one block alone."""
    return not shared_values(ScopeTree(expr))
