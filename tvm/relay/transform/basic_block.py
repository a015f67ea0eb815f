"""Bind what several blocks use by a let in the block around them.

if (%c) { exp(%0) } else { %0 }    ->    let %x = %0; if (%c) { exp(%x) } else { %x }

Each expression stands in one block then; within a block it stays a graph.
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.relay.adt import Clause, Match
from tvm.relay.analysis.scopes import Scope, ScopeTree, shared_values
from tvm.relay.expr import If, Let
from tvm.relay.function import Function, is_primitive
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.let_list import LetList
from tvm.relay.traverse import operands, with_operands


@relay_pass("ToBasicBlockNormalForm", opt_level=1)
def to_basic_block_normal_form(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Bind values that more than one block uses."""
    if is_primitive(func):
        return func
    tree = ScopeTree(func)
    shared = shared_values(tree)
    if not shared:
        return func
    result = _Blocks(tree, shared).run()
    assert isinstance(result, Function)
    return result


class _Blocks:
    """Rebuilds the blocks, what they use from outside being known."""

    def __init__(self, tree: ScopeTree, shared: set[int]) -> None:
        self.tree = tree
        self.shared = shared
        self.count = 0
        self.new: dict[int, RelayExpr] = {}

    def run(self) -> RelayExpr:
        return self._block(self.tree.root)

    def _block(self, scope: Scope) -> RelayExpr:
        chain, body = self._lets(scope)
        waiting = list(chain)
        in_chain = {id(let) for let in chain}
        lets = LetList()
        for node in scope.nodes:
            while waiting and id(waiting[0].value) in self.new:
                lets.bind(waiting[0].var, self.new[id(waiting.pop(0).value)])
            if id(node) not in in_chain:
                self.new[id(node)] = self._value(node, lets)
        for let in waiting:
            lets.bind(let.var, self.new[id(let.value)])
        return lets.get(self.new[id(body)])

    def _lets(self, scope: Scope) -> tuple[list[Let], RelayExpr]:
        """The lets that a block begins with, and its value."""
        chain: list[Let] = []
        body = scope.body
        while isinstance(body, Let) and self.tree.scope_of(body) is scope:
            if id(body) in self.shared:
                break
            chain.append(body)
            body = body.body
        return chain, body

    def _value(self, node: RelayExpr, lets: LetList) -> RelayExpr:
        value = self._rebuilt(node)
        if id(node) not in self.shared:
            return value
        self.count += 1
        return lets.push(value, None, f"x{self.count - 1}")

    def _rebuilt(self, node: RelayExpr) -> RelayExpr:
        blocks = [self._block(inner) for inner in self.tree.inner.get(id(node), ())]
        if isinstance(node, Function):
            return node.replace(body=blocks[0]) if blocks else node
        if isinstance(node, If):
            return node.replace(
                cond=self.new[id(node.cond)], true_branch=blocks[0], false_branch=blocks[1]
            )
        if isinstance(node, Match):
            clauses = [Clause(c.lhs, b) for c, b in zip(node.clauses, blocks, strict=True)]
            return node.replace(data=self.new[id(node.data)], clauses=tuple(clauses))
        below = operands(node)
        return with_operands(node, [self.new.get(id(o), o) for o in below]) if below else node


ToBasicBlockNormalForm = to_basic_block_normal_form.factory
