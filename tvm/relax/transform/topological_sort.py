"""The bindings of dataflow blocks in another order that their uses allow.

a = f(x); b = g(x); c = h(a)    ->    a = f(x); c = h(a); b = g(x)        (depth first, from inputs)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.analysis.variables import used_vars
from tvm.relax.expr import Binding, DataflowBlock, DataflowVar, Function, MatchCast, SeqExpr
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.struct_info_relations import definable_tir_vars_in_struct_info, tir_vars_in

from .pass_kinds import relax_pass


@dataclass(frozen=True)
class _Graph:
    """What a traversal follows; nodes are bindings' variables, and variables from outside."""

    roots: Sequence[Any]
    before: Mapping[Any, Sequence[Any]]  # what must be visited before a node
    after: Mapping[Any, Sequence[Any]]  # what is visited next


def _traverse(graph: _Graph, depth_first: bool) -> list[Any]:
    """The nodes, each after all that come before it."""
    visited: dict[Any, None] = {}
    pending: deque[Any] = deque()

    def is_ready(node: Any) -> bool:
        return node not in visited and all([b in visited for b in graph.before.get(node, ())])

    def visit(node: Any) -> None:
        if not is_ready(node):
            return
        visited[node] = None
        ready = [a for a in graph.after.get(node, ()) if is_ready(a)]
        pending.extend(ready[::-1] if depth_first else ready)

    pending.extend(graph.roots[::-1] if depth_first else graph.roots)
    while pending:
        visit(pending.pop() if depth_first else pending.popleft())
    return list(visited)


def _definitions(block: DataflowBlock) -> dict[Any, Binding]:
    """The binding of each variable, and of each symbolic variable that a check defines."""
    found: dict[Any, Binding] = {b.var: b for b in block.bindings}
    known: dict[Any, None] = {}  # symbols that bindings so far name
    for binding in block.bindings:
        if isinstance(binding, MatchCast):
            for symbol in definable_tir_vars_in_struct_info(binding.struct_info):
                if symbol not in known:
                    found[symbol] = binding
        known.update(dict.fromkeys(tir_vars_in(binding)))
    return found


def _requirements(block: DataflowBlock) -> dict[Any, list[Any]]:
    """What each binding reads, in order: variables, those of bindings that define symbols too."""
    definitions = _definitions(block)
    found: dict[Any, list[Any]] = {}
    for binding in block.bindings:
        needed = dict.fromkeys(used_vars(binding.value))
        for symbol in tir_vars_in(binding):
            by = definitions.get(symbol)
            if by is not None and by is not binding:
                needed[by.var] = None
        found[binding.var] = list(needed)
    return found


def _reversed_edges(edges: Mapping[Any, Sequence[Any]]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for node, others in edges.items():
        for other in others:
            found.setdefault(other, []).append(node)
    return found


class _Sorter(ExprMutator):
    def __init__(self, mod: IRModule, depth_first: bool, from_inputs: bool) -> None:
        super().__init__(mod)
        self.depth_first, self.from_inputs = depth_first, from_inputs
        self.params: list[Any] = []
        self.used_behind: list[Any] = []  # by what follows the block, in order

    def visit_function_(self, op: Function) -> Any:
        outer, self.params = self.params, list(op.params)
        found = super().visit_function_(op)
        self.params = outer
        return found

    def visit_seq_expr_(self, op: SeqExpr) -> Any:
        values = [b.value for block in op.blocks for b in block.bindings]
        used = [var for value in (*values, op.body) for var in used_vars(value)]
        outer, self.used_behind = self.used_behind, list(dict.fromkeys(used))
        found = super().visit_seq_expr_(op)
        self.used_behind = outer
        return found

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        needs = _requirements(block)
        users = _reversed_edges(needs)
        if self.from_inputs:
            outside = [v for needed in needs.values() for v in needed if v not in needs]
            free = [var for var, needed in needs.items() if not needed]
            roots = list(dict.fromkeys([*self.params, *outside, *free]))
            order = _traverse(_Graph(roots, needs, users), self.depth_first)
        else:
            outputs = [v for v in needs if not isinstance(v, DataflowVar)]
            behind = [v for v in self.used_behind if v in needs and v in outputs]
            rest = [v for v in needs if v not in users]
            roots = list(dict.fromkeys([*behind[::-1], *outputs[::-1], *rest[::-1]]))
            next_ = {var: needed[::-1] for var, needed in needs.items()}
            order = _traverse(_Graph(roots, users, next_), self.depth_first)[::-1]
        bindings = {b.var: b for b in block.bindings}
        new = [bindings[var] for var in order if var in bindings]
        assert len(new) == len(bindings)
        is_same = all([a is b for a, b in zip(new, block.bindings, strict=True)])
        return super().visit_dataflow_block_(block if is_same else DataflowBlock(new, block.span))


def TopologicalSort(order: str = "depth-first", direction: str = "from-inputs") -> Pass:
    """Sort the bindings of dataflow blocks.

    Parameters
    ----------
    order : str
        ``"depth-first"`` or ``"breadth-first"``.
    direction : str
        ``"from-inputs"`` or ``"from-outputs"``: where the traversal starts. Ties keep their order.
    """
    if order not in ("depth-first", "breadth-first"):
        raise ValueError(f'order must be "depth-first" or "breadth-first", got {order!r}')
    if direction not in ("from-inputs", "from-outputs"):
        raise ValueError(f'direction must be "from-inputs" or "from-outputs", got {direction!r}')

    def run(func: Function, mod: IRModule) -> Function:
        sorter = _Sorter(mod, order == "depth-first", direction == "from-inputs")
        found: Function = sorter.visit_expr(func)
        return found

    return relax_pass("TopologicalSort", run)


__all__ = ["TopologicalSort"]
