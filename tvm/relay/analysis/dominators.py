"""Numbers of nodes in post-order, and the node through which all paths from each one lead."""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.relay.traverse import operands, post_order


def index_dominators(root: RelayExpr) -> dict[int, tuple[int, int]]:
    """By identity, the number of each node and of its immediate post-dominator.

    The root is its own.
    """
    order = post_order(root)
    number = {id(node): i for i, node in enumerate(order)}
    users: list[list[int]] = [[] for _ in order]
    for i, node in enumerate(order):
        for operand in operands(node):
            users[number[id(operand)]].append(i)
    dominator = list(range(len(order)))
    for i in range(len(order) - 2, -1, -1):  # users have greater numbers
        found = users[i][0]
        for user in users[i][1:]:
            found = _meet(found, user, dominator)
        dominator[i] = found
    return {id(node): (i, dominator[i]) for i, node in enumerate(order)}


def _meet(a: int, b: int, dominator: list[int]) -> int:
    """The nearest common node of two chains of dominators."""
    while a != b:
        if a < b:
            a = dominator[a]
        else:
            b = dominator[b]
    return a
