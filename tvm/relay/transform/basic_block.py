"""Bind what several blocks use by a let in the block around them.

if (%c) { exp(%0) } else { %0 }    ->    let %x = %0; if (%c) { exp(%x) } else { %x }

Each expression stands in one block then; within a block it stays a graph.
"""

from __future__ import annotations

from collections import deque

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.relay.adt import Match
from tvm.relay.analysis.scopes import Scope, ScopeTree, shared_values, strict_operands, with_parts
from tvm.relay.expr import Call, If, Let, RefCreate, RefRead, RefWrite
from tvm.relay.function import Function, is_primitive
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.let_list import LetList
from tvm.relay.transform.operators import is_leaf_call
from tvm.relay.traverse import split_lets


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
        """The block with all its lets at its begin, those of operands too."""
        nests = any([not is_tail for is_tail in self._tails(scope)])
        waiting = deque(scope.lets)
        lets = LetList()
        for position, node in enumerate(scope.nodes):
            while waiting and waiting[0][0] == position:
                self._bind(waiting.popleft()[1], lets)
            self.new[id(node)] = self._value(node, lets, nests and _has_order(node))
        for _, let in waiting:
            self._bind(let, lets)
        return lets.get(self.new[id(scope.body)])

    def _tails(self, scope: Scope) -> list[bool]:
        """Of each let of a block, whether the block's value is its body, through other lets."""
        chain = {id(let) for let in split_lets(scope.body)[0]}
        return [id(let) in chain for _, let in scope.lets]

    def _bind(self, let: Let, lets: LetList) -> None:
        lets.bind(let.var, self.new[id(let.value)])

    def _value(self, node: RelayExpr, lets: LetList, is_ordered: bool) -> RelayExpr:
        value = self._rebuilt(node)
        if id(node) not in self.shared and not is_ordered:
            return value
        self.count += 1
        return lets.push(value, None, f"x{self.count - 1}")

    def _rebuilt(self, node: RelayExpr) -> RelayExpr:
        if type(node) is Let:
            return self.new[id(node.body)]
        blocks = [self._block(inner) for inner in self.tree.inner.get(id(node), ())]
        return with_parts(node, [self.new.get(id(o), o) for o in strict_operands(node)], blocks)


def _has_order(node: RelayExpr) -> bool:
    """Whether it matters when the node is evaluated: it may have effects, or see those of others."""
    if type(node) is Call:
        return not is_leaf_call(node)
    return isinstance(node, (If, Match, RefCreate, RefRead, RefWrite))


ToBasicBlockNormalForm = to_basic_block_normal_form.factory
