"""Which loops LLVM opens."""

from __future__ import annotations

import pytest

import tvm
from tvm import te
from tvm.codegen.llvm.unrolling import unroll_hint
from tvm.te import Schedule, Tensor
from tvm.tir import For, PrimFunc, stmt_functor

Program = tuple[Schedule, list[Tensor]]


def sums(depth: int, inner: int, rows: int = 6) -> Program:
    """Sums of products of vectors, over `depth` blocks of `inner`."""
    a = te.placeholder((rows, depth, inner), name="a")
    b = te.placeholder((depth, inner, 8), name="b")
    outer, rest = te.reduce_axis((0, depth), name="outer"), te.reduce_axis((0, inner), name="rest")
    c = te.compute(
        (rows, 8),
        lambda i, j: te.sum(a[i, outer, rest] * b[outer, rest, j], axis=[outer, rest]),
        name="c",
    )
    s = te.create_schedule(c.op)
    i, j = s[c].op.axis
    s[c].reorder(outer, rest, i, j)
    s[c].unroll(i)
    s[c].vectorize(j)
    return s, [a, b, c]


def lines(many: bool) -> Program:
    """Four, or one, vectors of each of six lines."""
    a = te.placeholder((6, 4 if many else 1, 8), name="a")
    b = te.compute(a.shape, lambda i, j, k: a[i, j, k] * a[i, 0, k], name="b")
    s = te.create_schedule(b.op)
    _, j, k = s[b].op.axis
    s[b].unroll(j)
    s[b].vectorize(k)
    return s, [a, b]


def joined(rows: int = 32) -> Program:
    """Vectors of one of two tensors."""
    a, b = te.placeholder((rows, 8), name="a"), te.placeholder((rows, 8), name="b")
    c = te.compute(
        (2 * rows, 8),
        lambda i, j: te.if_then_else(i < rows, a[i, j], b[i - rows, j]),
        name="c",
    )
    s = te.create_schedule(c.op)
    s[c].vectorize(s[c].op.axis[1])
    return s, [a, b, c]


def scalars() -> Program:
    a = te.placeholder((128,), name="a")
    b = te.compute((128,), lambda i: a[i] + 1.0, name="b")
    return te.create_schedule(b.op), [a, b]


def lowered(program: Program) -> PrimFunc:
    func = tvm.lower(*program)["main"]
    assert isinstance(func, PrimFunc)
    return func


def innermost(func: PrimFunc) -> For:
    found: list[For] = []
    stmt_functor.post_order_visit(
        func.body, lambda node: found.append(node) if isinstance(node, For) else None
    )
    return found[0]


@pytest.mark.parametrize(
    ("program", "hint"),
    [
        (lines(many=True), "llvm.loop.unroll.disable"),
        (lines(many=False), None),
        (joined(), "llvm.loop.unroll.disable"),
        (joined(3), None),  # open, it has no conditions left
        (sums(3, 8), None),
        (scalars(), None),
    ],
    ids=["lines", "line", "joined", "few", "sums", "scalars"],
)
def test_only_what_gains_nothing_stays_closed(program: Program, hint: str | None) -> None:
    assert unroll_hint(innermost(lowered(program))) == hint
