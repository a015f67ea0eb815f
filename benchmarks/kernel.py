"""Micro-benchmarks of the node kernel: building nodes and rewriting trees.

usage: python -m benchmarks.kernel

The bounds to keep: a binary node costs at most 1.5 times a bare slotted class, an identity
rewrite at most 3 times a bare recursive walk.
"""

from __future__ import annotations

from collections.abc import Callable
from timeit import repeat

from tvm import tir
from tvm.ir.visitor import Rewriter, Visitor

DEPTH = 14


class Bare:
    """What a hand-written node would be."""

    __slots__ = ("a", "b", "dtype", "span")

    def __init__(self, a: object, b: object, span: object = None) -> None:
        self.a = a
        self.b = b
        self.span = span
        self.dtype = a.dtype  # type: ignore[attr-defined]


def walk(node: object) -> None:
    """The least a recursive function does."""
    if type(node) is tir.Add:
        walk(node.a)
        walk(node.b)


def tree(depth: int, leaf: tir.Var) -> tir.PrimExpr:
    """A full binary tree of additions."""
    return leaf if depth == 0 else tir.Add(tree(depth - 1, leaf), tree(depth - 1, leaf))


def best(function: Callable[[], object], number: int) -> float:
    """The shortest of several measurements, in seconds a call."""
    return min(repeat(function, number=number, repeat=7)) / number


def main() -> None:
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    bare, node = best(lambda: Bare(x, y), 200_000), best(lambda: tir.Add(x, y), 200_000)
    print(f"binary node      {1e9 * node:7.0f} ns   bare class {1e9 * bare:7.0f} ns   "
          f"ratio {node / bare:.2f} (bound 1.5)")  # fmt: skip
    program, count = tree(DEPTH, x), 2 ** (DEPTH + 1) - 1
    bare = best(lambda: walk(program), 3) / count
    for name, visitor in (("identity rewrite", Rewriter()), ("visitor", Visitor())):
        time = best(lambda v=visitor: v.visit(program), 3) / count  # type: ignore[misc]
        print(f"{name:16} {1e9 * time:7.0f} ns   bare walk  {1e9 * bare:7.0f} ns   "
              f"ratio {time / bare:.2f} (bound 3.0)")  # fmt: skip


if __name__ == "__main__":
    main()
