"""The data-flow graph that fusion works on, its post-dominators, and the grouping of its nodes.

A node may join the group of its post-dominator (the first node that all its uses lead to) if
the kinds of all nodes on the way allow it. Three rounds: operators with a complex anchor and
element-wise ones, then injective ones, then injective ones into tuples already inside a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tvm.relay.expr import Call, Tuple, TupleGetItem, Var
from tvm.relay.op.registry import OpPattern
from tvm.relay.traverse import operands
from tvm.relay.ty import kernel_arguments, open_extents

Accepts = Callable[[OpPattern, bool], bool]  # (pattern of a group, is it the sink)

# operations of one kernel, those that are computed for several uses counted as often
MAX_EXPANDED = 256


@dataclass(eq=False, slots=True)
class GraphNode:
    """One computation: who uses it, and how."""

    expr: Any  # an expression of relay, or a binding of relax
    index: int
    pattern: OpPattern
    outputs: list[tuple[GraphNode, OpPattern]] = field(default_factory=list)
    is_used_outside: bool = False  # by something that no group can contain


@dataclass(eq=False, slots=True)
class Dominator:
    """A node of the post-dominator tree; `pattern` is the worst edge up to the parent."""

    node: GraphNode
    parent: Dominator | None = None
    depth: int = 1
    pattern: OpPattern = OpPattern.OPAQUE


@dataclass(eq=False, slots=True)
class Group:
    """Nodes that become one kernel, as a union-find forest."""

    root_node: GraphNode  # whose value leaves the kernel
    pattern: OpPattern
    anchor: GraphNode | None = None  # the complex operator that the schedule follows
    parent: Group | None = None
    members: list[GraphNode] = field(default_factory=list)
    most_paths: int = 1  # from a member to the root, at most
    arguments: int = 0  # of the kernel, that are parameters of the function

    def find(self) -> Group:
        """The group that this one was merged into."""
        root = self
        while root.parent is not None:
            root = root.parent
        while self.parent is not None and self.parent is not root:
            self.parent, self = root, self.parent
        return root


def post_dominators(nodes: list[GraphNode]) -> list[Dominator]:
    """The post-dominator tree of nodes in topological order, by index."""
    tree = [Dominator(node) for node in nodes]
    for node in reversed(nodes):
        if node.is_used_outside or not node.outputs:
            continue
        entry = tree[node.index]
        parent, pattern = _common_dominator(node, tree)
        entry.parent, entry.pattern = parent, pattern
        entry.depth = parent.depth + 1 if parent is not None else 1
    return tree


def _common_dominator(node: GraphNode, tree: list[Dominator]) -> tuple[Dominator | None, OpPattern]:
    common: Dominator | None = None
    worst = OpPattern.ELEMWISE
    for position, (user, pattern) in enumerate(node.outputs):
        worst = max(worst, pattern)
        dominator: Dominator | None = tree[user.index]
        if position == 0:
            common = dominator
            continue
        while common is not dominator:
            if common is None or dominator is None:
                return None, OpPattern.OPAQUE
            if common.depth < dominator.depth:
                worst, dominator = max(worst, dominator.pattern), dominator.parent
            elif common.depth > dominator.depth:
                worst, common = max(worst, common.pattern), common.parent
            else:
                worst = max(worst, dominator.pattern, common.pattern)
                dominator, common = dominator.parent, common.parent
    return common, worst


class Partitioner:
    """Puts the nodes of a graph in groups."""

    def __init__(self, nodes: list[GraphNode], max_depth: int, max_arguments: int = 0) -> None:
        self.nodes = nodes
        self.max_depth = max_depth
        self.max_arguments = max_arguments  # of a kernel, 0: any number
        self.by_id = {id(node.expr): node for node in nodes}
        self.groups = [
            Group(n, n.pattern, _anchor(n), members=[n], most_paths=max(len(n.outputs), 1))
            for n in nodes
        ]

    def partition(self) -> list[Group]:
        """The root group of each node, by index."""
        tree = post_dominators(self.nodes)
        if self.max_arguments:
            self._count_arguments()
        for fuse in (self._fuse_anchored, self._fuse_injective, self._fuse_into_tuples):
            for node in self.nodes:
                parent = tree[node.index].parent
                group = self.groups[node.index]
                if group.pattern == OpPattern.OPAQUE or parent is None:
                    continue
                if self.max_arguments and self._takes_too_much(node):
                    continue
                fuse(node, tree[node.index], parent.node)
        return [group.find() for group in self.groups]

    def _count_arguments(self) -> None:
        for node, group in zip(self.nodes, self.groups, strict=True):
            taken = [o for o in operands(node.expr) if isinstance(o, (Var, TupleGetItem))]
            if isinstance(node.expr, (Call, Tuple)):
                group.arguments = sum([kernel_arguments(o.checked_type) for o in taken])

    def _takes_too_much(self, node: GraphNode) -> bool:
        """Whether a user of a node, with all that it reads in one kernel, takes too many arguments."""
        limit = self.max_arguments - sum(
            [1 + open_extents(user.expr.checked_type) for user, _ in node.outputs]
        )
        return limit > 0 and any([self._arguments(user) > limit for user, _ in node.outputs])

    def _arguments(self, node: GraphNode) -> int:
        """What a node and the groups that it reads take, without looking below those that take some."""
        seen: set[int] = set()
        total, stack = 0, [node]
        while stack:
            current = stack.pop()
            group = self.groups[current.index].find()
            if id(group) in seen:
                continue
            seen.add(id(group))
            total += group.arguments
            if current is node or not group.arguments:
                stack += [self.by_id[i] for i in map(id, operands(current.expr)) if i in self.by_id]
        return total

    def _is_fused(self, node: GraphNode, sink: GraphNode) -> bool:
        target = self.groups[sink.index]
        return self.groups[node.index].find() is target.find() or target.pattern == OpPattern.TUPLE

    def _fuse_anchored(self, node: GraphNode, entry: Dominator, sink: GraphNode) -> None:
        if self._is_fused(node, sink):
            return
        pattern = self.groups[node.index].pattern
        if pattern == OpPattern.OUT_ELEMWISE_FUSABLE:
            if entry.pattern == OpPattern.ELEMWISE:
                self._fuse_if(node, sink, _is_broadcast)
        elif pattern <= OpPattern.BROADCAST:
            self._fuse_elementwise(node, entry, sink)

    def _fuse_elementwise(self, node: GraphNode, entry: Dominator, sink: GraphNode) -> None:
        if entry.pattern <= OpPattern.INJECTIVE or entry.pattern == OpPattern.COMM_REDUCE:
            self._fuse_if(node, sink, _is_injective_up_to_sink)

    def _fuse_injective(self, node: GraphNode, entry: Dominator, sink: GraphNode) -> None:
        if self._is_fused(node, sink):
            return
        pattern = self.groups[node.index].pattern
        if pattern in (OpPattern.INJECTIVE, OpPattern.TUPLE):
            self._fuse_if(node, sink, _is_injective)
        elif pattern <= OpPattern.BROADCAST:
            self._fuse_elementwise(node, entry, sink)

    def _fuse_into_tuples(self, node: GraphNode, _: Dominator, sink: GraphNode) -> None:
        if self.groups[node.index].pattern > OpPattern.INJECTIVE:
            return
        target = self.groups[sink.index]
        root = target.find()
        if target.pattern == OpPattern.TUPLE and root.pattern <= OpPattern.INJECTIVE:
            self._fuse_if(node, sink, _is_injective)

    def _fuse_if(self, node: GraphNode, sink: GraphNode, accepts: Accepts) -> None:
        passed = self._accepted_between(node, sink, accepts)
        if passed is None:
            return
        groups = self._groups_of([node, *passed], sink)
        count = sum([len(group.members) for group in groups])
        if count > self.max_depth:
            return
        paths = math.prod([group.most_paths for group in groups])
        if paths > 1 and count * paths > MAX_EXPANDED and _expanded(groups) > MAX_EXPANDED:
            return
        target = self.groups[sink.index]
        for member in (node, *passed):
            _merge(self.groups[member.index].find(), target.find())

    def _accepted_between(
        self, node: GraphNode, sink: GraphNode, accepts: Accepts
    ) -> list[GraphNode] | None:
        """The nodes on all paths from `node` to `sink`, both left out; None if one is not accepted.

        It stops at the first that is not: a path to a distant sink passes most of the graph.
        """
        found: list[GraphNode] = []
        seen: set[int] = set()
        stack = [user for user, _ in node.outputs]
        while stack:
            current = stack.pop()
            if current.index in seen:
                continue
            seen.add(current.index)
            is_sink = current is sink
            if not accepts(self.groups[current.index].find().pattern, is_sink):
                return None
            if not is_sink:
                found.append(current)
                stack.extend([user for user, _ in current.outputs])
        return found

    def _groups_of(self, passed: list[GraphNode], sink: GraphNode) -> list[Group]:
        """The groups that a merge would join."""
        roots = [self.groups[n.index].find() for n in (sink, *passed)]
        return list({id(group): group for group in roots}.values())


def _expanded(groups: list[Group]) -> int:
    """How many operations the nodes become where each is computed anew for every use."""
    members = [node for group in groups for node in group.members]
    uses: dict[int, int] = {}
    for node in sorted(members, key=lambda node: -node.index):
        # what is no map is computed once, into memory
        found = sum([uses.get(user.index, 0) for user, _ in node.outputs])
        uses[node.index] = found if found and node.pattern <= OpPattern.INJECTIVE else 1
    return sum(uses.values())


def _anchor(node: GraphNode) -> GraphNode | None:
    return node if node.pattern == OpPattern.OUT_ELEMWISE_FUSABLE else None


def _merge(child: Group, parent: Group) -> None:
    if child is parent:
        return
    parent.members += child.members
    parent.arguments += child.arguments
    parent.most_paths = min(parent.most_paths * child.most_paths, MAX_EXPANDED)
    child.parent = parent
    if child.anchor is not None:
        assert parent.anchor is None, "two complex operators cannot share a kernel"
        parent.anchor = child.anchor
        parent.pattern = max(child.pattern, parent.pattern)


def _is_broadcast(pattern: OpPattern, is_sink: bool) -> bool:
    del is_sink
    return pattern <= OpPattern.BROADCAST


def _is_injective(pattern: OpPattern, is_sink: bool) -> bool:
    del is_sink
    return pattern <= OpPattern.INJECTIVE


def _is_injective_up_to_sink(pattern: OpPattern, is_sink: bool) -> bool:
    if pattern <= OpPattern.INJECTIVE:
        return True
    return is_sink and pattern in (OpPattern.COMM_REDUCE, OpPattern.OUT_ELEMWISE_FUSABLE)
